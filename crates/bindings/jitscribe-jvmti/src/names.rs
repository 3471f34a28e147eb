//! The names of methods.

use std::borrow::Cow;

/// The format of a method's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// `java.lang.String.indexOf`.
    #[default]
    Class,
    /// `String.indexOf`.
    Short,
    /// `int java.lang.String.indexOf(java.lang.String, int)`, as `jcmd PID Compiler.perfmap` has it.
    Full,
    /// `java/lang/String.indexOf(Ljava/lang/String;I)I`.
    Raw,
}

impl Format {
    /// The format with this name in the options.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "class" => Self::Class,
            "short" => Self::Short,
            "full" => Self::Full,
            "raw" => Self::Raw,
            _ => return None,
        })
    }

    /// Whether it shows the types of arguments and result.
    pub(crate) fn has_types(self) -> bool {
        matches!(self, Self::Full | Self::Raw)
    }

    /// The name of the method `method` of the class whose signature is `class`; with its types if the format shows them.
    pub(crate) fn name(self, class: &str, method: &str, descriptor: &str) -> String {
        let class = class_name(class);
        match self {
            Self::Class => {
                let class = without_address(class);
                let mut name = String::with_capacity(class.len() + 1 + method.len());
                // Without `format!`, for speed: this runs for nearly every method.
                for part in class.split('/').chain([method]) {
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(part);
                }
                name
            }
            Self::Short => {
                let class = without_address(class);
                let class = class.rsplit_once('/').map_or(class, |(_, class)| class);
                [class, ".", method].concat()
            }
            Self::Full => {
                let mut types = Types(descriptor);
                let arguments: Vec<String> = types.arguments().collect();
                let returned = types.next().unwrap_or_default();
                let (class, address) = split_address(class);
                let slash = if address.is_empty() { "" } else { "/" };
                let class = class.replace('/', ".");
                format!("{returned} {class}{slash}{address}.{method}({})", arguments.join(", "))
            }
            Self::Raw => format!("{class}.{method}{descriptor}"),
        }
    }
}

/// Path of a class's source file, from the root of its packages.
pub(crate) fn source_path(class: &str, file: &str) -> String {
    match without_address(class_name(class)).rsplit_once('/') {
        Some((package, _)) => [package, "/", file].concat(),
        None => file.to_owned(),
    }
}

/// `java/lang/String` for `Ljava/lang/String;`.
fn class_name(signature: &str) -> &str {
    let name = signature.strip_prefix('L').unwrap_or(signature);
    name.strip_suffix(';').unwrap_or(name)
}

/// A hidden class's name without the address that distinguishes it from others of its kind, of which there may be
/// thousands.
fn without_address(class: &str) -> &str {
    split_address(class).0
}

/// Hidden classes, such as those of lambdas, are called `Spin$$Lambda$1.0x0000000800c01000`, with one of several
/// separators.
fn split_address(class: &str) -> (&str, &str) {
    let before = class.trim_end_matches(|digit: char| digit.is_ascii_hexdigit());
    let name = before.strip_suffix("0x").and_then(|before| before.strip_suffix(['.', '/', '+']));
    match name {
        Some(name) => (name, &class[name.len() + 1..]),
        None => (class, ""),
    }
}

/// The types of a descriptor, `(I[Ljava/lang/String;)V`, in Java's notation.
struct Types<'a>(&'a str);

impl Types<'_> {
    /// The arguments. The result type follows.
    fn arguments(&mut self) -> impl Iterator<Item = String> {
        self.0 = self.0.strip_prefix('(').unwrap_or(self.0);
        std::iter::from_fn(|| {
            if let Some(behind) = self.0.strip_prefix(')') {
                self.0 = behind;
                return None;
            }
            self.next()
        })
    }
}

