//! Code logs: any bytes, which may change between two readings, as those of a process do.
use std::cell::Cell;
use std::io;

use code_log::{Budget, Follower, Source, snapshot};
use jitdump::{CodeEvent, Dump};

/// What is read from `at` on gets another byte with each reading.
struct Changing<'a> {
    bytes: &'a [u8],
    changes: &'a [u8],
    reads: Cell<usize>,
}

impl Source for Changing<'_> {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read_at(at, room)?;
        let number = self.reads.replace(self.reads.get() + 1);
        if let [low, high, byte] = self.changes.get(3 * number..3 * number + 3).unwrap_or_default()
            && let Some(place) =
                room[..count].get_mut(usize::from(u16::from_le_bytes([*low, *high])))
        {
            *place ^= byte;
        }
        Ok(count)
    }
}

fn look(source: &impl Source, size: usize) {
    let Ok(snapshot) = snapshot(source) else { return };
    assert!(snapshot.bytes.len() <= size, "{} of {size}", snapshot.bytes.len());
    // Whatever the log was, this can be read as a dump.
    let dump = Dump::parse(&snapshot.bytes).expect("a header");
    let codes = dump.codes().filter(|event| matches!(event, Ok(CodeEvent::Load(_)))).count();
    assert!(codes <= size);
}

/// Reads it several times, each time what seems to have changed, and asks for its codes.
fn follow(source: &impl Source, size: usize) -> Follower {
    let mut follower = Follower::new(None);
    for _ in 0..3 {
        let _ = follower.update(source, Budget::default(), |dump| dump.len() as u64);
        assert_eq!(follower.codes().count() as u64, follower.len());
        assert!(follower.len() <= size as u64);
        for code in follower.codes().take(16) {
            if let Ok(Some(dump)) = follower.code(source, code, size) {
                assert!(dump.len() <= size + 40);
            }
            let _ = follower.died(source, code);
        }
    }
    follower
}

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    look(&bytes, bytes.len());
    let follower = follow(&bytes, bytes.len());
    if let Ok(snapshot) = snapshot(&bytes) {
        assert_eq!(follower.len(), snapshot.codes);
    }
    // The last bytes say what changes.
    let (bytes, changes) = bytes.split_at(bytes.len() - bytes.len().min(30));
    look(&Changing { bytes, changes, reads: Cell::new(0) }, bytes.len());
    follow(&Changing { bytes, changes, reads: Cell::new(0) }, bytes.len());
}
