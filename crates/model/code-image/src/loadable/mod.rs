//! Objects for loaders: what a linker would produce from the codes, in three formats.

mod elf;
mod exceptions;
mod macho;
mod pe;
mod sections;
mod symbols;
mod trie;
mod written;

use std::io::{Seek, Write};
use std::ops::Range;

use fallible::Vec;
use jit_code::Code;

use crate::cfi::UnwindSummary;
use crate::code::VisibleCode;
use crate::elf::Mapping;
use crate::error::Error;
use crate::functions::Functions;
use crate::gathered::Gathered;
use crate::place::{PAGE, Place, visible_bytes};
use crate::printable::push_printable;
use crate::target::Target;

use self::symbols::Definition;
use self::written::{LARGEST, Written};

/// A format of object files, by loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectFormat {
    /// An ELF shared object (`.so`) for any machine, for `dlopen`.
    Elf,
    /// A dynamic-link library for Windows (`.dll`) for x86-64 and AArch64, for `LoadLibrary`. At most 65,535 codes
    /// are exported: the newest.
    Pe,
    /// A dynamic library for macOS (`.dylib`) for x86-64 and AArch64, without a signature. It must be signed before a
    /// Mac with an ARM processor accepts it.
    MachO,
}

impl ObjectFormat {
    /// The extension of file names.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Elf => "so",
            Self::Pe => "dll",
            Self::MachO => "dylib",
        }
    }

    /// The address in memory of the page that the arena starts in, if the file is loaded at its preferred address.
    fn text_address(self) -> u64 {
        match self {
            Self::Elf | Self::MachO => PAGE,
            Self::Pe => pe::IMAGE_BASE.saturating_add(PAGE),
        }
    }
}

/// Maximum length of a library's name in bytes; the rest is cut off.
const LONGEST_NAME: usize = 64;

/// The properties of an object that was written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedObject {
    /// A hash of the content: the build-id.
    pub id: [u8; 20],
    /// Apparent size of the file in bytes, holes included.
    pub file_size: u64,
    /// Where the text was in the process, and where it is in the file.
    pub text: Mapping,
    /// Number of symbols, one for each code shown.
    pub symbols: u64,
    /// How many of them can be found by name once the object is loaded.
    pub exported: u64,
    /// Counts of the codes' unwind info.
    pub unwind: UnwindSummary,
}

/// Writes codes as one object that a loader accepts.
///
/// The codes keep their distances, so that calls between them still work. References to the outside of the object are
/// unchanged. An absolute address keeps its meaning in the process that loaded the code, as long as that process
/// lives, and has none elsewhere. A relative distance to the outside has no meaning once the object is loaded.
///
/// Each code is a symbol. A code is also exported if all its bytes are present and no other code covers it: `dlsym`
/// finds it by the name that [`ImageWriter::add`](crate::ImageWriter::add) would give it. Of several codes with the
/// same name, the newest is found.
///
/// ```
/// use code_image::{Endian, ObjectFormat, ObjectWriter, Target, VisibleCode};
/// use jit_code::Code;
/// use std::io::Cursor;
///
/// let target = Target::new(62 /* EM_X86_64 */, Endian::Little);
/// let mut file = Cursor::new(Vec::new());
/// let span = 0x7f00_0000_0000..0x7f00_0000_2000;
/// let mut object = ObjectWriter::new(&mut file, target, ObjectFormat::Elf, span)?;
/// let code = Code::new(&[0x6a, 42, 0x58, 0xc3]).runs_at(0x7f00_0000_0040).named("answer");
/// object.add(&VisibleCode::whole(code), 0)?;
/// assert_eq!(object.finish()?.exported, 1);
/// # Ok::<(), code_image::Error>(())
/// ```
#[derive(Debug)]
pub struct ObjectWriter<W> {
    format: ObjectFormat,
    gathered: Gathered<W>,
    functions: Functions,
    /// One for each function.
    definitions: Vec<Definition>,
    /// Without the file extension.
    name: Vec<u8>,
}

impl<W: Write + Seek> ObjectWriter<W> {
    /// Begins the object for the codes within `span`. `out` must be empty: what is not written must read as zeros.
    ///
    /// # Errors
    /// [`Error::EmptySpan`]; [`Error::TooLarge`] if the codes are 2 GiB or more apart; [`Error::Machine`] if the
    /// format has no number for the machine.
    pub fn new(
        out: W,
        target: Target,
        format: ObjectFormat,
        span: Range<u64>,
    ) -> Result<Self, Error> {
        match format {
            ObjectFormat::Elf => {}
            ObjectFormat::Pe => drop(pe::machine(target)?),
            ObjectFormat::MachO => drop(macho::machine(target)?),
        }
        let text = format.text_address();
        let place = Place { span, text };
        let gathered = Gathered::new(out, target, place, text.saturating_add(LARGEST - PAGE))?;
        let (functions, name) = (Functions::default(), Vec::from(&b"code"[..]));
        Ok(Self { format, gathered, functions, definitions: Vec::new(), name })
    }

    /// Sets the library's own name, for formats that contain one (PE, Mach-O). The default is "code". The file
    /// extension is appended.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let mut end = name.len().min(LONGEST_NAME);
        while !name.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        self.name.clear();
        push_printable(name.get(..end).unwrap_or_default().as_bytes(), &mut self.name);
        self
    }

    /// Adds a code. Codes must be added in ascending order of their `visible` parts, which must not overlap. `loaded_at`
    /// is a number that is larger for newer code.
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Order`], [`Error::Io`]. After the first two, nothing was added.
    pub fn add(&mut self, code: &VisibleCode<'_>, loaded_at: u64) -> Result<(), Error> {
        let is_full = self.gathered.add(code)?;
        let Range { start, end } = code.visible;
        if start < end {
            let Code { address, size, .. } = code.code;
            let is_whole = start == address
                && end.saturating_sub(start) == size
                && visible_bytes(code).len() as u64 == size;
            self.definitions.push(if is_whole {
                Definition::Whole(loaded_at)
            } else {
                Definition::InPart
            });
        }
        if is_full { self.append_added() } else { Ok(()) }
    }

    fn append_added(&mut self) -> Result<(), Error> {
        self.gathered.append_added(|functions| self.functions.append(functions))
    }

    /// Writes everything else.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Io`].
    pub fn finish(mut self) -> Result<FinishedObject, Error> {
        self.append_added()?;
        let most = match self.format {
            ObjectFormat::Pe => pe::MOST_EXPORTS,
            _ => usize::MAX,
        };
        let symbols = symbols::symbols(&self.functions, &self.definitions, most);
        let Gathered { has_bytes, .. } = self.gathered;
        let place = self.gathered.place.clone();
        let len = place.text_end().saturating_sub(place.text);
        let text_in_file = if has_bytes { len } else { 0 };
        let mut name = self.name;
        name.push(b'.');
        name.extend_from_slice(self.format.extension().as_bytes());
        let Written { id, file_size, unwind } = match self.format {
            ObjectFormat::Elf => elf::write(self.gathered, &symbols, text_in_file)?,
            ObjectFormat::Pe => pe::write(self.gathered, &symbols, text_in_file, &name)?,
            ObjectFormat::MachO => macho::write(self.gathered, &symbols, &name)?,
        };
        Ok(FinishedObject {
            id,
            file_size,
            text: Mapping { address: place.process_address(place.text), len, file_offset: PAGE },
            symbols: symbols.len() as u64,
            exported: symbols.iter().filter(|symbol| symbol.is_exported).count() as u64,
            unwind,
        })
    }
}
