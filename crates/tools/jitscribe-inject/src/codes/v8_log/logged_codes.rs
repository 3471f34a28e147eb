//! Reads the logs of one process: codes, functions and scripts.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use v8_log::{CodeCreation, Event, LineStarts, Reader, ScriptSource, SourceInfo, split_name};

use crate::Warning;
use crate::codes::locate::FoundFile;
use crate::files::content::TextReader;
use crate::files::{Damage, SourceFile, SourceFiles};

/// How much is read at a time.
const BUFFER: usize = 1 << 17;

/// A line that is read again when it is needed. Keeping lines would take much space.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The index of the log.
    pub log: u32,
    offset: u64,
    len: usize,
}

/// The number of a code in [`LoggedCodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InfoId(pub u32);

/// A code with source positions.
#[derive(Debug)]
pub struct Info {
    /// When it was created, in microseconds since its log was opened.
    pub time_us: u64,
    /// The line with its positions.
    pub line: Line,
    /// The script of its own function.
    pub script: Option<u32>,
    /// The functions inlined into it, by their numbers in the line.
    pub functions: Box<[Option<FunctionId>]>,
}

/// The number of a function in [`LoggedCodes`].
pub type FunctionId = u32;

/// A function that may be inlined.
#[derive(Debug)]
pub struct Function {
    /// Its name alone; empty if it has none.
    pub name: Box<str>,
    /// The line and column at which it begins; 0 if unknown.
    pub place: (u32, u32),
    /// Its script.
    pub script: Option<u32>,
}

/// A script.
#[derive(Debug)]
pub struct Script {
    /// Its URL or path. A URL that it gives itself comes first, as in a jitdump. [`UNKNOWN`] for text that was passed to `eval` and gives itself none.
    pub url: Arc<str>,
    /// How the names of its functions spell it: mostly the same; empty for text that was passed to `eval`.
    name: Arc<str>,
    /// The line with its source.
    pub line: Line,
    /// Where its lines begin, once [`LoggedCodes::prepare`] was called for it.
    pub starts: Option<LineStarts>,
}

/// How V8 calls scripts without a name. There may be many, so their texts cannot be found by it.
const UNKNOWN: &str = "<unknown>";

impl Script {
    /// Whether it has a URL or path.
    pub fn is_named(&self) -> bool {
        !self.url.is_empty() && &*self.url != UNKNOWN
    }
}

/// The URL that a script gives itself.
fn own_url(script: &ScriptSource<'_>) -> Option<String> {
    // Most scripts have none, and need not be decoded.
    memchr::memmem::find(script.escaped_text, b"sourceURL=")?;
    let text = script.text();
    let url = source_map::source_url(text.as_bytes())?;
    String::from_utf8(url.to_vec()).ok()
}

/// The codes in the logs of one process. Each isolate of V8 writes its own.
#[derive(Debug, Default)]
pub struct LoggedCodes {
    logs: Vec<(PathBuf, SourceFile)>,
    infos: Vec<Info>,
    /// By address and size, in the order of the logs.
    by_code: HashMap<(u64, u64), Vec<InfoId>, FxBuildHasher>,
    functions: Vec<Function>,
    scripts: Vec<Script>,
    /// The latest script of each URL.
    by_url: HashMap<Arc<str>, u32>,
}

/// What is known while a log is read. Its numbers and addresses are those of one isolate.
#[derive(Default)]
struct OpenLog {
    scripts: HashMap<u64, u32, FxBuildHasher>,
    /// The functions by address.
    functions: HashMap<u64, FunctionId, FxBuildHasher>,
    /// The latest code, whose positions come next.
    code: Option<LatestCode>,
}

struct LatestCode {
    time_us: u64,
    address: u64,
    size: u64,
    function: Option<u64>,
    name: String,
}

impl LoggedCodes {
    /// Reads the logs. What cannot be used is reported in `warnings`.
    pub fn read(logs: &[FoundFile], files: &dyn SourceFiles, warnings: &mut Vec<Warning>) -> Self {
        let mut all = Self::default();
        for (path, owner) in logs {
            let mut damage = Damage::default();
            let read =
                files.open(path, *owner).and_then(|file| all.add(path.clone(), file, &mut damage));
            damage.report(path, warnings);
            if let Err(error) = read {
                let (path, cause) = (path.clone(), error.to_string());
                warnings.push(Warning::Unreadable { path, cause });
            }
        }
        all
    }

    /// The number of logs.
    pub fn logs(&self) -> usize {
        self.logs.len()
    }

    /// The code with this number.
    pub fn info(&self, id: InfoId) -> Option<&Info> {
        self.infos.get(id.0 as usize)
    }

    /// The codes of this size at this address.
    pub fn at(&self, address: u64, size: u64) -> &[InfoId] {
        self.by_code.get(&(address, size)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The addresses and sizes of all codes, and the codes there.
    pub fn places(&self) -> impl Iterator<Item = (&(u64, u64), &Vec<InfoId>)> {
        self.by_code.iter()
    }

    /// The function with this number.
    pub fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id as usize)
    }

    /// The script with this number.
    pub fn script(&self, number: u32) -> Option<&Script> {
        self.scripts.get(number as usize)
    }

    /// The source of a script as V8 compiled it; `None` if the logs have none.
    pub fn text(&self, script: &Script) -> Option<String> {
        let text = self.with_line(script.line, |event| match event {
            Event::Script(source) => Some(source.text()),
            _ => None,
        });
        // A log that changed since then has no such line.
        text.ok().flatten().flatten().filter(|text| !text.is_empty())
    }

