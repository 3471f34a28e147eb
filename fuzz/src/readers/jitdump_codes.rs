//! Jitdumps, the unified level: what a consumer asks of every code of any bytes.
use code_bytes::CodeBytes;
use jitdump::{CodeEvent, Dump, Writer, WriterConfig};

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::parse(bytes) else { return };
    bytes_at_times(bytes);
    let _ = dump.log();
    if let Ok(copy) = jitdump::with_source_positions(&dump) {
        assert!(copy.len() >= bytes.len());
    }
    let codes = dump.codes();
    let quirks = *codes.quirks();
    let mut writer = Writer::new(Vec::new(), &WriterConfig::from(dump.header())).expect("a header");
    let mut written = 0;
    for event in codes {
        let Ok(CodeEvent::Load(code)) = event else { continue };
        assert!(
            code.bytes.len() as u64 == code.size
                || (code.is_without_bytes() && code.bytes.is_empty())
        );
        assert!(!code.name.contains(&0));
        for line in code.lines().chain(code.ir_lines()) {
            assert!((code.address..code.end()).contains(&line.address));
        }
        if let Some(unwind) = code.unwind() {
            assert!(unwind.eh_frame.len() + unwind.eh_frame_hdr.len() <= bytes.len());
        }
        for (index, call) in code.inlined().enumerate() {
            assert!(call.parent.is_none_or(|parent| (parent as usize) < index));
            for range in call.ranges {
                assert!(code.address <= range.start && range.start < range.end);
                assert!(range.end <= code.end());
            }
        }
        assert!(code.died().is_none_or(|died| died >= code.timestamp));
        assert!(code.tier().is_none_or(|tier| tier.len() < bytes.len()));
        let _ = (code.kind(), code.frame_pointer(), dump.code_at(&code.place(), &quirks));
        // What was read can be written, unless a name or a size stands against it.
        if writer.code(&code, None).is_ok() {
            written += 1;
        }
    }
    // Absurd times make records look torn, and codes in them unknown.
    let copy = writer.into_sink();
    let copy = Dump::parse(&copy).expect("a header we wrote");
    let read = copy.codes().filter(|event| matches!(event, Ok(CodeEvent::Load(_)))).count();
    assert!(read <= written, "{read} codes of {written}");
}

/// The bytes at the address and the time of each load.
fn bytes_at_times(bytes: &[u8]) {
    let Ok(codes) = CodeBytes::read(bytes, bytes.len() as u64) else { return };
    let Ok(dump) = Dump::parse(bytes) else { return };
    for event in dump.codes() {
        let Ok(CodeEvent::Load(load)) = event else { continue };
        let Some(found) = codes.at(load.address, load.timestamp) else { continue };
        assert!(found.addresses.contains(&load.address));
        let mut buffer = [0; 16];
        let copied = codes.copy(load.address, load.timestamp, &mut buffer);
        let same = copied.min(found.from(load.address).len());
        assert_eq!(buffer[..same], found.from(load.address)[..same]);
    }
}
