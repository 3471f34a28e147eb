//! A program crashes in JIT-compiled code without frame pointers. minidump-writer writes a minidump of it, the stream is added, and
//! minidump-processor finds the whole stack with names.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use async_trait::async_trait;
use crash_stream::{CrashStream, append, encode, stack_words};
use crash_symbols::{CodeSymbols, with_code_modules};
use minidump::{Minidump, MinidumpModuleList, MinidumpSystemInfo, Module};
use minidump_processor::process_minidump;
use minidump_unwind::debuginfo::DebugInfoSymbolProviderBuilder;
use minidump_unwind::{
    FileError, FileKind, FillSymbolError, FrameSymbolizer, FrameTrust, FrameWalker,
    MultiSymbolProvider, StackFrame, SymbolProvider,
};
use minidump_writer::CrashContextExt;
use minidump_writer::minidump_writer::MinidumpWriterConfig;
use object::{Object, ObjectSymbol};
use test_privilege::{Privilege, have};

/// A process that has crashed and waits in its handler, and what its handler has written.
struct Crashed {
    child: Child,
    log: i32,
    context: crash_context::CrashContext,
    /// The stream that the handler wrote.
    stream: Vec<u8>,
}

impl Crashed {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crash-jit"));
        command.env_remove("JITSCRIBE").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut read = |size: usize| {
            let mut bytes = vec![0; size];
            out.read_exact(&mut bytes).unwrap();
            bytes
        };
        let log = i32::from_ne_bytes(read(4).try_into().unwrap());
        let context = read(size_of::<crash_context::CrashContext>());
        let context = crash_context::CrashContext::from_bytes(&context).unwrap();
        let size = u64::from_ne_bytes(read(8).try_into().unwrap());
        let stream = read(size as usize);
        Self { child, log, context, stream }
    }

    fn file(&self, name: &str) -> File {
        File::open(format!("/proc/{}/{name}", self.child.id())).unwrap()
    }

    /// What a crash reporter does in another process.
    fn minidump(&self) -> Vec<u8> {
        let context = CrashContextExt { inner: self.context.clone() };
        let mut config = MinidumpWriterConfig::new(self.context.pid, self.context.tid);
        config.set_crash_context(context);
        config.write(&mut Cursor::new(Vec::new())).unwrap()
    }

    /// The stream as such a reporter makes it.
    fn stream_from_outside(&self, minidump: &[u8]) -> Vec<u8> {
        let snapshot = code_log::snapshot(&self.file(&format!("fd/{}", self.log))).unwrap();
        assert_eq!((snapshot.codes, snapshot.torn), (1003, 0));
        let memory = self.file("mem");
        let words = stack_words(minidump).unwrap();
        encode(&snapshot.bytes, words, |at, bytes| memory.read_exact_at(bytes, at).is_ok()).unwrap()
    }
}

impl Drop for Crashed {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Names native functions by the symbol tables of the modules' files. It stands for the symbols that a server has.
#[derive(Default)]
struct NativeNames {
    files: HashMap<PathBuf, Vec<u8>>,
}

impl NativeNames {
    fn new(modules: &MinidumpModuleList) -> Self {
        let paths = modules.iter().map(|module| PathBuf::from(module.code_file().into_owned()));
        Self {
            files: paths
                .filter_map(|path| Some((path.clone(), std::fs::read(path).ok()?)))
                .collect(),
        }
    }
}

#[async_trait]
impl SymbolProvider for NativeNames {
    async fn fill_symbol(
        &self,
        module: &(dyn Module + Sync),
        frame: &mut (dyn FrameSymbolizer + Send),
    ) -> Result<(), FillSymbolError> {
        let path = PathBuf::from(module.code_file().into_owned());
        let bytes = self.files.get(&path).ok_or(FillSymbolError {})?;
        let file = object::File::parse(&**bytes).map_err(|_| FillSymbolError {})?;
        let at = frame.get_instruction() - module.base_address();
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mut here = symbols.filter(|symbol| {
            symbol.kind() == object::SymbolKind::Text
                && (symbol.address()..symbol.address() + symbol.size().max(1)).contains(&at)
        });
        let found = here.next().and_then(|symbol| Some((symbol.name().ok()?, symbol.address())));
        let (name, address) = found.ok_or(FillSymbolError {})?;
        frame.set_function(name, module.base_address() + address, 0);
        Ok(())
    }

    async fn walk_frame(
        &self,
        _: &(dyn Module + Sync),
        _: &mut (dyn FrameWalker + Send),
    ) -> Option<()> {
        None
    }

