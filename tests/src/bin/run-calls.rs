//! Runs `workloads/calls` as an ordinary shared object, or as a JIT would: from anonymous memory, announced
//! function by function.
//!
//! `run-calls HOW SHARED_OBJECT ROUNDS [THREADS]` prints what the code computes, which is the same in any case. So many
//! threads run it, all at once, or else the main thread. What becomes of the announcements is for `JITSCRIBE` to say. HOW is one of:
//!
//! - `library`: the shared object itself;
//! - `copy`: a copy that stays until the process ends;
//! - `freed`: a copy that is unloaded and unmapped before the process ends;
//! - `freed-at-once`: the same, and the process ends without its exit handlers;
//! - `reused`: the same as `freed`, but other memory is at its place when the process ends;
//! - `replaced`: a copy that is unloaded, in the memory of which other code is announced, which never runs.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Barrier};

use jitscribe::{Code, Line, LoadedCode, Scribe};
use object::{Object, ObjectSection, ObjectSymbol};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// What the code calls of the C library; `struct table` in `calls.c`.
#[repr(C)]
struct Table {
    qsort: unsafe extern "C" fn(*mut c_void, usize, usize, *const c_void),
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    labs: unsafe extern "C" fn(c_long) -> c_long,
}

type Run = unsafe extern "C" fn(*const Table, c_long) -> c_long;

unsafe extern "C" {
    fn qsort(items: *mut c_void, count: usize, size: usize, order: *const c_void);
    fn malloc(size: usize) -> *mut c_void;
    fn free(room: *mut c_void);
    fn labs(x: c_long) -> c_long;
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn _exit(status: c_int) -> !;
}

const RTLD_NOW: c_int = 2;

fn main() {
    let arguments: Vec<_> = std::env::args_os().collect();
    let [_, how, library, numbers @ ..] = arguments.as_slice() else {
        panic!("run-calls HOW SHARED_OBJECT ROUNDS [THREADS]");
    };
    let number = |index: usize| -> Option<c_long> { numbers.get(index)?.to_str()?.parse().ok() };
    let rounds = number(0).expect("a number");
    let (run, copied) = match how == "library" {
        true => (open(library.as_ref()), None),
        false => {
            let copied = Copied::of(library.as_ref());
            (copied.run, Some(copied))
        }
    };
    let sum = match number(1) {
        None => rounds_of(run, rounds),
        Some(threads) => {
            // All there at once: valgrind counts the next one for the same thread where one has ended.
            let all = Arc::new(Barrier::new(usize::try_from(threads).expect("a count")));
            let begin = |_| {
                let all = Arc::clone(&all);
                std::thread::spawn(move || {
                    all.wait();
                    let sum = rounds_of(run, rounds);
                    all.wait();
                    sum
                })
            };
            let threads: Vec<_> = (0..threads).map(begin).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        }
    };
    #[expect(clippy::print_stdout, reason = "this is what the program is for")]
    {
        println!("{sum}");
    }
    let Some(copied) = copied else { return };
    match how.to_str() {
        Some("freed") => _ = copied.free(),
        Some("freed-at-once") => {
            copied.free();
            // SAFETY: ends the process. What was printed ended with a line, so that it is written.
            unsafe { _exit(0) };
        }
        Some("replaced") => {
            let Copied { base, size, announced, .. } = copied;
            drop(announced);
            let code = Code::at(base as u64, size as u64).named("never_run");
            Scribe::global().load(&code.lines(&[Line::new(0, "/src/later.lang", 1)])).leak();
        }
        Some("reused") => {
            let (base, size) = copied.free();
            let at = std::ptr::with_exposed_provenance_mut(base);
            // SAFETY: the pages were just unmapped, and the process has one thread by now.
            let other = unsafe { mmap_anonymous(at, size, ProtFlags::READ, MapFlags::PRIVATE) };
            assert_eq!(other.expect("memory"), at, "the place is free");
        }
        _ => copied.keep(),
    }
}

fn rounds_of(run: Run, rounds: c_long) -> c_long {
    let table = Table { qsort, malloc, free, labs };
    // SAFETY: The C library's own functions. The first call of malloc with this size is another than the later
    // ones; it shall not count as the code's.
    unsafe { free(malloc(40)) };
    // SAFETY: `run` is the function of that name of calls.c, which takes these, keeps nothing, and calls nothing else.
    unsafe { run(&raw const table, rounds) }
}

