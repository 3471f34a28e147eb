//! The Firefox Profiler's "processed profile", version 62: what newer front ends upgrade when they load it.
//!
//! Rows of its tables for stacks and functions are those of the profile, by the same numbers. Frames are one row for each of their categories.

mod categories;
mod layout;
mod request;
mod symbols;
mod threads;
mod time;

use std::io::{self, Write};

use profile::{CodeId, FrameId, FunctionKind, Profile, StackId, StringId};

pub use request::{Method, Request};
pub use symbols::Symbols;

use crate::compilations::Compilations;
use crate::json::{Object, Text, object};
use crate::options::{Options, command, short};
use crate::rows::Rows;
use crate::timeline::{busiest, by_thread, period};
use categories::Categories;
use layout::Layout;
use threads::Thread;
use time::milliseconds;

/// The version of the format. What later ones added is not needed here.
const VERSION: u32 = 62;

/// Writes a profile for the Firefox Profiler.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout::of(profile);
    let categories = Categories::of(profile);
    let threads = by_thread(profile, &options.selection);
    let period = period(profile, &options.selection, &threads);
    let times = options.selection.of(profile).map(|sample| sample.time);
    let start = times.min().unwrap_or(0);
    let mut strings = Strings::new(profile);
    object(out, |file| {
        file.object("meta", |meta| {
            write_meta(profile, &categories, period, start, busiest(&threads), meta)
        })?;
        file.objects("libs", layout.libraries(), |object, library| {
            let arch = String::from_utf8_lossy(&profile.about.machine);
            object.field("arch", arch)?;
            object.field("name", &library.name)?;
            object.field("path", &library.path)?;
            object.field("debugName", &library.name)?;
            object.field("debugPath", &library.path)?;
            object.field("breakpadId", &library.debug_id)?;
            let code_id = Some(&library.code_id).filter(|id| !id.is_empty());
            object.field("codeId", code_id)
        })?;
        file.object("shared", |shared| {
            write_shared(profile, &layout, &categories, &mut strings, shared)
        })?;
        let name = strings.number(threads::MARKER);
        let pids = threads::process_ids(profile);
        let compilations = Compilations::of(profile);
        let mut processes = vec![false; profile.processes().len()];
        file.objects("threads", &threads, |object, samples| {
            let process = profile.thread(samples.thread).process;
            let pid = pids.get(process.index()).map(String::as_str).unwrap_or_default();
            // Compilations are shown in the first thread of their process.
            let seen = processes.get_mut(process.index()).map(|seen| std::mem::replace(seen, true));
            let markers = match seen {
                Some(false) => compilations.of_process(process),
                _ => &[],
            };
            Thread { profile, samples, pid, start, name, markers }.write(object)
        })?;
        file.list("counters", [(); 0])?;
        file.list("pages", [(); 0])
    })?;
    out.write_all(b"\n")
}

fn write_meta(
    profile: &Profile,
    categories: &Categories,
    period: u64,
    start: u64,
    busiest: Option<usize>,
    meta: &mut Object<'_>,
) -> io::Result<()> {
    let about = &profile.about;
    let program = profile.processes().first().map(|process| short(profile.text(process.name)));
    let utc = about.to_utc.and_then(|offset| start.checked_add_signed(offset));
    meta.field("version", 24)?;
    meta.field("preprocessedProfileVersion", VERSION)?;
    meta.field("interval", milliseconds(period))?;
    meta.field("startTime", milliseconds(utc.unwrap_or(0)))?;
    meta.field("processType", 0)?;
    meta.field("stackwalk", 1)?;
    meta.field("product", program.filter(|name| !name.is_empty()).unwrap_or("jitscribe".into()))?;
    meta.field("importedFrom", concat!("jitscribe ", env!("CARGO_PKG_VERSION")))?;
    meta.field("oscpu", format!("Linux {}", String::from_utf8_lossy(&about.machine)))?;
    meta.field("platform", "Linux")?;
    meta.field("toolkit", "")?;
    meta.field("device", Text(&about.host))?;
    meta.field("arguments", command(profile))?;
    meta.field("symbolicated", true)?;
    meta.field("usesOnlyOneStackType", true)?;
    meta.field("sourceCodeIsNotOnSearchfox", true)?;
    meta.field("keepProfileThreadOrder", true)?;
    meta.list("initialSelectedThreads", busiest)?;
    meta.object("sampleUnits", |units| {
        units.field("time", "ms")?;
        units.field("eventDelay", "ms")?;
        units.field("threadCPUDelta", "ns")
    })?;
    meta.objects("categories", categories.all(), |object, category| {
        object.field("name", category.name)?;
        object.field("color", category.color)?;
        object.list("subcategories", category.subcategories.iter().map(|name| Text(name)))
    })?;
    meta.objects("markerSchema", [()], |schema, ()| threads::write_marker_schema(schema))
}

