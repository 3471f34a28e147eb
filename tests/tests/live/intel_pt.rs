//! Traces of Intel PT through jitted code that is replaced while it is traced: decoded by libipt with our memory, and by perf from an
//! injected recording. No machine of the tests has Intel PT: libipt's own encoder makes the trace.

use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::{run, tool};
use jitdump::{Endian, FLAG_ARCH_TIMESTAMP, Load, Writer, WriterConfig};

const PID: u32 = 4711;
const FIRST: u64 = 0x7f00_1000_0000;
const OTHER: u64 = FIRST + 0x80;
/// `test eax, eax; je +1; nop; inc eax; jmp rdx`.
const OLD: [u8; 9] = [0x85, 0xc0, 0x74, 0x01, 0x90, 0xff, 0xc0, 0xff, 0xe2];
/// `xor rax, rax; jne -5; jmp rdx`.
const NEW: [u8; 7] = [0x48, 0x31, 0xc0, 0x75, 0xfb, 0xff, 0xe2];
/// `inc ecx; jmp rbx`.
const RETURN: [u8; 4] = [0xff, 0xc1, 0xff, 0xe3];
/// The replacement, in counts of the processor's clock: between the trace's first and second timing packet.
const LOADED: u64 = 200_000;

/// How counts become nanoseconds: half of them, from 5,000 on.
const ZERO: u64 = 5000;
const SHIFT: u64 = 10;
const MULT: u64 = 512;

fn nanoseconds(counts: u64) -> u64 {
    ZERO + counts / 2
}

/// What the processor executed: address, bytes, code.
fn executed() -> Vec<String> {
    let step = |address: u64, bytes: &[u8], name: &str| {
        let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{address:x} {bytes} {name}")
    };
    vec![
        step(FIRST, &OLD[0..2], "old"),
        step(FIRST + 2, &OLD[2..4], "old"),
        step(FIRST + 5, &OLD[5..7], "old"),
        step(FIRST + 7, &OLD[7..9], "old"),
        step(OTHER, &RETURN[0..2], "other"),
        step(OTHER + 2, &RETURN[2..4], "other"),
        step(FIRST, &NEW[0..3], "new"),
        step(FIRST + 3, &NEW[3..5], "new"),
        step(FIRST + 5, &NEW[5..7], "new"),
        step(OTHER, &RETURN[0..2], "other"),
        step(OTHER + 2, &RETURN[2..4], "other"),
    ]
}

/// A dump of the three codes.
fn dump(folder: &Path, name: &str, flags: u64, clock: impl Fn(u64) -> u64) -> PathBuf {
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: PID, timestamp: clock(1), flags };
    let mut writer = Writer::new(Vec::new(), &config).unwrap();
    let codes: [(u64, u64, &[u8], &[u8]); 3] = [
        (1000, FIRST, b"old", &OLD),
        (2000, OTHER, b"other", &RETURN),
        (LOADED, FIRST, b"new", &NEW),
    ];
    for (index, (time, address, name, code)) in codes.into_iter().enumerate() {
        let load = Load {
            pid: PID,
            tid: PID,
            vma: address,
            code_addr: address,
            code_index: index as u64,
            name,
            code,
            padding: &[],
            missing: 0,
        };
        writer.load(clock(time), &load).unwrap();
    }
    let path = folder.join(name);
    std::fs::write(&path, writer.into_sink()).unwrap();
    path
}

/// The program that encodes and decodes traces, and the trace.
fn traced(folder: &Path) -> (PathBuf, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let program = folder.join("intel_pt");
    let mut cc = tool("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-o"]);
    cc.arg(&program).arg("-I").arg(root.join("crates/bindings/jitscribe-codes/include"));
    cc.arg(root.join("tests/workloads/intel_pt.c")).arg("-L").arg(&libraries);
    // Its soname is that of an installed library.
    cc.args(["-ljitscribe_codes", "-lipt"]).arg(format!("-Wl,-rpath,{}", folder.display()));
    run(&mut cc);
    let library = libraries.join("libjitscribe_codes.so");
    std::os::unix::fs::symlink(library, folder.join("libjitscribe_codes.so.0")).unwrap();
    let path = folder.join("trace");
    run(Command::new(&program)
        .args(["encode", &format!("{FIRST:x}"), &format!("{OTHER:x}")])
        .stdout(std::fs::File::create(&path).unwrap()));
    (program, path)
}

#[test]
fn libipt_decodes_code_as_of_the_time_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = traced(folder.path());
    let decoded = |dump: &Path, zero: u64, shift: u64, mult: u64| {
        let numbers = [zero, shift, mult].map(|number| number.to_string());
        let output = run(Command::new(&program).arg("decode").arg(dump).arg(&trace).args(numbers));
        output.stdout
    };
    let counts = dump(folder.path(), "counts.dump", FLAG_ARCH_TIMESTAMP, |counts| counts);
    assert_eq!(decoded(&counts, 0, 0, 0).lines().collect::<Vec<_>>(), executed());
    let nanoseconds = dump(folder.path(), "nanoseconds.dump", 0, nanoseconds);
    assert_eq!(decoded(&nanoseconds, ZERO, SHIFT, MULT).lines().collect::<Vec<_>>(), executed());
}

