//! The inlined calls around what was sampled. perf shows them in stacks that it unwinds itself, and not in those that were
//! taken by frame pointers; addr2line shows them of any address.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use super::printed::{perf, printed};

/// A place where code ran, and the lines that addr2line prints of it: the one with the most inlined calls around it.
pub fn deepest(data: &Path) -> Option<(String, Vec<String>)> {
    let fields = ["script", "-G", "-F", "ip,sym,symoff,dso"];
    let sampled: BTreeSet<Place> =
        perf(data, &fields).iter().filter_map(|line| place(line)).collect();
    let images: BTreeSet<&str> = sampled.iter().map(|place| place.image.as_str()).collect();
    let shown = images.into_iter().flat_map(|image| {
        let symbols = symbols(image);
        let of_image = sampled.iter().filter(move |place| place.image == image);
        let addresses: Vec<_> = of_image
            .filter_map(|place| Some((place, symbols.get(&place.symbol)? + place.offset)))
            .collect();
        addr2line(image, &addresses)
    });
    let deepest = shown.max_by_key(|(_, calls)| calls.len());
    deepest.filter(|(_, calls)| calls.len() > 1)
}

/// Where a sample was taken.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    image: String,
    symbol: String,
    offset: u64,
}

/// A line of perf's: `7f12 name+0x1c (/file)`.
fn place(line: &str) -> Option<Place> {
    let (symbol, image) = line.trim().split_once(' ')?.1.rsplit_once(" (")?;
    let (symbol, offset) = symbol.rsplit_once("+0x")?;
    Some(Place {
        image: image.strip_suffix(')').filter(|image| image.contains(".jit/"))?.to_owned(),
        symbol: symbol.to_owned(),
        offset: u64::from_str_radix(offset, 16).ok()?,
    })
}

/// The addresses of an image's symbols.
fn symbols(image: &str) -> HashMap<String, u64> {
    let symbol = |line: &String| {
        let mut words = line.splitn(3, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((words.nth(1)?.to_owned(), address))
    };
    printed(Command::new("nm").arg(image)).iter().filter_map(symbol).collect()
}

/// What addr2line prints of each address: a line for each function that it is in.
fn addr2line(image: &str, places: &[(&Place, u64)]) -> Vec<(String, Vec<String>)> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-f", "-i", "-p", "-s", "-e", image]);
    command.args(places.iter().map(|(_, address)| format!("{address:#x}")));
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    let mut places = places.iter();
    for line in printed(&mut command) {
        // `0x12: name at file:3`, then ` (inlined by) caller at file:4`.
        match line.split_once(": ").filter(|(address, _)| address.starts_with("0x")) {
            Some((_, function)) => {
                let Some((place, _)) = places.next() else { break };
                let at = format!("{}+{:#x}", place.symbol, place.offset);
                shown.push((at, vec![function.to_owned()]));
            }
            None => {
                if let Some((_, of)) = shown.last_mut() {
                    of.push(line);
                }
            }
        }
    }
    shown
}
