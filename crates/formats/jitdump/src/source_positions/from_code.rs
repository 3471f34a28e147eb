//! From lines and inlined calls to source positions.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::build::{NewPosition, SourcePositionsBuilder};
use crate::endian::to_usize;
use crate::lines::LineEntry;
use crate::writer::Inlined;

/// What changes at an offset. At one offset, a call ends before another begins, and lines come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    End(usize),
    Begin(usize),
    Line(usize),
}

impl SourcePositionsBuilder {
    /// Adds all positions of the code `name` of `size` bytes at `address`. Each call must come after its parent. Calls
    /// without ranges are left out: no row refers to them.
    pub fn code(
        &mut self,
        name: &[u8],
        address: u64,
        size: u64,
        lines: &[LineEntry<'_>],
        inlined: &[Inlined<'_>],
    ) {
        let offset = |address_in: u64| {
            u32::try_from(address_in.saturating_sub(address).min(size)).unwrap_or(u32::MAX)
        };
        let mut changes: Vec<(u32, Change)> = Vec::new();
        // By call: the name of the function that contains it, and the position of the call.
        let mut sites: Vec<u32> = Vec::new();
        for (number, call) in inlined.iter().enumerate() {
            let parent = call.parent.map(|parent| to_usize(parent.into()));
            let parent = parent.filter(|parent| *parent < number);
            let site = self.site(&NewPosition {
                caller: parent.and_then(|parent| sites.get(parent)).copied(),
                function: parent.and_then(|parent| inlined.get(parent)).map_or(name, |it| it.name),
                file: call.file,
                line: call.line,
                column: call.column,
                ..NewPosition::default()
            });
            sites.push(site);
            for range in call.ranges.iter().filter(|range| !range.is_empty()) {
                changes.push((offset(range.start), Change::Begin(number)));
                changes.push((offset(range.end), Change::End(number)));
            }
        }
        let lines_at = lines.iter().enumerate();
        changes.extend(lines_at.map(|(at, line)| (offset(line.address), Change::Line(at))));
        changes.sort_unstable();

        let mut active: BTreeSet<usize> = BTreeSet::new();
        let mut line: Option<&LineEntry<'_>> = None;
        let mut rest = changes.as_slice();
        while let Some((at, _)) = rest.first() {
            let count = rest.iter().take_while(|(other, _)| other == at).count();
            let (here, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = behind;
            for (_, change) in here {
                match *change {
                    Change::End(call) => drop(active.remove(&call)),
                    Change::Begin(call) => drop(active.insert(call)),
                    Change::Line(number) => line = lines.get(number),
                }
            }
            // A call covers those that were inlined into it, which have larger numbers.
            let call = active.last().copied();
            let known = line.filter(|line| line.line != 0);
            let position = (call.is_some() || known.is_some()).then(|| {
                self.position(&NewPosition {
                    caller: call.and_then(|call| sites.get(call)).copied(),
                    function: call.and_then(|call| inlined.get(call)).map_or(name, |it| it.name),
                    file: known.map_or(&[], |line| line.file),
                    line: known.map_or(0, |line| line.line),
                    column: known.map_or(0, |line| line.column),
                    ..NewPosition::default()
                })
            });
            self.row(*at, position);
        }
    }
}
