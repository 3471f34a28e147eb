//! The description of a compiled expression, and of its machine code.
//!
//! From `pcre2_intmodedep.h` (`pcre2_real_code`) and `pcre2_jit_compile.c` (`executable_functions`) of PCRE2 10.32 to 10.47. In 10.45, a field came in front of
//! the magic number.

use gdb_jit_list::ReadAt;

use super::decoder::{Code, Name};
use super::opcodes::layout_of;
use super::pattern::{hash, shown};
use super::versions::Versions;
use crate::fields::{u16_at, u32_at, u64_at};
use crate::limits;
use crate::mapped::Mapped;

/// The magic number.
pub const MAGIC: u32 = 0x5043_5245;
/// The most bytes that are read for the checks.
const HEAD: usize = 152;
/// The bytes of the description of machine code.
const FUNCTIONS: usize = 80;

/// The most units of the name of a group.
const NAME: usize = 128;

/// Where a block has what.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// The magic number. What is behind it has not moved.
    pub magic: u64,
    /// The end, where the names of groups are.
    size: u64,
    /// The field that says where the opcodes begin, if there is one: else, they follow the names.
    start: Option<usize>,
}

/// Before 10.45, and since.
pub const FORMS: [Form; 2] =
    [Form { magic: 80, size: 136, start: None }, Form { magic: 88, size: 152, start: Some(80) }];

/// A compiled expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    form: &'static Form,
    /// Where its machine code is described.
    functions: u64,
    /// Its bytes.
    size: u64,
    /// Where the opcodes begin.
    start: u64,
    /// The bytes of one unit of text.
    width: u8,
    options: u32,
    limit: u32,
    groups: u16,
    /// How many groups have names, and the units of each entry of their table.
    names: (u16, u16),
}

/// The functions of an expression: their addresses and sizes, for a whole match, and for the two kinds of a partial one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Functions([(u64, u64); 3]);

