//! BPF programs of a recording: their machine code, lines and sources, as perf asked the kernel for them.

use std::collections::{BTreeMap, HashMap};

use jit_code::elf_machine;
use perf_data::{Input, feature};
use printable::Hexadecimal;
use profile::{ListedFrame, ListedLine, Listing};

/// The functions of BPF programs.
#[derive(Debug, Default)]
pub struct BpfPrograms {
    /// The ELF number of the kernel's machine.
    machine: u16,
    /// By address.
    functions: Vec<BpfFunction>,
    /// By file and line: the function and its line that have the text.
    sources: HashMap<Vec<u8>, BTreeMap<u32, (usize, usize)>>,
}

/// A function of a BPF program.
#[derive(Debug)]
pub struct BpfFunction {
    address: u64,
    /// How its name begins.
    begin: String,
    code: Vec<u8>,
    /// By offset.
    lines: Vec<BpfLine>,
}

/// A line of its source.
#[derive(Debug)]
pub struct BpfLine {
    offset: u64,
    /// The file.
    pub file: Vec<u8>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    text: Vec<u8>,
}

/// Sources are not made longer than this: a line may claim any number.
const MOST_LINES: u32 = 1 << 16;

impl BpfPrograms {
    /// Those of a recording.
    pub fn of(input: &Input) -> Self {
        let (features, endian) = (input.features(), input.endian());
        let machine = match features.string(feature::ARCH, endian) {
            Some(b"aarch64") => elf_machine::AARCH64,
            _ => elf_machine::X86_64,
        };
        let functions = features.bpf_functions(endian).into_iter().map(|function| BpfFunction {
            address: function.address,
            begin: format!("bpf_prog_{}", Hexadecimal(&function.tag)),
            code: function.code.to_vec(),
            lines: function
                .lines
                .into_iter()
                .map(|line| BpfLine {
                    offset: line.offset,
                    file: line.file.to_vec(),
                    line: line.line,
                    column: line.column,
                    text: line.text.to_vec(),
                })
                .collect(),
        });
        let mut functions: Vec<_> = functions.collect();
        functions.sort_by_key(|function| function.address);
        let mut sources: HashMap<Vec<u8>, BTreeMap<u32, (usize, usize)>> = HashMap::new();
        for (number, function) in functions.iter().enumerate() {
            for (place, line) in function.lines.iter().enumerate() {
                if (1..=MOST_LINES).contains(&line.line) && !line.text.is_empty() {
                    let lines = sources.entry(line.file.clone()).or_default();
                    lines.insert(line.line, (number, place));
                }
            }
        }
        Self { machine, functions, sources }
    }

    /// The number of the function with this name at an address: programs come and go, so that several may have been there.
    pub fn find(&self, address: u64, name: &str) -> Option<usize> {
        let first = self.functions.partition_point(|function| function.address < address);
        let there = self.functions.iter().enumerate().skip(first);
        let mut there = there.take_while(|(_, function)| function.address == address);
        there.find(|(_, function)| name.starts_with(&function.begin)).map(|(number, _)| number)
    }

    /// The function with this number.
    pub fn get(&self, number: usize) -> Option<&BpfFunction> {
        self.functions.get(number)
    }

    /// The instructions and lines of a function, which has this name.
    pub fn listing(&self, number: usize, name: &[u8]) -> Option<Listing> {
        let function = self.get(number)?;
        let lines = function.lines.iter().map(|line| ListedLine {
            offset: line.offset,
            frames: vec![ListedFrame {
                function: name.to_vec(),
                file: line.file.clone(),
                line: line.line,
                column: line.column,
            }],
        });
        let (address, bytes) = (function.address, function.code.clone());
        Some(Listing { address, machine: self.machine, bytes, lines: lines.collect() })
    }

    /// The lines of a source file that the programs have; `None` if they have none. Others are empty.
    pub fn source(&self, file: &[u8]) -> Option<Vec<u8>> {
        let lines = self.sources.get(file)?;
        let (&last, _) = lines.last_key_value()?;
        let text = |line: u32| {
            let &(function, place) = lines.get(&line)?;
            Some(&*self.functions.get(function)?.lines.get(place)?.text)
        };
        let lines = (1..=last).map(|line| text(line).unwrap_or_default());
        Some(lines.collect::<Vec<_>>().join(&b'\n'))
    }
}

impl BpfFunction {
    /// The size of its code.
    pub fn size(&self) -> u64 {
        self.code.len() as u64
    }

    /// The address of its code.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The line at an address in it.
    pub fn line_at(&self, address: u64) -> Option<&BpfLine> {
        let offset = address.checked_sub(self.address)?;
        let behind = self.lines.partition_point(|line| line.offset <= offset);
        behind.checked_sub(1).and_then(|before| self.lines.get(before))
    }
}
