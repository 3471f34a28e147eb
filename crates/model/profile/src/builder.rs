//! Makes a profile.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::Code;
use crate::content_hash::ContentHash;
use crate::function::Function;
use crate::id::{
    CodeId, EventId, FrameId, FunctionId, Id, ModuleId, ProcessId, StackId, StringId, ThreadId,
};
use crate::origin::{Event, Module, Process, Thread};
use crate::position::Position;
use crate::profile::{About, Missing, Profile};
use crate::sample::{SampleRow, Samples};
use crate::shared_lines::SharedLines;
use crate::stack::{Frame, Stack};
use crate::strings::Strings;
use crate::table::Table;

/// Collects the rows of a profile. Equal rows are stored once, except codes and samples.
///
/// # Panics
/// Each method panics if it is passed a number that this builder has not returned: the program has an error then, whatever the recording is.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    strings: Strings,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    modules: Table<Module, ModuleId>,
    events: Table<Event, EventId>,
    functions: Table<Function, FunctionId>,
    codes: Vec<Code>,
    frames: Table<Frame, FrameId>,
    stacks: Table<Stack, StackId>,
    samples: Samples,
    missing: Vec<Missing>,
    about: About,
    sources: FxHashMap<StringId, ContentHash>,
    /// The files of lines, of functions without a file.
    line_files: FxHashMap<FunctionId, StringId>,
}

impl Builder {
    /// An empty profile.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of a string.
    pub fn string(&mut self, text: &[u8]) -> StringId {
        self.strings.intern(text)
    }

    /// The bytes of a string that was added.
    #[must_use]
    pub fn text(&self, id: StringId) -> &[u8] {
        self.strings.get(id)
    }

    /// Adds a process.
    pub fn process(&mut self, pid: u32, name: &[u8]) -> ProcessId {
        let name = self.string(name);
        self.processes.push(Process { pid, name });
        ProcessId::at(self.processes.len().saturating_sub(1))
    }

    /// Adds a thread.
    pub fn thread(&mut self, process: ProcessId, tid: u32, name: &[u8]) -> ThreadId {
        self.is_row(process, self.processes.len());
        let name = self.string(name);
        self.threads.push(Thread { process, tid, name });
        ThreadId::at(self.threads.len().saturating_sub(1))
    }

    /// Sets the name of a process: the last one counts.
    pub fn name_process(&mut self, process: ProcessId, name: &[u8]) {
        let name = self.string(name);
        if let Some(process) = self.processes.get_mut(process.index()) {
            process.name = name;
        }
    }

    /// Sets the name of a thread: the last one counts.
    pub fn name_thread(&mut self, thread: ThreadId, name: &[u8]) {
        let name = self.string(name);
        if let Some(thread) = self.threads.get_mut(thread.index()) {
            thread.name = name;
        }
    }

    /// The number of a file with code.
    pub fn module(&mut self, module: Module) -> ModuleId {
        self.modules.add(module)
    }

    /// The number of an event by its name.
    pub fn event(&mut self, name: &[u8]) -> EventId {
        let name = self.string(name);
        self.events.add(Event { name })
    }

    /// The number of a function.
    pub fn function(&mut self, function: Function) -> FunctionId {
        function.runtime.inspect(|&runtime| self.is_row(runtime, self.modules.rows().len()));
        self.functions.add(function)
    }

