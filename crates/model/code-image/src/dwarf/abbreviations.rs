//! `.debug_abbrev`: the kinds of entries and their attributes.

use super::constants::*;
use crate::encode::Encoder;

pub(super) const UNIT_OF_ONE_RANGE: u64 = 1;
pub(super) const UNIT_OF_RANGES: u64 = 2;
pub(super) const FUNCTION: u64 = 3;
pub(super) const FUNCTION_WITHOUT_LINES: u64 = 4;
/// A function that other entries refer to, without code of its own.
pub(super) const INLINED_FUNCTION: u64 = 7;
/// The first of the abbreviation codes for inlined calls.
const CALL: u64 = 8;

/// The code for [`FUNCTION`] or [`FUNCTION_WITHOUT_LINES`] with or without entries of inlined calls in it.
pub(super) fn with_calls(function: u64, has_calls: bool) -> u64 {
    function + 2 * u64::from(has_calls)
}

/// The code for an inlined call: whether it contains others, whether it has several ranges, and whether the position
/// of the call is known.
pub(super) fn call(has_calls: bool, has_ranges: bool, has_place: bool) -> u64 {
    CALL + u64::from(has_calls) + 2 * u64::from(has_ranges) + 4 * u64::from(has_place)
}

/// An attribute with its form.
pub(super) type Attribute = (u64, u64);

pub(super) const ONE_RANGE: &[Attribute] =
    &[(DW_AT_LOW_PC, DW_FORM_ADDR), (DW_AT_HIGH_PC, DW_FORM_UDATA)];
pub(super) const RANGES: &[Attribute] = &[(DW_AT_RANGES, DW_FORM_SEC_OFFSET)];
const UNIT: &[Attribute] = &[
    (DW_AT_PRODUCER, DW_FORM_STRING),
    (DW_AT_LANGUAGE, DW_FORM_DATA1),
    (DW_AT_NAME, DW_FORM_STRING),
    (DW_AT_STMT_LIST, DW_FORM_SEC_OFFSET),
];
pub(super) const EXTERNAL_NAME: &[Attribute] =
    &[(DW_AT_EXTERNAL, DW_FORM_FLAG_PRESENT), (DW_AT_NAME, DW_FORM_STRING)];
pub(super) const DECLARATION: &[Attribute] =
    &[(DW_AT_DECL_FILE, DW_FORM_UDATA), (DW_AT_DECL_LINE, DW_FORM_UDATA)];
const ABSTRACT: &[Attribute] = &[(DW_AT_NAME, DW_FORM_STRP), (DW_AT_INLINE, DW_FORM_DATA1)];
pub(super) const ORIGIN: &[Attribute] = &[(DW_AT_ABSTRACT_ORIGIN, DW_FORM_REF4)];
pub(super) const CALL_PLACE: &[Attribute] = &[
    (DW_AT_CALL_FILE, DW_FORM_UDATA),
    (DW_AT_CALL_LINE, DW_FORM_UDATA),
    (DW_AT_CALL_COLUMN, DW_FORM_UDATA),
];

/// Writes the abbreviations that all units share; those for inlined calls only if there are any.
pub(super) fn write(out: &mut Encoder, has_calls: bool) {
    let base_of_ranges = &[(DW_AT_LOW_PC, DW_FORM_ADDR)];
    declare(out, UNIT_OF_ONE_RANGE, DW_TAG_COMPILE_UNIT, true, &[UNIT, ONE_RANGE]);
    declare(out, UNIT_OF_RANGES, DW_TAG_COMPILE_UNIT, true, &[UNIT, base_of_ranges, RANGES]);
    let functions = [
        (FUNCTION, &[EXTERNAL_NAME, DECLARATION, ONE_RANGE][..]),
        (FUNCTION_WITHOUT_LINES, &[EXTERNAL_NAME, ONE_RANGE]),
    ];
    for has_calls in [false, true].into_iter().take(1 + usize::from(has_calls)) {
        for (code, attributes) in functions {
            declare(out, with_calls(code, has_calls), DW_TAG_SUBPROGRAM, has_calls, attributes);
        }
    }
    if has_calls {
        declare(out, INLINED_FUNCTION, DW_TAG_SUBPROGRAM, false, &[ABSTRACT]);
        for kind in 0..8 {
            let [has_calls, has_ranges, has_place] = [1, 2, 4].map(|bit| kind & bit != 0);
            let place = if has_place { CALL_PLACE } else { &[] };
            let extent = if has_ranges { RANGES } else { ONE_RANGE };
            let code = call(has_calls, has_ranges, has_place);
            let attributes = [ORIGIN, place, extent];
            declare(out, code, DW_TAG_INLINED_SUBROUTINE, has_calls, &attributes);
        }
    }
    out.u8(0);
}

pub(super) fn declare(
    out: &mut Encoder,
    code: u64,
    tag: u64,
    has_children: bool,
    attributes: &[&[Attribute]],
) {
    out.uleb(code);
    out.uleb(tag);
    out.u8(u8::from(has_children));
    for &(attribute, form) in attributes.iter().copied().flatten() {
        out.uleb(attribute);
        out.uleb(form);
    }
    out.raw(&[0, 0]);
}
