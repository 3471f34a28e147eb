//! How a runtime has to be started so that a debugger that attaches later finds its code.

use std::ffi::OsStr;
use std::iter::once;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::runtimes::{Runtime, is_qemu_user, runtime_of, runtimes_of_files};

/// Programs that commands start.
const STARTED: &[(&str, &str)] = &[("beam.smp", "erl")];

/// The runtime that one of these mapped files is.
fn runtime_in<'p>(mut files: impl Iterator<Item = &'p [u8]>) -> Option<&'static Runtime> {
    files.find_map(|path| {
        let name = Path::new(OsStr::from_bytes(path)).file_name()?;
        let started = STARTED.iter().find(|(program, _)| name == OsStr::new(program));
        let name = started.map_or(name, |(_, command)| OsStr::new(command));
        let of_qemu = || is_qemu_user(name).then(|| runtimes_of_files(once(Path::new(name))));
        runtime_of(name)
            .or_else(|| of_qemu()?.first().copied())
            .filter(|runtime| !runtime.debugger_switch.is_empty())
    })
}

/// What to say about code without names in a process that has mapped these files. `is_stopped_in_it` is whether the process was
/// stopped in such code; otherwise, only runtimes that are known are worth a message.
pub fn message<'p>(
    files: impl Iterator<Item = &'p [u8]>,
    is_stopped_in_it: bool,
) -> Option<String> {
    match runtime_in(files) {
        Some(Runtime { name, debugger_switch: switch, .. }) => Some(format!(
            "{name} was started without what announces its code, which has no names here. Start it so: {switch}"
        )),
        None if is_stopped_in_it => Some(
            "the code in executable memory without a file has no names: nothing announces it. `jitscribe debug -- COMMAND` sets what \
             known runtimes need"
                .into(),
        ),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::RUNTIMES;

    #[test]
    fn every_runtime_has_a_switch() {
        for runtime in RUNTIMES {
            for program in runtime.programs {
                let path = format!("/usr/bin/{program}");
                let found = runtime_in([path.as_bytes()].into_iter()).map(|runtime| runtime.name);
                assert_eq!(found, Some(runtime.name));
            }
        }
    }

    #[test]
    fn the_runtime_is_found_among_the_mapped_files() {
        let say = |files: &[&str], here| message(files.iter().map(|file| file.as_bytes()), here);
        let node = say(&["/lib/libc.so.6", "/usr/bin/node"], false).unwrap();
        assert!(
            node.ends_with("node --perf-basic-prof --interpreted-frames-native-stack"),
            "{node}"
        );
        let erl = say(&["/usr/lib/erlang/erts-13/bin/beam.smp"], false).unwrap();
        assert!(erl.contains("+JPperf true"), "{erl}");
        let qemu = say(&["/usr/bin/qemu-aarch64-static"], false).unwrap();
        assert!(qemu.contains("QEMU_PERFMAP=1"), "{qemu}");
        assert_eq!(say(&["/usr/bin/cat"], false), None);
        assert!(say(&["/usr/bin/cat"], true).unwrap().contains("jitscribe debug -- COMMAND"));
    }
}
