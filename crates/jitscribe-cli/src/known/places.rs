//! Which line of which function an address within a code is of.

use std::ops::Range;

use code_timeline::ranges::Canvas;
use jitdump::CodeLoad;

/// One function at one address: that of the code itself, or one that was inlined into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The function's name.
    pub function: &'a [u8],
    /// The file as the writer named it; empty for unknown.
    pub file: &'a [u8],
    /// The line from 1; 0 for unknown.
    pub line: u32,
    /// Whether it was inlined.
    pub inlined: bool,
}

/// What a dump says of the addresses of one code.
#[derive(Debug)]
pub struct Places {
    name: Box<[u8]>,
    files: Vec<Box<[u8]>>,
    /// By address.
    lines: Vec<Line>,
    calls: Vec<Call>,
    /// Which call is the innermost; by address, disjoint.
    innermost: Vec<(Range<u64>, u32)>,
}

/// From `address` on.
#[derive(Debug)]
struct Line {
    address: u64,
    file: u32,
    line: u32,
}

#[derive(Debug)]
struct Call {
    parent: Option<u32>,
    name: Box<[u8]>,
    file: u32,
    line: u32,
}

impl Places {
    /// Of a code called `name` that begins at `start`: code that moved takes its lines along.
    pub fn of(name: Vec<u8>, start: u64, load: Option<&CodeLoad<'_>>) -> Self {
        let mut all = Self {
            name: name.into(),
            files: Vec::new(),
            lines: Vec::new(),
            calls: Vec::new(),
            innermost: Vec::new(),
        };
        let Some(load) = load else { return all };
        let here = |address: u64| address.wrapping_sub(load.address).wrapping_add(start);
        let mut names = Names::default();
        for line in load.lines() {
            let file = names.number(line.file);
            all.lines.push(Line { address: here(line.address), file, line: line.line });
        }
        // Stable: of several lines at one address the last one holds from there on.
        all.lines.sort_by_key(|line| line.address);
        let mut canvas = Canvas::new();
        for (number, call) in (0..).zip(load.inlined()) {
            // A call comes behind the one into which it was inlined, and lies over it.
            for range in call.ranges {
                canvas.paint(here(range.start)..here(range.end), number);
            }
            all.calls.push(Call {
                parent: call.parent,
                name: call.name.into(),
                file: names.number(call.file),
                line: call.line,
            });
        }
        all.innermost = canvas.visible().collect();
        all.files = names.files;
        all
    }

    /// How many lines and calls there are.
    pub fn len(&self) -> usize {
        self.lines.len() + self.calls.len() + self.innermost.len() + 1
    }

    /// The functions at `address`, the innermost first; the last one is the code's own.
    pub fn at(&self, address: u64) -> impl Iterator<Item = Place<'_>> {
        let line = self.line_at(address);
        let file = line.map(|line| self.file(line.file)).unwrap_or_default();
        let mut next = Some((self.innermost_at(address), file, line.map_or(0, |line| line.line)));
        // Ends, as a parent's number is less than its own.
        std::iter::from_fn(move || {
            let (call, file, line) = next.take()?;
            let Some(call) = call.and_then(|call| self.calls.get(call as usize)) else {
                return Some(Place { function: &self.name, file, line, inlined: false });
            };
            next = Some((call.parent, self.file(call.file), call.line));
            Some(Place { function: &call.name, file, line, inlined: true })
        })
    }

    /// The file of the first line, wherever it is.
    pub fn first_file(&self) -> Option<&[u8]> {
        self.lines.iter().find(|line| line.line != 0).map(|line| self.file(line.file))
    }

    fn line_at(&self, address: u64) -> Option<&Line> {
        let behind = self.lines.partition_point(|line| line.address <= address);
        self.lines.get(behind.checked_sub(1)?).filter(|line| line.line != 0)
    }

    fn innermost_at(&self, address: u64) -> Option<u32> {
        let behind = self.innermost.partition_point(|(range, _)| range.start <= address);
        let (range, call) = self.innermost.get(behind.checked_sub(1)?)?;
        range.contains(&address).then_some(*call)
    }

    fn file(&self, number: u32) -> &[u8] {
        self.files.get(number as usize).map(AsRef::as_ref).unwrap_or_default()
    }
}

/// Files by number, each once.
#[derive(Default)]
struct Names {
    files: Vec<Box<[u8]>>,
    numbers: std::collections::HashMap<Box<[u8]>, u32>,
}

impl Names {
    fn number(&mut self, file: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(file) {
            return number;
        }
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(file.into());
        self.numbers.insert(file.into(), number);
        number
    }
}
