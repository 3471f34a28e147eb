//! Programs that the tests compile: symbols and lines are those that `nm`, `addr2line` and `llvm-addr2line` show.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use native_files::{DebugFiles, Elf, Functions, Lines, NativeFile, SourceFrame};
use printable::Hexadecimal;
use tempfile::TempDir;

/// Functions that are inlined into each other, from two files.
const HEADER: &str = "\
static inline __attribute__((always_inline)) int twice(int n)
{
    volatile int m = n;
    return m + m;
}
static inline __attribute__((always_inline)) int four_times(int n)
{
    return twice(n) +
        twice(n + 1);
}
struct list { struct list *next; int value; };
int sum(struct list *);
";
const MAIN: &str = "\
#include \"both.h\"
static __attribute__((noinline)) int hidden(int n)
{
    return four_times(n) * 3;
}
int main(int argc, char **words)
{
    struct list last = { 0, hidden(argc) }, first = { &last, four_times(words != 0) };
    return sum(&first);
}
";
const OTHER: &str = "\
#include \"both.h\"
#include <stdlib.h>
int sum(struct list *list)
{
    int all = 0;
    for (; list; list = list->next)
        all += twice(list->value);
    if (all == 12345)
        abort();
    return four_times(all);
}
";

fn run(command: &mut Command) -> Output {
    let output = command.env("LC_ALL", "C").output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    output
}

fn shown(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).expect("UTF-8")
}

/// A folder with a program of two files, compiled with `options`.
fn compiled(options: &[&str]) -> (TempDir, PathBuf) {
    let dir = TempDir::with_prefix("native-files-").expect("a folder");
    for (name, text) in [("both.h", HEADER), ("main.c", MAIN), ("other.c", OTHER)] {
        fs::write(dir.path().join(name), text).expect("a source");
    }
    let program = dir.path().join("program");
    let mut compiler = Command::new("cc");
    compiler.current_dir(dir.path()).args(options).arg("-o").arg(&program);
    run(compiler.args(["main.c", "other.c"]));
    (dir, program)
}

fn objcopy(options: &[&str], from: &Path, to: &Path) {
    run(Command::new("objcopy").args(options).arg(from).arg(to));
}

/// Reads a program; `installed` is what is taken for `/usr/lib/debug`.
fn native(program: &Path, installed: &Path) -> NativeFile<File> {
    let open = |path: &Path| -> io::Result<File> {
        File::open(match path.strip_prefix("/usr/lib/debug") {
            Ok(below) => installed.join(below),
            Err(_) => path.to_owned(),
        })
    };
    let debug_files = DebugFiles { open: &open, ask_servers: false };
    let elf = Elf::read(open(program).expect("a program")).expect("an ELF file");
    NativeFile::new(elf, program.as_os_str().as_encoded_bytes(), &debug_files)
}

/// A function, and the file and line in it; 0 if unknown.
type Place = (String, String, u32);

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What `addr2line -fi` or its like shows of addresses, the innermost function first.
fn chains(tool: &str, program: &Path, addresses: &[u64]) -> Vec<Vec<Place>> {
    let mut command = Command::new(tool);
    command.args(["-a", "-f", "-i", "-e"]).arg(program);
    let text = shown(command.args(addresses.iter().map(|address| format!("{address:#x}"))));
    let mut all: Vec<Vec<Place>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let (file, at) = lines.next().and_then(|at| at.rsplit_once(':')).expect("a position");
        let at = at.split(' ').next().and_then(|at| at.parse().ok()).unwrap_or(0);
        let file = file_name(if at == 0 { "" } else { file });
        all.last_mut().expect("an address stands first").push((line.to_owned(), file, at));
    }
    assert_eq!(all.len(), addresses.len());
    all
}

fn place(frame: &SourceFrame) -> Place {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let file = if frame.line == 0 { String::new() } else { file_name(&text(&frame.file)) };
    (text(&frame.function), file, frame.line)
}

/// The functions that `nm` shows: address, size, name.
fn functions(program: &Path) -> Vec<(u64, u64, String)> {
    let text = shown(Command::new("nm").args(["-S", "--defined-only"]).arg(program));
    let function = |line: &str| {
        let [start, size, kind, name] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let number = |word| u64::from_str_radix(word, 16).ok();
        let is_code = kind.eq_ignore_ascii_case("t");
        is_code.then(|| Some((number(start)?, number(size)?, name.to_owned()))).flatten()
    };
    text.lines().filter_map(function).filter(|(_, size, _)| *size > 0).collect()
}

