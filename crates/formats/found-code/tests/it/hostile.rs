//! Any bytes in the place of memory and files.

use found_code::{Compilers, Finder, Poll};
use proptest::prelude::*;

use crate::expression::{Expression, FORM_10_42, FORM_10_45};
use crate::memory::{CODE, DATA, FORMS, Memory, Seen, mapped};

proptest! {
    /// Words that are numbers or lead somewhere.
    #[test]
    fn any_memory_is_read(
        words in prop::collection::vec(
            prop_oneof![0_u64..300, (0_u64..0x800).prop_map(|it| DATA + it), Just(CODE), Just(8 << 32), any::<u64>()],
            0..200,
        ),
    ) {
        let mut memory = Memory::new(FORMS[0]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.bytes = bytes;
        let mut seen = Seen::default();
        for _ in 0..4 {
            seen.poll(&memory);
            memory.bytes.rotate_left(8.min(words.len() * 8));
        }
    }

    #[test]
    fn any_damaged_state_is_read(
        form in 0..FORMS.len(),
        changes in prop::collection::vec((0_usize..0x1500, any::<u8>()), 1..40),
    ) {
        let mut memory = Memory::new(FORMS[form]);
        for number in 1..5 {
            memory.trace(number, number as u64, CODE + number as u64 * 0x100, 0x100);
        }
        let mut seen = Seen::default();
        seen.poll(&memory);
        for (at, byte) in changes {
            memory.bytes[at] = byte;
            seen.poll(&memory);
        }
    }

    #[test]
    fn any_opcodes_are_read(
        is_old in any::<bool>(),
        code in prop::collection::vec(prop_oneof![0_u8..180, 110_u8..145, Just(0)], 1..80),
        changes in prop::collection::vec((0x2000_usize..0x3100, any::<u8>()), 0..8),
        options: u32,
        width in prop::sample::select(vec![1, 2, 4]),
    ) {
        let mut memory = Memory::new(FORMS[0]);
        let form = if is_old { FORM_10_42 } else { FORM_10_45 };
        Expression { form, code: &code, options, groups: 3 }.write(&mut memory, 0x3000, CODE);
        memory.bytes[0x3000 + if is_old { 96 } else { 104 }] = width;
        let mut seen = Seen { compilers: Compilers::ALL, ..Seen::default() };
        let names = seen.poll(&memory);
        prop_assert_eq!(names.len(), 1);
        prop_assert!(names[0].starts_with("regex ") && names[0].len() < 600, "{}", names[0]);
        for (at, byte) in changes {
            memory.bytes[at] = byte;
            seen.poll(&memory);
        }
    }

    #[test]
    fn any_file_is_searched(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Compilers::find(bytes.as_slice());
        let elf = [&b"\x7fELF\x02\x01"[..], &bytes].concat();
        let _ = Compilers::find(elf.as_slice());
    }
}

/// Counts the bytes that are read.
struct Counted(Memory, std::cell::Cell<u64>);

impl found_code::ReadAt for Counted {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        self.1.set(self.1.get() + buffer.len() as u64);
        self.0.read_at(at, buffer)
    }
}

#[test]
fn tables_that_overlap_cost_a_bounded_number_of_bytes() {
    let mut memory = Memory::new(FORMS[0]);
    // Each pair of words looks like the fields of a table with a null entry at its beginning.
    let entries = 0x4000_u64;
    for at in (0x20000..0x30000 - 16).step_by(16) {
        memory.u64(at, DATA + 0x400 + (at as u64 & 0xfff0));
        memory.u64(at + 8, entries << 32 | 1);
    }
    memory.bytes[0x400..0x20000].fill(0);
    let size = memory.bytes.len() as u64;
    let counted = Counted(memory, std::cell::Cell::new(0));
    let mapped = mapped(size);
    let poll = Poll {
        memory: &counted,
        mapped: &mapped,
        compilers: Compilers::ALL,
        bytes: u64::MAX,
        now: 1,
        last: 0,
    };
    Finder::default().poll(&poll, |_| None, |change| panic!("{change:?}"));
    let read = counted.1.get();
    assert!((1 << 20..64 << 20).contains(&read), "{read}");
}
