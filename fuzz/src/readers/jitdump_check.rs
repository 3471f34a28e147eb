//! The jitdump checker on any bytes.
use jitdump::check::{MAX_OFFSETS, check, check_named};

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let report = check(bytes);
    // A header may claim to reach past the end of the file.
    let header = jitdump::Header::parse(bytes).map_or(0, |header| header.total_size);
    let furthest = (bytes.len() as u64).max(header.into());
    let mut previous = None;
    for finding in &report.findings {
        assert!(previous.is_none_or(|previous| previous >= finding.severity), "the worst first");
        previous = Some(finding.severity);
        assert!(finding.count >= finding.offsets.len() as u64);
        assert!((1..=MAX_OFFSETS).contains(&finding.offsets.len()));
        assert_eq!(finding.offsets.first(), Some(&finding.offset));
        assert!(finding.offset <= furthest);
    }
    // A name can add findings of its own, and takes none away.
    let named = check_named(b"jit-7.dump", bytes);
    assert!(named.findings.len() >= report.findings.len());
}
