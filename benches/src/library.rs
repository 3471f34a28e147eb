//! What the library costs a runtime, beside what runtimes do without it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, IoSlice, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jitscribe::{Code, Line, Mode, Scribe};
use jitscribe_capi as c;
use rustix::time::{ClockId, clock_gettime};

/// Of every code.
const NAME: &str = "a_function_name_of_32_bytes_long";
const C_NAME: &CStr = c"a_function_name_of_32_bytes_long";
const FILE: &str = "/home/user/project/src/module.lang";
static CODE: [u8; 512] = [0x90; 512];
/// Of codes with lines.
const LINES: u32 = 10;
/// The codes of one round, at different addresses.
const CODES: u64 = 5_000;
/// The calls of one round of what takes nanoseconds.
const CALLS: u64 = 1_000_000;
const FIRST: u64 = 0x7f00_0000_0000;

/// One way of announcing code: nanoseconds of processor time for each code, in each round.
#[derive(Debug)]
pub struct Way {
    /// What it does.
    pub name: &'static str,
    /// The times of the rounds, from the fastest to the slowest.
    pub times: Vec<f64>,
}

impl Way {
    /// The fastest round.
    #[must_use]
    pub fn fastest(&self) -> f64 {
        self.times.first().copied().unwrap_or(f64::NAN)
    }

    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.times.get(self.times.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Ways of doing the same. The first is what a runtime does without the library.
pub type Group = Vec<Way>;

/// A way, and what measures one round of it.
type Measured<'a> = (&'static str, Box<dyn FnMut() -> io::Result<f64> + 'a>);

/// Measures everything, with files in `folder`: the ways of a group by turns, so that other work on
/// the machine affects all of them.
///
/// # Errors
/// A file cannot be created or written.
pub fn measure(folder: &Path, rounds: usize) -> io::Result<Vec<Group>> {
    let places = Places { folder, count: Cell::new(0) };
    let off = opened(c::Flag::Off as u32)?;
    let groups: [Vec<Measured<'_>>; 3] = [
        vec![
            ("perf map: fprintf, fflush", Box::new(|| printed(&places))),
            ("perf map: jitscribe", Box::new(|| in_perf_map(&places, Lifetime::Process))),
            (
                "perf map: jitscribe, each unloaded and its address reused",
                Box::new(|| in_perf_map(&places, Lifetime::Short)),
            ),
        ],
        vec![
            ("jitdump, 10 lines: writev", Box::new(|| written(&places))),
            ("jitdump, 10 lines: jitscribe", Box::new(|| in_jitdump(&places))),
        ],
        vec![
            (
                "off, in C: a call of a function that does nothing",
                Box::new(|| Ok(calls_of_nothing())),
            ),
            ("off, in C: jitscribe_load", Box::new(|| Ok(loads_while_off(off, false)))),
            (
                "off, in C: jitscribe_load, jitscribe_unload",
                Box::new(|| Ok(loads_while_off(off, true))),
            ),
        ],
    ];
    groups.into_iter().map(|group| by_turns(group, rounds)).collect()
}

fn by_turns(mut group: Vec<Measured<'_>>, rounds: usize) -> io::Result<Group> {
    let mut ways: Group = group.iter().map(|(name, _)| Way { name, times: Vec::new() }).collect();
    for _ in 0..rounds {
        for ((_, round), way) in group.iter_mut().zip(&mut ways) {
            way.times.push(round()?);
        }
    }
    for way in &mut ways {
        way.times.sort_by(f64::total_cmp);
    }
    Ok(ways)
}

/// A folder for each round.
struct Places<'a> {
    folder: &'a Path,
    count: Cell<u32>,
}

impl Places<'_> {
    fn next(&self) -> io::Result<PathBuf> {
        self.count.set(self.count.get() + 1);
        let place = self.folder.join(self.count.get().to_string());
        std::fs::create_dir(&place).map(|()| place)
    }
}

/// Nanoseconds of processor time of this thread, for each of `count` calls.
fn timed(count: u64, mut act: impl FnMut(u64)) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let before = now();
    (0..count).for_each(&mut act);
    (now() - before) / count as f64
}

fn address(number: u64) -> u64 {
    FIRST + number * CODE.len() as u64
}

fn printed(places: &Places<'_>) -> io::Result<f64> {
    let folder = places.next()?;
    let path = CString::new(folder.join("perf.map").as_os_str().as_bytes())?;
    // SAFETY: two strings that end with a NUL.
    let file = unsafe { libc::fopen(path.as_ptr(), c"w".as_ptr()) };
    if file.is_null() {
        return Err(io::Error::last_os_error());
    }
    let time = timed(CODES, |number| {
        // SAFETY: an open file, a format, and what it names: two numbers and a string.
        unsafe {
            let format = c"%lx %lx %s\n".as_ptr();
            libc::fprintf(file, format, address(number), CODE.len(), C_NAME.as_ptr());
            libc::fflush(file);
        }
    });
    // SAFETY: it is open, and not used any more.
    unsafe { libc::fclose(file) };
    std::fs::remove_dir_all(folder)?;
    Ok(time)
}

/// How long a code lives.
#[derive(Clone, Copy)]
enum Lifetime {
    /// Each has addresses of its own.
    Process,
    /// It is unloaded at once, and a later one gets its addresses.
    Short,
}

