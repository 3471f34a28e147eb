//! Words of a command that people paste into a shell.

use std::borrow::ToOwned;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::format;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::string::String;

use crate::{Part, is_printable, parts};

/// A path quoted for a shell so that no command takes it for an option.
#[must_use]
pub fn shell_path(path: &Path) -> String {
    if path.as_os_str().as_bytes().starts_with(b"-") {
        return shell_word(&Path::new(".").join(path));
    }
    shell_word(path)
}

/// A word quoted for a shell. Words with unprintable characters or invalid UTF-8 use the quotes that bash, zsh, ksh and POSIX
/// (since 2024) know: `$'a\033b'`.
#[must_use]
pub fn shell_word<W: AsRef<OsStr> + ?Sized>(word: &W) -> String {
    let word = word.as_ref().as_bytes();
    let is_typed = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(byte);
    if let Ok(text) = std::str::from_utf8(word)
        && text.chars().all(is_printable)
    {
        return if !text.is_empty() && word.iter().all(is_typed) {
            text.to_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        };
    }
    let mut quoted = String::from("$'");
    let octal = |quoted: &mut String, byte: u8| {
        // Writing into a String cannot fail.
        let _ = write!(quoted, "\\{byte:03o}");
    };
    for part in parts(word) {
        match part {
            Part::Byte(&byte) => octal(&mut quoted, byte),
            Part::Character(c) => {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| octal(&mut quoted, byte));
            }
            Part::Plain(text) => text.chars().for_each(|c| match c {
                // `'` would end the quotes, and interactive shells replace `!` by earlier commands.
                '\\' | '\'' | '!' => octal(&mut quoted, c as u8),
                c => quoted.push(c),
            }),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn is_harmless(text: &[u8]) -> bool {
        std::str::from_utf8(text)
            .is_ok_and(|text| text.chars().all(|c| c == '\n' || is_printable(c)))
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, quoted) in [
            (&b"/a/b-1.data"[..], "/a/b-1.data"),
            (b"", "''"),
            (b"a b", "'a b'"),
            (b"it's", r"'it'\''s'"),
            ("grün".as_bytes(), "'grün'"),
            (b"a\x1b'\\!\xff\n", r"$'a\033\047\134\041\377\012'"),
        ] {
            assert_eq!(shell_word(OsStr::from_bytes(word)), quoted);
        }
        assert_eq!(shell_path(Path::new("-rf")), "./-rf");
        assert_eq!(shell_word("-rf"), "-rf");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Many words for each shell that is started.
        #[test]
        fn a_shell_reads_the_same_words(
            words in prop::collection::vec(prop::collection::vec(1_u8.., 0..12), 1..64),
            texts in prop::collection::vec("[^\\x00]{0,8}", 1..64),
        ) {
            let words = words.into_iter().chain(texts.into_iter().map(String::into_bytes));
            let words: Vec<Vec<u8>> = words.collect();
            let quoted: Vec<String> =
                words.iter().map(|word| shell_word(OsStr::from_bytes(word))).collect();
            let line = format!("printf '%s\\0' {}", quoted.join(" "));
            prop_assert!(is_harmless(line.as_bytes()), "{}", line);
            let read = Command::new("bash").arg("-c").arg(&line).output().expect("bash");
            prop_assert!(read.status.success(), "{}", line);
            let expected: Vec<u8> = words.iter().flat_map(|word| [word, &b"\0"[..]].concat()).collect();
            prop_assert_eq!(read.stdout, expected);

            // A shell that knows the old quotes alone reads what can be said in them.
            let old: Vec<String> = quoted.into_iter().filter(|word| !word.starts_with('$')).collect();
            let of_old = words.iter().filter(|word| {
                std::str::from_utf8(word).is_ok_and(|word| word.chars().all(is_printable))
            });
            let expected: Vec<u8> = of_old.flat_map(|word| [word, &b"\0"[..]].concat()).collect();
            if !old.is_empty() {
                let line = format!("printf '%s\\0' {}", old.join(" "));
                let read = Command::new("sh").arg("-c").arg(line).output().expect("sh");
                prop_assert_eq!(read.stdout, expected);
            }
        }
    }
}
