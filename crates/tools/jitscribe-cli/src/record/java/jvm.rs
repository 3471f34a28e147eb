//! How a JVM is recognized, and the requests that it gets.
//!
//! A process is treated as a JVM if it has a file `libjvm.so` mapped as code. This does not prove that it is one.

use std::io::{self, Read};
use std::ops::ControlFlow;

use rustix::process::Signal;

use crate::record::agent::{Failure, Mapping, Maps, Target, Wait};

/// The start of the file name of OpenJ9's own library, which continues with its version.
const OPENJ9: &[u8] = b"/libj9vm";

/// The most bytes that are read of a command line, and of an environment.
const MOST_WORDS: u64 = 4 << 20;

/// The process with this id, if it may be a JVM.
pub fn open(pid: u32) -> io::Result<Target> {
    Ok(Target::open(pid)?.answered_by(answers))
}

/// Whether it handles SIGQUIT. Only then may it be a JVM. This can be checked without reading the mappings.
pub fn catches_quit(target: &Target) -> io::Result<bool> {
    target.catches(Signal::QUIT)
}

/// Sends SIGQUIT, which makes a JVM listen, unless the signal would end the process.
pub fn quit(target: &Target) -> Result<(), Failure> {
    let without = "it accepts no commands (yet), and SIGQUIT, which enables them, would end it";
    target.signal(Signal::QUIT, without)
}

/// Whether a process's command line or its environment turns on `PreserveFramePointer`, which is off by default. Files that may have
/// options, too, are not read: without frame pointers, stacks are recorded in a way that never needs them.
///
/// This waits for the lock of the process's address space, as reading [`Maps`] does.
pub fn is_told_to_keep_frame_pointers(target: &Target) -> bool {
    let mut words = Vec::new();
    for file in ["environ", "cmdline"] {
        // What cannot be read says nothing.
        if let Ok(file) = target.file(file) {
            let _ = file.take(MOST_WORDS).read_to_end(&mut words);
            words.push(0);
        }
    }
    turns_on_frame_pointers(&words)
}

/// Whether a file `libjvm.so` is mapped as code.
pub fn is_jvm(maps: Maps, wait: &Wait<'_>) -> Result<bool, Failure> {
    let mut evidence = Evidence::default();
    maps.each(wait, |mapping| evidence.add(mapping))?;
    Ok(evidence.is_jvm)
}

/// What was found in the list of mappings.
#[derive(Debug, Default)]
struct Evidence {
    is_jvm: bool,
}

impl Evidence {
    fn add(&mut self, mapping: Mapping<'_>) -> ControlFlow<()> {
        self.is_jvm |= mapping.code_file() == Some(b"libjvm.so");
        // OpenJ9 also has a libjvm.so, but on SIGQUIT it writes a large dump file.
        if mapping.line().windows(OPENJ9.len()).any(|part| part == OPENJ9) {
            self.is_jvm = false;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Whether a JVM's thread of this name has to run before the JVM answers: the one that handles SIGQUIT, the one that serves requests,
/// and those that stop the others, collect garbage, and continue them. Threads of the application do not count: a thread that
/// always has work waits for processors all the time, also in a JVM that would never answer.
fn answers(name: &[u8]) -> bool {
    let begins = [&b"Signal Dispatch"[..], b"Attach Listener", b"VM Thread", b"GC ", b"G1 "];
    begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether the last word about the option turns it on.
fn turns_on_frame_pointers(words: &[u8]) -> bool {
    let words = words.split(|byte| [0, b' ', b'=', b'\n', b'\t', b'"', b'\''].contains(byte));
    let mut about = words.filter_map(|word| match word.strip_prefix(b"-XX:")? {
        b"+PreserveFramePointer" => Some(true),
        b"-PreserveFramePointer" => Some(false),
        _ => None,
    });
    about.next_back().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::foreign::Limit;
    use crate::record::agent::each_of;

    fn have_jvm(maps: &[u8], wait: &Wait<'_>) -> Result<bool, Failure> {
        let mut evidence = Evidence::default();
        each_of(maps, wait, |mapping| evidence.add(mapping))?;
        Ok(evidence.is_jvm)
    }

    fn wait(time: Duration) -> Wait<'static> {
        Wait::new(Limit::of(time), None, None)
    }

    #[test]
    fn the_last_word_about_frame_pointers_counts() {
        for (words, is_on) in [
            ("java\0-XX:+PreserveFramePointer\0Main\0", true),
            ("JAVA_TOOL_OPTIONS=-Xmx1g -XX:+PreserveFramePointer\0java\0Main\0", true),
            (
                "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer\0java\0-XX:-PreserveFramePointer\0",
                false,
            ),
            ("java\0-XX:+PreserveFramePointers\0", false),
            ("", false),
        ] {
            assert_eq!(turns_on_frame_pointers(words.as_bytes()), is_on, "{words:?}");
        }
    }

    #[test]
    fn code_of_libjvm_so_is_java() {
        let later = wait(Duration::from_secs(600));
        let is_java = |maps: &[u8]| have_jvm(maps, &later).expect("read");
        assert!(is_java(
            b"1-2 r--p 0 08:01 1 /a/libjvm.so\n3-4 r-xp 0 08:01 1    /a/libjvm.so\n5-6"
        ));
        assert!(is_java(b"1-2 r--p 0 08:01 1 /\xff\n3-4 r-xp 0 08:01 1 /a b/libjvm.so (deleted)"));
        for other in [
            "",
            "\n\n",
            "1-2 r--p 0 08:01 1 /a/libjvm.so\n",
            "1-2 r-xp 0 08:01 1 /a/notlibjvm.so\n",
            "1-2 r-xp 0 08:01 1 /a/libjvm.so.bak\n",
            "1-2 r-xp 0 08:01 1 [anon: /libjvm.so]\n",
            "1-2 r-xp 0 08:01 1 /a/libjvm.so\n1-2 r-xp 0 08:01 1 /a/libj9vm29.so\n",
        ] {
            assert!(!is_java(other.as_bytes()), "{other}");
        }
        let past = have_jvm(b"1-2 r-xp 0 08:01 1 /x\n", &wait(Duration::ZERO));
        assert!(matches!(past, Err(Failure::NotAnswering)));
    }

    #[test]
    fn this_process_is_not_a_jvm() {
        let own = open(std::process::id()).expect("this process");
        let later = wait(Duration::from_secs(600));
        assert!(!is_jvm(Maps::of(&own).expect("opened"), &later).expect("read"));
    }
}
