//! Maps an address within a code to functions and lines.

use std::borrow::Cow;
use std::ops::Range;

use code_timeline::ranges::Canvas;
use jitdump::extension::InlinedCall;
use jitdump::{CodeLoad, LineEntry};

use crate::names::FunctionName;

/// One function at an address: the code's own, or one that was inlined into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The function's name, without marks of the compiler and without its place: see [`FunctionName`].
    pub function: &'a [u8],
    /// The file, as a path; empty for unknown.
    pub file: &'a [u8],
    /// The line from 1; 0 for unknown.
    pub line: u32,
    /// Whether it was inlined.
    pub inlined: bool,
}

/// A position in a source, as a runtime wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePlace<'a> {
    /// The name of the file.
    pub file: &'a [u8],
    /// The line from 1; 0 for unknown.
    pub line: u32,
    /// The column; its meaning depends on the runtime.
    pub column: u32,
}

/// The maximum number of inlined calls reported for an address, the same as in an image.
const DEEPEST: usize = 127;

/// The name, the lines and the inlined calls of one code.
#[derive(Debug)]
pub struct CodeLines {
    name: Box<[u8]>,
    function: Box<[u8]>,
    files: Vec<Box<[u8]>>,
    /// Sorted by address.
    lines: Vec<Line>,
    calls: Vec<Call>,
    /// The innermost call at each address; sorted by address, disjoint.
    innermost: Vec<(Range<u64>, u32)>,
}

/// A source line that applies from `address` on.
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

impl CodeLines {
    /// The lines of a code named `name` that begins at `start`, as its record has them. Addresses are adjusted if the code was
    /// moved. `whole` is the position of a code without lines, if a better one is known than that in its name, and `place`
    /// returns the file and the line to show for a position.
    pub fn new<'p>(
        name: &'p [u8],
        start: u64,
        load: Option<&CodeLoad<'p>>,
        whole: Option<(&[u8], u32)>,
        place: impl Fn(SourcePlace<'p>) -> (Cow<'p, [u8]>, u32),
    ) -> Self {
        let FunctionName { function, file, line, column, .. } = FunctionName::of(name);
        let mut all = Self {
            name: name.into(),
            function: function.into(),
            files: Vec::new(),
            lines: Vec::new(),
            calls: Vec::new(),
            innermost: Vec::new(),
        };
        let mut names = Names::default();
        let has_lines = load.is_some_and(|load| load.lines().next().is_some());
        let whole = whole.map(|(file, line)| (file.into(), line)).or_else(|| {
            let is_needed = !has_lines && !file.is_empty() && line > 0;
            is_needed.then(|| place(SourcePlace { file, line, column }))
        });
        if let Some((file, line)) = whole {
            let file: Cow<'_, [u8]> = file;
            let file = names.number(&file);
            all.lines.push(Line { address: start, file, line });
        }
        let Some(load) = load else {
            all.files = names.files;
            return all;
        };
        let here = |address: u64| address.wrapping_sub(load.address).wrapping_add(start);
        for entry in load.lines() {
            let LineEntry { file, line, column, .. } = entry;
            let (file, line) = place(SourcePlace { file, line, column });
            all.lines.push(Line { address: here(entry.address), file: names.number(&file), line });
        }
        // A stable sort: of several lines at one address, the last one applies from there on.
        all.lines.sort_by_key(|line| line.address);
        let mut canvas = Canvas::new();
        for (number, call) in (0..).zip(load.inlined()) {
            // A call comes after the one that it was inlined into, and covers it.
            for range in call.ranges {
                canvas.paint(here(range.start)..here(range.end), number);
            }
            let InlinedCall { file, line, column, .. } = call;
            let (file, line) = place(SourcePlace { file, line, column });
            let file = names.number(&file);
            all.calls.push(Call { parent: call.parent, name: call.name.into(), file, line });
        }
        all.innermost = canvas.visible().collect();
        all.files = names.files;
        all
    }

    /// The code's name, as the runtime wrote it.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many lines and calls there are, and one for the code.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always the code")]
    pub fn len(&self) -> usize {
        let counts = [self.lines.len(), self.calls.len(), self.innermost.len()];
        counts.into_iter().fold(1, usize::saturating_add)
    }

    /// The functions at `address`, the innermost first; the last one is the code's own.
    pub fn at(&self, address: u64) -> impl Iterator<Item = Frame<'_>> {
        let line = self.line_at(address);
        let file = line.map(|line| self.file(line.file)).unwrap_or_default();
        let mut next = Some((self.innermost_at(address), file, line.map_or(0, |line| line.line)));
        let mut depth = 0_usize;
        std::iter::from_fn(move || {
            let (call, file, line) = next.take()?;
            depth = depth.saturating_add(1);
            // A parent has a smaller number than the call, so this ends. Calls nested deeper than any compiler
            // produces are skipped, because they would be repeated for each frame of each stack.
            let call = call.filter(|_| depth <= DEEPEST);
            let Some(call) = call.and_then(|call| self.calls.get(call as usize)) else {
                return Some(Frame { function: &self.function, file, line, inlined: false });
            };
            next = Some((call.parent, self.file(call.file), call.line));
            Some(Frame { function: &call.name, file, line, inlined: true })
        })
    }

    /// Where the line at `address` begins.
    #[must_use]
    pub fn line_start(&self, address: u64) -> Option<u64> {
        self.line_at(address).map(|line| line.address)
    }

    /// The file of the first known line.
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

/// File names, numbered without duplicates.
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