    /// The functions that were added.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.functions.rows()
    }

    /// Adds the hash of a source file's content, as the recording has it.
    pub fn source(&mut self, file: StringId, content: ContentHash) {
        self.sources.insert(file, content);
    }

    /// The row of a function that was added.
    #[must_use]
    pub fn function_row(&self, id: FunctionId) -> Option<&Function> {
        self.functions.rows().get(id.index())
    }

    /// Adds a code. Its generation is set by [`Self::finish`], unless it is code in a file.
    pub fn code(&mut self, code: Code) -> CodeId {
        self.is_row(code.function, self.functions.rows().len());
        self.codes.push(code);
        CodeId::at(self.codes.len().saturating_sub(1))
    }

    /// The row of a code that was added.
    #[must_use]
    pub fn code_row(&self, id: CodeId) -> Option<&Code> {
        self.codes.get(id.index())
    }

    /// The number of a frame.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        self.is_row(frame.function, self.functions.rows().len());
        frame.code.inspect(|&code| self.is_row(code, self.codes.len()));
        frame.module.inspect(|&module| self.is_row(module, self.modules.rows().len()));
        self.frames.add(frame)
    }

    /// The number of a frame at a position, whose line and column it gets if they are of the function's file ([`Profile::file_of`]). All lines of a function are of one
    /// file: those of others would be shown beside its text.
    pub fn frame_at(&mut self, mut frame: Frame, position: Position) -> FrameId {
        let known = self.function_row(frame.function).map(|function| function.file);
        let file = match known.filter(|file| !file.is_empty()) {
            Some(file) => file,
            None if position.line == 0 => position.file,
            None if position.file.is_empty() => {
                self.line_files.get(&frame.function).copied().unwrap_or(position.file)
            }
            None => *self.line_files.entry(frame.function).or_insert(position.file),
        };
        if file == position.file {
            (frame.line, frame.column) = (position.line, position.column);
        }
        self.frame(frame)
    }

    /// The number of the stack of `frame`, called by `parent`.
    pub fn stack(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        self.is_row(frame, self.frames.rows().len());
        parent.inspect(|&parent| self.is_row(parent, self.stacks.rows().len()));
        self.stacks.add(Stack { parent, frame })
    }

    /// Adds a sample.
    pub fn sample(&mut self, row: SampleRow) {
        self.is_row(row.thread, self.threads.len());
        self.is_row(row.event, self.events.rows().len());
        self.is_row(row.stack, self.stacks.rows().len());
        self.samples.push(row);
    }

    /// Reports a file that cannot be looked into.
    pub fn missing(&mut self, missing: Missing) {
        self.missing.push(missing);
    }

    /// Sets what is known of the recording.
    pub fn about(&mut self, about: About) {
        self.about = about;
    }

    /// The profile.
    #[must_use]
    pub fn finish(mut self) -> Profile {
        self.number_generations();
        self.samples.sort();
        let mut functions = self.functions.into_rows();
        name_by_hash(&mut functions, &mut self.strings);
        Profile {
            strings: self.strings,
            processes: self.processes,
            threads: self.threads,
            modules: self.modules.into_rows(),
            events: self.events.into_rows(),
            sharing_lines: sharing_lines(&functions),
            functions,
            codes: self.codes,
            frames: self.frames.into_rows(),
            stacks: self.stacks.into_rows(),
            samples: self.samples,
            about: self.about,
            missing: self.missing,
            sources: self.sources,
            line_files: self.line_files,
        }
    }

    fn number_generations(&mut self) {
        let mut jitted: Vec<&mut Code> =
            self.codes.iter_mut().filter(|code| code.process.is_some()).collect();
        jitted.sort_by_key(|code| (code.process, code.function, code.loaded));
        let mut last = None;
        let mut generation = 0_u32;
        for code in jitted {
            let of = Some((code.process, code.function));
            generation = if of == last { generation.saturating_add(1) } else { 1 };
            last = of;
            code.generation = generation;
        }
    }

    #[track_caller]
    #[expect(clippy::unused_self, reason = "reads as a property of the builder")]
    fn is_row<Number: Id>(&self, id: Number, rows: usize) {
        assert!(id.index() < rows, "a number of another profile");
    }
}

/// Puts the hashes of functions behind their names where others have the same name and file, and another hash.
fn name_by_hash(functions: &mut [Function], strings: &mut Strings) {
    let mut hashes: FxHashMap<(StringId, StringId), Option<StringId>> = FxHashMap::default();
    for Function { name, file, source_hash, .. } in &*functions {
        let only = hashes.entry((*name, *file)).or_insert(Some(*source_hash));
        *only = only.filter(|only| only == source_hash);
    }
    for function in functions.iter_mut().filter(|function| !function.source_hash.is_empty()) {
        if hashes.get(&(function.name, function.file)) == Some(&None) {
            let parts = [strings.get(function.name), b"#", strings.get(function.source_hash)];
            let name = parts.concat();
            function.name = strings.intern(&name);
        }
    }
}

