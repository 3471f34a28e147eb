//! Objects that a loader takes: what a linker would make of the codes, in three formats.

mod elf;
mod macho;
mod pe;
mod sections;
mod symbols;
mod trie;

use std::io::{Seek, Write};
use std::ops::Range;

use crate::cfi::UnwindSummary;
use crate::code::Code;
use crate::elf::Mapping;
use crate::error::Error;
use crate::functions::Functions;
use crate::gathered::Gathered;
use crate::place::{PAGE, Place, visible_bytes};
use crate::printable::push_printable;
use crate::target::Target;

use self::symbols::Made;

/// A format of object files, and of those who load them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectFormat {
    /// An ELF shared object (`.so`), for any machine: `dlopen` takes it.
    Elf,
    /// A dynamic-link library for Windows (`.dll`), for x86-64 and AArch64: `LoadLibrary` takes it. At most 65,535 codes
    /// are exported: those made last.
    Pe,
    /// A dynamic library for macOS (`.dylib`), for x86-64 and AArch64, without a signature, which must be put on it
    /// before a Mac with an ARM processor takes it.
    MachO,
}

impl ObjectFormat {
    /// What names of such files end in.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Elf => "so",
            Self::Pe => "dll",
            Self::MachO => "dylib",
        }
    }

    /// Where the page that the arena starts in lies in memory, if the file is loaded where it says.
    fn text_address(self) -> u64 {
        match self {
            Self::Elf | Self::MachO => PAGE,
            Self::Pe => pe::IMAGE_BASE.saturating_add(PAGE),
        }
    }
}

/// Names of libraries are cut off behind so many bytes.
const LONGEST_NAME: usize = 64;

/// Distances within an object are signed numbers of 32 bits.
const LARGEST: u64 = i32::MAX as u64;

/// What was written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedObject {
    /// A hash of the content: the build-id.
    pub id: [u8; 20],
    /// Apparent size of the file in bytes, holes included.
    pub file_size: u64,
    /// Where the text was in the process, and is in the file.
    pub text: Mapping,
    /// Number of symbols, one for each code shown.
    pub symbols: u64,
    /// How many of them are found by name once the object is loaded.
    pub exported: u64,
    /// What became of the codes' unwind info.
    pub unwind: UnwindSummary,
}

/// Writes codes as one object that a loader takes.
///
/// The codes keep their distances, so that they call one another as they did. What they refer to outside of the object
/// stays as it is: an absolute address means the same in the process that made the code, as long as it lives, and
/// nothing elsewhere; a relative distance to the outside means nothing once the object is loaded.
///
/// Each code is a symbol. Those of which all bytes are there, and that no other code covers, are exported too: `dlsym`
/// finds them by the name that [`ImageWriter::add`](crate::ImageWriter::add) would give them. Of several codes with
/// one name the one made last is found.
///
/// ```
/// use code_image::{Code, Endian, ObjectFormat, ObjectWriter, Target};
/// use std::io::Cursor;
///
/// let target = Target::new(62 /* EM_X86_64 */, Endian::Little);
/// let mut file = Cursor::new(Vec::new());
/// let span = 0x7f00_0000_0000..0x7f00_0000_2000;
/// let mut object = ObjectWriter::new(&mut file, target, ObjectFormat::Elf, span)?;
/// let code = Code {
///     start: 0x7f00_0000_0040,
///     size: 4,
///     visible: 0x7f00_0000_0040..0x7f00_0000_0044,
///     name: b"answer",
///     bytes: &[0x6a, 42, 0x58, 0xc3],
///     ..Code::default()
/// };
/// object.add(&code, 0)?;
/// assert_eq!(object.finish()?.exported, 1);
/// # Ok::<(), code_image::Error>(())
/// ```
#[derive(Debug)]
pub struct ObjectWriter<W> {
    format: ObjectFormat,
    gathered: Gathered<W>,
    functions: Functions,
    /// For each function.
    made: Vec<Made>,
    /// Without what names of such files end in.
    name: Vec<u8>,
}

impl<W: Write + Seek> ObjectWriter<W> {
    /// Begins the object of the codes within `span` in `out`, which is empty: what is not written must read as zeros.
    ///
    /// # Errors
    /// [`Error::EmptySpan`]; [`Error::TooLarge`] if the codes lie 2 GiB apart or more; [`Error::Machine`] if the format
    /// has no number for the machine.
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
        let (functions, name) = (Functions::default(), b"code".to_vec());
        Ok(Self { format, gathered, functions, made: Vec::new(), name })
    }

    /// What the library calls itself, where the format has a name for it (PE, Mach-O); "code", if nothing is said. What
    /// names of such files end in is put behind it.
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

    /// Adds a code. Codes come in ascending order of their `visible` parts, which do not overlap. `made` is a number
    /// that is larger for code that was made later.
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Order`], [`Error::Io`]. After the first two nothing was added.
    pub fn add(&mut self, code: &Code<'_>, made: u64) -> Result<(), Error> {
        let is_full = self.gathered.add(code)?;
        let Range { start, end } = code.visible;
        if start < end {
            let is_whole = start == code.start
                && end.saturating_sub(start) == code.size
                && visible_bytes(code).len() as u64 == code.size;
            self.made.push(if is_whole { Made::Whole(made) } else { Made::InPart });
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
        let symbols = symbols::symbols(&self.functions, &self.made, most);
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

/// What a writer of one of the formats tells.
struct Written {
    id: [u8; 20],
    file_size: u64,
    unwind: UnwindSummary,
}
