//! Writes the seeds that are made and not recorded: `cargo run --example seeds` in `fuzz/`.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use jitdump::extension::{FramePointer, Kind, LeftOut, log, tag};
use jitdump::{
    DebugEntry, Endian, EntryName, ExtendedCode, Inlined, LineEntry, Load, Move, UnwindOrder,
    UnwindingInfo, Writer, WriterConfig,
};
use jitscribe::{Code, Scribe};
use jitscribe_fuzz::readers::firefox_requests;
use profile::{Builder, Frame, Function, FunctionKind, SampleRow};

const BASE: u64 = 0x7f00_0000_1000;

/// A dump with every record; `bias` is what debug addresses are too high by.
fn dump(endian: Endian, machine: u32, bias: u64, same_file: bool) -> Vec<u8> {
    let config = WriterConfig { endian, machine, pid: 7, timestamp: 1000, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    for index in 0..4 {
        let address = BASE + index * 0x40;
        let time = 2000 + index * 10;
        let second = if same_file { EntryName::Same } else { EntryName::Path(b"/src/b.js") };
        let entry = |offset, line, name| DebugEntry {
            addr: address + offset + bias,
            line,
            discrim: 3,
            name,
        };
        let entries = [entry(0, 10, EntryName::Path(b"/src/a.js")), entry(8, 11, second)];
        writer.debug_info(time, address, entries).expect("lines");
        // A CIE and an FDE as jitted code has them, and a binary search table of one row.
        let eh_frame: &[u8] = &[
            0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90,
            1, 0, 0, 0x10, 0, 0, 0, 0x1c, 0, 0, 0, 0xc8, 0xff, 0xff, 0xff, 0x20, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0,
        ];
        let eh_frame_hdr: &[u8] = &[
            1, 0x1b, 3, 0x3b, 0xcc, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xb0, 0xff, 0xff, 0xff, 0xe8,
            0xff, 0xff, 0xff,
        ];
        let unwinding = UnwindingInfo {
            eh_frame,
            eh_frame_hdr,
            mapped_size: 0x48,
            order: if index % 2 == 0 { UnwindOrder::FrameFirst } else { UnwindOrder::HeaderFirst },
            padding: &[0; 4],
        };
        writer.unwinding_info(time, &unwinding).expect("unwind tables");
        let load = Load {
            pid: 7,
            tid: 8,
            vma: address,
            code_addr: address,
            code_index: index,
            name: b"fib(int)",
            code: &[0xc3; 0x20],
            missing: 0,
            padding: &[],
        };
        writer.load(time, &load).expect("a load");
    }
    let moved = Move {
        pid: 7,
        tid: 8,
        vma: BASE,
        old_code_addr: BASE,
        new_code_addr: BASE + 0x1000,
        code_size: 0x20,
        code_index: 0,
    };
    writer.move_code(3000, &moved).expect("a move");
    writer.unknown(3001, 0x1000, b"extension").expect("an unknown record");
    writer.close(3002).expect("an end");
    writer.into_sink()
}

/// A code log: codes with all that can be said of them, with bytes and without.
fn made_log(endian: Endian) -> Vec<u8> {
    let config = WriterConfig { endian, machine: 62, pid: 7, timestamp: 1000, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    writer.tail(1000, 0, [(tag::LOG, 0, &[0; log::SIZE][..])]).expect("the log's head");
    writer.tail(1000, 0, [(tag::CHUNK, 0, &[0; 16][..])]).expect("a chunk's head");
    for index in 0..4 {
        let address = BASE + index * 0x40;
        let line =
            |offset, file, line| LineEntry { address: address + offset, file, line, column: 3 };
        let lines = [line(0, b"/src/a.js", 10), line(8, b"/src/b.js", 11)];
        let ir_lines = [line(0, b"f.ir", 1), line(4, b"f.ir", 2)];
        let call = |parent, name, start, end| Inlined {
            parent,
            name,
            file: b"/src/a.js",
            line: 10,
            column: 4,
            ranges: vec![address + start..address + end],
        };
        let inlined = [call(None, &b"add"[..], 4, 16), call(Some(0), b"carry", 8, 12)];
        let code = ExtendedCode {
            timestamp: 2000 + index * 10,
            pid: 7,
            tid: 8,
            address,
            size: 0x20,
            index,
            name: b"fib(int)",
            bytes: (index % 2 == 0).then_some(&[0xc3; 0x20]),
            died: (index == 3).then_some(2500),
            kind: Kind::Stub,
            tier: Some(b"baseline"),
            lines: &lines,
            ir_lines: &ir_lines,
            inlined: &inlined,
            eh_frame: &[8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
            frame_pointer: Some(FramePointer::Prologue),
            ..ExtendedCode::default()
        };
        writer.extended(&code).expect("a code");
    }
    writer.left_out(3000, &LeftOut { count: 1, first: 2600, last: 2600 }).expect("a number");
    writer.into_sink()
}

fn main() -> io::Result<()> {
    let little = dump(Endian::Little, 62, 0, false);
    let cut = little.len() - 90;
    let mut hole = little.clone();
    hole.splice(cut..cut, [0; 64]);
    let mut truncated = little.clone();
    truncated.truncate(cut + 20);
    let seeds: [(&str, &[u8]); 8] = [
        ("little", &little),
        ("big", &dump(Endian::Big, 22, 0, false)),
        ("v8", &dump(Endian::Little, 62, 0x40, true)),
        ("arm", &dump(Endian::Little, 40, 0x34, true)),
        ("hole", &hole),
        ("truncated", &truncated),
        ("log", &made_log(Endian::Little)),
        ("log-big", &made_log(Endian::Big)),
    ];
    for target in ["jitdump_read", "jitdump_codes", "jitdump_check", "code_image"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join("code_log");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("lean"), library_log(false)?)?;
    fs::write(folder.join("bytes"), library_log(true)?)?;
    firefox_requests()?;
    divided_profiles()
}

/// Profiles of four samples, as the target of divided profiles takes them: to be halved.
fn divided_profiles() -> io::Result<()> {
    let mut builder = Builder::new();
    let process = builder.process(7, b"app");
    let thread = builder.thread(process, 8, b"main");
    let event = builder.event(b"cycles");
    for (time, name) in (1_u64..).zip([b"f", b"g", b"f", b"h"]) {
        let function = Function::new(builder.string(name), FunctionKind::Jitted);
        let function = builder.function(function);
        let frame = builder.frame(Frame::new(function));
        let stack = builder.stack(None, frame);
        builder.sample(SampleRow { time, thread, event, weight: 1, stack });
    }
    let (profile, options) = (builder.finish(), profile_export::Options::default());
    let (mut otlp, mut pprof, mut gzipped) = (vec![0, 128], vec![1, 128], Vec::new());
    profile_export::otlp::write(&profile, &options, &mut otlp)?;
    profile_export::pprof::write(&profile, &options, &mut gzipped)?;
    GzDecoder::new(&gzipped[..]).read_to_end(&mut pprof)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/push_divide");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("otlp"), otlp)?;
    fs::write(folder.join("pprof"), pprof)
}

/// Questions about the profile of the target, which are answered.
fn firefox_requests() -> io::Result<()> {
    let mut written = Vec::new();
    let options = profile_export::Options::default();
    profile_export::firefox::write(&firefox_requests::profile(), &options, &mut written)?;
    let written = String::from_utf8(written).expect("JSON");
    let field = |name: &str| {
        let (_, rest) = written.split_once(&format!("\"{name}\":\"")).expect("a library");
        rest.split('"').next().expect("a text").to_owned()
    };
    let (name, id) = (field("debugName"), field("breakpadId"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/firefox_requests");
    fs::create_dir_all(&folder)?;
    for (seed, path, question) in [
        (
            "asm",
            "/asm/v1",
            format!(r#"{{"debugName":"{name}","debugId":"{id}","startAddress":"0x10"}}"#),
        ),
        ("source", "/source/v1", r#"{"file":"/a.js"}"#.to_owned()),
    ] {
        let length = question.len();
        let head =
            format!("POST {path}?x HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Length: {length}");
        fs::write(folder.join(seed), format!("{head}\r\n\r\n{question}"))?;
        fs::write(folder.join(format!("{seed}-question")), question)?;
    }
    fs::write(folder.join("get"), "GET /profile.json HTTP/1.1\r\nHost: localhost:80\r\n\r\n")
}

/// The beginning of a log that the library wrote, told to be of smaller chunks, lest it be too large.
fn library_log(with_bytes: bool) -> io::Result<Vec<u8>> {
    const CHUNK: u32 = 4096;
    let scribe = Scribe::builder();
    let scribe = if with_bytes { scribe.bytes() } else { scribe }.build();
    let bytes = [0xc3; 24];
    let lines = [jitscribe::Line::new(3, "/src/a.js", 7).column(2)];
    for n in 0..12 {
        let code = Code::new(&bytes).runs_at(BASE + 64 * n).named("fib(int)").lines(&lines);
        let mut code = scribe.load(&code.tier("baseline").frame_pointer());
        if n % 3 == 0 {
            code.moved_to_address(BASE + 0x1000 + 64 * n);
        }
        if n % 4 != 0 {
            code.leak();
        }
    }
    let fd = scribe.log_fd().expect("a log").try_clone_to_owned()?;
    let mut log = vec![0; log::FIRST_CHUNK + 2 * CHUNK as usize];
    std::os::unix::fs::FileExt::read_exact_at(&fs::File::from(fd), &mut log, 0)?;
    let chunk_size = code_log::Head::CONTROL as usize - log::CONTROL + log::CHUNK_SIZE;
    log[chunk_size..chunk_size + 4].copy_from_slice(&CHUNK.to_ne_bytes());
    Ok(log)
}