/// Asserts that the symbols of `file` are those of `whole`, the program with all that was removed from the file.
fn assert_symbols(file: &NativeFile<File>, whole: &Path) {
    assert!(!file.is_stripped());
    let functions = functions(whole);
    assert!(functions.iter().any(|(.., name)| name == "hidden"), "{functions:?}");
    for (start, size, name) in &functions {
        for address in [*start, start + size / 2, start + size - 1] {
            let found = file.symbol(address).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(found.name, name.as_bytes());
            assert_eq!(found.range, *start..start + size, "{name}");
        }
    }
}

/// Asserts that the lines of `file` are what `tool` shows of `whole`. A tool may not know a line, but must know `inlined` ones.
fn assert_lines(file: &NativeFile<File>, tool: &str, whole: &Path) {
    let wanted = ["hidden", "sum", "main"];
    let functions = functions(whole);
    let ours = functions.iter().filter(|(.., name)| wanted.contains(&&**name));
    let addresses: Vec<u64> = ours.flat_map(|(start, size, _)| *start..start + size).collect();
    let lines = file.lines().expect("lines");
    let mut inlined = 0;
    for (address, expected) in addresses.iter().zip(chains(tool, whole, &addresses)) {
        let frames: Vec<Place> = lines.frames(*address).iter().map(place).collect();
        assert_eq!(frames, expected, "{tool} {address:#x}");
        inlined += usize::from(frames.len() == 3);
    }
    assert!(inlined > 20, "{inlined} of {} addresses", addresses.len());
    // The same, by ranges.
    for (start, size, name) in functions.iter().filter(|(.., name)| wanted.contains(&&**name)) {
        let rows = lines.in_range(&(*start..start + size));
        for at in *start..start + size {
            let row = rows.iter().rev().find(|(from, _)| *from <= at).expect("a row");
            assert_eq!(row.1, lines.frames(at), "{name} {at:#x}");
        }
    }
}

/// The stubs in a section, as objdump shows them. Each has this name for our reader.
fn stubs(program: &Path, section: &str, dir: &Path) -> Vec<String> {
    let file = native(program, dir);
    let text = shown(Command::new("objdump").args(["-d", "-j", section]).arg(program));
    let heads = text.lines().filter_map(|line| line.strip_suffix(">:")?.split_once(" <"));
    heads
        // The common head stands before the first stub, and is named by the distance to it.
        .filter(|(_, name)| !name.contains("@plt-"))
        .map(|(address, name)| {
            let start = u64::from_str_radix(address, 16).expect("an address");
            let found = file.symbol(start + 4).expect("a symbol");
            assert_eq!((&*found.name, found.range.start), (name.as_bytes(), start));
            name.to_owned()
        })
        .collect()
}

#[test]
fn calls_of_other_files_go_through_named_stubs() {
    let (dir, program) = compiled(&["-O2", "-Wl,-z,lazy", "-fcf-protection=none"]);
    let stubs = stubs(&program, ".plt", dir.path());
    assert!(stubs.iter().any(|name| name == "abort@plt"), "{stubs:?}");
}

#[test]
fn stubs_of_functions_whose_address_is_taken_have_names() {
    for protection in ["-fcf-protection=none", "-Wl,-z,ibtplt"] {
        let dir = tempfile::tempdir().expect("a folder");
        let source = dir.path().join("taken.c");
        let text = "#include <stdlib.h>\nvoid (*volatile taken)(void) = abort;\nvoid *(*volatile other)(size_t) = malloc;\nint main(void) { other = malloc; free(malloc(1)); if (taken != abort) abort(); return 0; }";
        fs::write(&source, text).expect("written");
        let library = dir.path().join("taken.so");
        let mut command = Command::new("cc");
        command.args(["-O0", "-shared", "-fPIC", "-Wl,-z,lazy", protection]);
        shown(command.arg("-o").arg(&library).arg(&source));
        let stubs = stubs(&library, ".plt.got", dir.path());
        for name in ["malloc@plt", "abort@plt"] {
            assert!(stubs.iter().any(|it| it == name), "{protection}: {stubs:?}");
        }
    }
}

#[test]
fn compressed_sections() {
    let (dir, program) = compiled(&["-O2", "-g"]);
    for method in ["zlib", "zlib-gnu", "zstd"] {
        let compressed = dir.path().join(method);
        objcopy(&[&format!("--compress-debug-sections={method}")], &program, &compressed);
        // It is compressed, in the way that was asked for.
        let sections = shown(Command::new("readelf").args(["-tW"]).arg(&compressed));
        let mark = match method {
            "zlib" => "ZLIB",
            "zstd" => "ZSTD",
            _ => ".zdebug_info",
        };
        assert!(sections.contains(mark), "{method}: {sections}");
        let file = native(&compressed, dir.path());
        assert_lines(&file, "addr2line", &program);
        assert_symbols(&file, &program);
    }
}

