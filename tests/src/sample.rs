//! Samples as `perf script` prints them.

use std::fmt::Write as _;

/// The fields that [`parse`] reads, for `perf script -F`.
pub const FIELDS: &str = "comm,pid,tid,time,ip,sym,symoff,dso";

/// One sample's own address, without its call chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The command's name.
    pub comm: String,
    /// Process and thread, as the recording has them.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Nanoseconds on the recording's clock.
    pub time: u64,
    /// The instruction's address.
    pub ip: u64,
    /// The symbol, where perf found one.
    pub symbol: Option<Symbol>,
    /// The object that perf put the address into: a path or a name such as `[unknown]`.
    pub dso: String,
    /// The source position, if `srcline` was requested and is known.
    pub srcline: Option<String>,
}

/// A symbol and the distance from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name as printed.
    pub name: String,
    /// Bytes from the symbol's start, where it was printed.
    pub offset: Option<u64>,
}

impl Symbol {
    /// Whether jitscribe inferred the name (docs/inferred-names.md).
    pub fn is_inferred(&self) -> bool {
        ["→ ", "[jit code ", "[anonymous executable memory", "[executable memory "]
            .iter()
            .any(|prefix| self.name.starts_with(prefix))
    }
}

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, tid, time, ip, dso, .. } = self;
        write!(f, "{pid}/{tid} {}.{:09} {ip:x} ", time / 1_000_000_000, time % 1_000_000_000)?;
        match &self.symbol {
            Some(Symbol { name, offset: Some(offset) }) => write!(f, "{name}+{offset:#x} ({dso})"),
            Some(Symbol { name, offset: None }) => write!(f, "{name} ({dso})"),
            None => write!(f, "[unknown] ({dso})"),
        }
    }
}

impl Sample {
    /// The symbol's name.
    pub fn name(&self) -> Option<&str> {
        self.symbol.as_ref().map(|symbol| symbol.name.as_str())
    }

    /// The symbol, unless its name is inferred: from what is near, because nothing announced the code.
    pub fn announced(&self) -> Option<&Symbol> {
        self.symbol.as_ref().filter(|symbol| !symbol.is_inferred())
    }

    /// The last part of the object's path.
    pub fn dso_name(&self) -> &str {
        self.dso.rsplit('/').next().unwrap_or(&self.dso)
    }

    /// Whether the object is in a folder.
    pub fn dso_in(&self, folder: &std::path::Path) -> bool {
        std::path::Path::new(&self.dso).starts_with(folder)
    }

    /// Whether stock `perf inject --jit` made the object.
    pub fn in_stock_image(&self) -> bool {
        self.dso_name().starts_with("jitted-")
    }

    /// Whether perf took the address for anonymous memory, where a perf map may name it.
    pub fn in_anonymous_memory(&self) -> bool {
        let name = self.dso_name();
        self.dso.starts_with("//anon")
            || self.dso.starts_with("[unknown]")
            || self.dso.starts_with("[anon:")
            || self.dso.starts_with("[JIT]")
            || is_perf_map(name)
    }
}

/// Whether a file has the name of a perf map.
pub(crate) fn is_perf_map(name: &str) -> bool {
    name.starts_with("perf-") && name.ends_with(".map")
}

