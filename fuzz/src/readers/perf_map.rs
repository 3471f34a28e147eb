//! Perf maps: reader, resolver, checker and writer on any bytes.

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let entries: Vec<_> = perf_map::entries(bytes).flatten().collect();

    // The pieces lie in order, do not overlap, and stay within their entries.
    let pieces = perf_map::resolve(entries.iter().copied());
    let mut behind = 0;
    for piece in &pieces {
        assert!(piece.size > 0 && piece.address >= behind);
        assert!(piece.address >= piece.entry.address && piece.end() <= piece.entry.end());
        behind = piece.end();
        assert_eq!(perf_map::find(&pieces, piece.address), Some(piece));
    }

    // An address at which an entry begins belongs to it or to a younger one.
    for entry in entries.iter().filter(|entry| entry.size > 0) {
        let piece = perf_map::find(&pieces, entry.address).expect("an address that is covered");
        assert!(piece.entry.line >= entry.line);
    }

    assert_eq!(perf_map::check::check(bytes).entries, entries.len() as u64);

    // What was read can be written so that it is read again.
    let mut map = Vec::new();
    for entry in &entries {
        perf_map::push_line(&mut map, entry.address, entry.size, entry.name);
    }
    let again: Vec<_> =
        perf_map::entries(&map).map(|entry| entry.expect("a line we wrote")).collect();
    assert_eq!(again.len(), entries.len());
    for (again, entry) in again.iter().zip(&entries) {
        assert_eq!((again.address, again.size), (entry.address, entry.size));
        assert_eq!(again.name, perf_map::safe_name(entry.name).as_bytes());
    }
}