/// Puts the debug info of a program into a file of its own. Returns that file, and the program without it.
fn separated(dir: &Path, program: &Path) -> (PathBuf, PathBuf) {
    let (debug, stripped) = (dir.join("program.debug"), dir.join("stripped"));
    objcopy(&["--only-keep-debug"], program, &debug);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&["--strip-all", &link], program, &stripped);
    (debug, stripped)
}

#[test]
fn separate_files_with_a_build_id() {
    let (dir, program) = compiled(&["-O2", "-g", "-Wl,--build-id"]);
    let (debug, stripped) = separated(dir.path(), &program);
    let by_link = native(&stripped, &dir.path().join("none"));
    assert_lines(&by_link, "addr2line", &program);
    assert_symbols(&by_link, &program);

    // The folder of installed debug info, with compressed sections as in Debian.
    let id = Hexadecimal(by_link.elf().build_id().expect("a build-id")).to_string();
    let notes = shown(Command::new("readelf").arg("-n").arg(&program));
    assert!(notes.contains(&format!("Build ID: {id}")), "{notes}");
    let installed = dir.path().join("installed");
    let folder = installed.join(".build-id").join(&id[..2]);
    fs::create_dir_all(&folder).expect("a folder");
    let by_id = folder.join(format!("{}.debug", &id[2..]));
    objcopy(&["--compress-debug-sections=zlib"], &debug, &by_id);
    fs::remove_file(&debug).expect("it is removed");
    let file = native(&stripped, &installed);
    assert_lines(&file, "addr2line", &program);
    assert_symbols(&file, &program);

    // That of another program is not taken.
    let (_other_dir, other) = compiled(&["-O1", "-g", "-Wl,--build-id"]);
    objcopy(&["--only-keep-debug"], &other, &by_id);
    let file = native(&stripped, &installed);
    assert!(file.is_stripped() && file.lines().is_none());
}

#[test]
fn separate_files_with_a_checksum() {
    let (dir, program) = compiled(&["-O2", "-g", "-Wl,--build-id=none"]);
    let (debug, stripped) = separated(dir.path(), &program);
    let file = native(&stripped, dir.path());
    assert_eq!(file.elf().build_id(), None);
    assert_lines(&file, "addr2line", &program);
    assert_symbols(&file, &program);
    // Another file by this name is not taken.
    let mut bytes = fs::read(&debug).expect("the debug file");
    bytes.push(0);
    fs::write(&debug, bytes).expect("it is written");
    let file = native(&stripped, dir.path());
    assert!(file.is_stripped() && file.lines().is_none());
}

