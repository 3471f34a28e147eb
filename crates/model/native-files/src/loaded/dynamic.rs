//! The symbols for the dynamic linker.

use super::LoadedFile;

/// Tags of entries of the dynamic section.
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// The size of a symbol.
pub const SYMBOL: u64 = 24;
/// No more symbols are read. Large libraries export some ten thousand.
const MOST_SYMBOLS: u32 = 1 << 20;
/// Types of symbols: of functions, and without one, as some assembly has.
const NOTYPE: u8 = 0;
const FUNCTION: u8 = 2;
const INDIRECT: u8 = 10;

/// The symbols of code, and their names.
#[derive(Debug, Default)]
pub struct DynamicSymbols<'f> {
    /// Symbols, each with the index of its segment.
    pub symbols: Vec<(&'f [u8; SYMBOL as usize], usize)>,
    /// Names.
    pub names: &'f [u8],
}

impl LoadedFile {
    /// The symbols of its code for the dynamic linker; none if they cannot be read.
    pub(super) fn dynamic_symbols(&self) -> DynamicSymbols<'_> {
        self.read_symbols().unwrap_or_default()
    }

    fn read_symbols(&self) -> Option<DynamicSymbols<'_>> {
        let names = self.at(self.entry_address(DT_STRTAB)?, self.entry(DT_STRSZ)?)?;
        let table = self.entry_address(DT_SYMTAB)?;
        let by_gnu = self.entry_address(DT_GNU_HASH).and_then(|at| self.count_by_gnu_hash(at));
        // The number of chains in a table of hashes is that of symbols.
        let by_hash = || self.number(self.entry_address(DT_HASH)?.checked_add(4)?);
        let count = by_gnu.or_else(by_hash)?.min(MOST_SYMBOLS);
        let table = self.at(table, SYMBOL.checked_mul(count.into())?)?;
        let symbols = table.as_chunks().0.iter();
        let symbols = symbols.filter_map(|symbol| Some((symbol, self.segment_of(symbol)?)));
        Some(DynamicSymbols { symbols: symbols.collect(), names })
    }

    /// The segment with the code of a symbol.
    fn segment_of(&self, symbol: &[u8; SYMBOL as usize]) -> Option<usize> {
        let kind = symbol.get(4)? & 0xf;
        let section = u16::from_le_bytes(*symbol.get(6..)?.first_chunk()?);
        let address = u64::from_le_bytes(*symbol.get(8..)?.first_chunk()?);
        let is_defined = matches!(kind, NOTYPE | FUNCTION | INDIRECT) && section != 0;
        self.segments
            .iter()
            .position(|it| is_defined && it.is_executable && it.range.contains(&address))
    }

    /// The value of the first entry with this tag.
    fn entry(&self, tag: u64) -> Option<u64> {
        let entries = self.dynamic.as_chunks::<16>().0.iter().map(|entry| {
            let (tag, value) = entry.split_first_chunk()?;
            Some((u64::from_le_bytes(*tag), u64::from_le_bytes(*value.first_chunk()?)))
        });
        let mut entries = entries.flatten().take_while(|(tag, _)| *tag != 0);
        entries.find(|(one, _)| *one == tag).map(|(_, value)| value)
    }

    /// The same for an address. Some dynamic linkers replace it by that in the process.
    fn entry_address(&self, tag: u64) -> Option<u64> {
        let value = self.entry(tag)?;
        let is_loaded = |address: u64| self.left(address).is_some();
        let relocated = value.wrapping_sub(self.bias);
        if is_loaded(relocated) { Some(relocated) } else { Some(value).filter(|at| is_loaded(*at)) }
    }

    /// The number of symbols by the table of hashes at this address: one more than the last symbol in it.
    fn count_by_gnu_hash(&self, table: u64) -> Option<u32> {
        let buckets = self.number(table)?;
        let first = self.number(table.checked_add(4)?)?;
        let filter = self.number(table.checked_add(8)?)?;
        let at_buckets = table.checked_add(16)?.checked_add(u64::from(filter).checked_mul(8)?)?;
        let all = self.at(at_buckets, u64::from(buckets).checked_mul(4)?)?;
        let last = all.as_chunks().0.iter().map(|bucket| u32::from_le_bytes(*bucket)).max()?;
        if last < first {
            // Only symbols that other files define.
            return Some(first);
        }
        let chains = at_buckets.checked_add(u64::from(buckets).checked_mul(4)?)?;
        let mut symbol = last;
        // The last symbol of a chain has an odd hash here.
        while symbol < MOST_SYMBOLS {
            let at = chains.checked_add(u64::from(symbol.checked_sub(first)?).checked_mul(4)?)?;
            symbol = symbol.checked_add(1)?;
            if self.number(at)? & 1 != 0 {
                break;
            }
        }
        Some(symbol)
    }
}
