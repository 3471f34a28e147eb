//! The tail: a sequence of items behind the last entry of a DEBUG_INFO record.

use core::iter::FusedIterator;

use super::{ChunkItem, CodeItem, InlinedCalls, LeftOut, LineTable, LogItem, tag};
use crate::endian::{Endian, Fields, to_u64, to_usize};

/// The word at the start of a tail, in the byte order of the dump: `JSCR` in a little-endian one.
pub const MAGIC: u32 = 0x5243_534a;

/// Size of the tail's header: [`MAGIC`] (u32), and the size of all items (u32).
pub const HEADER_SIZE: usize = 8;

/// Size of an item's header: tag (u16), detail (u16), size of the payload (u32).
pub const ITEM_HEADER_SIZE: usize = 8;

/// Alignment of a tail and its items, counted from the start of the record.
pub const ALIGN: usize = 8;

/// Where the tail begins in a record without entries.
pub const OFFSET_WITHOUT_ENTRIES: usize = 32;

/// Where the payload of the first item begins in a record without entries.
pub const FIRST_PAYLOAD: usize = OFFSET_WITHOUT_ENTRIES + HEADER_SIZE + ITEM_HEADER_SIZE;

/// The tail of a DEBUG_INFO record. Items are decoded lazily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail<'a> {
    items: Fields<'a>,
    is_whole: bool,
}

impl<'a> Tail<'a> {
    /// Total size of its items in bytes.
    pub(crate) fn len(&self) -> usize {
        self.items.rest.len()
    }

    /// Parses a tail at the start of `bytes`, where one may begin.
    pub(crate) fn parse(mut bytes: Fields<'a>) -> Option<Self> {
        if bytes.u32()? != MAGIC {
            return None;
        }
        let size = u64::from(bytes.u32()?);
        let is_whole = size.is_multiple_of(8) && size <= to_u64(bytes.rest.len());
        if is_whole {
            bytes.rest = bytes.take(size)?;
        }
        Some(Self { items: bytes, is_whole })
    }

    /// Its items.
    #[must_use]
    pub fn items(&self) -> Items<'a> {
        Items { fields: self.items, is_whole: self.is_whole }
    }

    /// The CODE item, if the tail describes a code. It is the first item then.
    #[must_use]
    pub fn code(&self) -> Option<CodeItem> {
        match self.items().next()?.body()? {
            ItemBody::Code(code) => Some(code),
            _ => None,
        }
    }

    /// The first item with `tag` and `detail`.
    pub(crate) fn find(&self, tag: u16, detail: Option<u16>) -> Option<Item<'a>> {
        self.items()
            .find(|item| item.tag == tag && detail.is_none_or(|detail| item.detail == detail))
    }
}

/// The items of a [`Tail`]. Ends at the first that does not fit into it.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    fields: Fields<'a>,
    is_whole: bool,
}

impl Items<'_> {
    /// Whether all sizes read so far are consistent: the tail's with the record's, the items' with the tail's.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.fields.rest.is_empty() {
            return None;
        }
        let item = Item::parse(&mut self.fields);
        if item.is_none() {
            self.is_whole = false;
            self.fields.rest = &[];
        }
        item
    }
}

impl FusedIterator for Items<'_> {}

/// An item of a [`Tail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its type: one of [`tag`], or unknown.
    pub tag: u16,
    /// Meaning by tag; 0 if unused.
    pub detail: u16,
    /// Its content.
    pub payload: &'a [u8],
    endian: Endian,
}

impl<'a> Item<'a> {
    fn parse(fields: &mut Fields<'a>) -> Option<Self> {
        let (tag, detail) = (fields.u16()?, fields.u16()?);
        let size = u64::from(fields.u32()?);
        let payload = fields.take(size)?;
        // The padding of the last item may be missing.
        let padding = to_usize(size.next_multiple_of(8).saturating_sub(size));
        fields.rest = fields.rest.get(padding..).unwrap_or(&[]);
        Some(Self { tag, detail, payload, endian: fields.endian })
    }

    /// The decoded content, by tag; `None` if the payload is not valid for the tag.
    #[must_use]
    pub fn body(&self) -> Option<ItemBody<'a>> {
        let fields = Fields::new(self.payload, self.endian);
        Some(match self.tag {
            tag::CODE => ItemBody::Code(CodeItem::parse(fields)?),
            tag::NAME => ItemBody::Name(self.payload),
            tag::TIER => ItemBody::Tier(self.payload),
            tag::LINES => ItemBody::Lines { table: LineTable::parse(fields)?, detail: self.detail },
            tag::INLINED => ItemBody::Inlined(InlinedCalls::parse(fields)?),
            tag::EH_FRAME => ItemBody::EhFrame(self.payload),
            tag::LEFT_OUT => ItemBody::LeftOut(LeftOut::parse(fields)?),
            tag::SEEN => ItemBody::Seen({
                let mut fields = fields;
                fields.u64()?
            }),
            tag::LOG => ItemBody::Log(LogItem::parse(fields)?),
            tag::CHUNK => ItemBody::Chunk(ChunkItem::parse(fields)?),
            _ => ItemBody::Unknown,
        })
    }
}

/// The decoded content of an [`Item`], by tag.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ItemBody<'a> {
    /// Describes a code.
    Code(CodeItem),
    /// The code's name, if no LOAD contains it.
    Name(&'a [u8]),
    /// Name of the compiler's tier.
    Tier(&'a [u8]),
    /// A line table.
    Lines {
        /// The table.
        table: LineTable<'a>,
        /// Which lines: [`tag::LINES_SOURCE`] or [`tag::LINES_IR`].
        detail: u16,
    },
    /// The calls inlined into the code.
    Inlined(InlinedCalls<'a>),
    /// An `.eh_frame` section, if no UNWINDING_INFO contains it.
    EhFrame(&'a [u8]),
    /// When the code was first seen.
    Seen(u64),
    /// Codes that were not written.
    LeftOut(LeftOut),
    /// The control words of a code log.
    Log(LogItem),
    /// The head of a chunk of a code log.
    Chunk(ChunkItem),
    /// A tag unknown to this crate.
    Unknown,
}
