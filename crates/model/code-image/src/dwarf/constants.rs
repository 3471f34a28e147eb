//! The DWARF constants used here.

pub(super) const DW_TAG_COMPILE_UNIT: u64 = 0x11;
pub(super) const DW_TAG_INLINED_SUBROUTINE: u64 = 0x1d;
pub(super) const DW_TAG_SUBPROGRAM: u64 = 0x2e;
pub(super) const DW_TAG_LO_USER: u64 = 0x4080;

pub(super) const DW_AT_NAME: u64 = 0x03;
pub(super) const DW_AT_STMT_LIST: u64 = 0x10;
pub(super) const DW_AT_LOW_PC: u64 = 0x11;
pub(super) const DW_AT_HIGH_PC: u64 = 0x12;
pub(super) const DW_AT_LANGUAGE: u64 = 0x13;
pub(super) const DW_AT_INLINE: u64 = 0x20;
pub(super) const DW_AT_PRODUCER: u64 = 0x25;
pub(super) const DW_AT_ABSTRACT_ORIGIN: u64 = 0x31;
pub(super) const DW_AT_DECL_FILE: u64 = 0x3a;
pub(super) const DW_AT_DECL_LINE: u64 = 0x3b;
pub(super) const DW_AT_EXTERNAL: u64 = 0x3f;
pub(super) const DW_AT_RANGES: u64 = 0x55;
pub(super) const DW_AT_CALL_COLUMN: u64 = 0x57;
pub(super) const DW_AT_CALL_FILE: u64 = 0x58;
pub(super) const DW_AT_CALL_LINE: u64 = 0x59;
pub(super) const DW_AT_LO_USER: u64 = 0x2000;

pub(super) const DW_FORM_ADDR: u64 = 0x01;
pub(super) const DW_FORM_STRING: u64 = 0x08;
pub(super) const DW_FORM_BLOCK: u64 = 0x09;
pub(super) const DW_FORM_DATA1: u64 = 0x0b;
pub(super) const DW_FORM_STRP: u64 = 0x0e;
pub(super) const DW_FORM_UDATA: u64 = 0x0f;
pub(super) const DW_FORM_REF4: u64 = 0x13;
pub(super) const DW_FORM_SEC_OFFSET: u64 = 0x17;
pub(super) const DW_FORM_FLAG_PRESENT: u64 = 0x19;

/// C: with this language, readers do not change names.
pub(super) const DW_LANG_C: u8 = 0x02;

/// Inlined, whether or not declared inline in the source.
pub(super) const DW_INL_INLINED: u8 = 1;

pub(super) const DW_LNS_COPY: u8 = 1;
pub(super) const DW_LNS_ADVANCE_PC: u8 = 2;
pub(super) const DW_LNS_ADVANCE_LINE: u8 = 3;
pub(super) const DW_LNS_SET_FILE: u8 = 4;
pub(super) const DW_LNS_SET_COLUMN: u8 = 5;
pub(super) const DW_LNE_END_SEQUENCE: u8 = 1;
pub(super) const DW_LNE_SET_ADDRESS: u8 = 2;