fn in_perf_map(places: &Places<'_>, lifetime: Lifetime) -> io::Result<f64> {
    let folder = places.next()?;
    let scribe = Scribe::builder().perf_map(Mode::On).perf_map_dir(&folder).limit(8 << 20).build();
    let code = Code::at(0, CODE.len() as u64).named(NAME).frame_pointer();
    let time = match lifetime {
        Lifetime::Process => timed(CODES, |number| {
            scribe.load(black_box(&code.runs_at(address(number)))).leak();
        }),
        Lifetime::Short => timed(CODES, |number| {
            drop(scribe.load(black_box(&code.runs_at(address(number % 100)))));
        }),
    };
    // Without this, a map that was given up would be the fastest.
    let map = folder.join(format!("perf-{}.map", std::process::id()));
    let lines = std::fs::read(map)?.iter().filter(|byte| **byte == b'\n').count();
    if lines as u64 != CODES {
        return Err(io::Error::other(format!("the perf map has {lines} lines")));
    }
    std::fs::remove_dir_all(folder)?;
    Ok(time)
}

/// What a runtime does that writes a jitdump itself: makes its records, and writes them with one
/// call.
fn written(places: &Places<'_>) -> io::Result<f64> {
    let folder = places.next()?;
    let mut file = File::create(folder.join("jit.dump"))?;
    let (pid, mut failed) = (u64::from(std::process::id()), None);
    let mut debug = Vec::new();
    let time = timed(CODES, |number| {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned();
        let put = |to: &mut Vec<u8>, words: &[u64]| {
            words.iter().for_each(|word| to.extend_from_slice(&word.to_ne_bytes()));
        };
        debug.clear();
        let size = 32 + LINES as usize * (16 + FILE.len() + 1);
        put(&mut debug, &[2 | (size as u64) << 32, now, address(number), LINES.into()]);
        for line in 0..u64::from(LINES) {
            put(&mut debug, &[address(number) + line * 40, (10 + line) | 3 << 32]);
            debug.extend_from_slice(FILE.as_bytes());
            debug.push(0);
        }
        let size = 56 + NAME.len() + 1 + CODE.len();
        let address = address(number);
        let load = [(size as u64) << 32, now, pid | pid << 32, address, address, 512, number];
        let load = load.map(u64::to_ne_bytes);
        let parts = [&*debug, load.as_flattened(), C_NAME.to_bytes_with_nul(), &CODE];
        match file.write_vectored(&parts.map(IoSlice::new)) {
            Ok(length) if length == debug.len() + size => {}
            Ok(length) => failed = Some(io::Error::other(format!("{length} bytes were written"))),
            Err(error) => failed = Some(error),
        }
    });
    std::fs::remove_dir_all(folder)?;
    failed.map_or(Ok(time), Err)
}

fn in_jitdump(places: &Places<'_>) -> io::Result<f64> {
    let folder = places.next()?;
    let lines: Vec<_> =
        (0..LINES).map(|line| Line::new(40 * line, FILE, 10 + line).column(3)).collect();
    let scribe = Scribe::builder().jitdump(Mode::On).dir(&folder).build();
    let code = Code::new(&CODE).named(NAME).lines(&lines);
    let time = timed(CODES, |number| {
        scribe.load(black_box(&code.runs_at(address(number)))).leak();
    });
    let written = std::fs::metadata(folder.join(format!("jit-{}.dump", std::process::id())))?;
    if written.len() < CODES * CODE.len() as u64 {
        return Err(io::Error::other(format!("the dump has {} bytes", written.len())));
    }
    std::fs::remove_dir_all(folder)?;
    Ok(time)
}

fn opened(flags: u32) -> io::Result<*const c::OpaqueScribe> {
    // SAFETY: all zeros are valid settings.
    let mut settings: c::Settings = unsafe { std::mem::zeroed() };
    settings.struct_size = size_of::<c::Settings>();
    settings.flags = flags;
    let mut scribe = std::ptr::null();
    // SAFETY: both are locals.
    match unsafe { c::jitscribe_open(&settings, &mut scribe) } {
        c::Outcome::Ok => Ok(scribe),
        error => Err(io::Error::other(format!("jitscribe_open: {error:?}"))),
    }
}

fn calls_of_nothing() -> f64 {
    // By its address, so that it is not inlined.
    let call: extern "C" fn() -> *const c_char = black_box(c::jitscribe_version);
    timed(CALLS, |_| _ = black_box(call()))
}

type Load =
    unsafe extern "C" fn(*const c::OpaqueScribe, *const c::Code, *mut c::Handle) -> c::Outcome;
type Unload = unsafe extern "C" fn(*const c::OpaqueScribe, c::Handle) -> c::Outcome;

fn loads_while_off(scribe: *const c::OpaqueScribe, with_unload: bool) -> f64 {
    // SAFETY: all zeros are a valid code.
    let mut code: c::Code = unsafe { std::mem::zeroed() };
    code.struct_size = size_of::<c::Code>();
    code.address = FIRST;
    code.size = CODE.len() as u64;
    code.name = c::Str { data: C_NAME.as_ptr(), size: NAME.len() };
    // By their addresses, so that they are not inlined.
    let load: Load = black_box(c::jitscribe_load);
    let unload: Unload = black_box(c::jitscribe_unload);
    timed(CALLS, |_| {
        let mut handle = 0;
        // SAFETY: a scribe, a code that refers to data that is static, and a local.
        unsafe {
            load(scribe, black_box(&raw const code), &raw mut handle);
            if with_unload {
                unload(scribe, black_box(handle));
            }
        }
    })
}