/// The strings of the profile, by the same numbers, and others behind them.
struct Strings<'p> {
    profile: &'p Profile,
    others: Vec<String>,
}

impl<'p> Strings<'p> {
    fn new(profile: &'p Profile) -> Self {
        Self { profile, others: vec![threads::MARKER.to_owned()] }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.profile.strings().iter().len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, text: String) -> u32 {
        let place = u32::try_from(self.others.len()).unwrap_or(u32::MAX);
        self.others.push(text);
        self.count().saturating_add(place)
    }

    /// The number of a text that is there.
    fn number(&self, text: &str) -> Option<u32> {
        let place = self.others.iter().position(|other| other == text)?;
        Some(self.count().saturating_add(u32::try_from(place).ok()?))
    }
}

/// Numbers from 1; 0 is what is not known.
fn known(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number > 0)
}

fn write_shared(
    profile: &Profile,
    layout: &Layout,
    categories: &Categories,
    strings: &mut Strings<'_>,
    shared: &mut Object<'_>,
) -> io::Result<()> {
    // A frame and its category: see `categories`.
    let mut rows: Rows<(FrameId, (u32, u32))> = Rows::default();
    let stacks = (0..).map(StackId).zip(profile.stacks());
    let row_of_stack: Vec<u32> = stacks
        .map(|(id, stack)| rows.number((stack.frame, categories.of_stack(profile, id))))
        .collect();
    let rows = rows.into_rows();
    shared.object("stackTable", |table| {
        let stacks = profile.stacks();
        table.field("length", stacks.len())?;
        table.list("frame", row_of_stack.iter().copied())?;
        table.list("prefix", stacks.iter().map(|stack| stack.parent.map(|parent| parent.0)))
    })?;

    let mut symbols = Vec::new();
    let symbol_of_code: Vec<Option<usize>> = profile
        .numbered_codes()
        .map(|(id, _)| {
            let (library, address) = layout.code(profile, id)?;
            symbols.push((id, library, address));
            symbols.len().checked_sub(1)
        })
        .collect();
    let frames = || rows.iter().map(|(frame, _)| profile.frame(*frame));
    let places: Vec<_> = frames().map(|frame| layout.frame(profile, frame)).collect();
    shared.object("frameTable", |table| {
        let nulls = || frames().map(|_| ());
        table.field("length", frames().len())?;
        let address = |place: &Option<(u32, u64)>| place.map_or(-1, |(_, at)| at.cast_signed());
        table.list("address", places.iter().map(address))?;
        table.list("inlineDepth", frames().map(|frame| frame.depth))?;
        table.list("category", rows.iter().map(|(_, (category, _))| *category))?;
        table.list("subcategory", rows.iter().map(|(_, (_, subcategory))| *subcategory))?;
        table.list("func", frames().map(|frame| frame.function.0))?;
        let symbol = |code: CodeId| symbol_of_code.get(code.index()).copied().flatten();
        table.list("nativeSymbol", frames().map(|frame| frame.code.and_then(symbol)))?;
        table.list("innerWindowID", nulls().map(|()| 0))?;
        table.list("line", frames().map(|frame| known(frame.line)))?;
        table.list("column", frames().map(|frame| known(frame.column)))
    })?;

    let mut sources = Sources::new(profile);
    let files = || profile.function_ids().map(|id| profile.file_of(id));
    files().for_each(|file| sources.add(file));
    // The library of a function is that of the first of its frames.
    let mut resources: Vec<Option<u32>> = vec![None; profile.functions().len()];
    for (frame, place) in frames().zip(&places) {
        if let Some(resource @ None) = resources.get_mut(frame.function.index()) {
            *resource = place.map(|(library, _)| library);
        }
    }
    drop(places);
    shared.object("funcTable", |table| {
        let functions = || profile.functions().iter();
        table.field("length", functions().len())?;
        table.list("name", functions().map(|function| function.name.0))?;
        table.list("isJS", functions().map(|_| false))?;
        let is_managed = |kind| matches!(kind, FunctionKind::Jitted | FunctionKind::Interpreted);
        table.list("relevantForJS", functions().map(|function| is_managed(function.kind)))?;
        table.list("resource", resources.iter().map(|it| it.map_or(-1, i64::from)))?;
        table.list("source", files().map(|file| sources.of(file)))?;
        table.list("lineNumber", functions().map(|function| known(function.line)))?;
        table.list("columnNumber", functions().map(|function| known(function.column)))
    })?;

    let names: Vec<u32> =
        layout.libraries().iter().map(|library| strings.push(library.name.clone())).collect();
    shared.object("resourceTable", |table| {
        let libraries = || layout.libraries().iter();
        table.field("length", libraries().len())?;
        table.list("lib", 0..libraries().len())?;
        table.list("name", &names)?;
        table.list("host", libraries().map(|_| ()))?;
        table.list("type", libraries().map(|_| 1))
    })?;

    let names: Vec<u32> =
        symbols.iter().map(|(id, ..)| symbol_name(profile, *id, strings)).collect();
    shared.object("nativeSymbols", |table| {
        table.field("length", symbols.len())?;
        table.list("libIndex", symbols.iter().map(|(_, library, _)| library))?;
        table.list("address", symbols.iter().map(|(_, _, address)| address))?;
        table.list("name", &names)?;
        let size = |id: CodeId| Some(profile.code(id).size).filter(|size| *size > 0);
        table.list("functionSize", symbols.iter().map(|(id, ..)| size(*id)))
    })?;

    shared.object("sources", |table| {
        let files = || sources.files.iter();
        table.field("length", files().len())?;
        table.list("id", files().map(|_| ()))?;
        table.list("filename", files().map(|file| file.0))?;
        table.list("startLine", files().map(|_| 1))?;
        table.list("startColumn", files().map(|_| 1))?;
        table.list("sourceMapURL", files().map(|_| ()))
    })?;
    let texts = profile.strings().iter().map(Text);
    shared.list("stringArray", texts.chain(strings.others.iter().map(|it| Text(it.as_bytes()))))
}

