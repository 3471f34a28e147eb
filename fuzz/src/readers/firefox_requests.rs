//! Requests to the server for the Firefox Profiler: any bytes that arrive, and any question in them.

use std::io::{self, Read};

use profile::{
    Builder, Code, CodeId, CodeSource, Function, FunctionKind, Listing, Profile, Source,
};
use profile_export::firefox::{Request, Symbols};

/// The size of a question, at most.
const LARGEST_BODY: usize = 64 << 10;

/// Gives a few bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.len().min(self.1).min(buffer.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

/// Machine code and sources that are the input itself.
struct Input<'a>(&'a [u8]);

impl CodeSource for Input<'_> {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let machine = if code.index() == 0 { 62 } else { 183 };
        Some(Listing { address: 0x1000, machine, bytes: self.0.to_vec(), lines: Vec::new() })
    }

    fn name_at(&mut self, _: CodeId, address: u64) -> Option<(Vec<u8>, u64)> {
        (address % 3 == 0).then(|| (self.0.to_vec(), address % 7))
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        Some(Source { text: self.0.to_vec(), is_newer: false })
    }
}

/// Two jitted functions at the same address of a process.
pub fn profile() -> Profile {
    let mut builder = Builder::new();
    let process = builder.process(7, b"app");
    for (name, file) in [(&b"f"[..], &b"/a.js"[..]), (b"g", b"/\xff.js")] {
        let mut function = Function::new(builder.string(name), FunctionKind::Jitted);
        function.file = builder.string(file);
        let function = builder.function(function);
        let mut code = Code::new(function, 5);
        (code.process, code.address) = (Some(process), 0x1000);
        builder.code(code);
    }
    builder.finish()
}

/// Reads a request however it arrives, and answers it.
pub fn run(bytes: &[u8]) {
    let read = |at_once| Request::read(&mut Slow(bytes, at_once)).expect("memory");
    let request = read(4096);
    assert_eq!(request, read(7));
    let symbols = Symbols::of(&profile());
    for path in ["/asm/v1", "/source/v1"] {
        let answer = symbols.answer(path, bytes, &mut Input(bytes)).expect("an answer");
        assert!(answer.is_object());
    }
    let Some(request) = request else { return };
    assert!(request.body.len() <= LARGEST_BODY && request.path.starts_with('/'));
    // The files of this machine are not asked for but by the names in the profile.
    if let Some(answer) = symbols.answer(&request.path, &request.body, &mut Input(&request.body)) {
        assert!(answer.is_object());
    }
}
