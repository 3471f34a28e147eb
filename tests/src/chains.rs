//! Call chains as `perf script` prints them.

use crate::sample::{Symbol, parse_id, parse_symbol, parse_time, plain_path, split_dso};

/// A sample with its call chain, innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The thread.
    pub tid: u32,
    /// Nanoseconds on the recording's clock.
    pub time: u64,
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
}

/// One frame of a call chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The address as perf prints it: in the object that it is in.
    pub address: u64,
    /// The symbol, where perf found one.
    pub symbol: Option<Symbol>,
    /// The object; `inlined` for an inlined call, which perf prints without one.
    pub dso: String,
}

impl Frame {
    /// The symbol's name.
    pub fn name(&self) -> Option<&str> {
        self.symbol.as_ref().map(|symbol| symbol.name.as_str())
    }
}

impl Chain {
    /// Whether a frame with this symbol is among the chain.
    pub fn passes(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| frame.name() == Some(name))
    }

    /// The chain on one line, outermost frame last.
    pub fn line(&self) -> String {
        let names: Vec<&str> =
            self.frames.iter().map(|frame| frame.name().unwrap_or("[unknown]")).collect();
        names.join(" < ")
    }
}

/// Reads what `perf script -F [comm,pid,]tid,time,ip,sym[,symoff],dso` printed.
pub fn parse(printed: &str) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(frame) = line.strip_prefix('\t') {
            let chain = chains.last_mut().expect("a sample's head stands before its frames");
            chain.frames.extend(parse_frame(frame));
        } else if let Some(head) = line.trim_end().strip_suffix(':') {
            chains.extend(parse_head(head));
        }
    }
    chains
}

fn parse_head(head: &str) -> Option<Chain> {
    let mut fields = head.split_whitespace().rev();
    let time = parse_time(fields.next()?)?;
    let ids = fields.next()?;
    let tid = parse_id(ids.rsplit('/').next()?)?;
    Some(Chain { tid, time, frames: Vec::new() })
}

fn parse_frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim_start().split_once(' ')?;
    let (symbol, dso) = split_dso(rest)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    Some(Frame { address, symbol: parse_symbol(symbol), dso: plain_path(dso) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_frames_of_each_sample() {
        let chains = parse(
            "py 7/8 3.5: \n\t  89 py::f:<a b> (/x)\n\t 12 g (inlined)\n\t 13 [unknown] (/y)\n\npy 7/8 4.0: \n\n",
        );
        assert_eq!(chains.len(), 2);
        assert_eq!((chains[0].tid, chains[0].time), (8, 3_500_000_000));
        assert_eq!(chains[0].line(), "py::f:<a b> < g < [unknown]");
        assert!(chains[0].passes("g") && !chains[0].passes("h"));
        assert!(chains[1].frames.is_empty());
    }
}
