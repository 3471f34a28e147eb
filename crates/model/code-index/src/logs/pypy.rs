//! PyPy's log: see [`pypy_log`].

use std::collections::HashMap;
use std::ops::Range;

use jitdump::{ExtendedCode, FLAG_ARCH_TIMESTAMP, Inlined, LineEntry};
use pypy_log::{Place, Position, Reader, Trace, TraceKind};

use super::format::{LogFormat, ReadLog};

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "log of PyPy",
    prefix: "pypy-",
    // Elsewhere, PyPy's times are of CLOCK_MONOTONIC.
    flags: if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        FLAG_ARCH_TIMESTAMP
    } else {
        0
    },
    recognizes: pypy_log::recognizes,
    reader: || Box::<Reader>::default(),
};

/// The most calls within each other that are told apart.
const MAX_DEPTH: usize = 64;

impl ReadLog for Reader {
    fn take(&mut self, bytes: &[u8], give: &mut dyn FnMut(&ExtendedCode<'_>)) {
        self.take(bytes, |trace| describe(&trace, give));
    }

    fn finish(&mut self, give: &mut dyn FnMut(&ExtendedCode<'_>)) {
        self.finish(|trace| describe(&trace, give));
    }

    fn held(&self) -> usize {
        self.held()
    }
}

fn describe(trace: &Trace, give: &mut dyn FnMut(&ExtendedCode<'_>)) {
    let Range { start, end } = trace.range;
    let tier: &[u8] = match trace.kind {
        TraceKind::Loop => b"loop",
        TraceKind::Bridge => b"bridge",
    };
    let name = trace.place.as_ref().map_or(tier, |place| &place.function);
    let mut calls = Calls::default();
    let mut lines: Vec<LineEntry<'_>> = Vec::new();
    lines.extend(trace.place.as_deref().map(|place| line_at(start, place)));
    let ends = trace.positions.iter().skip(1).map(|next| next.address).chain([end]);
    for (position, end) in trace.positions.iter().zip(ends) {
        let Position { address, place, .. } = position;
        calls.enter(position, name);
        // At one address, the last one counts: the calls around it were entered.
        lines.pop_if(|last| last.address == *address);
        lines.push(line_at(*address, place));
        calls.cover(*address..end);
    }
    give(&ExtendedCode {
        timestamp: trace.time,
        address: start,
        size: end.saturating_sub(start),
        name,
        tier: Some(tier),
        lines: &lines,
        inlined: &calls.all,
        ..ExtendedCode::default()
    });
}

fn line_at(address: u64, place: &Place) -> LineEntry<'_> {
    LineEntry { address, file: &place.file, line: place.line, column: 0 }
}

/// The calls that were inlined into a trace.
#[derive(Default)]
struct Calls<'t> {
    all: Vec<Inlined<'t>>,
    /// By caller, function, and line of the call.
    known: HashMap<(Option<u32>, &'t [u8], u32), u32>,
    /// The calls around the current position, the outermost first, each with its depth and the current line in it.
    around: Vec<Around<'t>>,
}

#[derive(Clone, Copy)]
struct Around<'t> {
    depth: u32,
    /// `None`: the trace's own function.
    call: Option<u32>,
    file: &'t [u8],
    line: u32,
}

impl<'t> Calls<'t> {
    fn enter(&mut self, position: &'t Position, name: &[u8]) {
        let (depth, place) = (position.depth, &*position.place);
        let last = self.around.pop_if(|last| last.depth >= depth);
        while self.around.pop_if(|last| last.depth >= depth).is_some() {}
        let outer = self.around.last().copied();
        let call = match (outer, last) {
            // Still in the same call.
            (_, Some(same))
                if same.depth == depth && self.function(same.call, name) == &*place.function =>
            {
                same.call
            }
            // A bridge begins within calls, and returns from them to functions that are not its own.
            (None, _) if self.function(None, name) == &*place.function => None,
            (outer, _) if self.around.len() < MAX_DEPTH => Some(self.call(outer, &place.function)),
            (outer, _) => outer.and_then(|outer| outer.call),
        };
        self.around.push(Around { depth, call, file: &place.file, line: place.line });
    }

    fn function<'s>(&'s self, call: Option<u32>, name: &'s [u8]) -> &'s [u8] {
        let call = call.and_then(|call| self.all.get(usize::try_from(call).ok()?));
        call.map_or(name, |call| call.name)
    }

    fn call(&mut self, outer: Option<Around<'t>>, function: &'t [u8]) -> u32 {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let parent = outer.and_then(|outer| outer.call);
        let (file, line) = outer.map_or((&b""[..], 0), |outer| (outer.file, outer.line));
        *self.known.entry((parent, function, line)).or_insert_with(|| {
            let ranges = Vec::new();
            self.all.push(Inlined { parent, name: function, file, line, column: 0, ranges });
            number
        })
    }

    /// The current calls have this code.
    fn cover(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        for around in &self.around {
            let call = around.call.and_then(|call| self.all.get_mut(usize::try_from(call).ok()?));
            let Some(call) = call else { continue };
            match call.ranges.last_mut() {
                // Two frames of one stack may be one call, where calls are nested too deep.
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => call.ranges.push(range.clone()),
            }
        }
    }
}
