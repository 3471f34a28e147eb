//! Maps and dumps that are read while they are written: whatever comes, in whatever pieces, and always the same.
use jitdump::{CodeEvent, Growing, Header};

/// Reads a file that is written in pieces of these lengths, over and over.
fn map(bytes: &[u8], lengths: &[u8]) -> Vec<String> {
    let mut map = perf_map::Growing::default();
    let mut told = Vec::new();
    let mut rest = bytes;
    for length in lengths.iter().cycle().map(|&length| usize::from(length) + 1) {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        map.take(piece, |entry| told.push(format!("{entry:?}")));
        rest = behind;
    }
    map.finish(|entry| told.push(format!("{entry:?}")));
    told
}

fn dump(bytes: &[u8], lengths: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    let mut growing = Growing::new(header);
    let mut read = usize::try_from(growing.start()).unwrap_or(usize::MAX);
    let mut end = read;
    for length in lengths.iter().cycle().map(|&length| usize::from(length) + 1) {
        if end >= bytes.len() {
            break;
        }
        end = end.saturating_add(length).min(bytes.len());
        let Some(new) = bytes.get(read..end) else { break };
        let taken = growing.take(new, |event| {
            if let Ok(CodeEvent::Load(code)) = event {
                assert!(
                    code.lines().all(|line| (code.address..code.end()).contains(&line.address))
                );
            }
        });
        assert!(taken <= new.len());
        read += taken;
        assert!(growing.held() <= bytes.len());
    }
}

/// Reads it in every way, and checks what must hold.
pub fn run(input: (&[u8], &[u8])) {
    let (lengths, bytes) = input;
    if lengths.is_empty() {
        return;
    }
    let whole: Vec<String> = perf_map::entries(bytes).map(|entry| format!("{entry:?}")).collect();
    if bytes.len() < 1 << 16 {
        assert_eq!(map(bytes, lengths), whole);
    }
    dump(bytes, lengths);
}
