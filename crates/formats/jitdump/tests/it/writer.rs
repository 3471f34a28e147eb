//! What the writer writes, byte by byte, and what it refuses.

use crate::made::{code, config, entry, load, same, tables, writer};
use jitdump::{DebugEntry, EntryName, Sink, WriteError, Writer};

#[test]
fn a_load_has_the_layout_of_the_format() {
    let mut writer = writer();
    writer.load(0x1122_3344_5566_7788, &load(0x7f00_0000_1000, 9, b"fib", &[0xc3])).unwrap();
    #[rustfmt::skip]
    let expected = [
        0, 0, 0, 0,  61, 0, 0, 0,  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
        0xbc, 2, 0, 0,  0xbc, 2, 0, 0,
        0, 0x10, 0, 0, 0, 0x7f, 0, 0,  0, 0x10, 0, 0, 0, 0x7f, 0, 0,
        1, 0, 0, 0, 0, 0, 0, 0,  9, 0, 0, 0, 0, 0, 0, 0,
        b'f', b'i', b'b', 0,  0xc3,
    ];
    assert_eq!(writer.sink()[40..], expected);
}

#[test]
fn debug_info_counts_its_entries() {
    let mut writer = writer();
    let column = DebugEntry { addr: 0x1004, line: 2, discrim: 7, name: EntryName::Same };
    writer.debug_info(1, 0x1000, [entry(0x1000, 1, b"a"), column]).unwrap();
    #[rustfmt::skip]
    let expected = [
        2, 0, 0, 0,  68, 0, 0, 0,  1, 0, 0, 0, 0, 0, 0, 0,
        0, 0x10, 0, 0, 0, 0, 0, 0,  2, 0, 0, 0, 0, 0, 0, 0,
        0, 0x10, 0, 0, 0, 0, 0, 0,  1, 0, 0, 0,  0, 0, 0, 0,  b'a', 0,
        4, 0x10, 0, 0, 0, 0, 0, 0,  2, 0, 0, 0,  7, 0, 0, 0,  0xff, 0,
    ];
    assert_eq!(writer.sink()[40..], expected);
}

#[test]
fn what_a_reader_would_misread_is_refused_and_not_written() {
    let mut writer = writer();
    let before = writer.sink().clone();
    assert_eq!(writer.load(1, &load(1, 1, b"a\0b", &[])), Err(WriteError::NulInName));
    let named_same = [entry(0, 1, b"\xff")];
    assert_eq!(writer.debug_info(1, 0, named_same), Err(WriteError::NameMeansSame));
    assert_eq!(writer.debug_info(1, 0, [entry(0, 1, b"\0")]), Err(WriteError::NulInName));
    assert_eq!(*writer.sink(), before);
}

/// Counts calls.
#[derive(Default)]
struct Calls(Vec<usize>);

impl Sink for Calls {
    type Error = &'static str;

    fn write_record(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        if self.0.len() == 5 {
            return Err("full");
        }
        self.0.push(bytes.len());
        Ok(())
    }
}

#[test]
fn each_record_goes_out_in_one_piece() {
    let mut calls = Calls::default();
    let mut writer = Writer::new(&mut calls, &config(jitdump::Endian::NATIVE)).unwrap();
    writer.unwinding_info(1, &tables()).unwrap();
    writer.debug_info(1, 0, [entry(0, 1, b"a"), same(1, 1)]).unwrap();
    writer.load(1, &load(0, 1, b"f", &code(10))).unwrap();
    writer.close(1).unwrap();
    assert_eq!(writer.close(1), Err(WriteError::Sink("full")));
    assert_eq!(calls.0, [40, 80, 68, 68, 16]);
}

#[cfg(feature = "std")]
#[test]
fn a_file_is_a_sink() {
    use jitdump::IoSink;

    let mut writer = Writer::new(IoSink(Vec::new()), &config(jitdump::Endian::Little)).unwrap();
    writer.close(1).unwrap();
    assert_eq!(writer.into_sink().0.len(), 56);
}
