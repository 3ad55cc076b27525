//! An event as it is shown: `line` is its form for eyes; those for programs are the tools'.

pub(crate) mod gap;
pub(crate) mod line;
pub(crate) mod mask;
pub(crate) mod print;

pub(crate) use annals_tools::shown::{Apart, Shown, cloud_event, wire};