impl Iterator for Types<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let element = self.0.trim_start_matches('[');
        let dimensions = self.0.len() - element.len();
        let simple = match element.as_bytes().first()? {
            b'B' => "byte",
            b'C' => "char",
            b'D' => "double",
            b'F' => "float",
            b'I' => "int",
            b'J' => "long",
            b'S' => "short",
            b'Z' => "boolean",
            b'V' => "void",
            b'L' => {
                let (class, behind) = element[1..].split_once(';')?;
                self.0 = behind;
                return Some(class.replace('/', ".") + &"[]".repeat(dimensions));
            }
            _ => return None,
        };
        self.0 = &element[1..];
        Some(simple.to_owned() + &"[]".repeat(dimensions))
    }
}

/// Decodes a string of the JVM: UTF-8, except that characters outside of the first plane are two surrogates of three
/// bytes each.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let &[first, ref behind @ ..] = rest {
        let tail = |index: usize| behind.get(index).map_or(0, |byte| u16::from(byte & 0x3f));
        let (unit, length) = match first {
            0..0x80 => (u16::from(first), 1),
            0xc0..0xe0 => (u16::from(first & 0x1f) << 6 | tail(0), 2),
            0xe0..0xf0 => (u16::from(first & 0xf) << 12 | tail(0) << 6 | tail(1), 3),
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRING: (&str, &str, &str) =
        ("Ljava/lang/String;", "split", "(Ljava/lang/String;[[IJ)[Ljava/lang/String;");
    const LAMBDA: (&str, &str, &str) = ("La/Spin$$Lambda$1.0x0000000800c01000;", "run", "()V");

    fn name(format: &str, (class, method, descriptor): (&str, &str, &str)) -> String {
        Format::named(format).unwrap().name(class, method, descriptor)
    }

    #[test]
    fn every_format_has_its_form() {
        assert_eq!(name("class", STRING), "java.lang.String.split");
        assert_eq!(name("short", STRING), "String.split");
        assert_eq!(
            name("full", STRING),
            "java.lang.String[] java.lang.String.split(java.lang.String, int[][], long)"
        );
        assert_eq!(
            name("raw", STRING),
            "java/lang/String.split(Ljava/lang/String;[[IJ)[Ljava/lang/String;"
        );
        assert_eq!(name("class", ("LSpin;", "<init>", "()V")), "Spin.<init>");
        assert_eq!(Format::named("long"), None);
    }

    #[test]
    fn hidden_classes_lose_their_addresses_except_in_full_names() {
        assert_eq!(name("class", LAMBDA), "a.Spin$$Lambda$1.run");
        assert_eq!(name("short", LAMBDA), "Spin$$Lambda$1.run");
        assert_eq!(name("full", LAMBDA), "void a.Spin$$Lambda$1/0x0000000800c01000.run()");
        // Plain names that look like those of hidden classes.
        assert_eq!(name("class", ("LFoo0x12;", "f", "()V")), "Foo0x12.f");
        assert_eq!(name("class", ("L0x12;", "f", "()V")), "0x12.f");
    }

    #[test]
    fn damaged_descriptors_give_what_there_is() {
        for descriptor in ["", "(", "()", "(L", "(Q)V", "([", "V", "(é)V"] {
            assert!(name("full", ("LA;", "f", descriptor)).contains("A.f("), "{descriptor}");
        }
    }

    #[test]
    fn sources_lie_in_their_packages() {
        assert_eq!(source_path("Ljava/lang/String;", "String.java"), "java/lang/String.java");
        assert_eq!(source_path("LSpin;", "Spin.java"), "Spin.java");
        assert_eq!(source_path("La/B$$Lambda$1.0x12;", "B.java"), "a/B.java");
    }

    #[test]
    fn the_jvm_s_utf_8_is_read() {
        assert_eq!(text("größe".as_bytes()), "größe");
        // U+1D465 as D835 DC65, and a zero as C0 80.
        assert_eq!(text(b"a\xed\xa0\xb5\xed\xb1\xa5\xc0\x80b"), "a𝑥\0b");
        assert_eq!(text(b"\xff\xe1"), "\u{fffd}\u{1000}");
    }
}
