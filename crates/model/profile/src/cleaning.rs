//! Removes from names and paths what differs between runs and deployments of one program: addresses, counters, versions, hashes.

/// Characters that are removed together.
#[derive(Clone, Copy)]
enum Class {
    Digits,
    Hexadecimal,
}

/// A text, and then characters of a class, at least this number.
type Removed = (&'static [u8], Class, usize);

/// Removes something from names.
struct Rule {
    /// What it stands behind; it is kept.
    behind: &'static [u8],
    /// What is removed, as often as it follows.
    removed: &'static [Removed],
    /// Whether nothing may follow.
    is_suffix: bool,
}

impl Rule {
    /// Removes what stands behind a text.
    const fn behind(text: &'static [u8], removed: &'static [Removed]) -> Self {
        Self { behind: text, removed, is_suffix: false }
    }

    /// Removes what stands at the end of a name.
    const fn at_the_end(removed: &'static [Removed]) -> Self {
        Self { behind: b"", removed, is_suffix: true }
    }
}

use Class::{Digits, Hexadecimal};

const NUMBER: &[Removed] = &[(b"", Digits, 1)];

/// The rules for names.
const NAME_RULES: [Rule; 7] = [
    // Java numbers the classes of lambdas and accessors as it makes them: `App$$Lambda$14/0x0000000800c03000.run`.
    Rule::behind(
        b"$$Lambda",
        &[(b"$", Digits, 1), (b"/0x", Hexadecimal, 1), (b".0x", Hexadecimal, 1), (b"/", Digits, 1)],
    ),
    Rule::behind(b"$Proxy", NUMBER),
    Rule::behind(b"MethodAccessor", NUMBER),
    Rule::behind(b"ConstructorAccessor", NUMBER),
    // Hidden classes: `LambdaForm$MH/0x0000000800c04400.invoke`.
    Rule::behind(
        b"",
        &[
            (b"/0x", Hexadecimal, 6),
            (b".0x", Hexadecimal, 6),
            (b"+0x", Hexadecimal, 6),
            (b" 0x", Hexadecimal, 6),
        ],
    ),
    // Rust's hash of a symbol: `app::run::h0123456789abcdef`.
    Rule::at_the_end(&[(b"::h", Hexadecimal, 16)]),
    // Copies of a function that compilers specialize: `parse.constprop.0.isra.1`.
    Rule::at_the_end(&[
        (b".constprop.", Digits, 1),
        (b".isra.", Digits, 1),
        (b".part.", Digits, 1),
        (b".cold.", Digits, 1),
        (b".cold", Digits, 0),
        (b".lto_priv.", Digits, 1),
        (b".llvm.", Digits, 1),
    ]),
];

impl Class {
    fn has(self, byte: u8) -> bool {
        match self {
            Digits => byte.is_ascii_digit(),
            Hexadecimal => byte.is_ascii_hexdigit(),
        }
    }
}

impl Rule {
    /// How many bytes at the beginning of `text` are removed.
    fn length(&self, text: &[u8]) -> usize {
        let mut rest = text;
        loop {
            let behind = self.removed.iter().find_map(|(literal, class, least)| {
                let run = rest.strip_prefix(*literal)?;
                let length = run.iter().take_while(|byte| class.has(**byte)).count();
                // An empty text may not follow itself for ever.
                let is_long = length >= *least && literal.len().saturating_add(length) > 0;
                if is_long { run.get(length..) } else { None }
            });
            match behind {
                Some(behind) => rest = behind,
                None => break,
            }
        }
        if self.is_suffix && !rest.is_empty() { 0 } else { text.len().saturating_sub(rest.len()) }
    }

    fn apply(&self, name: &mut Vec<u8>) {
        let mut cleaned = Vec::with_capacity(name.len());
        let mut rest = name.as_slice();
        while let Some((first, others)) = rest.split_first() {
            let behind = match rest.strip_prefix(self.behind) {
                Some(behind) if !self.behind.is_empty() || self.starts(*first) => behind,
                _ => {
                    cleaned.push(*first);
                    rest = others;
                    continue;
                }
            };
            match self.length(behind) {
                0 => {
                    cleaned.push(*first);
                    rest = others;
                }
                length => {
                    cleaned.extend_from_slice(self.behind);
                    rest = behind.get(length..).unwrap_or_default();
                }
            }
        }
        *name = cleaned;
    }

    /// Whether something that is removed begins with this byte.
    fn starts(&self, byte: u8) -> bool {
        self.removed.iter().any(|(literal, _, _)| literal.first() == Some(&byte))
    }
}

/// The longest name or path that is cleaned: that of a file may not be longer. Rules take quadratic time at worst.
const LONGEST: usize = 4096;

/// A name without numbers that its runtime or compiler made up.
#[must_use]
pub fn clean_name(name: &[u8]) -> Vec<u8> {
    let mut name = name.to_vec();
    if name.starts_with(b"(anonymous) ") {
        // The place of a function without a name, which is a part of its key of its own.
        name.truncate(b"(anonymous)".len());
    }
    if name.len() > LONGEST {
        return name;
    }
    for rule in &NAME_RULES {
        rule.apply(&mut name);
    }
    name
}

/// A path without versions, times and hashes of deployments.
#[must_use]
pub fn clean_path(path: &[u8]) -> Vec<u8> {
    if path.len() > LONGEST {
        return path.to_vec();
    }
    let path = path.strip_prefix(b"file://").unwrap_or(path);
    // Of an address: `app.js?v=3`. A file's own name rarely has this character.
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    let mut cleaned = Vec::with_capacity(path.len());
    while let Some(part) = parts.next() {
        match parts.peek() {
            Some(_) => {
                cleaned.extend(clean_folder(part));
                cleaned.push(b'/');
            }
            None => cleaned.extend(clean_file(part)),
        }
    }
    cleaned
}

/// `app-1.2.3` becomes `app`; a folder that is a version, a time or a hash becomes `*`.
fn clean_folder(name: &[u8]) -> Vec<u8> {
    for random in [&b".tmp"[..], b"tmp.", b"tmp"] {
        if name.strip_prefix(random).is_some_and(is_random) {
            return b"tmp*".to_vec();
        }
    }
    if is_version(name) || is_hash(name) || is_time(name) {
        return b"*".to_vec();
    }
    for (place, byte) in name.iter().enumerate().rev() {
        if matches!(byte, b'-' | b'_' | b'@')
            && place > 0
            && let (Some(before), Some(behind)) =
                (name.get(..place), name.get(place.saturating_add(1)..))
            && (is_version(behind) || is_hash(behind) || is_time(behind))
        {
            return before.to_vec();
        }
    }
    name.to_vec()
}

/// `main.4f3a2b1c.js`, as bundlers name files by their content, becomes `main.*.js`.
fn clean_file(name: &[u8]) -> Vec<u8> {
    let mut cleaned = Vec::with_capacity(name.len());
    let mut rest = name;
    let is_separator = |byte: &u8| matches!(byte, b'.' | b'-' | b'_');
    while !rest.is_empty() {
        let end = rest.iter().position(is_separator).unwrap_or(rest.len());
        let (part, behind) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        // The last part is the extension, or the only one.
        if is_hash(part) && !behind.is_empty() && !cleaned.is_empty() {
            cleaned.push(b'*');
        } else {
            cleaned.extend_from_slice(part);
        }
        cleaned.extend(behind.first());
        rest = behind.get(1..).unwrap_or_default();
    }
    cleaned
}

/// `1.2.3`, `v1.2`, `2.0.0-rc1`.
fn is_version(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"v").unwrap_or(text);
    let numbers = text.split(|byte| matches!(byte, b'-' | b'+')).next().unwrap_or_default();
    let mut parts = numbers.split(|byte| *byte == b'.');
    let all = parts.clone().count();
    all >= 2 && parts.all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
}