    /// The same of the latest script with this URL.
    pub fn text_at(&self, url: &str) -> Option<String> {
        self.text(self.script(*self.by_url.get(url)?)?)
    }

    /// The URL of the script that a code's own function is in; `None` if it is not known.
    pub fn url_of(&self, id: InfoId) -> Option<&str> {
        let script = self.script(self.info(id)?.script?)?;
        script.is_named().then_some(&*script.url)
    }

    /// The scripts of a code's own function and of those inlined into it.
    pub fn scripts_of(&self, info: &Info) -> impl Iterator<Item = u32> {
        let functions = info.functions.iter().flatten().filter_map(|&id| self.function(id)?.script);
        info.script.into_iter().chain(functions)
    }

    /// How many bytes describe the code.
    pub fn weight(&self, id: InfoId) -> usize {
        self.info(id).map_or(0, |info| info.line.len)
    }

    /// Computes the line starts of the scripts of these codes.
    pub fn prepare(&mut self, codes: impl Iterator<Item = InfoId>) {
        let inlined =
            codes.filter_map(|id| self.info(id)).filter(|info| !info.functions.is_empty());
        let mut needed: Vec<u32> = inlined.flat_map(|info| self.scripts_of(info)).collect();
        needed.sort_unstable();
        needed.dedup();
        for number in needed {
            let Some(script) = self.script(number) else { continue };
            let starts = self.with_line(script.line, |event| match event {
                Event::Script(source) => Some(LineStarts::new(source.escaped_text)),
                _ => None,
            });
            // A file that changed has no lines.
            let starts = starts.ok().flatten().flatten();
            if let Some(script) = self.scripts.get_mut(number as usize) {
                script.starts = starts;
            }
        }
    }

    /// Reads a line again, and passes its event to `take`. `None` if there is no event any more.
    pub fn with_line<T>(
        &self,
        line: Line,
        take: impl FnOnce(Event<'_>) -> T,
    ) -> io::Result<Option<T>> {
        let Some((_, file)) = self.logs.get(line.log as usize) else { return Ok(None) };
        let mut bytes = vec![0; line.len];
        std::os::unix::fs::FileExt::read_exact_at(&**file, &mut bytes, line.offset)?;
        Ok(Event::parse(&bytes).ok().flatten().map(take))
    }

    fn add(&mut self, path: PathBuf, file: SourceFile, damage: &mut Damage) -> io::Result<()> {
        let log = u32::try_from(self.logs.len()).unwrap_or(u32::MAX);
        let mut reader = Reader::new(BufReader::with_capacity(BUFFER, TextReader::new(&file)?));
        let mut open = OpenLog::default();
        while let Some(entry) = reader.next_event()? {
            let line = Line { log, offset: entry.offset, len: entry.len };
            match entry.event {
                Ok(Event::Code(code)) => self.code(&mut open, &code),
                Ok(Event::SourceInfo(info)) => self.source_info(&mut open, &info, line),
                Ok(Event::Script(script)) => self.script_source(&mut open, &script, line),
                Ok(Event::FunctionMove(moved)) => {
                    if let Some(function) = open.functions.remove(&moved.from) {
                        open.functions.insert(moved.to, function);
                    }
                }
                // With --perf-prof, V8 moves no machine code.
                Ok(_) => {}
                Err(error) => damage.note(&error),
            }
        }
        drop(reader);
        self.logs.push((path, file));
        Ok(())
    }

    fn code(&mut self, open: &mut OpenLog, code: &CodeCreation<'_>) {
        let &CodeCreation { time_us, address, size, function, .. } = code;
        // Only functions have positions.
        open.code = function.map(|_| {
            let name = code.name();
            LatestCode { time_us, address, size, function, name }
        });
    }

    fn source_info(&mut self, open: &mut OpenLog, info: &SourceInfo<'_>, line: Line) {
        let Some(code) = open.code.take().filter(|code| code.address == info.address) else {
            return;
        };
        let script = open.scripts.get(&info.script).copied();
        if let Some(address) = code.function {
            let of_script = script.and_then(|script| self.script(script));
            let file = of_script.map_or("", |script| &*script.name);
            let (name, line, column) = split_name(&code.name, file).unwrap_or((&code.name, 0, 0));
            let known = open.functions.get(&address).and_then(|&id| self.function(id));
            // After a collection of garbage, another function may be at the address.
            let is_known = known.is_some_and(|known| {
                (&*known.name, known.place, known.script) == (name, (line, column), script)
            });
            if !is_known {
                let function = Function { name: name.into(), place: (line, column), script };
                let id = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
                self.functions.push(function);
                open.functions.insert(address, id);
            }
        }
        let functions = info.functions().map_while(Result::ok);
        let functions = functions.map(|address| open.functions.get(&address).copied()).collect();
        let id = InfoId(u32::try_from(self.infos.len()).unwrap_or(u32::MAX));
        self.infos.push(Info { time_us: code.time_us, line, script, functions });
        self.by_code.entry((code.address, code.size)).or_default().push(id);
    }

    fn script_source(&mut self, open: &mut OpenLog, script: &ScriptSource<'_>, line: Line) {
        let number = u32::try_from(self.scripts.len()).unwrap_or(u32::MAX);
        open.scripts.insert(script.script, number);
        let named: Arc<str> = script.url().into();
        let url = own_url(script).map_or_else(|| Arc::clone(&named), Arc::from);
        let name = if &*named == UNKNOWN { "".into() } else { named };
        let script = Script { url, name, line, starts: None };
        if script.is_named() {
            self.by_url.insert(Arc::clone(&script.name), number);
            self.by_url.insert(Arc::clone(&script.url), number);
        }
        self.scripts.push(script);
    }
}
