//! Lists the codes that are alive, for publishers that start late.

use std::sync::atomic::Ordering::Relaxed;

use fallible::Vec;
use jitdump::extension::tag;

use super::layout::{FIRST_ITEM, TAIL, code, load, unpair};
use super::records::{Piece, State, half_anywhere, load_record, pieces};
use super::{Log, Position};

impl Log {
    /// Address, size and name of each live code.
    pub(crate) fn alive(&self) -> Vec<(u64, u64, Vec<u8>)> {
        let mut alive = Vec::new();
        self.each_alive(|piece| {
            let word = |at| self.mapping.word(piece.at + at).load(Relaxed);
            let name = self.name(piece.at, piece.size).unwrap_or_default();
            alive.push((word(code::ADDRESS), word(code::CODE_SIZE), name));
        });
        alive
    }

    /// Position, index and address of each live code.
    #[cfg(any(feature = "gdb", feature = "objects", all(feature = "etw", windows)))]
    pub(crate) fn positions(&self) -> Vec<(Position, u32, u64)> {
        let mut alive = Vec::new();
        self.each_alive(|piece| {
            let word = |at| self.mapping.word(piece.at + at).load(Relaxed);
            if let Some(position) = super::position(piece.at) {
                alive.push((position, word(code::INDEX) as u32, word(code::ADDRESS)));
            }
        });
        alive
    }

    /// Calls `look` for each live code. A code that is announced during the call may be left out: a publisher that starts is set
    /// before this is called, and gets such a code from its announcement.
    fn each_alive(&self, mut look: impl FnMut(Piece)) {
        #[cfg(target_os = "linux")]
        if !self.copy_inherited() {
            return;
        }
        let mut next = 0;
        loop {
            // While this is held, no space is reused, so committed groups stay unchanged. It is released after each chunk:
            // threads that need a new chunk wait for it, and leave their codes out after a second.
            let Some(_guard) = self.chunks.lock_owners() else { return };
            let Some((range, behind)) = self.chunks.range_from(next) else { return };
            next = behind;
            pieces(&self.mapping, range).filter(|it| it.state == State::Alive).for_each(&mut look);
        }
    }

    /// A dump of only the code at `position`, if it is alive.
    #[cfg(any(
        feature = "arena",
        feature = "gdb",
        feature = "objects",
        feature = "unwinders",
        all(feature = "vtune", target_os = "linux"),
        all(feature = "etw", windows)
    ))]
    pub(crate) fn dump_of(&self, position: Position, index: u32) -> Option<Vec<u8>> {
        let at = position.get() as usize * 8;
        #[cfg(target_os = "linux")]
        if !self.copy_inherited() {
            return None;
        }
        let _guard = self.chunks.lock_owners()?;
        self.living(position, index)?;
        let size = self.mapping.half(at + code::GROUP_SIZE).load(Relaxed) as usize;
        let end = at.checked_add(size).filter(|end| *end <= self.mapping.size())?;
        let mut dump = fallible::vec![0; jitdump::HEADER_SIZE as usize];
        dump.reserve_exact(size);
        let pid = self.pid.load(Relaxed);
        super::group::write_file_header(
            &mut dump,
            super::MACHINE,
            pid,
            self.began.load(Relaxed),
            self.options.clock,
        );
        for word in (at..end).step_by(8) {
            dump.extend_from_slice(&self.mapping.word(word).load(Relaxed).to_ne_bytes());
        }
        Some(dump)
    }

    /// Address and size of the code at `position`.
    pub(crate) fn place(&self, position: Position, index: u32) -> Option<(u64, u64)> {
        let (_, group) = self.code_at(position, index)?;
        let address = group.at::<{ code::ADDRESS }>().load(Relaxed);
        Some((address, group.at::<{ code::CODE_SIZE }>().load(Relaxed)))
    }

    fn name(&self, at: usize, size: usize) -> Option<Vec<u8>> {
        let items = unpair(self.mapping.word(at + TAIL).load(Relaxed)).1 as usize;
        let mut item = at + FIRST_ITEM;
        let end = (item + items).min(at + size);
        while item + 8 <= end {
            let header = self.mapping.word(item).load(Relaxed).to_ne_bytes();
            let length = half_anywhere(&self.mapping, item + 4) as usize;
            if header.first_chunk() == Some(&tag::NAME.to_ne_bytes()) {
                return Some(self.bytes(item + 8, length.min(end - item)));
            }
            item += 8 + length.next_multiple_of(8);
        }
        let record = self.load_record(at, size)?;
        let end = at + size;
        let name = (record + load::NAME..end).map(|at| self.mapping.byte(at).load(Relaxed));
        Some(name.take_while(|byte| *byte != 0).collect())
    }

    /// Offset of the LOAD record in a group, if it has one.
    pub(super) fn load_record(&self, at: usize, size: usize) -> Option<usize> {
        load_record(at, size, |at| Some(half_anywhere(&self.mapping, at)))
    }

    fn bytes(&self, at: usize, length: usize) -> Vec<u8> {
        (at..at + length).map(|at| self.mapping.byte(at).load(Relaxed)).collect()
    }
}
