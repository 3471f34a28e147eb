//! The effect of events on code, byte by byte: a simple model to compare histories with.

use std::collections::BTreeMap;
use std::ops::Range;

/// A code as the model knows it.
#[derive(Clone, Debug)]
struct Known {
    source: usize,
    index: u64,
    size: u64,
    /// Index of its LOAD.
    name: usize,
    /// Where it is, until it is unloaded.
    at: Option<u64>,
}

/// One process's memory and everything known about it, byte by byte.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The owner of each byte: the code, and the number of the put.
    bytes: BTreeMap<u64, (usize, usize)>,
    codes: Vec<Known>,
    /// What was put where, in order.
    puts: Vec<(u64, usize)>,
    /// The last owner of each byte, whatever happened since.
    last: BTreeMap<u64, usize>,
}

impl Memory {
    fn put(&mut self, code: usize, start: u64) {
        let put = self.puts.len();
        self.puts.push((start, code));
        self.codes[code].at = Some(start);
        for address in start..start + self.codes[code].size {
            self.bytes.insert(address, (code, put));
            self.last.insert(address, self.codes[code].name);
        }
    }

    fn take_away(&mut self, code: usize) {
        self.bytes.retain(|_, (owner, _)| *owner != code);
        self.codes[code].at = None;
    }

    pub fn load(&mut self, source: usize, index: u64, start: u64, size: u64, name: usize) {
        if size > 0 {
            self.codes.push(Known { source, index, size, name, at: None });
            self.put(self.codes.len() - 1, start);
        }
    }

    pub fn died(&mut self, name: usize) {
        if let Some(code) = self.codes.iter().position(|code| code.name == name) {
            self.take_away(code);
        }
    }

    /// The code that a MOVE refers to.
    fn moved_code(&self, source: usize, index: u64, old: u64) -> Option<usize> {
        let of_source = |code: &usize| self.codes[*code].source == source;
        let named =
            (0..self.codes.len()).filter(of_source).rfind(|&code| self.codes[code].index == index);
        if let Some(named) = named
            && self.codes[named].at == Some(old)
        {
            return Some(named);
        }
        let there = self.puts.iter().rev().find(|(at, code)| *at == old && of_source(code));
        if let Some(&(_, code)) = there
            && self.codes[code].at == Some(old)
        {
            return Some(code);
        }
        named.filter(|&code| self.codes[code].at.is_some())
    }

    pub fn moved(&mut self, source: usize, index: u64, old: u64, new: u64) -> Option<usize> {
        let code = self.moved_code(source, index, old)?;
        self.take_away(code);
        self.put(code, new);
        Some(self.codes[code].name)
    }

    /// The LOAD of the code at an address, and where the code begins.
    pub fn at(&self, address: u64) -> Option<(usize, u64)> {
        let &(code, put) = self.bytes.get(&address)?;
        Some((self.codes[code].name, self.puts[put].0))
    }

    /// The last owner of an address, whatever happened since.
    pub fn last(&self, address: u64) -> Option<usize> {
        self.last.get(&address).copied()
    }

    /// Something else was put there.
    pub fn clear(&mut self, range: Range<u64>) {
        self.bytes.retain(|at, _| !range.contains(at));
    }
}
