//! `DW_EH_PE_…`: the encoding of pointers in `.eh_frame`.

use super::Cause;
use super::cursor::Cursor;
use crate::target::Target;

const FORMAT: u8 = 0x0f;
const APPLICATION: u8 = 0xf0;
const ABSOLUTE: u8 = 0x00;
const PC_RELATIVE: u8 = 0x10;
const TEXT_RELATIVE: u8 = 0x20;
const OMIT: u8 = 0xff;

/// The encoding of a pointer: its size and its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding(pub(super) u8);

impl Encoding {
    /// An absolute address.
    pub(super) const ADDRESS: Encoding = Encoding(ABSOLUTE);
    /// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: a signed 32-bit distance from its own position.
    pub(super) const PC_RELATIVE_32: Encoding = Encoding(PC_RELATIVE | 0x0b);

    pub(super) fn is_absolute(self) -> bool {
        self.0 & APPLICATION == ABSOLUTE
    }

    /// Reads a code address; `text` is the start of the code.
    pub(super) fn pointer(
        self,
        target: Target,
        text: u64,
        input: &mut Cursor<'_>,
    ) -> Result<u64, Cause> {
        let base = match self.0 & APPLICATION {
            ABSOLUTE => 0,
            PC_RELATIVE => input.address(),
            TEXT_RELATIVE => text,
            _ => return Err(Cause::Unsupported),
        };
        let address = base.wrapping_add(self.value(input)?);
        Ok(if target.is_64 { address } else { address & u64::from(u32::MAX) })
    }

    /// Reads a length, or any number in this format.
    pub(super) fn value(self, input: &mut Cursor<'_>) -> Result<u64, Cause> {
        Ok(match self.0 & FORMAT {
            0x00 | 0x08 => input.word()?,
            0x01 => input.uleb()?,
            0x02 => input.u16()?.into(),
            0x03 => input.u32()?.into(),
            0x04 | 0x0c => input.u64()?,
            0x09 => input.sleb()?.cast_unsigned(),
            0x0a => i64::from(input.u16()?.cast_signed()).cast_unsigned(),
            0x0b => i64::from(input.u32()?.cast_signed()).cast_unsigned(),
            _ => return Err(Cause::Unsupported),
        })
    }

    /// Skips a pointer of any base. An omitted pointer takes no space.
    pub(super) fn skip(self, input: &mut Cursor<'_>) -> Result<(), Cause> {
        const ALIGNED: u8 = 0x50;
        match self.0 {
            OMIT => Ok(()),
            ALIGNED => Err(Cause::Unsupported),
            _ => self.value(input).map(drop),
        }
    }
}
