//! Minidumps with a stream of JIT-compiled code: any bytes as a minidump, as the stream, and as the snapshot of a code log.

use crash_stream::{CrashStream, append, encode, find_stream, stack_words, with_code_modules};

/// The type of the list of modules.
const MODULES: u32 = 4;

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    if let Ok(stream) = CrashStream::parse(bytes) {
        assert!(stream.dump.len() <= bytes.len());
        let size: usize = stream.code_bytes().map(|(_, bytes)| 16 + bytes.len()).sum();
        assert!(stream.dump.len() + size <= bytes.len());
    }
    // Threads may refer to the same memory again and again; a list has few of them.
    let words: Vec<u64> =
        stack_words(bytes).map(|words| words.take(10_000).collect()).unwrap_or_default();
    if let Ok(Some(dump)) = with_code_modules(bytes) {
        assert!(find_stream(&dump, MODULES).expect("a minidump").is_some());
    }
    if let Ok(dump) = append(bytes, b"stream") {
        let found = find_stream(&dump, crash_stream::layout::STREAM_TYPE);
        assert_eq!(found, Ok(Some(&b"stream"[..])));
    }
    if let Ok(stream) = encode(bytes, words, |_, _| true) {
        let stream = CrashStream::parse(&stream).expect("a stream that was written");
        assert!(stream.code_bytes().count() as u64 <= u64::from(stream.header.codes));
    }
}
