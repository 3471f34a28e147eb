//! Names of files.

use std::fmt::Write;

/// A value as a part of a path, as Hive and its readers have it: other characters than letters, digits, `.`, `_` and `-` are written as `%2F`, and so is a
/// point at the beginning. An empty value is `_`.
pub fn part(value: &str) -> String {
    let mut part = String::new();
    for (place, &byte) in value.as_bytes().iter().enumerate() {
        match byte {
            b'.' if place == 0 => part.push_str("%2E"),
            b'.' | b'_' | b'-' => part.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => part.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => _ = write!(part, "%{byte:02X}"),
        }
        // A name of a file has at most 255 bytes.
        if part.len() > LONGEST {
            break;
        }
    }
    if part.is_empty() { "_".to_owned() } else { part }
}

const LONGEST: usize = 120;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_no_paths() {
        for (value, written) in [
            ("shop", "shop"),
            ("a/b", "a%2Fb"),
            ("..", "%2E."),
            ("x=1", "x%3D1"),
            ("", "_"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(part(value), written);
        }
    }

    proptest! {
        #[test]
        fn any_value_is_one_part(value in any::<String>()) {
            let part = part(&value);
            let mut parts = std::path::Path::new(&part).components();
            prop_assert!(matches!(parts.next(), Some(std::path::Component::Normal(_))));
            prop_assert!(parts.next().is_none() && part.len() < 130);
        }
    }
}