/// The parts of a recording of one process and one event of Intel PT.
mod made {
    use super::{FIRST, MULT, PID, SHIFT, ZERO, nanoseconds};

    /// The number that this machine gave to the event's source.
    const SOURCE: u32 = 8;
    /// `tsc`, `branch` and `pt` in the event's configuration.
    const CONFIG: u64 = 1 << 10 | 1 << 13 | 1;
    /// `PERF_SAMPLE_IP | TID | TIME | CPU | IDENTIFIER`.
    const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 16;
    const ID: u64 = 77;
    /// A count of the clock near the trace's, for the bits that its packets lack. 0 would mean that there is none.
    const REFERENCE: u64 = 90_000;

    fn u64s(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn u32s(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn event(kind: u32, misc: u16, parts: &[Vec<u8>]) -> Vec<u8> {
        let body = parts.concat();
        let size = u16::try_from(body.len() + 8).unwrap();
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), &body].concat()
    }

    /// Thread, time, CPU and id, which each of the kernel's records ends with.
    fn trailer(counts: u64) -> Vec<u8> {
        [u32s(&[PID, PID]), u64s(&[nanoseconds(counts)]), u32s(&[0, 0]), u64s(&[ID])].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
        bytes
    }

    /// A recording as perf writes it.
    pub fn recording(trace: &[u8]) -> Vec<u8> {
        // `disabled`, `mmap`, `comm`, `task`, `sample_id_all`, `mmap2`.
        let flags = 1 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23;
        let mut attr = [u32s(&[SOURCE, 128]), u64s(&[CONFIG, 1, SAMPLE_TYPE, 0, flags])].concat();
        attr.resize(128, 0);
        // util/intel-pt.h: the order of these numbers. Neither MTC nor CYC packets, no filter, buffers of threads.
        let info = [u64::from(SOURCE), SHIFT, MULT, ZERO, 1, 1 << 10, 1 << 11, 0, 0, 0];
        let conversion = u64s(&[SHIFT, MULT, ZERO]);
        let anonymous = [
            u32s(&[PID, PID]),
            u64s(&[FIRST, 0x1000, 0]),
            u32s(&[0, 0]),
            u64s(&[0, 0]),
            u32s(&[5, 2]),
            text("//anon"),
            trailer(10),
        ];
        let size = u64::try_from(trace.len().next_multiple_of(8)).unwrap();
        let mut padded = trace.to_vec();
        padded.resize(trace.len().next_multiple_of(8), 0);
        let data = [
            event(70, 0, &[u32s(&[1, 0]), u64s(&info), u64s(&[0; 8])]),
            event(79, 0, &[conversion]),
            event(3, 0, &[u32s(&[PID, PID]), text("made"), trailer(5)]),
            event(10, 2, &anonymous),
            event(12, 0, &[u32s(&[PID, PID]), trailer(20)]),
            event(71, 0, &[u64s(&[size, 0, REFERENCE]), u32s(&[0, PID, u32::MAX, 0])]),
            padded,
            // The process lives on: the last record's time is behind the trace's.
            event(3, 0, &[u32s(&[PID, PID]), text("made"), trailer(500_000)]),
        ]
        .concat();
        let slot = attr.len() as u64 + 16;
        let (attrs_at, ids_at) = (104, 104 + slot);
        let data_at = ids_at + 8;
        [
            b"PERFILE2".to_vec(),
            u64s(&[104, slot, attrs_at, slot, data_at, data.len() as u64, 0, 0, 0, 0, 0, 0]),
            attr,
            u64s(&[ids_at, 8]),
            u64s(&[ID]),
            data,
        ]
        .concat()
    }
}

#[test]
fn perf_decodes_an_injected_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (_, trace) = traced(folder.path());
    let recorded = folder.path().join("perf.data");
    std::fs::write(&recorded, made::recording(&std::fs::read(trace).unwrap())).unwrap();
    let dump = dump(folder.path(), "jit-4711.dump", FLAG_ARCH_TIMESTAMP, |counts| counts);
    let injected = folder.path().join("out.data");
    let mut inject = jitscribe();
    inject.args(["inject", "-i"]).arg(&recorded).arg("-o").arg(&injected);
    run(inject.arg("--jitdump").arg(&dump));
    let instructions = |recording: &Path| {
        let output = run(tool("perf")
            .args(["script", "--itrace=i0ns", "-F", "ip,sym,insn", "-i"])
            .arg(recording));
        output.stdout
    };
    // ` 7f0010000000 old insn: 85 c0`
    let decoded: Vec<String> = instructions(&injected)
        .lines()
        .map(|line| {
            let (place, bytes) = line.split_once(" insn: ").unwrap_or((line, ""));
            let (address, name) = place.trim().split_once(' ').unwrap_or((place, ""));
            format!("{address} {} {}", bytes.replace(' ', ""), name.trim())
        })
        .collect();
    assert_eq!(decoded, executed());
    // Without the images, perf has no instructions to decode.
    assert_eq!(instructions(&recorded), "");
}
