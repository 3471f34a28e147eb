//! Where the agent for Java lies: `crates/jitscribe-jvmti`, which a JVM loads.

use std::env;
use std::path::PathBuf;

use crate::companion;

/// The agent's file name.
const NAME: &str = "libjitscribe_jvmti.so";

/// Names another file, or none if it is empty.
const VARIABLE: &str = "JITSCRIBE_JAVA_AGENT";

/// The agent, if it is there: the file that `JITSCRIBE_JAVA_AGENT` names, else the one that comes with the command.
pub fn path() -> Option<PathBuf> {
    match env::var_os(VARIABLE) {
        Some(named) => PathBuf::from(named).canonicalize().ok(),
        None => companion::library(NAME),
    }
}
