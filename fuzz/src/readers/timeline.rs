//! The timeline against the plainest one there is: a table of who is at each address.
use code_timeline::{CodeId, TimelineBuilder};

const ADDRESSES: usize = 256;
/// Events beyond these only cost time.
const EVENTS: usize = 64;

type Table = [Option<CodeId>; ADDRESSES];

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let mut builder = TimelineBuilder::new();
    let mut tables: Vec<(u64, Table)> = Vec::new();
    let mut table: Table = [None; ADDRESSES];
    let mut time = 1;
    for event in bytes.chunks_exact(4).take(EVENTS) {
        let &[how, start, size, code] = event else { continue };
        let range = usize::from(start)..(usize::from(start) + usize::from(size)).min(ADDRESSES);
        let span = range.start as u64..range.end as u64;
        let code = CodeId(u32::from(code % 8));
        // A third of the events has the time of the one before.
        time += u64::from(how % 3);
        if how % 4 == 0 {
            builder.unload(time, span, code);
            table[range].iter_mut().filter(|at| **at == Some(code)).for_each(|at| *at = None);
        } else {
            builder.load(time, span, code);
            table[range].fill(Some(code));
        }
        match tables.last_mut() {
            Some((last, same)) if *last == time => *same = table,
            _ => tables.push((time, table)),
        }
    }

    let timeline = builder.finish();
    let who = |address: usize, time| timeline.at(address as u64, time).map(|piece| piece.code);
    for address in 0..ADDRESSES {
        assert_eq!(who(address, 0), None);
        for (time, table) in &tables {
            assert_eq!(who(address, *time), table[address], "{address} at {time}");
        }
        // It stays so until the next event, and after the last.
        if let Some((time, table)) = tables.last() {
            assert_eq!(who(address, time + 1000), table[address]);
        }
    }
    for piece in timeline.pieces() {
        assert!(piece.range.start < piece.range.end && piece.since < piece.until);
        assert_eq!(timeline.at(piece.range.start, piece.since), Some(piece));
        assert_eq!(timeline.at(piece.range.end - 1, piece.until - 1), Some(piece));
    }
}
