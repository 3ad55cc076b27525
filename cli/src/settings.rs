//! The settings of this run of the program: read when somebody asks first, and then the same for all.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use annals_engine::config::{Config, Sources, load, read_file};
use etcetera::BaseStrategy;

use crate::exit::Failure;
use crate::output::say;
use crate::output::text::one_line;

/// The variable that names the file.
const VARIABLE: &str = "ANNALS_CONFIG";

/// The file that the command line named, if it named one.
static NAMED: OnceLock<PathBuf> = OnceLock::new();
static LOADED: OnceLock<Config> = OnceLock::new();

/// Names the file, before anybody asks.
pub(crate) fn name_file(path: &Path) {
    NAMED.get_or_init(|| path.to_path_buf());
}

/// The settings.
///
/// # Errors
/// Not found for a file that was named and is not there; usage for a file that cannot be read as settings, and for a
/// value that cannot be.
pub(crate) fn get() -> Result<&'static Config, Failure> {
    if let Some(config) = LOADED.get() {
        return Ok(config);
    }
    let (path, must_be) = place();
    let text = match &path {
        Some(path) => read_file(path)?,
        None => None,
    };
    if let (true, None, Some(path)) = (must_be, &text, &path) {
        return Err(Failure::not_found(format!("there is no configuration {}", path.display())));
    }
    let variable = |name: &str| std::env::var_os(name);
    let file = path.as_deref().zip(text.as_deref());
    let (config, warnings) = load(&Sources { flags: &[], variable: &variable, file })?;
    for warning in warnings {
        say(&format!("note: {}", one_line(&warning.to_string())));
    }
    Ok(LOADED.get_or_init(|| config))
}

/// Where the file is, and whether somebody said so: then it must be there.
pub(crate) fn place() -> (Option<PathBuf>, bool) {
    if let Some(path) = NAMED.get() {
        return (Some(path.clone()), true);
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return (Some(path.into()), true);
    }
    let xdg = etcetera::choose_base_strategy().ok();
    (xdg.map(|xdg| xdg.config_dir().join("annals").join("annals.json5")), false)
}
