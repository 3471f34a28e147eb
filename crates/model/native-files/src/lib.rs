//! ELF files of programs and libraries, as profilers need them.
//!
//! [`Elf`] reads the headers of a file. What else is in it is read by these types:
//!
//! | Type | From | Answers |
//! |---|---|---|
//! | [`Functions`] | `.symtab` and `.dynsym` | whether an address is in a function, and in which. It is made for files with a million symbols |
//! | [`Symbols`] | `.symtab`, or `.dynsym` and `.gnu_debugdata`; `.plt`, `.plt.got` | the symbol at an address that perf chooses |
//! | [`Lines`] | DWARF | the source line of an address, and the calls that are inlined there |
//! | [`FileFrames`] | `.eh_frame`, `.debug_frame`, symbols | how to unwind a frame, and where stacks begin |
//!
//! [`DebugFiles`] finds the separate file with the symbols and debug info of a stripped file, and the file that several debug files share;
//! [`NativeFile`] is a file with all of these. [`LoadedFile`] puts a file together from the memory of a process that has it loaded.
//!
//! ```no_run
//! use std::fs::File;
//! use std::path::Path;
//! use native_files::{DebugFiles, Elf, NativeFile};
//!
//! # fn main() -> std::io::Result<()> {
//! let open = |path: &Path| File::open(path);
//! let debug_files = DebugFiles { open: &open, ask_servers: false };
//! let program = NativeFile::new(Elf::read(open("/bin/ls".as_ref())?)?, b"/bin/ls", &debug_files);
//! if let Some(address) = program.elf().mapped_address(0x4321) {
//!     println!("{:?} {:?}", program.symbol(address), program.lines().map(|lines| lines.frames(address)));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Split debug info (`.dwo`, `.dwp`) is not read.
//!
//! # Hostile input
//!
//! Files may hold anything: nothing in them makes this crate panic, and what it allocates for them is limited. Compressed sections are
//! decompressed up to a limit. A file names other files ([`Elf::debug_link`], [`Elf::alternate_link`]); the caller opens them.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod checksum;
mod code_segments;
mod compressed;
mod debug_files;
mod elf;
mod frames;
mod functions;
mod lines;
mod loaded;
mod native_file;
mod notes;
mod pods;
mod stubs;
mod symbol;
mod symbols;
mod xz;

pub use code_segments::CodeSegments;
pub use debug_files::{DebugFiles, installed_debug_file};
pub use elf::{Elf, Section};
pub use frames::FileFrames;
pub use functions::Functions;
pub use lines::{Lines, SourceFrame};
pub use loaded::{LoadedFile, LoadedPart};
pub use native_file::NativeFile;
pub use symbol::Symbol;
pub use symbols::{FoundSymbol, Symbols};
