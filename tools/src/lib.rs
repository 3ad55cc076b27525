//! The session tools.
