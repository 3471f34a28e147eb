//! What debuggers are shown: all that is alive, from when one is there or someone asks.
//!
//! Without the feature `gdb` there is nothing behind the same names.

#[cfg(feature = "gdb")]
pub(crate) use shown::Debuggers;

/// Nobody is shown anything.
#[cfg(not(feature = "gdb"))]
#[derive(Debug)]
pub(crate) struct Debuggers;

#[cfg(not(feature = "gdb"))]
mod hidden {
    use super::Debuggers;
    use crate::code::Code;
    use crate::log::{Log, Position};

    impl Debuggers {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) fn put_up_signpost(_: &Log) {}

        pub(crate) fn begin(&self, _: &Log, _: bool) {}

        pub(crate) fn load(&self, _: Position, _: u32, _: &Code<'_>) {}

        pub(crate) fn load_from(&self, _: &Log, _: Position, _: u32) {}

        pub(crate) fn unload(&self, _: &Log, _: Position, _: u32) {}

        pub(crate) fn forked(&self, _: &Log) {}
    }
}

#[cfg(feature = "gdb")]
mod shown {
    use std::sync::OnceLock;

    use code_image::{EhFrame, Endian, Inlined, Line, Target};
    use jitdump::extension::code::FramePointer;
    use jitdump::{CodeEvent, CodeLoad, Dump};
    use publish_gdb::{Forked, Gdb, Options};
    use unwind_info::{Machine, Unwind};

    use crate::code::Code;
    use crate::log::{Log, MACHINE, Position};

    /// What debuggers are shown; nothing until it [begins](Self::begin).
    #[derive(Debug)]
    pub(crate) struct Debuggers(OnceLock<Gdb>);

    impl Debuggers {
        pub(crate) const fn new() -> Self {
            Self(OnceLock::new())
        }

        /// Says to debuggers where the log is: those that can read it need nothing else.
        pub(crate) fn put_up_signpost(log: &Log) {
            if let Some(target) = target() {
                let (address, size) = log.mapped();
                publish_gdb::put_up_signpost(target, address, size);
            }
        }

        /// Shows all that is alive, and all that comes.
        pub(crate) fn begin(&self, log: &Log, each: bool) {
            if self.0.get().is_some() {
                return;
            }
            let Some(target) = target() else { return };
            let options = if each { Options::default().each() } else { Options::default() };
            // From here on others show what they announce: what is in the log already comes behind.
            let gdb = self.0.get_or_init(|| Gdb::create(target, options));
            load_all(gdb, log);
        }

        pub(crate) fn load(&self, position: Position, index: u32, code: &Code<'_>) {
            if let Some(gdb) = self.0.get() {
                let key = key(position, index);
                announced(code, |code, frames| match code.unwind {
                    // A ready section of the runtime's own.
                    Some(_) => gdb.load(key, code),
                    None => gdb.load_with_frames(key, code, frames),
                });
            }
        }

        /// A code as the log has it.
        pub(crate) fn load_from(&self, log: &Log, position: Position, index: u32) {
            let Some(gdb) = self.0.get() else { return };
            if let Some(dump) = log.dump_of(position, index) {
                logged(&dump, |code| gdb.load(key(position, index), code));
            }
        }

        pub(crate) fn unload(&self, log: &Log, position: Position, index: u32) {
            if let Some(gdb) = self.0.get()
                && let Some((address, _)) = log.place(position, index)
            {
                gdb.unload(key(position, index), address);
            }
        }

        /// In the child of a fork, once it has its log.
        pub(crate) fn forked(&self, log: &Log) {
            if let Some(gdb) = self.0.get()
                && gdb.forked() == Forked::Lost
            {
                load_all(gdb, log);
            }
        }
    }

