//! An example of a publisher, compiled for its test alone: the code of a process as Chrome's trace events, which Perfetto shows
//! on a time axis.
//!
//! Each piece of code is an object that is created (`N`) and destroyed (`D`). Format: "Trace Event Format", "Object Events". A
//! publisher that is part of a release would get its file from the [`Settings`](crate::settings::Settings).

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use fallible::{Refused, Text, attempt, text};

use super::Publisher;
use crate::host::Host;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

thread_local! {
    /// The file for the next scribe of this thread.
    static NEXT: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// The file, if the test has requested one.
#[derive(Debug)]
pub(super) struct TraceEvents(OnceLock<Trace>);

#[derive(Debug)]
struct Trace {
    /// `None` once writing has failed.
    file: Mutex<Option<File>>,
    start: Instant,
}

impl TraceEvents {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn write(&self, phase: char, address: u64, name: &str) {
        let Some(trace) = self.0.get() else { return };
        let Ok(mut file) = trace.file.lock() else { return };
        let (time, process) = (trace.start.elapsed().as_micros(), crate::log::process_id());
        let event = attempt(|| {
            text!(
                "{{\"name\":\"{}\",\"cat\":\"jit\",\"ph\":\"{phase}\",\"ts\":{time},\"pid\":{process},\"tid\":0,\"id\":\"{address:#x}\"}},\n",
                escaped(name),
            )
        });
        let is_written = match (file.as_mut(), event) {
            (Some(file), Ok(event)) => file.write_all(event.as_bytes()).is_ok(),
            (_, Err(Refused)) | (None, _) => false,
        };
        if !is_written {
            *file = None;
        }
    }
}

/// A name in a JSON string.
fn escaped(name: &str) -> Text {
    let mut out = Text::new();
    for character in name.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..=' ' => out.push_str(" "),
            _ => out.push_str(character.encode_utf8(&mut [0; 4])),
        }
    }
    out
}

impl Publisher for TraceEvents {
    fn subject(&self) -> Subject {
        Subject::Setting
    }

    fn prepare(&self, _: &'static Host) {
        if let Some(mut file) = NEXT.take() {
            let file = file.write_all(b"[\n").is_ok().then_some(file);
            let _ = self.0.set(Trace { file: Mutex::new(file), start: Instant::now() });
        }
    }

    fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    fn load(&self, _: &Log, code: &Code<'_>, _: Option<LogEntry>) {
        let name = code.name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        self.write('N', code.address, name);
    }

    fn moved(&self, log: &Log, from: LogEntry, _: Option<LogEntry>, address: u64) {
        self.unload(log, from);
        self.write('N', address, "");
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if let Some((address, _)) = log.place(entry.0, entry.1) {
            self.write('D', address, "");
        }
    }

    fn forked(&self, _: &Log) {
        // The file is the parent's.
        if let Some(mut file) = self.0.get().and_then(|trace| trace.file.lock().ok()) {
            *file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Code, Mode, Scribe};

    #[test]
    fn each_load_move_and_unload_is_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        super::NEXT.set(Some(std::fs::File::create(&path).unwrap()));
        let scribe = Scribe::builder().gdb(Mode::Off).valgrind(Mode::Off).build();
        let mut code = scribe.load(&Code::at(0x1000, 16).named("say \"hi\""));
        code.moved_to_address(0x2000);
        drop(code);
        let text = std::fs::read_to_string(&path).unwrap();
        let fields = |key: &str| -> Vec<&str> {
            text.lines()
                .filter_map(|line| line.split_once(key)?.1.split(['"', ',']).next())
                .collect()
        };
        assert_eq!(fields("\"ph\":\""), ["N", "D", "N", "D"], "{text}");
        assert_eq!(fields("\"id\":\""), ["0x1000", "0x1000", "0x2000", "0x2000"], "{text}");
        assert!(text.contains("\"name\":\"say \\\"hi\\\"\""), "{text}");
    }
}
