//! From a code of the logs to source positions.

use jitdump::{Endian, NewPosition, SourcePositions, SourcePositionsBuilder};
use v8_log::{Event, Inlining, Position, SourceInfo};

use super::logged_codes::{Function, Info, InfoId, LoggedCodes};

/// Decodes the positions of one code after another, with the same memory for all.
#[derive(Debug, Default)]
pub struct PositionsReader {
    builder: SourcePositionsBuilder,
    encoded: Vec<u8>,
}

impl PositionsReader {
    /// The source positions of a code. `None` if nothing was inlined into it, as its dump has the same lines; or if the
    /// log has changed since.
    pub fn read(&mut self, logs: &LoggedCodes, id: InfoId) -> Option<SourcePositions<'_>> {
        let info = logs.info(id).filter(|info| !info.functions.is_empty())?;
        self.builder.clear();
        self.encoded.clear();
        let builder = &mut self.builder;
        let is_read = logs.with_line(info.line, |event| {
            if let Event::SourceInfo(source) = event {
                Calls::new(logs, info, &source).add(&source, builder);
            }
        });
        is_read.ok()??;
        self.builder.encode(0, Endian::NATIVE, &mut self.encoded);
        SourcePositions::parse(&self.encoded, Endian::NATIVE)
    }
}

/// The inlined calls of a code.
struct Calls<'l> {
    logs: &'l LoggedCodes,
    info: &'l Info,
    list: Vec<Inlining>,
    /// By call: the number of the position of the call, once it was added.
    sites: Vec<Option<u32>>,
}

impl<'l> Calls<'l> {
    fn new(logs: &'l LoggedCodes, info: &'l Info, source: &SourceInfo<'_>) -> Self {
        let list: Vec<Inlining> = source.inlinings().map_while(Result::ok).collect();
        let sites = vec![None; list.len()];
        Self { logs, info, list, sites }
    }

    fn add(mut self, source: &SourceInfo<'_>, builder: &mut SourcePositionsBuilder) {
        // V8 numbers a call after the one that it was inlined into.
        for number in 0..self.list.len() {
            let Inlining { script_offset, parent, .. } = self.list[number];
            let parent = parent.filter(|parent| (*parent as usize) < number);
            self.sites[number] = Some(self.position(script_offset, parent, builder));
        }
        for position in source.positions().map_while(Result::ok) {
            let Position { code_offset, script_offset, inlining } = position;
            let place = self.position(script_offset, inlining, builder);
            builder.row(code_offset, Some(place));
        }
    }

    /// Adds a position in the function that was inlined by `call`, or in the code's own.
    fn position(
        &self,
        script_offset: Option<u32>,
        call: Option<u32>,
        builder: &mut SourcePositionsBuilder,
    ) -> u32 {
        let function = call.and_then(|call| self.function(call));
        let script = match call {
            Some(_) => function.and_then(|function| function.script),
            None => self.info.script,
        };
        let script = script.and_then(|script| self.logs.script(script));
        let starts = script.and_then(|script| script.starts.as_ref());
        let place = starts.zip(script_offset).and_then(|(starts, offset)| starts.place(offset));
        let (line, column) = place.unwrap_or((0, 0));
        let url = script.map_or("", |script| &*script.url);
        let (function_line, function_column) = function.map_or((0, 0), |function| function.place);
        let name = function.map_or_else(|| "(unknown)".into(), |function| shown(function, url));
        builder.position(&NewPosition {
            caller: call.and_then(|call| *self.sites.get(call as usize)?),
            function: name.as_bytes(),
            file: url.as_bytes(),
            function_line,
            function_column,
            line,
            column,
        })
    }

    fn function(&self, call: u32) -> Option<&'l Function> {
        let number = self.list.get(call as usize)?.function?;
        self.logs.function((*self.info.functions.get(number as usize)?)?)
    }
}

/// The name of an inlined function. Functions without a name are told apart by their place.
fn shown<'l>(function: &'l Function, url: &str) -> std::borrow::Cow<'l, str> {
    if function.name.is_empty() {
        let (line, column) = function.place;
        format!("(anonymous) {url}:{line}:{column}").into()
    } else {
        (&*function.name).into()
    }
}