    async fn get_file_path(
        &self,
        _: &(dyn Module + Sync),
        _: FileKind,
    ) -> Result<PathBuf, FileError> {
        Err(FileError::NotFound)
    }
}

/// The stack of the crash, as minidump-processor finds it.
fn process(minidump: Vec<u8>) -> Vec<StackFrame> {
    let mut provider = MultiSymbolProvider::new();
    if let Some(symbols) = CodeSymbols::find(&minidump).unwrap() {
        assert_eq!(symbols.len(), 3);
        provider.add(Box::new(symbols));
    }
    let minidump = with_code_modules(&minidump).unwrap().unwrap_or(minidump);
    let minidump = Minidump::read(minidump).unwrap();
    let modules = minidump.get_stream::<MinidumpModuleList>().unwrap();
    let system = minidump.get_stream::<MinidumpSystemInfo>().unwrap();
    provider.add(Box::new(NativeNames::new(&modules)));
    futures_executor::block_on(async {
        let native = DebugInfoSymbolProviderBuilder::new();
        provider.add(Box::new(native.build(&system, &modules).await));
        let state = process_minidump(&minidump, &provider).await.unwrap();
        let crashed = state.requesting_thread.expect("the thread that crashed");
        state.threads[crashed].frames.clone()
    })
}

/// What the tests compare of a frame: its function with file and line, and those that are inlined into it, innermost first.
fn described(frame: &StackFrame) -> String {
    let place = |file: &Option<String>, line: Option<u32>| match (file, line) {
        (Some(file), Some(line)) => format!(" at {file}:{line}"),
        _ => String::new(),
    };
    let mut text = String::new();
    for inlined in &frame.inlines {
        let at = place(&inlined.source_file_name, inlined.source_line);
        text += &format!("{}{at}, in ", inlined.function_name);
    }
    let at = place(&frame.source_file_name, frame.source_line);
    text + frame.function_name.as_deref().unwrap_or("?") + &at
}

const STACK: [&str; 7] = [
    "jit::helper at /src/helper.jit:3, in jit::crash at /src/crash.jit:21",
    "native_top",
    "jit::second at /src/crash.jit:11",
    "native_middle",
    "jit::first at /src/crash.jit:11",
    "native_bottom",
    "main",
];

fn check(frames: &[StackFrame]) {
    let all: Vec<String> = frames.iter().map(described).collect();
    assert_eq!(
        all.iter().take(STACK.len()).collect::<Vec<_>>(),
        STACK.iter().collect::<Vec<_>>(),
        "{all:?}"
    );
    // What called `main` is the C library's.
    assert_eq!(all.last().map(String::as_str), Some("_start"), "{all:?}");
    assert!(all.len() <= STACK.len() + 3, "{all:?}");
    for (number, frame) in frames.iter().enumerate() {
        let expected = if number == 0 { FrameTrust::Context } else { FrameTrust::CallFrameInfo };
        assert_eq!(frame.trust, expected, "{number} of {all:?}");
    }
}

/// The machine code in a stream, by address.
fn code_bytes(stream: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let stream = CrashStream::parse(stream).unwrap();
    assert_eq!((stream.header.codes, stream.header.left_out), (3, 0));
    let mut all: Vec<_> = stream.code_bytes().map(|(at, bytes)| (at, bytes.to_vec())).collect();
    all.sort();
    all
}

#[test]
fn a_reporter_in_another_process_writes_the_code() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let crashed = Crashed::start();
    let minidump = crashed.minidump();
    let stream = crashed.stream_from_outside(&minidump);
    let reported = append(&minidump, &stream).unwrap();
    check(&process(reported.clone()));
    assert_eq!(append(&reported, &stream), Err(crash_stream::Error::HasStream));
    // All streams of the writer are still there.
    let types = |dump: &[u8]| {
        let dump = Minidump::read(dump.to_vec()).unwrap();
        let mut types: Vec<u32> = dump.all_streams().map(|entry| entry.stream_type).collect();
        types.sort_unstable();
        types
    };
    let mut expected = types(&minidump);
    expected.push(crash_stream::layout::STREAM_TYPE);
    expected.sort_unstable();
    assert_eq!(types(&reported), expected);
}

#[test]
fn a_reporter_in_the_process_writes_the_same_code() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let crashed = Crashed::start();
    let minidump = crashed.minidump();
    check(&process(append(&minidump, &crashed.stream).unwrap()));
    let bytes = code_bytes(&crashed.stream);
    assert_eq!(bytes, code_bytes(&crashed.stream_from_outside(&minidump)));
    let sizes: Vec<usize> = bytes.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(sizes, [17, 17, 23]);
    assert_eq!((bytes[0].1[0], bytes[2].1[22]), (0x53, 0xc3));
}

/// Without the stream, the stack is not found: the test above can fail.
#[test]
fn without_the_stream_the_code_has_no_names() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let crashed = Crashed::start();
    let frames = process(crashed.minidump());
    assert!(frames[0].function_name.is_none());
    assert!(frames.iter().all(|frame| frame.trust != FrameTrust::CallFrameInfo
        || frame.function_name.as_deref() != Some("native_top")));
    let names: Vec<String> = frames.iter().map(described).collect();
    assert!(names.iter().all(|name| !name.contains("jit::")), "{names:?}");
}
