//! The tables as a profile.

use std::collections::HashMap;

use profile::{
    Builder, Code, CodeId, Frame, Function, FunctionId, FunctionKind, ProcessId, Profile,
    SampleRow, StackId, ThreadId,
};
use rustc_hash::FxBuildHasher;

use super::dictionary::{ByKey, Dictionary};
use super::draw::Draw;
use super::gather::{Gathered, Row, TextId};
use crate::error::Result;
use crate::tables::Tables;

/// If all samples are of one window, its length is not known: that of `export --parquet`.
const WINDOW: i64 = 600_000_000;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// The samples of a fleet, or as many as were drawn, as a profile. A process is a version of a service, a thread is a host.
#[derive(Debug)]
pub struct Drawn {
    /// The profile. Its times are those of windows, in nanoseconds since 1970.
    pub profile: Profile,
    is_all: bool,
    all: u64,
    hosts: usize,
    services: usize,
}

impl Drawn {
    /// Reads the selected samples, of which about `most` are drawn.
    pub async fn of(tables: &Tables, most: u64) -> Result<Self> {
        let all = u64::try_from(tables.all_samples().await?).unwrap_or_default();
        let draw = Draw::new(all, most);
        let gathered = Gathered::read(tables, draw).await?;
        let dictionary = Dictionary::read(tables, &gathered).await?;
        let mut made = Maker::new(&gathered, &dictionary);
        gathered.rows.iter().for_each(|row| made.add(row));
        let services = made.services();
        let mut profile = made.finish();
        profile.about.of_fleet = true;
        profile.about.to_utc = Some(0);
        profile.about.recording = tables.location.to_string().into_bytes();
        profile.about.host = format!("{} hosts", gathered.hosts).into_bytes();
        Ok(Self { profile, is_all: draw.is_all(), all, hosts: gathered.hosts, services })
    }

    /// What is in it, in a sentence.
    pub fn described(&self) -> String {
        let Self { all, hosts, services, .. } = self;
        let functions = self.profile.functions().len();
        format!(
            "{all} samples of {hosts} hosts and {services} services, in {functions} functions{}",
            self.drawn()
        )
    }

    /// How many samples of two sides were drawn.
    pub fn described_with(&self, other: &Self) -> String {
        match self.is_all && other.is_all {
            true => String::new(),
            false => format!(
                "; {} of {} and {} of {} samples were drawn",
                self.profile.samples().len(),
                self.all,
                other.profile.samples().len(),
                other.all
            ),
        }
    }

    fn drawn(&self) -> String {
        match self.is_all {
            true => String::new(),
            false => format!(
                "; {} of them were drawn, each with the same probability (--max-samples)",
                self.profile.samples().len()
            ),
        }
    }
}

/// When a code was seen first and last, in the terms of windows.
#[derive(Clone, Copy, Debug)]
struct Seen {
    first: i64,
    last: i64,
}

struct Maker<'a> {
    gathered: &'a Gathered,
    dictionary: &'a Dictionary,
    builder: Builder,
    /// When the last window ends.
    end: i64,
    window: i64,
    seen: Map<(TextId, TextId, i64), Seen>,
    processes: Map<(TextId, TextId), ProcessId>,
    threads: Map<(ProcessId, TextId), ThreadId>,
    functions: ByKey<FunctionId>,
    codes: Map<(ProcessId, i64), CodeId>,
    stacks: Map<(i64, Option<CodeId>, i64), StackId>,
}

impl<'a> Maker<'a> {
    fn new(gathered: &'a Gathered, dictionary: &'a Dictionary) -> Self {
        let mut seen: Map<_, Seen> = Map::default();
        let mut window = i64::MAX;
        let mut last = None;
        for row in &gathered.rows {
            let at = row.window;
            let place = (row.service, row.version, row.code);
            seen.entry(place).or_insert(Seen { first: at, last: at }).last = at;
            if let Some(last) = last.filter(|last| *last != at) {
                window = window.min(at.saturating_sub(last));
            }
            last = Some(at);
        }
        let window = if window == i64::MAX { WINDOW } else { window };
        Self {
            gathered,
            dictionary,
            builder: Builder::new(),
            end: last.unwrap_or_default().saturating_add(window),
            window,
            seen,
            processes: Map::default(),
            threads: Map::default(),
            functions: ByKey::default(),
            codes: Map::default(),
            stacks: Map::default(),
        }
    }

