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

    use publish_gdb::{Forked, Gdb, Options};
    use unwind_info::{Machine, Unwind};

    use crate::code::Code;
    use crate::image::{announced, logged, target};
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
                announced(code, |shown| match code.unwind.zip(Machine::from_elf(MACHINE)) {
                    // A ready section of the runtime's own.
                    Some((Unwind::EhFrame(_), _)) | None => gdb.load(key, shown),
                    Some((unwind, machine)) => {
                        let mut frames = Vec::with_capacity(128);
                        // What cannot be described is left out; names and lines are not.
                        let (at, size) = (code.address, code.size);
                        let _ = unwind_info::absolute(machine, at, size, &unwind, &mut frames);
                        gdb.load_with_frames(key, shown, &frames);
                    }
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
}