/// As the dynamic linker loads it.
fn open(library: &Path) -> Run {
    let path = CString::new(library.as_os_str().as_bytes()).expect("a path");
    // SAFETY: Both take a C string that outlives the call. The object is never closed.
    let run = unsafe { dlsym(dlopen(path.as_ptr(), RTLD_NOW), c"run".as_ptr()) };
    assert!(!run.is_null(), "{} cannot be loaded", library.display());
    // SAFETY: The symbol is a function of this type, see calls.c.
    unsafe { std::mem::transmute::<*mut c_void, Run>(run) }
}

/// The text copied to anonymous memory, with each function announced.
struct Copied {
    run: Run,
    base: usize,
    size: usize,
    announced: Vec<LoadedCode>,
}

impl Copied {
    fn of(library: &Path) -> Self {
        let bytes = std::fs::read(library).expect("the shared object");
        let object = object::File::parse(&*bytes).expect("an ELF file");
        let text = object.section_by_name(".text").expect("text");
        assert_eq!(text.address() % 0x1000, 0, "the text begins at a page's beginning");
        let (base, size_of_all) = map_code(text.data().expect("bytes"));
        let place =
            |address: u64| base + usize::try_from(address - text.address()).expect("an offset");

        let scribe = Scribe::global();
        let lines = LineTable::of(&object);
        let mut run = None;
        let mut announced = Vec::new();
        let mut functions: Vec<_> = object
            .symbols()
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0)
            .collect();
        functions.sort_by_key(|function| function.address());
        for function in functions {
            let name = function.name().expect("a name");
            let range = function.address()..function.address() + function.size();
            let rows = lines.rows(range);
            let rows: Vec<Line<'_>> =
                rows.iter().map(|(offset, file, line)| Line::new(*offset, file, *line)).collect();
            let size = usize::try_from(function.size()).expect("a size");
            // SAFETY: Within the copied text, which is readable, never written again, and unmapped only when this reference is gone.
            let code = unsafe {
                std::slice::from_raw_parts(
                    std::ptr::with_exposed_provenance(place(function.address())),
                    size,
                )
            };
            announced.push(scribe.load(&Code::new(code).named(name).lines(&rows)));
            if name == "run" {
                run = Some(place(function.address()));
            }
        }
        let run: *const c_void = std::ptr::with_exposed_provenance(run.expect("the function run"));
        // SAFETY: The copy of the function of this type. Its text refers to nothing outside of itself.
        let run = unsafe { std::mem::transmute::<*const c_void, Run>(run) };
        Self { run, base, size: size_of_all, announced }
    }

    /// Leaves everything as it is.
    fn keep(self) {
        self.announced.into_iter().for_each(LoadedCode::leak);
    }

    /// Unloads all code and unmaps its memory, whose address and size are returned.
    fn free(self) -> (usize, usize) {
        drop(self.announced);
        let base = std::ptr::with_exposed_provenance_mut(self.base);
        // SAFETY: the mapping of `map_code`, in which no code runs any more, and to which no reference is left.
        unsafe { munmap(base, self.size) }.expect("the memory is unmapped");
        (self.base, self.size)
    }
}

/// Maps `code` executable at an address that the kernel chooses, which a page begins at. Returns the address and the size.
fn map_code(code: &[u8]) -> (usize, usize) {
    let size = code.len().next_multiple_of(0x1000);
    let writable = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: A new mapping at a free place; the bytes fit in, and there is no other reference to it yet.
    unsafe {
        let base = mmap_anonymous(std::ptr::null_mut(), size, writable, MapFlags::PRIVATE)
            .expect("memory for code");
        std::ptr::copy_nonoverlapping(code.as_ptr(), base.cast(), code.len());
        mprotect(base, size, MprotectFlags::READ | MprotectFlags::EXEC).expect("executable memory");
        (base.expose_provenance(), size)
    }
}

/// Source lines, from the object's own debug info.
struct LineTable<'a>(addr2line::Context<gimli::EndianSlice<'a, gimli::LittleEndian>>);

impl<'a> LineTable<'a> {
    fn of(object: &object::File<'a>) -> Self {
        let load = |section: gimli::SectionId| {
            let section = object.section_by_name(section.name());
            let bytes = section.and_then(|section| section.data().ok()).unwrap_or_default();
            Ok::<_, gimli::Error>(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).expect("debug info");
        Self(addr2line::Context::from_dwarf(dwarf).expect("line tables"))
    }

    /// Offset from the range's beginning, file and line.
    fn rows(&self, range: Range<u64>) -> Vec<(u32, String, u32)> {
        let rows = self.0.find_location_range(range.start, range.end).expect("line tables");
        let mut found = Vec::new();
        for (start, _, place) in rows {
            if let (Some(file), Some(line)) = (place.file, place.line) {
                let offset = u32::try_from(start.max(range.start) - range.start).expect("small");
                found.push((offset, file.to_owned(), line));
            }
        }
        found
    }
}
