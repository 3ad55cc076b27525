//! The settings of this run of the program: read when somebody asks first, and then the same for all.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use annals_engine::config::{Config, Sources, Warning, load, read_file};
use annals_engine::watch::Watch;
use etcetera::BaseStrategy;

use crate::args::Global;
use crate::exit::Failure;
use crate::output::say;
use crate::output::text::one_line;

/// The variable that names the file.
const VARIABLE: &str = "ANNALS_CONFIG";

/// What the command line said: the file, if it named one, and settings.
static SAID: OnceLock<Said> = OnceLock::new();
static LOADED: OnceLock<Config> = OnceLock::new();
/// What stood in the file when it was read.
static READ: OnceLock<Option<String>> = OnceLock::new();

/// So often it is looked at behind notifications whether the file is another.
const LOOKS_EVERY: Duration = Duration::from_secs(5);

struct Said {
    file: Option<PathBuf>,
    flags: Vec<(&'static str, String)>,
}

/// Takes what the command line says, before anybody asks.
pub(crate) fn take(global: &Global) {
    let store = global.store.as_ref().map(|folder| ("store", folder.display().to_string()));
    let flags = store.into_iter().collect();
    SAID.get_or_init(|| Said { file: global.config.clone(), flags });
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
    let (config, warnings) = with(path.as_deref().zip(text.as_deref()))?;
    for warning in warnings {
        say(&format!("note: {}", one_line(&warning.to_string())));
    }
    READ.get_or_init(|| text);
    Ok(LOADED.get_or_init(|| config))
}

/// Says once, from a thread of its own, when the file is not any more what this run has read and goes by to its end. Agents,
/// policies and rules belong together, so none of them is changed under a run that is at work.
pub(crate) fn tell_when_changed() {
    let (Some(path), _) = place() else { return };
    let watch = path.parent().zip(path.file_name().and_then(|name| name.to_str()));
    let watch = watch.and_then(|(folder, name)| Watch::file(folder, name).ok());
    let look = move || {
        // A file that cannot be read for a moment is one that is being changed.
        while read_file(&path).map_or(true, |text| READ.get() == Some(&text)) {
            match &watch {
                Some(watch) => drop(watch.wait(LOOKS_EVERY)),
                None => std::thread::park_timeout(LOOKS_EVERY),
            }
        }
        let path = one_line(&path.display().to_string());
        say(&format!("note: {path} has changed: what it says now holds from the next start on"));
    };
    // Without the thread nothing is said.
    drop(std::thread::Builder::new().name("settings".to_owned()).spawn(look));
}

/// The settings that would be in force with this file, and what in it is none.
///
/// # Errors
/// What [`load`] says.
pub(crate) fn with(file: Option<(&Path, &str)>) -> Result<(Config, Vec<Warning>), Failure> {
    let flags = SAID.get().map_or(&[][..], |said| &said.flags);
    let variable = |name: &str| std::env::var_os(name);
    Ok(load(&Sources { flags, variable: &variable, file })?)
}

/// Where the file is, and whether somebody said so: then it must be there. It is a whole path wherever the folder that we
/// are in is known: what the file says of folders and programs is relative to its own folder, which a bare name has not.
pub(crate) fn place() -> (Option<PathBuf>, bool) {
    let said = SAID.get().and_then(|said| said.file.clone());
    let named = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(path) = said.or_else(named) {
        return (Some(std::path::absolute(&path).unwrap_or(path)), true);
    }
    let xdg = etcetera::choose_base_strategy().ok();
    (xdg.map(|xdg| xdg.config_dir().join("annals").join("annals.json5")), false)
}
