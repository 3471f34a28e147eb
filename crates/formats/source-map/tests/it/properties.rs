//! What holds for any map.

use proptest::collection::vec;
use proptest::prelude::*;
use source_map::{MapUrl, SourceMap};

/// Line and column in the generated text; source, line and column there, or none.
type Mapping = ((u32, u32), Option<(u32, u32, u32)>);

/// The number in base64 VLQ.
fn push_number(number: i64, out: &mut String) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = number.unsigned_abs() << 1 | u64::from(number < 0);
    loop {
        let digit = value & 31;
        value >>= 5;
        out.push(char::from(ALPHABET[(digit | u64::from(value > 0) << 5) as usize]));
        if value == 0 {
            return;
        }
    }
}

/// Writes mappings, which are sorted.
fn mappings(all: &[Mapping]) -> String {
    let mut out = String::new();
    let (mut line, mut column, mut last) = (0, 0, (0, 0, 0));
    for (number, &((to_line, to_column), original)) in all.iter().enumerate() {
        let is_first = number == 0 || to_line != line;
        (line..to_line).for_each(|_| out.push(';'));
        if to_line != line {
            column = 0;
        }
        if !is_first {
            out.push(',');
        }
        push_number(i64::from(to_column) - i64::from(column), &mut out);
        (line, column) = (to_line, to_column);
        if let Some(to) = original {
            for (to, from) in [(to.0, last.0), (to.1, last.1), (to.2, last.2)] {
                push_number(i64::from(to) - i64::from(from), &mut out);
            }
            last = to;
        }
    }
    out
}

fn any_mappings() -> impl Strategy<Value = Vec<Mapping>> {
    let original = proptest::option::of((0..3_u32, 0..1000_u32, 0..u32::MAX));
    let one = ((0..20_u32, 0..60_u32), original);
    vec(one, 0..80).prop_map(|mut all| {
        all.sort_by_key(|(place, _)| *place);
        all.dedup_by_key(|(place, _)| *place);
        all
    })
}

proptest! {
    #[test]
    fn each_position_is_that_of_the_mapping_before_it(all in any_mappings()) {
        let json = format!(
            r#"{{"version":3,"sources":["a","b","c"],"names":[],"mappings":"{}"}}"#,
            mappings(&all)
        );
        let map = SourceMap::parse(json.as_bytes()).expect("a map");
        prop_assert_eq!(map.damage(), None);
        for line in 0..22 {
            for column in 0..64 {
                let before = all.iter().rfind(|(place, _)| *place <= (line, column));
                let expected = before.filter(|(place, _)| place.0 == line).and_then(|(_, to)| *to);
                let found = map.original(line + 1, column + 1);
                let found = found.map(|to| (to.source as u32, to.line - 1, to.column - 1));
                let expected = expected.map(|(source, line, column)| (source, line, column.min(u32::MAX - 1)));
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn any_text_is_read_without_panic(
        mappings in "[A-Za-z0-9+/,;! ]{0,200}",
        tail in any::<Vec<u8>>(),
    ) {
        let json = format!(r#"{{"version":3,"sources":["a"],"mappings":"{mappings}"}}"#);
        let map = SourceMap::parse(json.as_bytes()).expect("a map");
        for line in [0, 1, 2, 10, u32::MAX] {
            for column in [0, 1, 7, u32::MAX] {
                if let Some(place) = map.original(line, column) {
                    prop_assert!(place.source < map.sources().len());
                }
            }
        }
        _ = SourceMap::parse(&tail);
        let mut script = b"//# sourceMappingURL=data:;base64,".to_vec();
        script.extend(&tail);
        _ = MapUrl::of_script(&script);
    }
}