/// A hash in hexadecimal, or a UUID: both have a digit, unlike words of these letters.
fn is_hash(text: &[u8]) -> bool {
    let is_uuid = text.len() == 36 && text.split(|byte| *byte == b'-').count() == 5;
    let is_digits = text.iter().all(|byte| byte.is_ascii_hexdigit() || (is_uuid && *byte == b'-'));
    text.len() >= 8
        && is_digits
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_alphabetic)
}

/// The time of a deployment: `20240131120000`.
fn is_time(text: &[u8]) -> bool {
    text.len() >= 8 && text.iter().all(u8::is_ascii_digit)
}

/// Behind the name of a temporary folder: at least six characters, as mkdtemp and its like choose them.
fn is_random(text: &[u8]) -> bool {
    (6..=12).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn names_lose_what_differs_between_runs() {
        for (name, cleaned) in [
            ("App$$Lambda$14/0x0000000800c03000.run", "App$$Lambda.run"),
            ("App$$Lambda/0x00007f1234567890.run", "App$$Lambda.run"),
            ("App$$Lambda.0x00007f1234567890.run", "App$$Lambda.run"),
            ("App$$Lambda$14/1044036744.run", "App$$Lambda.run"),
            ("App.lambda$main$0", "App.lambda$main$0"),
            ("jdk.proxy2.$Proxy12.get", "jdk.proxy2.$Proxy.get"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor17.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            (
                "java.lang.invoke.LambdaForm$MH/0x0000000800c04400.invoke",
                "java.lang.invoke.LambdaForm$MH.invoke",
            ),
            ("app::run::h0123456789abcdef", "app::run"),
            ("app::h0123456789abcdef::run", "app::h0123456789abcdef::run"),
            ("parse.constprop.0.isra.1", "parse"),
            ("parse.cold", "parse"),
            ("parse.colder", "parse.colder"),
            ("stub 0x7f1234567890", "stub"),
            ("(anonymous) a.js:1:20", "(anonymous)"),
            ("fib2", "fib2"),
            ("$$Lambda$", "$$Lambda$"),
            ("", ""),
        ] {
            assert_eq!(text(clean_name(name.as_bytes())), cleaned);
        }
    }

    #[test]
    fn paths_lose_what_differs_between_deployments() {
        for (path, cleaned) in [
            ("/srv/app-1.2.3/lib/a.js", "/srv/app/lib/a.js"),
            ("/srv/app-v1.2.3-rc1/a.js", "/srv/app/a.js"),
            ("/srv/1.2.3/a.js", "/srv/*/a.js"),
            ("/srv/releases/20240131120000/a.js", "/srv/releases/*/a.js"),
            ("/srv/0a1b2c3d4e5f/a.js", "/srv/*/a.js"),
            ("/srv/app@0a1b2c3d4e5f/a.js", "/srv/app/a.js"),
            ("/x/123e4567-e89b-12d3-a456-426614174000/a.js", "/x/*/a.js"),
            ("/tmp/.tmpAb12Cd/a.toy", "/tmp/tmp*/a.toy"),
            ("/tmp/tmp.Ab12Cd34Ef/a.toy", "/tmp/tmp*/a.toy"),
            ("file:///srv/app.mjs?v=3", "/srv/app.mjs"),
            ("/w/main.4f3a2b1c.js", "/w/main.*.js"),
            ("/w/main-4f3a2b1c.chunk.js", "/w/main-*.chunk.js"),
            ("/w/deadbeef.js", "/w/deadbeef.js"),
            ("/usr/lib/python3.11/json/decoder.py", "/usr/lib/python3.11/json/decoder.py"),
            ("/usr/lib/jvm/java-17-openjdk/a.java", "/usr/lib/jvm/java-17-openjdk/a.java"),
            ("node:internal/main", "node:internal/main"),
            ("/a/facade/b.js", "/a/facade/b.js"),
            ("/tmp/template/b.js", "/tmp/template/b.js"),
            ("", ""),
        ] {
            assert_eq!(text(clean_path(path.as_bytes())), cleaned);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_cleaned(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(clean_name(&bytes).len() <= bytes.len());
            prop_assert!(clean_path(&bytes).len() <= bytes.len() + 1);
        }

        /// Texts of the letters that the rules look for.
        #[test]
        fn texts_of_the_rules_are_cleaned(
            words in proptest::collection::vec(prop::sample::select(vec!["$$Lambda", "$", "/0x", ".", "/", "abcdef01", "12", ".cold", "::h", "app-", "v"]), 0..8)
        ) {
            let text = words.concat().into_bytes();
            prop_assert!(clean_name(&text).len() <= text.len());
            prop_assert!(clean_path(&text).len() <= text.len() + 1);
        }
    }
}
