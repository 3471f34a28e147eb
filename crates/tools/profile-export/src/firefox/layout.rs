//! Where code lies in the Firefox Profiler's libraries.
//!
//! The Firefox Profiler knows an address as an offset in a library. Files are libraries of their own; the jitted code of each process is one more library, in which
//! the codes lie one behind the other: in a process they may have been at the same address, one after the other.

use printable::Hexadecimal;
use profile::{CodeId, Frame, ModuleId, ModuleKind, Process, ProcessId, Profile};

use crate::options::short;

/// A library of the Firefox Profiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its name, without folders.
    pub name: String,
    /// Its path; empty if it is not a file.
    pub path: String,
    /// What the Firefox Profiler identifies it by, together with the name.
    pub debug_id: String,
    /// Its build-id; empty if it has none.
    pub code_id: String,
}

/// The place of a library, and an address in it.
pub type Place = (u32, u64);

/// Where all code lies.
#[derive(Clone, Debug)]
pub struct Layout {
    libraries: Vec<Library>,
    of_module: Vec<u32>,
    of_process: Vec<Option<u32>>,
    /// What is subtracted from addresses in each module.
    bases: Vec<u64>,
    /// Where jitted codes lie in the library of their process.
    jitted: Vec<u64>,
}

/// Addresses above this are not exact in JavaScript.
const MAX_SAFE: u64 = (1 << 53) - 1;

impl Layout {
    /// Of all code of a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut layout = Self {
            libraries: Vec::new(),
            of_module: Vec::new(),
            of_process: vec![None; profile.processes().len()],
            bases: bases(profile),
            jitted: Vec::new(),
        };
        for (number, module) in (0_u32..).zip(profile.modules()) {
            layout.of_module.push(layout.next());
            let path = short(profile.text(module.path));
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let debug_id = match module.build_id.is_empty() {
                true => made_id(number, b"module"),
                false => debug_id(&module.build_id),
            };
            let code_id = Hexadecimal(&module.build_id).to_string();
            layout.libraries.push(Library { name, path, debug_id, code_id });
        }
        let mut ends = vec![0_u64; profile.processes().len()];
        for code in profile.codes() {
            let Some(process) = code.process else {
                layout.jitted.push(0);
                continue;
            };
            layout.add_process(profile, process);
            let end = ends.get_mut(process.index());
            layout.jitted.push(end.as_deref().copied().unwrap_or(0));
            if let Some(end) = end {
                // Aligned, so that the addresses of instructions end in the same digits as in the process.
                let size = code.size.saturating_add(15) & !15;
                *end = end.saturating_add(size.max(16));
            }
        }
        layout
    }

    fn next(&self) -> u32 {
        u32::try_from(self.libraries.len()).unwrap_or(u32::MAX)
    }

    fn add_process(&mut self, profile: &Profile, process: ProcessId) {
        let next = self.next();
        let Some(slot @ None) = self.of_process.get_mut(process.index()) else { return };
        *slot = Some(next);
        let Process { pid, name } = *profile.process(process);
        self.libraries.push(Library {
            name: format!("JIT ({} {pid})", short(profile.text(name))),
            path: String::new(),
            debug_id: made_id(process.0, &pid.to_le_bytes()),
            code_id: String::new(),
        });
    }

    /// The libraries.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// Where a code begins; `None` if it is in no library.
    pub fn code(&self, profile: &Profile, id: CodeId) -> Option<Place> {
        let code = profile.code(id);
        match code.process {
            Some(process) => {
                let library = self.of_process.get(process.index()).copied().flatten()?;
                Some((library, self.jitted.get(id.index()).copied()?))
            }
            None => self.in_module(code.module?, code.module_address),
        }
    }

    fn in_module(&self, module: ModuleId, address: u64) -> Option<Place> {
        let base = self.bases.get(module.index()).copied()?;
        let library = self.of_module.get(module.index()).copied()?;
        Some((library, address.checked_sub(base).filter(|address| *address <= MAX_SAFE)?))
    }

    /// Where a frame's address is; `None` if it is in no library.
    pub fn frame(&self, profile: &Profile, frame: &Frame) -> Option<Place> {
        let jitted = frame.code.filter(|&code| profile.code(code).process.is_some());
        let Some(id) = jitted else { return self.in_module(frame.module?, frame.address) };
        let code = profile.code(id);
        let begin = if frame.module.is_some() { code.module_address } else { code.address };
        let offset = frame.address.saturating_sub(begin).min(code.size.saturating_sub(1));
        let (library, address) = self.code(profile, id)?;
        Some((library, address.saturating_add(offset)))
    }
}

/// What to subtract from the addresses in each module: nothing, unless they are too large for the Firefox Profiler, as those of the kernel.
fn bases(profile: &Profile) -> Vec<u64> {
    let mut spans = vec![(u64::MAX, 0_u64); profile.modules().len()];
    let mut add = |module: Option<ModuleId>, address: u64| {
        if let Some((min, max)) = module.and_then(|module| spans.get_mut(module.index())) {
            (*min, *max) = ((*min).min(address), (*max).max(address));
        }
    };
    profile.frames().iter().for_each(|frame| add(frame.module, frame.address));
    profile.codes().iter().for_each(|code| add(code.module, code.module_address));
    let modules = profile.modules().iter().zip(spans);
    let base = modules.map(|(module, (min, max))| match module.kind {
        ModuleKind::Kernel => min & !0xfff,
        _ if max > MAX_SAFE => min & !0xfff,
        _ => 0,
    });
    base.collect()
}

/// A build-id in the form of Breakpad: a GUID, whose first three parts are numbers, and an age.
fn debug_id(build_id: &[u8]) -> String {
    let mut guid = [0_u8; 16];
    guid.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
    let swapped = [d, c, b, a, f, e, h, g];
    let digits = swapped.iter().chain(&rest).map(|byte| format!("{byte:02X}"));
    format!("{}0", digits.collect::<String>())
}

/// An id for what has no build-id: it must differ from others in the file, and from 0, with which nothing is asked for.
fn made_id(number: u32, seed: &[u8]) -> String {
    let mut guid = *b"jitscribe\0\0\0\0\0\0\0";
    let (_, tail) = guid.split_at_mut(8);
    let seed =
        seed.iter().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let bytes = seed.to_be_bytes().into_iter().chain(number.to_be_bytes());
    tail.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    debug_id(&guid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_written_as_breakpad_does() {
        let id: Vec<u8> = (1..=20).collect();
        assert_eq!(debug_id(&id), "0403020106050807090A0B0C0D0E0F100");
        assert_eq!(debug_id(&[0xab]), "000000AB0000000000000000000000000");
    }
}
