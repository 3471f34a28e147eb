//! What tells node from another process, and on which port it opens its inspector.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::record::agent::{Failure, Maps, Target, Wait};
use crate::runtimes::runtimes_of_files;

/// The default port of node's inspector.
const USUAL: u16 = 9229;

/// The most bytes that are read of a command line, and of an environment.
const MOST_WORDS: u64 = 4 << 20;

/// The most files that are considered.
const MOST_FILES: usize = 1 << 16;

/// Whether a process is node, by the files that it has mapped as code, and embeds no browser. Like other programs that contain V8, those
/// are not tested.
pub fn is_node(maps: Maps, wait: &Wait<'_>) -> Result<bool, Failure> {
    let mut names = BTreeSet::new();
    maps.each(wait, |mapping| {
        names.extend(mapping.code_file().map(<[u8]>::to_vec));
        if names.len() < MOST_FILES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let files = names.iter().map(|name| Path::new(OsStr::from_bytes(name)));
    let runtimes = runtimes_of_files(files);
    let has = |name: &str| runtimes.iter().any(|runtime| runtime.name == name);
    Ok(has("node") && !has("Chromium"))
}

/// The port on which it opens its inspector; 0 if that is any.
///
/// This waits for the lock of the process's address space, as reading [`Maps`] does.
pub fn port(target: &Target) -> u16 {
    let read = |name| {
        let mut words = Vec::new();
        // What cannot be read says nothing.
        let file = target.file(name).ok()?;
        file.take(MOST_WORDS).read_to_end(&mut words).ok()?;
        Some(words)
    };
    port_of(&read("environ").unwrap_or_default(), &read("cmdline").unwrap_or_default())
}

/// The same for an environment and a command line, whose options win.
fn port_of(environment: &[u8], command: &[u8]) -> u16 {
    let variable = |word: &&[u8]| word.starts_with(b"NODE_OPTIONS=");
    let variable = environment.split(|byte| *byte == 0).rfind(variable).unwrap_or_default();
    let options = variable.split(|byte| *byte == b' ' || *byte == b'"').skip(1);
    let first = variable.splitn(2, |byte| *byte == b'=').nth(1).unwrap_or_default();
    let first = first.split(|byte| *byte == b' ').next().into_iter();
    // Behind the program, up to the script.
    let words = command.split(|byte| *byte == 0).skip(1);
    let words = words.take_while(|word| word.starts_with(b"-"));
    first.chain(options).chain(words).filter_map(port_in).last().unwrap_or(USUAL)
}

/// The port that an option names.
fn port_in(word: &[u8]) -> Option<u16> {
    let word = std::str::from_utf8(word).ok()?;
    let (option, value) = word.split_once('=')?;
    let options =
        ["--inspect-port", "--debug-port", "--inspect", "--inspect-brk", "--inspect-wait"];
    if !options.contains(&option) {
        return None;
    }
    // A host may be in front.
    value.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_names_the_port() {
        for (environment, command, port) in [
            ("", "node\0app.js\0", 9229),
            ("", "node\0--inspect\0app.js\0", 9229),
            ("", "node\0--inspect-port=1234\0app.js\0", 1234),
            ("", "node\0--inspect=[::1]:1234\0app.js\0", 1234),
            ("", "node\0--inspect=localhost\0app.js\0", 9229),
            ("", "node\0app.js\0--inspect-port=1234\0", 9229),
            ("A=1\0NODE_OPTIONS=--inspect-port=1 --x --debug-port=2\0B=2\0", "node\0app.js\0", 2),
            ("NODE_OPTIONS=--inspect-port=1\0", "node\0app.js\0", 1),
            ("NODE_OPTIONS=--inspect-port=1\0", "node\0--inspect-port=0\0", 0),
            ("NODE_OPTIONSX=--inspect-port=1\0", "", 9229),
        ] {
            assert_eq!(port_of(environment.as_bytes(), command.as_bytes()), port, "{command:?}");
        }
    }

    #[test]
    fn this_process_is_not_node() {
        let this = Target::open(std::process::id()).expect("this process");
        let wait = Wait::new(crate::foreign::Limit::NEVER, None, None);
        assert!(!is_node(Maps::of(&this).expect("opened"), &wait).expect("read"));
    }
}
