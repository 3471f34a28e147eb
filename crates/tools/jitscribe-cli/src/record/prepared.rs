//! What is changed in the command before it is recorded.

use crate::runtimes::Preparation;
use crate::text::shell_word;
use crate::{Result, bridge, note};

/// Makes the command load the library for `LD_PRELOAD`.
pub fn add_bridge(prepared: &mut Preparation) -> Result<()> {
    let library = bridge::library()?;
    if let Some(program) = prepared.command.first() {
        bridge::warn_of_obstacle(program);
    }
    prepared.variables.insert(bridge::VARIABLE.into(), bridge::value(&library));
    Ok(())
}

/// Reports the flags that were added to the command.
pub fn print_flags(prepared: &Preparation) {
    if prepared.flags.is_empty() {
        return;
    }
    let flags: Vec<String> = prepared.flags.iter().map(shell_word).collect();
    let name = prepared.runtime.map_or("the runtime", |runtime| runtime.name);
    note::say(format_args!("{name} is run with {} (--no-env prevents this)", flags.join(" ")));
}
