//! What `addr2line` and `nm` show of an image.

use std::collections::BTreeMap;

use crate::tool::{run, tool};

/// A function and the line in it; 0 if unknown.
pub type Place = (String, u64);

/// What `addr2line -i` shows of addresses of an image, from the innermost function outward.
pub fn inlined_chains(image: &str, addresses: &[u64]) -> Vec<Vec<Place>> {
    let mut command = tool("addr2line");
    command.args(["-a", "-f", "-i", "-e", image]);
    command.args(addresses.iter().map(|address| format!("{address:#x}")));
    let printed = run(&mut command).stdout;
    let mut shown: Vec<Vec<Place>> = Vec::new();
    let mut lines = printed.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            shown.push(Vec::new());
            continue;
        }
        let at = lines.next().and_then(|at| at.rsplit_once(':')).expect("a position").1;
        let at = at.split(' ').next().and_then(|at| at.parse().ok()).unwrap_or(0);
        shown.last_mut().expect("an address stands first").push((line.to_owned(), at));
    }
    shown
}

/// The addresses of an image's symbols: several may have one name.
pub fn symbols(image: &str) -> BTreeMap<String, Vec<u64>> {
    let printed = run(tool("nm").arg(image)).stdout;
    let mut symbols: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in printed.lines() {
        let mut words = line.splitn(3, ' ');
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if let (Some(address), Some(name)) = (address, words.nth(1)) {
            symbols.entry(name.to_owned()).or_default().push(address);
        }
    }
    symbols
}
