//! Jitdumps, the raw level: every record of any bytes, and the writer on what was read.
use jitdump::{Body, Dump, End, Writer, WriterConfig};

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::parse(bytes) else { return };
    let length = bytes.len() as u64;

    // Records and errors come in the order of the file and lie within it.
    let mut records = dump.records();
    let mut behind = 0;
    let mut whole = Vec::new();
    for record in records.by_ref() {
        match record {
            Ok(record) => {
                assert!(record.offset >= behind);
                behind = record.offset + u64::from(record.total_size);
                assert!(behind <= length);
                whole.push(record);
            }
            Err(error) => {
                assert!(error.offset >= behind && error.offset < length);
                behind = error.offset;
            }
        }
    }
    match records.end().expect("an iterator that has ended knows how") {
        End::Complete { offset } => assert_eq!(offset, length),
        // A header may claim to be larger than the file.
        End::CutOff { .. } => {}
        End::Zeros { offset } | End::Damaged { offset } => assert!(offset <= length),
    }
    assert!(records.next().is_none());

    // What was read can be written, and is then read as the same.
    let mut writer = Writer::new(Vec::new(), &WriterConfig::from(dump.header())).expect("a header");
    let mut written = Vec::new();
    for record in &whole {
        if writer.record(record).is_ok() {
            written.push(record);
        }
    }
    let copy = writer.into_sink();
    let copy = Dump::parse(&copy).expect("a header we wrote");
    let mut again = copy.records();
    for record in written {
        // Bodies that nobody defines are told from garbage by what stands around them.
        if matches!(record.body, Body::Unknown { .. }) {
            return;
        }
        // A body that itself looks like records makes its own one look torn, depending on what
        // stands around it: bytes that no writer makes, for which either reading is right.
        let Ok(read) = again.next().expect("a record we wrote") else { return };
        assert_eq!(read.timestamp, record.timestamp);
        match (&read.body, &record.body) {
            (Body::DebugInfo(read), Body::DebugInfo(record)) => {
                let entries = || record.entries().map_while(Result::ok);
                assert!(read.entries().map_while(Result::ok).eq(entries()));
            }
            (read, record) => assert_eq!(read, record),
        }
    }
}
