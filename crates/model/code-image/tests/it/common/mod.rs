//! Images written to disk, and real tools run on them.
#![allow(dead_code)] // each test file uses its part

pub mod cfi;
pub mod frames;
pub mod image;
pub mod inlining;
pub mod sample;

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use code_image::{
    Endian, Finished, FinishedObject, ImageWriter, ObjectFormat, ObjectWriter, Target, VisibleCode,
};

pub const EM_386: u16 = 3;
pub const EM_PPC64: u16 = 21;
pub const EM_S390: u16 = 22;
pub const EM_ARM: u16 = 40;
pub const EM_X86_64: u16 = 62;
pub const EM_AARCH64: u16 = 183;

pub fn x86_64() -> Target {
    Target::new(EM_X86_64, Endian::Little)
}

/// Machines of both word sizes and both byte orders.
pub fn targets() -> [Target; 6] {
    [
        x86_64(),
        Target::new(EM_AARCH64, Endian::Little),
        Target::new(EM_386, Endian::Little),
        Target::new(EM_ARM, Endian::Little),
        Target::new(EM_S390, Endian::Big),
        Target::new(EM_PPC64, Endian::Big),
    ]
}

/// An image in a separate directory.
pub struct OnDisk {
    directory: tempfile::TempDir,
    pub finished: Finished,
}

impl OnDisk {
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("image.so")
    }
}

pub fn write(target: Target, span: Range<u64>, codes: &[VisibleCode<'_>]) -> OnDisk {
    write_placed(target, span, codes, |_| None)
}

pub fn write_placed(
    target: Target,
    span: Range<u64>,
    codes: &[VisibleCode<'_>],
    place: impl FnOnce(u64) -> Option<u64>,
) -> OnDisk {
    let directory = tempfile::tempdir().unwrap();
    let file = File::create_new(directory.path().join("image.so")).unwrap();
    let mut image = ImageWriter::new(file, target, span).unwrap();
    for code in codes {
        image.add(code).unwrap();
    }
    let finished = image.finish(place).unwrap();
    OnDisk { directory, finished }
}

/// An object for loaders, in a separate directory.
pub struct Loadable {
    directory: tempfile::TempDir,
    format: ObjectFormat,
    pub finished: FinishedObject,
}

impl Loadable {
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("object").with_extension(self.format.extension())
    }
}

/// Writes an object; each code is newer than those before it.
pub fn write_object(
    format: ObjectFormat,
    target: Target,
    span: Range<u64>,
    codes: &[VisibleCode<'_>],
) -> Loadable {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("object").with_extension(format.extension());
    let file = File::create_new(path).unwrap();
    let mut object = ObjectWriter::new(file, target, format, span).unwrap();
    for (made, code) in (0..).zip(codes) {
        object.add(code, made).unwrap();
    }
    let finished = object.finish().unwrap();
    Loadable { directory, format, finished }
}

/// Bytes from hexadecimal digits.
pub fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Runs a tool on a file; returns its standard output followed by its standard error.
///
/// # Panics
/// If the tool is missing, or fails.
pub fn run(tool: &str, arguments: &[&str], file: &Path) -> String {
    let (ok, text) = run_any(tool, arguments, file);
    assert!(ok, "{tool} {arguments:?} fails:\n{text}");
    text
}

/// Like [`run`], but also returns whether the tool succeeded.
pub fn run_any(tool: &str, arguments: &[&str], file: &Path) -> (bool, String) {
    let output = Command::new(tool)
        .args(arguments)
        .arg(file)
        .env("LC_ALL", "C")
        .env("DEBUGINFOD_URLS", "")
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot run {tool}: {error}. scripts/setup.sh installs what the tests need")
        });
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// What gdb prints for these commands about a file, which it does not run.
pub fn gdb(commands: &[&str], file: &Path) -> String {
    let commands = commands.iter().flat_map(|command| ["-ex", command]);
    run("gdb", &["-nx", "-batch"].into_iter().chain(commands).collect::<Vec<_>>(), file)
}

/// Lines without spaces at their ends and with single spaces in between, so that the layout of a table does not
/// matter.
pub fn words(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

pub fn assert_contains(text: &str, expected: &str) {
    let text = words(text);
    let expected = words(expected);
    let found = text.windows(expected.len()).any(|lines| lines == expected);
    assert!(found, "{expected:#?}\nis not in\n{text:#?}");
}

/// Runs the checkers; returns their complaints.
pub fn complaints(path: &Path) -> String {
    let readelf = run("readelf", &["-aW"], path);
    assert!(!readelf.contains("arning"), "{readelf}");
    let verify = run("llvm-dwarfdump", &["--verify"], path);
    assert!(verify.ends_with("No errors.\n"), "{verify}");
    assert!(!verify.contains("warning"), "{verify}");
    run_any("eu-elflint", &["--gnu-ld"], path).1
}
