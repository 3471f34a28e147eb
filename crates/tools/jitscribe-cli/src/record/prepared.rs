//! What is changed in the command before it is recorded.

use crate::runtimes::Preparation;
use crate::text::shell_word;
use crate::{Result, bridge, java_agent, note};

/// Makes the command load the library for `LD_PRELOAD`.
pub fn add_bridge(prepared: &mut Preparation) -> Result<()> {
    let library = bridge::library()?;
    if let Some(program) = prepared.command.first() {
        bridge::warn_of_obstacle(program);
    }
    prepared.variables.insert(bridge::VARIABLE.into(), bridge::value(&library));
    Ok(())
}

/// Reports the flags that were added to the command, and what is missing for it.
pub fn print_preparation(prepared: &Preparation) {
    if prepared.runtime.is_some_and(|runtime| runtime.name == "Java") && java_agent::is_missing() {
        note::warning(
            "the Java agent is not installed: Java writes a perf map instead, which has names, but no lines, no inlined calls, and no call stacks without \
             frame pointers. Install it (README, \"Install\"), or name it in JITSCRIBE_JAVA_AGENT",
        );
    }
    if prepared.flags.is_empty() {
        return;
    }
    let flags: Vec<String> = prepared.flags.iter().map(shell_word).collect();
    let name = prepared.runtime.map_or("the runtime", |runtime| runtime.name);
    note::say(format_args!("{name} is run with {} (--no-env prevents this)", flags.join(" ")));
}
