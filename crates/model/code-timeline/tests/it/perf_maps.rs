//! Lines of a perf map: `perf_map::resolve` gives the same result as a history.

use code_timeline::{AddressSpaceId, Code, HistoryBuilder, Processes, Timeline};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_perf_map_is_resolved_as_a_history(
        lines in prop::collection::vec((0u64..60, 0u64..20), 0..40),
        far in any::<bool>(),
    ) {
        // Near the last address, ranges that claim to extend past it are cut off.
        let base = if far { u64::MAX - 50 } else { 0 };
        let entries = (0..).zip(&lines).map(|(line, &(start, size))| perf_map::Entry {
            offset: 0,
            line,
            address: base.saturating_add(start),
            size,
            name: b"",
        });
        let mut builder = HistoryBuilder::new();
        for perf_map::Entry { address, size, line, .. } in entries.clone() {
            builder.load(AddressSpaceId::ONLY, 0, Code { address, size, origin: line });
        }
        let history = builder.finish(&Processes::new(), 0);
        let timeline = history.timeline(AddressSpaceId::ONLY).map(Timeline::pieces).unwrap_or_default();
        let pieces = timeline.iter().map(|piece| (piece.range.clone(), history.code(piece.code).origin));
        let resolved = perf_map::resolve(entries);
        let resolved = resolved.iter().map(|piece| (piece.address..piece.end(), piece.entry.line));
        prop_assert_eq!(pieces.collect::<Vec<_>>(), resolved.collect::<Vec<_>>());
    }
}
