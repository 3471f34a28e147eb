//! The memory of a process that registers objects.

use gdb_jit_list::ReadAt;

pub const HEAD: u64 = 0x1000;

/// Memory at any addresses.
#[derive(Clone, Debug, Default)]
pub struct Memory(Vec<(u64, Vec<u8>)>);

impl Memory {
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        self.0.retain(|(other, _)| *other != at);
        self.0.push((at, bytes.to_vec()));
    }

    pub fn head(&mut self, action: u32, relevant: u64, first: u64) {
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend(action.to_le_bytes());
        bytes.extend([relevant, first].map(u64::to_le_bytes).concat());
        self.put(HEAD, &bytes);
    }

    pub fn entry(&mut self, at: u64, next: u64, object: u64, size: u64) {
        self.put(at, &[next, 0, object, size].map(u64::to_le_bytes).concat());
    }

    /// A list of these objects, each as `(address, content)`, the newest first.
    pub fn list(objects: &[(u64, &[u8])]) -> Self {
        let mut memory = Self::default();
        let place =
            |number: usize| if number < objects.len() { 0x2000 + number as u64 * 64 } else { 0 };
        memory.head(1, place(0), place(0));
        for (number, (address, content)) in objects.iter().enumerate() {
            memory.entry(place(number), place(number + 1), *address, content.len() as u64);
            memory.put(*address, content);
        }
        memory
    }
}

impl ReadAt for Memory {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        let part = self
            .0
            .iter()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&at));
        part.map_or(0, |(start, bytes)| bytes.as_slice().read_at(at - start, buffer))
    }
}