/// As Fedora has it: the names of functions that are not exported, compressed.
#[test]
fn embedded_symbols() {
    let (dir, program) = compiled(&["-O2", "-g", "-rdynamic"]);
    let [mini, stripped, with] = ["mini", "stripped", "with"].map(|name| dir.path().join(name));
    let exported =
        shown(Command::new("nm").args(["-D", "--format=posix", "--defined-only"]).arg(&program));
    let exported: Vec<&str> = exported.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(exported.contains(&"sum") && !exported.contains(&"hidden"), "{exported:?}");
    let kept: String = functions(&program)
        .iter()
        .filter(|(.., name)| !exported.contains(&&**name))
        .map(|(.., name)| format!("{name}\n"))
        .collect();
    let list = dir.path().join("list");
    fs::write(&list, kept).expect("a list");
    objcopy(&["--only-keep-debug"], &program, &mini);
    let keep = format!("--keep-symbols={}", list.display());
    run(Command::new("objcopy").args(["-S", "--remove-section=.comment", &keep]).arg(&mini));
    run(Command::new("xz").arg(&mini));
    objcopy(&["--strip-all"], &program, &stripped);
    assert!(native(&stripped, dir.path()).is_stripped());
    let section = format!("--add-section=.gnu_debugdata={}.xz", mini.display());
    objcopy(&[&section], &stripped, &with);
    assert_symbols(&native(&with, dir.path()), &program);
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn names_and_lines_of_a_program() {
        for options in [&["-O2", "-g"][..], &["-O1", "-g", "-gdwarf-4"], &["-O2", "-g", "-static"]]
        {
            let (dir, program) = compiled(options);
            let file = native(&program, dir.path());
            assert_lines(&file, "addr2line", &program);
            assert_lines(&file, "llvm-addr2line", &program);
            if !options.contains(&"-static") {
                assert_symbols(&file, &program);
            }
            let functions_of = Functions::read(File::open(&program).expect("it")).expect("ELF");
            for (start, size, name) in functions(&program) {
                let last = start + size - 1;
                if ["hidden", "sum", "main"].contains(&&*name) {
                    assert_eq!(functions_of.name_at(last), Some(name.into_bytes()));
                }
            }
        }
    }

    /// As Debian has it: debug info that files share is in a file of its own.
    #[test]
    fn debug_info_that_files_share() {
        let (dir, program) = compiled(&["-O2", "-g"]);
        let (other_dir, other) = compiled(&["-O1", "-g"]);
        let shared = dir.path().join("shared.debug");
        // The names of sources must not differ, or nothing is shared.
        let map = |dir: &TempDir| format!("-ffile-prefix-map={}=/sources", dir.path().display());
        for (dir, program) in [(&dir, &program), (&other_dir, &other)] {
            let mut compiler = Command::new("cc");
            compiler.current_dir(dir.path()).args(["-O2", "-g", &map(dir), "-o"]).arg(program);
            run(compiler.args(["main.c", "other.c"]));
        }
        let whole = dir.path().join("whole");
        fs::copy(&program, &whole).expect("a copy");
        run(Command::new("dwz").arg("-m").arg(&shared).args([&program, &other]));
        let file = native(&program, dir.path());
        let (path, _) = file.elf().alternate_link().expect("a link");
        assert_eq!(path, shared.as_os_str().as_encoded_bytes());
        assert_lines(&file, "addr2line", &whole);
        // Names are in the shared file.
        let elf = Elf::read(File::open(&program).expect("it")).expect("an ELF file");
        let alone = Lines::read(&elf, None).expect("lines");
        let hidden = functions(&whole).into_iter().find(|(.., name)| name == "hidden").expect("it");
        let nameless =
            |frames: Vec<SourceFrame>| frames.iter().any(|frame| frame.function.is_empty());
        let mut addresses = hidden.0..hidden.0 + hidden.1;
        assert!(addresses.any(|address| nameless(alone.frames(address))));
        // A file with another build-id is not taken.
        fs::copy(&whole, &shared).expect("a copy");
        let lines = native(&program, dir.path());
        let lines = lines.lines().expect("lines");
        assert_eq!(lines.frames(hidden.0), alone.frames(hidden.0));
    }
}

/// Object files of a compiler, and modules that wasmtime compiles (`.cwasm`), have no program headers, and no addresses. perf names code in them by its
/// offset in the file, as `objdump` shows it.
#[test]
fn files_that_were_not_linked_are_named_by_offset() {
    for e_type in [1, 0] {
        let dir = TempDir::with_prefix("native-files-").expect("a folder");
        let object = dir.path().join("other.o");
        let other = OTHER.to_owned() + "int second(int n) { return twice(n) * 5; }\n";
        for (name, text) in [("both.h", HEADER), ("other.c", &other)] {
            fs::write(dir.path().join(name), text).expect("a source");
        }
        let mut compiler = Command::new("cc");
        compiler.current_dir(dir.path()).args([
            "-O1",
            "-g",
            "-ffunction-sections",
            "-c",
            "other.c",
        ]);
        run(&mut compiler);
        // The section of each function, and where it is in the file.
        let sections = shown(Command::new("objdump").arg("-hw").arg(&object));
        let offset = |function: &str| {
            let name = format!(".text.{function}");
            let line = sections.lines().find(|line| line.split_whitespace().nth(1) == Some(&name));
            let offset = line.and_then(|line| line.split_whitespace().nth(5)).expect("an offset");
            u64::from_str_radix(offset, 16).expect("a number")
        };
        let mut bytes = fs::read(&object).expect("an object file");
        bytes[16] = e_type;
        fs::write(&object, bytes).expect("a file");
        let file = native(&object, dir.path());
        let functions = Functions::read(File::open(&object).expect("a file")).expect("functions");
        for function in ["sum", "second"] {
            let at = offset(function) + 1;
            assert!(functions.has_name(at), "{function}");
            assert_eq!(functions.name(at).as_deref(), Some(function.as_bytes()));
            let address = file.elf().mapped_address(at).expect("code");
            let symbol = file.symbol(address).expect("a symbol");
            assert_eq!(
                (symbol.name.as_slice(), symbol.range.start),
                (function.as_bytes(), address - 1)
            );
            let code = file.elf().bytes(&symbol.range).expect("its bytes");
            assert_eq!(code, fs::read(&object).expect("a file")[at as usize - 1..][..code.len()]);
        }
        assert!(!functions.has_name(0x20), "the header of the file");
        // Its debug info has no addresses either.
        assert!(file.elf().has_lines() && file.lines().is_none());
    }
}