/// The functions that share their line with others of their name.
fn sharing_lines(functions: &[Function]) -> FxHashSet<FunctionId> {
    let keys = functions.iter().map(|row| (row.name, row.file, row.line, row.column));
    let shared = SharedLines::of(keys);
    let is_shared = |row: &Function| shared.is_shared(row.name, row.file, row.line);
    (0..)
        .map(FunctionId)
        .zip(functions)
        .filter(|(_, row)| is_shared(row))
        .map(|(id, _)| id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FunctionKind;
    use crate::function_key::FunctionKey;

    /// A line of another file would be shown beside the text of the function's.
    #[test]
    fn all_lines_of_a_function_are_of_one_file() {
        let mut builder = Builder::new();
        let [name, own, other] = [&b"f"[..], b"/a.ts", b"/b.ts"].map(|text| builder.string(text));
        let mut with_file = Function::new(name, FunctionKind::Jitted);
        with_file.file = own;
        let with_file = builder.function(with_file);
        let without = builder.function(Function::new(name, FunctionKind::Native));
        let mut line = |function, file, line| {
            let frame = builder.frame_at(Frame::new(function), Position { file, line, column: 1 });
            builder.frames.rows()[frame.index()].line
        };
        let none = StringId::EMPTY;
        assert_eq!([line(with_file, own, 3), line(with_file, other, 4)], [3, 0]);
        assert_eq!([line(with_file, none, 5), line(without, none, 6)], [0, 6]);
        // The first file counts.
        assert_eq!([line(without, other, 7), line(without, own, 8)], [7, 0]);
        assert_eq!(line(without, none, 9), 0);
        let profile = builder.finish();
        assert_eq!([profile.file_of(with_file), profile.file_of(without)], [own, other]);
    }

    #[test]
    fn equal_rows_are_stored_once() {
        let mut builder = Builder::new();
        let name = builder.string(b"f");
        assert_eq!(builder.string(b"f"), name);
        assert_eq!(builder.string(b""), StringId::EMPTY);
        let function = builder.function(Function::new(name, FunctionKind::Jitted));
        let frame = builder.frame(Frame::new(function));
        let stack = builder.stack(None, frame);
        assert_eq!(builder.stack(None, frame), stack);
        let inner = builder.stack(Some(stack), frame);
        let profile = builder.finish();
        assert_eq!(profile.stacks().len(), 2);
        assert_eq!(profile.frames_of(inner).count(), 2);
    }

    #[test]
    fn generations_are_numbered_by_time_in_each_process() {
        let mut builder = Builder::new();
        let name = builder.string(b"f");
        let function = builder.function(Function::new(name, FunctionKind::Jitted));
        let processes = [builder.process(1, b"a"), builder.process(2, b"b")];
        for (process, loaded) in
            [(0, Some(30)), (0, None), (1, Some(20)), (0, Some(10)), (1, Some(40))]
        {
            let mut code = Code::new(function, 1);
            code.process = Some(processes[process]);
            code.loaded = loaded;
            builder.code(code);
        }
        builder.code(Code::new(function, 1));
        let profile = builder.finish();
        let generations: Vec<u32> = profile.codes().iter().map(|code| code.generation).collect();
        assert_eq!(generations, [3, 1, 1, 2, 2, 0]);
    }

    #[test]
    fn functions_of_one_name_have_the_hash_of_their_source() {
        let mut builder = Builder::new();
        for (name, hash) in [("t", "AAAAAA"), ("t", "BBBBBB"), ("u", "AAAAAA"), ("v", "")] {
            let name = builder.string(name.as_bytes());
            let mut function = Function::new(name, FunctionKind::Jitted);
            function.source_hash = builder.string(hash.as_bytes());
            builder.function(function);
        }
        let profile = builder.finish();
        let names: Vec<_> = profile.functions().iter().map(|row| profile.text(row.name)).collect();
        assert_eq!(names, [&b"t#AAAAAA"[..], b"t#BBBBBB", b"u", b"v"]);
        // In a recording in which only one of them was compiled, it is the same function.
        let keys = profile.functions().iter().map(|row| FunctionKey::of(&profile, row));
        let keys: Vec<_> = keys.map(|key| (key.name, key.version.source)).collect();
        assert_eq!(keys[0], (b"t".to_vec(), b"AAAAAA".to_vec()));
        assert_eq!(keys[1], (b"t".to_vec(), b"BBBBBB".to_vec()));
        assert_eq!(keys[3], (b"v".to_vec(), Vec::new()));
    }

    #[test]
    #[should_panic(expected = "another profile")]
    fn numbers_of_other_profiles_are_refused() {
        Builder::new().stack(None, FrameId(0));
    }
}
