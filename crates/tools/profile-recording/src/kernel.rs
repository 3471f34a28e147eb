//! Names of the kernel's functions.

use std::cell::OnceCell;
use std::fs;
use std::ops::Range;

use jitscribe_inject::{KernelSymbol, Recording};
use rustix::system::uname;

use crate::about;

/// No more functions are read: a kernel with its modules has 200,000.
const MOST: usize = 1 << 22;

/// An address farther behind the beginning of a function is not in it. Behind the kernel's last function is memory for code that it
/// compiles.
const MAX_FUNCTION: u64 = 1 << 20;

/// The functions of the running kernel, if the recording is of it, and those that it compiled according to the recording. The former are
/// read when they are first asked for.
#[derive(Debug)]
pub struct Kernel {
    is_this: bool,
    /// The recorded address of its code.
    text_address: Option<u64>,
    functions: OnceCell<Functions>,
    /// By address.
    compiled: Vec<CompiledFunction>,
}

/// A BPF program, for example.
#[derive(Debug)]
struct CompiledFunction {
    range: Range<u64>,
    name: String,
}

#[derive(Debug, Default)]
struct Functions {
    text: String,
    /// By address: the place of the line in the text.
    by_address: Vec<(u64, usize)>,
}

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFunction<'k> {
    /// Its name.
    pub name: &'k str,
    /// Its module; empty if it is in the kernel itself.
    pub module: &'k str,
    /// Its address.
    pub start: u64,
}

impl Kernel {
    /// The kernel that ran when the recording was made.
    pub fn of(recording: &Recording) -> Self {
        let release = about::release(recording);
        let is_this = recording.is_of_this_machine()
            && (release.is_empty() || release == uname().release().to_bytes());
        let compiled = recording.kernel_symbols().iter().map(CompiledFunction::of).collect();
        let (text_address, functions) = (recording.kernel_text(), OnceCell::new());
        Self { is_this, text_address, functions, compiled }
    }

    /// The function at an address; `None` if the kernel is not this one, or does not show its functions.
    pub fn at(&self, address: u64) -> Option<KernelFunction<'_>> {
        let behind = self.compiled.partition_point(|function| function.range.start <= address);
        let compiled = behind.checked_sub(1).and_then(|before| self.compiled.get(before));
        if let Some(function) = compiled.filter(|function| function.range.contains(&address)) {
            let start = function.range.start;
            return Some(KernelFunction { name: &function.name, module: "[bpf]", start });
        }
        self.functions.get_or_init(|| self.read()).at(address)
    }

    fn read(&self) -> Functions {
        if !self.is_this {
            return Functions::default();
        }
        let functions = Functions::parse(fs::read_to_string("/proc/kallsyms").unwrap_or_default());
        // The kernel may be at another address after each start.
        let is_there = self.text_address.is_none_or(|recorded| {
            ["_text", "_stext"].iter().any(|name| functions.address_of(name) == Some(recorded))
        });
        if is_there { functions } else { Functions::default() }
    }
}

impl CompiledFunction {
    fn of(symbol: &KernelSymbol) -> Self {
        let name = String::from_utf8_lossy(&symbol.name).into_owned();
        Self { range: symbol.range.clone(), name }
    }
}

impl Functions {
    fn parse(text: String) -> Self {
        let mut by_address = Vec::new();
        let mut at = 0_usize;
        for line in text.lines().take(MOST) {
            let mut words = line.split_ascii_whitespace();
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            let is_code = matches!(words.next(), Some("t" | "T" | "w" | "W"));
            if let Some(address) = address.filter(|&address| is_code && address != 0) {
                by_address.push((address, at));
            }
            at = at.saturating_add(line.len()).saturating_add(1);
        }
        by_address.sort_by_key(|&(address, _)| address);
        Self { text, by_address }
    }

    fn at(&self, address: u64) -> Option<KernelFunction<'_>> {
        let behind = self.by_address.partition_point(|&(start, _)| start <= address);
        let &(start, _) = self.by_address.get(behind.checked_sub(1)?)?;
        if address.saturating_sub(start) > MAX_FUNCTION {
            return None;
        }
        // Of several names at one address, the first.
        let first = self.by_address.partition_point(|&(before, _)| before < start);
        let &(_, line) = self.by_address.get(first)?;
        let line = self.text.get(line..)?.lines().next()?;
        let mut words = line.split_ascii_whitespace().skip(2);
        let name = words.next()?;
        Some(KernelFunction { name, module: words.next().unwrap_or_default(), start })
    }

    fn address_of(&self, name: &str) -> Option<u64> {
        let named = |&&(_, line): &&(u64, usize)| {
            let line = self.text.get(line..).and_then(|rest| rest.lines().next());
            line.and_then(|line| line.split_ascii_whitespace().nth(2)) == Some(name)
        };
        self.by_address.iter().find(named).map(|&(address, _)| address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_and_its_modules() {
        let text = "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 t f\n\
                    ffffffff81000180 D data\nffffffffc0000000 t g\t[ext4]\nx\n0 T zero\n";
        let kernel = Functions::parse(text.to_owned());
        let at = |address| kernel.at(address).map(|found| (found.name, found.module));
        assert_eq!(at(0xffff_ffff_8100_0042), Some(("_text", "")));
        assert_eq!(at(0xffff_ffff_8100_0190), Some(("f", "")));
        assert_eq!(at(0xffff_ffff_c000_0fff), Some(("g", "[ext4]")));
        assert_eq!(at(u64::MAX), None, "far behind the last function");
        assert_eq!(at(1), None);
        assert_eq!(kernel.address_of("_stext"), Some(0xffff_ffff_8100_0000));
    }
}