/// The name of a compilation, by which it is chosen in the view of the machine code: with the tier and the generation.
fn symbol_name(profile: &Profile, id: CodeId, strings: &mut Strings<'_>) -> u32 {
    let code = profile.code(id);
    let function = profile.function(code.function).name;
    if code.process.is_none() {
        return function.0;
    }
    let mut name = short(profile.text(function));
    if !code.tier.is_empty() {
        name.push_str(&format!(" [{}]", short(profile.text(code.tier))));
    }
    if code.generation > 1 {
        name.push_str(&format!(" #{}", code.generation));
    }
    strings.push(name)
}

/// The files of functions, each once.
struct Sources {
    files: Vec<StringId>,
    /// By the number of the string.
    places: Vec<Option<u32>>,
}

impl Sources {
    fn new(profile: &Profile) -> Self {
        Self { files: Vec::new(), places: vec![None; profile.strings().iter().len()] }
    }

    fn add(&mut self, file: StringId) {
        let next = u32::try_from(self.files.len()).ok();
        if let Some(place @ None) = self.places.get_mut(file.index()).filter(|_| !file.is_empty()) {
            *place = next;
            self.files.push(file);
        }
    }

    fn of(&self, file: StringId) -> Option<u32> {
        self.places.get(file.index()).copied().flatten()
    }
}
