//! The lines of QEMU's perf map as translated blocks of guest code.

use std::ops::Range;

/// Names of codes in QEMU's maps and dumps begin with this.
const GUEST: &[u8] = b"guest-0x";
/// Number of lines of a map among which there is one of guest code. The first is for QEMU's own prologue.
const FIRST: usize = 16;

/// The guest address in a name.
pub fn guest_address(name: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(name.strip_prefix(GUEST)?).ok()?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// The host code of one guest instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The address of the host code.
    pub host: u64,
    /// The address of the guest instruction.
    pub guest: u64,
}

/// The host code of a block of guest code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The addresses of the host code.
    pub host: Range<u64>,
    /// Its guest instructions, of which there is at least one, by host address.
    pub instructions: Vec<Instruction>,
}

/// A line of the map that is not for guest code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other<'a> {
    /// Its addresses.
    pub host: Range<u64>,
    /// Its name.
    pub name: &'a [u8],
}

/// The content of a perf map of QEMU's, in the order of its lines.
#[derive(Clone, Debug, Default)]
pub struct MapBlocks<'a> {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The other lines.
    pub others: Vec<Other<'a>>,
    /// The blocks by address: for each of them its place, later blocks in place of earlier ones at the same address.
    by_address: Vec<usize>,
}

impl<'a> MapBlocks<'a> {
    /// Reads a perf map. `None` if it is not one of QEMU's that names code by guest addresses.
    pub fn read(map: &'a [u8]) -> Option<Self> {
        let mut first = perf_map::entries(map).flatten().take(FIRST);
        if !first.any(|entry| guest_address(entry.name).is_some()) {
            return None;
        }
        let mut all = Self::default();
        for entry in perf_map::entries(map).flatten().filter(|entry| entry.size > 0) {
            let host = entry.address..entry.address.saturating_add(entry.size);
            let Some(guest) = guest_address(entry.name) else {
                all.others.push(Other { host, name: entry.name });
                continue;
            };
            let instruction = Instruction { host: host.start, guest };
            match all.blocks.last_mut() {
                // Between blocks, QEMU has its own description of the next one.
                Some(block) if block.host.end == host.start => {
                    block.host.end = host.end;
                    block.instructions.push(instruction);
                }
                _ => all.blocks.push(Block { host, instructions: vec![instruction] }),
            }
        }
        let start = |place: &usize| all.blocks.get(*place).map_or(0, |block| block.host.start);
        let mut by_address: Vec<usize> = (0..all.blocks.len()).rev().collect();
        by_address.sort_by_key(start);
        by_address.dedup_by_key(|place| start(place));
        all.by_address = by_address;
        Some(all)
    }

    /// The last block that begins at this address.
    pub fn at(&self, host: u64) -> Option<&Block> {
        let place = |place: &usize| self.blocks.get(*place).map_or(0, |block| block.host.start);
        let at = self.by_address.binary_search_by_key(&host, place).ok()?;
        self.blocks.get(*self.by_address.get(at)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_without_a_gap_are_a_block() {
        let map = b"1000 2d tcg-prologue-buffer\n1100 1a guest-0x401000\n111a b guest-0x401004\n\
                    1125 0 guest-0x401008\n1200 8 guest-0x40100c\n1100 10 guest-0x402000\n";
        let blocks = MapBlocks::read(map).expect("guest code");
        assert_eq!(blocks.others, [Other { host: 0x1000..0x102d, name: b"tcg-prologue-buffer" }]);
        let hosts: Vec<_> = blocks.blocks.iter().map(|block| block.host.clone()).collect();
        assert_eq!(hosts, [0x1100..0x1125, 0x1200..0x1208, 0x1100..0x1110]);
        let guests = |block: &Block| -> Vec<u64> {
            block.instructions.iter().map(|instruction| instruction.guest).collect()
        };
        assert_eq!(guests(&blocks.blocks[0]), [0x401000, 0x401004]);
        // The translation was replaced.
        assert_eq!(blocks.at(0x1100).map(guests), Some(vec![0x402000]));
        assert_eq!(blocks.at(0x1200).map(guests), Some(vec![0x40100c]));
        assert_eq!(blocks.at(0x1104), None);
    }

    #[test]
    fn other_maps_are_left_alone() {
        assert!(MapBlocks::read(b"1000 10 fib\n2000 20 main\n").is_none());
        assert!(MapBlocks::read(b"1000 10 guest-0x+1\n2000 20 guest-0x\n").is_none());
        assert!(MapBlocks::read(b"").is_none());
    }

    proptest! {
        /// Every line of guest code is in one block, at its place.
        #[test]
        fn no_line_is_lost(lines in prop::collection::vec((0u64..40, 0u64..4, any::<u64>()), 1..40)) {
            let text: String = lines
                .iter()
                .map(|(address, size, guest)| format!("{address:x} {size:x} guest-0x{guest:x}\n"))
                .collect();
            let Some(map) = MapBlocks::read(text.as_bytes()) else {
                prop_assert!(lines.is_empty());
                return Ok(());
            };
            let found: Vec<_> = map
                .blocks
                .iter()
                .flat_map(|block| block.instructions.iter().map(|it| (it.host, it.guest)))
                .collect();
            let expected: Vec<_> = lines
                .iter()
                .filter(|(_, size, _)| *size > 0)
                .map(|(address, _, guest)| (*address, *guest))
                .collect();
            prop_assert_eq!(found, expected);
            for block in &map.blocks {
                let last = map.at(block.host.start).expect("a block");
                prop_assert_eq!(last.host.start, block.host.start);
            }
        }

        #[test]
        fn any_map_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(map) = MapBlocks::read(&bytes) {
                map.at(0);
            }
        }
    }
}