    fn target() -> Option<Target> {
        let endian = if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big };
        Some(Target::new(u16::try_from(MACHINE).ok()?, endian))
    }

    fn key(position: Position, index: u32) -> u64 {
        u64::from(position.get()) << 32 | u64::from(index)
    }

    fn load_all(gdb: &Gdb, log: &Log) {
        let alive = log.positions();
        gdb.load_many(|load| {
            for &(position, index, _) in &alive {
                if let Some(dump) = log.dump_of(position, index) {
                    logged(&dump, |code| load(key(position, index), code));
                }
            }
        });
        // Who ended one meanwhile may have done so before it was shown.
        for (position, index, address) in alive {
            if log.living(position, index).is_none() {
                gdb.unload(key(position, index), address);
            }
        }
    }

    /// A code as it is announced.
    fn announced(code: &Code<'_>, show: impl FnOnce(&code_image::Code<'_>, &[u8])) {
        let at = |offset: u32| code.address.wrapping_add(offset.into());
        let line = |line: &crate::code::Line<'_>| (at(line.offset), line.line, line.column);
        let lines: Vec<Line<'_>> = code
            .lines
            .iter()
            .map(|entry| {
                let (address, line, column) = line(entry);
                Line { address, file: entry.file.as_bytes(), line, column }
            })
            .collect();
        let ranges: Vec<_> = code
            .inlined
            .iter()
            .flat_map(|call| call.ranges)
            .map(|range| at(range.start)..at(range.end))
            .collect();
        let mut rest = ranges.as_slice();
        let inlined: Vec<Inlined<'_>> = code
            .inlined
            .iter()
            .map(|call| {
                let (ranges, behind) = rest.split_at(call.ranges.len());
                rest = behind;
                Inlined {
                    name: call.name.as_bytes(),
                    parent: call.parent,
                    call_file: call.file.as_bytes(),
                    call_line: call.line,
                    call_column: call.column,
                    ranges,
                }
            })
            .collect();
        let mut frames = Vec::new();
        let mut ready = None;
        match code.unwind.zip(Machine::from_elf(MACHINE)) {
            Some((Unwind::EhFrame(bytes), _)) => ready = Some(EhFrame { bytes }),
            Some((unwind, machine)) => {
                frames.reserve(128);
                // What cannot be described is left out; names and lines are not.
                let (at, size) = (code.address, code.size);
                let _ = unwind_info::absolute(machine, at, size, &unwind, &mut frames);
            }
            None => {}
        }
        let shown = code_image::Code {
            start: code.address,
            size: code.size,
            visible: code.address..code.address.saturating_add(code.size),
            name: code.name,
            lines: &lines,
            inlined: &inlined,
            unwind: ready,
            ..code_image::Code::default()
        };
        show(&shown, &frames);
    }

    /// The one code of a dump.
    fn logged(dump: &[u8], show: impl FnOnce(&code_image::Code<'_>)) {
        let Ok(dump) = Dump::parse(dump) else { return };
        let load = dump.codes().find_map(|event| match event {
            Ok(CodeEvent::Load(load)) => Some(load),
            _ => None,
        });
        let Some(load) = load else { return };
        let lines: Vec<Line<'_>> = load
            .lines()
            .map(|line| Line {
                address: line.address,
                file: line.file,
                line: line.line,
                column: line.column,
            })
            .collect();
        let ranges: Vec<_> = load.inlined().flat_map(|call| call.ranges).collect();
        let mut rest = ranges.as_slice();
        let inlined: Vec<Inlined<'_>> = load
            .inlined()
            .map(|call| {
                let (ranges, behind) = rest.split_at(call.ranges.count());
                rest = behind;
                Inlined {
                    name: call.name,
                    parent: call.parent,
                    call_file: call.file,
                    call_line: call.line,
                    call_column: call.column,
                    ranges,
                }
            })
            .collect();
        let mut frames = Vec::new();
        let tables = match load.unwind() {
            Some(unwind) => unwind.eh_frame,
            None => {
                if let Some(unwind) = frame_pointer(&load) {
                    frame_tables(load.size, &unwind, &mut frames);
                }
                &frames
            }
        };
        show(&code_image::Code {
            start: load.address,
            size: load.size,
            visible: load.address..load.end(),
            name: load.name,
            lines: &lines,
            inlined: &inlined,
            unwind: (!tables.is_empty()).then_some(EhFrame { bytes: tables }),
            thumb: load.is_thumb,
            ..code_image::Code::default()
        });
    }

    fn frame_pointer(load: &CodeLoad<'_>) -> Option<Unwind<'static>> {
        Some(match load.frame_pointer()? {
            FramePointer::Prologue => Unwind::FRAME_POINTER,
            FramePointer::Throughout => Unwind::FramePointerAlways { signed: false },
        })
    }

    /// Tables as they stand behind the code. What cannot be described is left out; names and lines are not.
    fn frame_tables(size: u64, unwind: &Unwind<'_>, out: &mut Vec<u8>) {
        let distance = unwind_info::offset_behind(size).and_then(|at| i64::try_from(at).ok());
        if let Some((machine, distance)) = Machine::from_elf(MACHINE).zip(distance) {
            out.reserve(256);
            let _ = unwind_info::eh_frame(machine, size, distance, unwind, out);
        }
    }
}