    fn add(&mut self, row: &Row) {
        let process = self.process(row);
        let thread = self.thread(process, row);
        let code = (row.generation > 0).then(|| self.code(process, row));
        let stack = self.stack(row, code);
        let event = self.builder.event(self.gathered.text(row.event).as_bytes());
        for _ in 0..row.drawn {
            let time = nanoseconds(row.window);
            self.builder.sample(SampleRow { time, thread, event, weight: 1, stack });
        }
    }

    fn services(&self) -> usize {
        let mut services: Vec<TextId> =
            self.processes.keys().map(|(service, _)| *service).collect();
        services.sort_unstable();
        services.dedup();
        services.len()
    }

    fn finish(self) -> Profile {
        self.builder.finish()
    }

    fn process(&mut self, row: &Row) -> ProcessId {
        let number = u32::try_from(self.processes.len()).unwrap_or(u32::MAX).saturating_add(1);
        let (service, version) = (self.gathered.text(row.service), self.gathered.text(row.version));
        *self.processes.entry((row.service, row.version)).or_insert_with(|| {
            let name = format!("{service} {version}");
            self.builder.process(number, name.trim_end().as_bytes())
        })
    }

    fn thread(&mut self, process: ProcessId, row: &Row) -> ThreadId {
        let number = u32::try_from(self.threads.len()).unwrap_or(u32::MAX).saturating_add(1);
        let host = self.gathered.text(row.host);
        *self
            .threads
            .entry((process, row.host))
            .or_insert_with(|| self.builder.thread(process, number, host.as_bytes()))
    }

    fn function(&mut self, key: i64) -> FunctionId {
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let function = match self.dictionary.functions.get(&key) {
            Some(row) => {
                let kind = match row.origin.as_str() {
                    "runtime" => FunctionKind::Jitted,
                    "native" => FunctionKind::Native,
                    "kernel" => FunctionKind::Kernel,
                    _ => FunctionKind::Unknown,
                };
                let name = self.builder.string(row.name.as_bytes());
                let mut function = Function::new(name, kind);
                function.file = self.builder.string(row.file.as_bytes());
                function.line = u32::try_from(row.line).unwrap_or_default();
                function.column = u32::try_from(row.column).unwrap_or_default();
                function
            }
            None => {
                let name = self.builder.string(b"[not in the table functions]");
                Function::new(name, FunctionKind::Unknown)
            }
        };
        let id = self.builder.function(function);
        self.functions.insert(key, id);
        id
    }

    fn code(&mut self, process: ProcessId, row: &Row) -> CodeId {
        if let Some(id) = self.codes.get(&(process, row.code)) {
            return *id;
        }
        let known = self.dictionary.codes.get(&row.code);
        let function = self.function(known.map_or(row.function, |code| code.function));
        let size = known.and_then(|code| u64::try_from(code.size).ok()).unwrap_or_default();
        let mut code = Code::new(function, size);
        code.symbol = self.builder.function_row(function).map_or(code.symbol, |row| row.name);
        code.tier = self.builder.string(self.gathered.text(row.tier).as_bytes());
        code.process = Some(process);
        if let Some(Seen { first, last }) =
            self.seen.get(&(row.service, row.version, row.code)).copied()
        {
            let gone = last.saturating_add(self.window);
            code.loaded = Some(nanoseconds(first));
            code.gone = (gone < self.end).then(|| nanoseconds(gone));
        }
        let id = self.builder.code(code);
        self.codes.insert((process, row.code), id);
        id
    }

    fn stack(&mut self, row: &Row, code: Option<CodeId>) -> StackId {
        let place = (row.stack, code, row.function);
        if let Some(id) = self.stacks.get(&place) {
            return *id;
        }
        let known = self.dictionary.stacks.get(&row.stack).map(Vec::as_slice).unwrap_or_default();
        // The last one is the row's own function, whose code is known.
        let callers = known.split_last().map(|(_, callers)| callers).unwrap_or_default();
        let mut stack = None;
        for caller in callers {
            let frame = Frame::new(self.function(*caller));
            let frame = self.builder.frame(frame);
            stack = Some(self.builder.stack(stack, frame));
        }
        let function = self.function(row.function);
        let mut frame = Frame::new(function);
        frame.code = code;
        let of_code = code.and_then(|code| self.builder.code_row(code)).map(|code| code.function);
        frame.depth = u32::from(of_code.is_some_and(|of_code| of_code != function));
        let frame = self.builder.frame(frame);
        let id = self.builder.stack(stack, frame);
        self.stacks.insert(place, id);
        id
    }
}

/// A time of the tables as one of a profile.
fn nanoseconds(microseconds: i64) -> u64 {
    u64::try_from(microseconds).unwrap_or_default().saturating_mul(1000)
}
