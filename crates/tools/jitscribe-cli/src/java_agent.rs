//! The path of the Java agent (`crates/bindings/jitscribe-jvmti`), which a JVM loads.

use std::env;
use std::path::PathBuf;

use crate::companion;

/// The agent's file name.
const NAME: &str = "libjitscribe_jvmti.so";

/// The environment variable that names another file; empty for no agent.
const VARIABLE: &str = "JITSCRIBE_JAVA_AGENT";

/// The agent if it exists: the file that `JITSCRIBE_JAVA_AGENT` names, else the one installed with the command.
pub fn path() -> Option<PathBuf> {
    companion::named_library(VARIABLE, NAME)
}

/// Whether there is no agent, which the user did not ask for by an empty name.
pub fn is_missing() -> bool {
    env::var_os(VARIABLE).is_none_or(|named| !named.is_empty()) && path().is_none()
}
