//! Sources into one configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

use super::table::{SETTINGS, Setting};
use super::tree::leaves;
use super::{Config, Held, Origin, SourceFile};

/// Where settings come from, the strongest first.
pub struct Sources<'a> {
    /// Paths and texts from the command line.
    pub flags: &'a [(&'a str, String)],
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The file and its text.
    pub file: Option<(&'a Path, &'a str)>,
}

/// Something in the settings that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// It is no setting.
    Unknown {
        /// Where it stands.
        path: String,
        /// The known name that is most like it.
        nearest: Option<String>,
    },
    /// A rule that resets by idle time is said without any.
    NeverIdle {
        /// Where the rule stands.
        path: String,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { path, nearest } => {
                write!(f, "{path} is not a setting")?;
                nearest.as_ref().map_or(Ok(()), |name| write!(f, "; did you mean {name}?"))
            }
            Self::NeverIdle { path } => write!(
                f,
                "{path}.mode is idle, and no idle time is set: nothing is reset by it; set {path}.idleMinutes"
            ),
        }
    }
}

/// Reads all sources. What has no effect comes as warnings.
///
/// # Errors
/// `InvalidInput` for a value that its setting may not have: it names the variable, or the path in the file, and the
/// legal values; and for a file that is not JSON5, with line and column.
pub fn load(sources: &Sources<'_>) -> Result<(Config, Vec<Warning>)> {
    let mut held = defaults();
    let mut warnings = Vec::new();
    let mut file = None;
    if let Some((path, text)) = sources.file {
        let (found, unknown) = leaves(text).map_err(|e| e.path(path))?;
        for (at, setting, value) in found {
            held.insert(at, Held { value, origin: Origin::File, secret: setting.is_secret() });
        }
        warnings = unknown;
        agents_have_ids(held.keys().map(String::as_str)).map_err(|e| e.path(path))?;
        let sha256 =
            Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        file = Some(SourceFile { path: path.to_path_buf(), sha256 });
    }
    for setting in SETTINGS {
        if let Some((name, value)) = from_environment(setting, sources)? {
            let origin = Origin::Environment(name.to_owned());
            held.insert(
                setting.path.to_owned(),
                Held { value, origin, secret: setting.is_secret() },
            );
        }
    }
    for (path, text) in sources.flags {
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.path == *path)
            .ok_or_else(|| Error::invalid(format!("{path} is not a setting")).field(*path))?;
        let value = setting.kind.read(text).map_err(|e| e.field(*path))?;
        held.insert(
            (*path).to_owned(),
            Held { value, origin: Origin::Flag, secret: setting.is_secret() },
        );
    }
    let mut config = Config { held, file, masked: Vec::new() };
    let named = config.texts("security.maskEnv").into_iter();
    let values = named.filter_map(|name| (sources.variable)(name)?.into_string().ok());
    config.masked = values.collect();
    config.watch_rules()?;
    let idle = config.rules_without_idle_time().into_iter();
    warnings.extend(idle.map(|path| Warning::NeverIdle { path }));
    Ok((config, warnings))
}

/// Every agent of the list has an id: `paths` are those of all that is set.
pub(super) fn agents_have_ids<'a>(paths: impl Iterator<Item = &'a str>) -> Result<()> {
    let paths: BTreeSet<&str> = paths.collect();
    let places = paths.iter().filter_map(|path| path.strip_prefix("agents.list["));
    for index in places.filter_map(|rest| rest.split_once(']').map(|(index, _)| index)) {
        let place = format!("agents.list[{index}]");
        if !paths.contains(format!("{place}.id").as_str()) {
            return Err(Error::invalid(format!("{place} has no id"))
                .field(place)
                .hint("every agent has an id, such as { id: 'ops' }"));
        }
    }
    Ok(())
}

pub(super) fn defaults() -> BTreeMap<String, Held> {
    let value = |setting: &Setting| serde_json::from_str::<Value>(setting.default).ok();
    let held = |setting: &Setting, value| {
        let held = Held { value, origin: Origin::Default, secret: setting.is_secret() };
        (setting.path.to_owned(), held)
    };
    SETTINGS.iter().filter_map(|setting| Some(held(setting, value(setting)?))).collect()
}

fn from_environment(
    setting: &Setting,
    sources: &Sources<'_>,
) -> Result<Option<(&'static str, Value)>> {
    for name in setting.variables {
        let Some(text) = (sources.variable)(name).filter(|text| !text.is_empty()) else { continue };
        let shown = if setting.is_secret() { "its value".to_owned() } else { format!("{text:?}") };
        let unfit = || {
            Error::invalid(format!("{name} is {shown}, which is not {}", setting.legal()))
                .field(*name)
                .hint(format!("{name} is for {}", setting.about))
        };
        let text = text.to_str().ok_or_else(unfit)?;
        return setting.kind.read(text).map(|value| Some((*name, value))).map_err(|_| unfit());
    }
    Ok(None)
}