impl Block {
    /// Reads the block at `at`. `None` if there is none of this form.
    pub fn read(
        form: &'static Form,
        at: u64,
        memory: &(impl ReadAt + ?Sized),
        mapped: &Mapped,
    ) -> Option<Self> {
        if !at.is_multiple_of(8) || !mapped.is_data(at, form.size) {
            return None;
        }
        let mut head = [0; HEAD];
        let head = head.get_mut(..usize::try_from(form.size).ok()?)?;
        if memory.read_at(at, head) != head.len() {
            return None;
        }
        let magic = usize::try_from(form.magic).ok()?;
        let behind = head.get(magic..)?;
        let [allocate, release, tables] = [0, 8, 24].map(|at| u64_at(head, at));
        let is_address = |address: u64| (0x1000..1 << 56).contains(&address);
        let conventions = (u16_at(behind, 40), u16_at(behind, 42));
        let is_one = u32_at(behind, 0) == MAGIC
            && [allocate, release, tables].into_iter().all(is_address)
            && matches!(conventions, (1..=2, 1..=6));
        let names = (u16_at(behind, 54), u16_at(behind, 52));
        let width = u8::try_from(u32_at(behind, 16) & 7).ok()?;
        let size = u64_at(head, 72);
        let named = u64::from(names.0).checked_mul(names.1.into())?.checked_mul(width.into())?;
        let named = form.size.checked_add(named)?;
        let start = form.start.map_or(named, |at| u64_at(head, at));
        let fits = matches!(width, 1 | 2 | 4)
            && (named..size).contains(&start)
            && size <= limits::EXPRESSION
            && mapped.is_data(at, size);
        let block = Self {
            form,
            functions: u64_at(head, 32),
            size,
            start,
            width,
            options: u32_at(behind, 8),
            limit: u32_at(behind, 24),
            groups: u16_at(behind, 48),
            names,
        };
        (is_one && fits).then_some(block)
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads it once more.
    pub fn read_again(
        &self,
        at: u64,
        memory: &(impl ReadAt + ?Sized),
        mapped: &Mapped,
    ) -> Option<Self> {
        Self::read(self.form, at, memory, mapped)
    }

    /// Its name: the pattern, if the opcodes of all `versions` that fit say the same; else, a hash of the opcodes.
    pub fn name(&self, at: u64, versions: Versions, memory: &(impl ReadAt + ?Sized)) -> String {
        let part = |from: u64, to: u64| {
            let bytes = memory.bytes(at.checked_add(from)?, to.checked_sub(from)?);
            Some(bytes.unwrap_or_default())
        };
        let code = part(self.start, self.size).unwrap_or_default();
        let names = part(self.form.size, self.start).unwrap_or_default();
        let hash = hash(&code);
        let names = self.names_in(&names);
        let mut layouts: Vec<u8> = versions.minors().map(layout_of).collect();
        layouts.dedup();
        let fits = |layout: &u8| (*layout >= 45) == self.form.start.is_some();
        let mut texts = layouts.into_iter().filter(fits).filter_map(|layout| {
            let units = units(&code, self.width);
            Code {
                units: &units,
                width: self.width.into(),
                options: self.options,
                groups: self.groups.into(),
                names: &names,
            }
            .text(layout)
        });
        let text = texts.next().filter(|text| texts.all(|other| other == *text));
        shown(text.as_deref(), hash)
    }

    /// The names of groups.
    fn names_in(&self, table: &[u8]) -> Vec<Name> {
        let units = units(table, self.width);
        let (count, size) = self.names;
        if size == 0 {
            return Vec::new();
        }
        let entries = units.chunks_exact(size.into()).take(count.into());
        let entries = entries.filter_map(|entry| {
            let (number, name) = match (self.width, entry) {
                (1, [high, low, name @ ..]) => (high.wrapping_shl(8) | low, name),
                (2 | 4, [number, name @ ..]) => (*number, name),
                _ => return None,
            };
            let name = name.iter().take_while(|unit| **unit != 0).take(NAME);
            Some(Name { group: number, name: name.map(|unit| name_character(*unit)).collect() })
        });
        entries.collect()
    }
}

impl Functions {
    /// Reads the functions of an expression. `None` if there are none.
    pub fn read(block: &Block, memory: &(impl ReadAt + ?Sized), mapped: &Mapped) -> Option<Self> {
        let at = block.functions;
        if !at.is_multiple_of(8) || !mapped.is_data(at, u64::try_from(FUNCTIONS).ok()?) {
            return None;
        }
        let fields: [u8; FUNCTIONS] = memory.array(at)?;
        let functions =
            [0, 8, 16].map(|at| (u64_at(&fields, at), u64_at(&fields, at.wrapping_add(48))));
        let is_one = |(address, size): &(u64, u64)| match (address, size) {
            (0, 0) => true,
            (address, size) => *size <= limits::CODE && mapped.is_code(*address, *size),
        };
        let groups = u32::from(block.groups).wrapping_add(1);
        let fits = functions.iter().all(is_one)
            && functions.iter().any(|(_, size)| *size > 0)
            && (u32_at(&fields, 72), u32_at(&fields, 76)) == (groups, block.limit);
        fits.then_some(Self(functions))
    }

    /// Each address and size; 0 where there is none.
    pub fn codes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.into_iter()
    }

    /// Whether one of these overlaps one of the others.
    pub fn overlap(&self, other: &Self) -> bool {
        self.codes().any(|(address, size)| {
            other.codes().any(|(next, next_size)| {
                address < next.saturating_add(next_size) && next < address.saturating_add(size)
            })
        })
    }
}

/// A character of the name of a group.
fn name_character(unit: u32) -> char {
    char::from_u32(unit).filter(|it| *it == '_' || it.is_alphanumeric()).unwrap_or('?')
}

/// The units of text in bytes.
fn units(bytes: &[u8], width: u8) -> Vec<u32> {
    match width {
        1 => bytes.iter().map(|byte| u32::from(*byte)).collect(),
        2 => bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit).into()).collect(),
        _ => bytes.as_chunks().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect(),
    }
}
