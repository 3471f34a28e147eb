//! Where the agent for Java lies: `crates/jitscribe-jvmti`, which a JVM loads.

use std::env;
use std::path::PathBuf;

/// The agent's file name.
const NAME: &str = "libjitscribe_jvmti.so";

/// Names another file, or none if it is empty.
const VARIABLE: &str = "JITSCRIBE_JAVA_AGENT";

/// The agent, if it is there: the file that `JITSCRIBE_JAVA_AGENT` names, else beside the command, or where libraries of
/// programs in `bin` lie.
pub fn path() -> Option<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return PathBuf::from(named).canonicalize().ok();
    }
    let command = env::current_exe().and_then(|command| command.canonicalize()).ok()?;
    let folder = command.parent()?;
    let libraries = folder.join("../lib");
    let candidates =
        [folder.join(NAME), libraries.join("jitscribe").join(NAME), libraries.join(NAME)];
    candidates.into_iter().find_map(|path| path.canonicalize().ok())
}