/// A name with those characters as `\uXXXX` for which `is_escaped` is true.
pub(crate) fn escaped(name: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for c in name.chars() {
        if is_escaped(c) {
            _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Reads what `perf script -G --ns -F` [`FIELDS`] printed, with or without `symoff` and `srcline`.
pub fn parse(printed: &str) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        match parse_line(line) {
            Some(sample) => samples.push(sample),
            // Source positions stand on a line of their own below their sample.
            None => match samples.last_mut() {
                Some(last) if line.starts_with("  ") && last.srcline.is_none() => {
                    last.srcline = Some(line.trim().to_owned());
                }
                _ => panic!("not a sample of perf script: {line:?}"),
            },
        }
    }
    samples
}

fn parse_line(line: &str) -> Option<Sample> {
    // The command's name may hold spaces and colons, so what follows it is found by its shape:
    // `PID/TID  S.NNNNNNNNN:  IP SYMBOL (DSO)`.
    line.match_indices(": ")
        .find_map(|(at, colon)| parse_split(&line[..at], &line[at + colon.len()..]))
}

fn parse_split(head: &str, rest: &str) -> Option<Sample> {
    let mut fields = head.split_whitespace().rev();
    let time = parse_time(fields.next()?)?;
    let (pid, tid) = fields.next()?.split_once('/')?;
    let comm: Vec<&str> = fields.rev().collect();
    let (ip, rest) = rest.trim_start().split_once(' ')?;
    let (symbol, dso) = split_dso(rest)?;
    Some(Sample {
        comm: comm.join(" "),
        pid: pid.parse().ok()?,
        tid: tid.parse().ok()?,
        time,
        ip: u64::from_str_radix(ip, 16).ok()?,
        symbol: parse_symbol(symbol),
        dso: plain_path(dso),
        srcline: None,
    })
}

/// The id of a process or thread. Threads that are ending have the id -1.
pub(crate) fn parse_id(text: &str) -> Option<u32> {
    text.parse::<i32>().ok().map(i32::cast_unsigned)
}

/// `S.NNNNNNNNN` in nanoseconds.
pub(crate) fn parse_time(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let nanoseconds = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - digits);
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + nanoseconds)
}

/// Splits `SYMBOL (DSO)`. Both may hold parentheses, but the object's are balanced: `(/memfd:x (deleted))`.
pub(crate) fn split_dso(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_end();
    let inner = text.strip_suffix(')')?;
    let mut depth = 1;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((inner[..at].trim_end(), &inner[at + 1..]));
        }
    }
    None
}

/// A path as perf has it, without the parts that change nothing: injected recordings have several spellings of one path.
pub(crate) fn plain_path(dso: &str) -> String {
    if !dso.starts_with('/') || dso.starts_with("//") {
        return dso.to_owned();
    }
    let parts = dso.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.fold(String::new(), |path, part| path + "/" + part)
}

/// A name with or without `+0xOFFSET`; `[unknown]` is none.
pub(crate) fn parse_symbol(text: &str) -> Option<Symbol> {
    if text == "[unknown]" || text.is_empty() {
        return None;
    }
    let offset = text.rsplit_once("+0x").and_then(|(name, offset)| {
        Some(Symbol { name: name.to_owned(), offset: u64::from_str_radix(offset, 16).ok() })
            .filter(|symbol| symbol.offset.is_some())
    });
    Some(offset.unwrap_or_else(|| Symbol { name: text.to_owned(), offset: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_may_hold_spaces_and_parentheses() {
        let [sample] = parse(
            "  Web Content: 1  6789/6811   3117.651797944:  7f66ee3c19f7 void f(int, g (*)())+0x1c (/memfd:jit (deleted))\n",
        )
        .try_into()
        .expect("one sample");
        assert_eq!(sample.comm, "Web Content: 1");
        assert_eq!((sample.pid, sample.tid), (6789, 6811));
        assert_eq!(sample.time, 3_117_651_797_944);
        assert_eq!(sample.ip, 0x7f66_ee3c_19f7);
        let symbol = sample.symbol.expect("a symbol");
        assert_eq!(symbol, Symbol { name: "void f(int, g (*)())".into(), offset: Some(0x1c) });
        assert_eq!(sample.dso, "/memfd:jit (deleted)");
    }

    #[test]
    fn a_source_position_belongs_to_the_sample_above_it() {
        let samples = parse(
            "jit 1/1 1.000000001: 10 f+0x0 (a)\n  f.src:12\njit 1/1 1.000000002: 11 [unknown] (b)\n",
        );
        assert_eq!(samples[0].srcline.as_deref(), Some("f.src:12"));
        assert_eq!(samples[1].srcline, None);
        assert_eq!(samples[1].symbol, None);
    }
}
