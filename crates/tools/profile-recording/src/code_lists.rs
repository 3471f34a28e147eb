//! The lists of codes beside the images: when each compilation of a sampled function was loaded and gone.
//!
//! The format is in `docs/apply.md`. A list is a file like any other: what cannot be read of it is left out, and codes come from the images'
//! symbols alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jitscribe_inject::files::{
    SourceFiles, base_name, code_list, may_read_what_we_may, pid_of_image,
};
use jitscribe_inject::{SourcePlace, Warning};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

/// No more bytes of a list are read.
const LARGEST: u64 = 1 << 28;
/// No more codes are read.
const MOST: usize = 1 << 20;

/// One compilation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListedCode {
    /// The symbol in the images.
    pub symbol: String,
    /// The tier, as the runtime gives it; empty if it gives none.
    #[serde(default)]
    pub tier: String,
    /// The address in the process.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
    /// When it was loaded.
    pub loaded: Option<u64>,
    /// When it was unloaded or replaced.
    pub gone: Option<u64>,
    /// The names of images that have it, and its address in each.
    #[serde(default)]
    pub images: Vec<(String, u64)>,
    /// The process id.
    #[serde(skip)]
    pub pid: u32,
}

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
    /// The user of the process.
    user: Option<u32>,
    /// Where functions of scripts are defined in the sources that the scripts were compiled from.
    #[serde(default)]
    originals: Vec<(SourcePlace, SourcePlace)>,
}

/// The lists of all processes.
#[derive(Debug, Default)]
pub struct CodeLists {
    read: FxHashSet<PathBuf>,
    /// The users of the processes whose lists can be believed about that.
    users: FxHashMap<PathBuf, u32>,
    codes: Vec<ListedCode>,
    /// By path of the image: the codes by address in it.
    by_image: FxHashMap<Vec<u8>, BTreeMap<u64, usize>>,
    /// The places of functions in sources, of lists that can be believed, until they are taken.
    pub originals: Vec<(SourcePlace, SourcePlace)>,
    /// What is wrong with them, one warning a list.
    pub warnings: Vec<Warning>,
}

impl CodeLists {
    /// Reads the list beside the image at `path`, unless it was read already.
    pub fn read_for(&mut self, path: &[u8], files: &dyn SourceFiles) {
        let Some((pid, list)) = list_of(path) else { return };
        if !self.read.insert(list.clone()) {
            return;
        }
        let folder = path.strip_suffix(base_name(path)).unwrap_or_default();
        let problem = match content(&list, files) {
            Ok((text, owner)) => {
                let header = text.split(|&byte| byte == b'\n').next().and_then(header);
                // Any process can map a file that has the name of an image, with a list beside it.
                if let Some(header) = header.filter(|_| may_read_what_we_may(owner)) {
                    self.users.extend(header.user.map(|user| (list.clone(), user)));
                    self.originals.extend(header.originals);
                }
                self.add(&text, pid, folder)
            }
            Err(error) => Some(format!("cannot be read ({error}), so compilations have no times")),
        };
        let warning = problem.map(|left_out| Warning::PartlyRead { path: list, left_out });
        self.warnings.extend(warning);
    }

    /// Adds the codes of a list. Returns what is wrong with it.
    fn add(&mut self, text: &[u8], pid: u32, folder: &[u8]) -> Option<String> {
        let mut lines = text.split(|&byte| byte == b'\n');
        if lines.next().and_then(header).is_none() {
            return Some("not a list of codes, so compilations have no times".into());
        }
        let (mut all, mut damaged) = (0_usize, 0_usize);
        for line in lines.filter(|line| !line.is_empty()) {
            if self.codes.len() >= MOST {
                break;
            }
            all = all.saturating_add(1);
            let Ok(mut code) = serde_json::from_slice::<ListedCode>(line) else {
                damaged = damaged.saturating_add(1);
                continue;
            };
            code.pid = pid;
            for (image, address) in &code.images {
                let path = [folder, image.as_bytes()].concat();
                self.by_image.entry(path).or_default().insert(*address, self.codes.len());
            }
            self.codes.push(code);
        }
        (damaged > 0).then(|| {
            format!("{damaged} of {all} lines are damaged, so some compilations have no times")
        })
    }

    /// The user of the process whose code is in the image at `path`, if that is known.
    pub fn user_of(&self, path: &[u8]) -> Option<u32> {
        self.users.get(&list_of(path)?.1).copied()
    }

    /// The number of the code at an address in the image at `path`, and the address where it begins there.
    pub fn at(&self, path: &[u8], address: u64) -> Option<(usize, u64)> {
        let (&start, &number) = self.by_image.get(path)?.range(..=address).next_back()?;
        let size = self.codes.get(number)?.size;
        let into = address.checked_sub(start)?;
        (into < size).then_some((number, start))
    }

    /// The code with this number.
    pub fn get(&self, number: usize) -> Option<&ListedCode> {
        self.codes.get(number)
    }

    /// All codes.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &ListedCode)> {
        self.codes.iter().enumerate()
    }
}

/// The content of a list, and to whom it belongs.
fn content(list: &Path, files: &dyn SourceFiles) -> io::Result<(Vec<u8>, Option<u32>)> {
    let file = files.open(list, None)?;
    let mut text = Vec::new();
    let mut content: &std::fs::File = &file;
    content.by_ref().take(LARGEST).read_to_end(&mut text)?;
    Ok((text, file.owner()))
}

fn header(line: &[u8]) -> Option<Header> {
    let header: Header = serde_json::from_slice(line).ok()?;
    (header.format == "jitscribe codes" && header.version == 1).then_some(header)
}

/// The process of an image `jit-PID-NUMBER.elf`, and the path of its list.
fn list_of(image: &[u8]) -> Option<(u32, PathBuf)> {
    let list = code_list(Path::new(OsStr::from_bytes(image)))?;
    Some((pid_of_image(image)?, list))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "{\"format\":\"jitscribe codes\",\"version\":1}\n";

    fn lists(text: &str) -> CodeLists {
        let mut lists = CodeLists::default();
        lists.add(text.as_bytes(), 7, b"/x/");
        lists
    }

    #[test]
    fn codes_are_found_by_image_and_address() {
        let line = r#"{"symbol":"f","tier":"t","address":4096,"size":16,"loaded":5,"samples":1,"images":[["jit-7-0.elf",8192]]}"#;
        let lists = lists(&format!("{HEADER}{line}\nnonsense\n"));
        assert_eq!(lists.at(b"/x/jit-7-0.elf", 8200), Some((0, 8192)));
        assert_eq!(lists.at(b"/x/jit-7-0.elf", 8208), None);
        assert_eq!(lists.at(b"/y/jit-7-0.elf", 8200), None);
        let code = lists.get(0).expect("a code");
        assert_eq!((code.loaded, code.gone, code.pid), (Some(5), None, 7));
        assert_eq!(list_of(b"/x/jit-7-0-1.elf"), Some((7, PathBuf::from("/x/jit-7.codes.jsonl"))));
    }

    #[test]
    fn lists_of_other_formats_are_left_out() {
        let line = r#"{"symbol":"f","address":1,"size":1}"#;
        assert_eq!(lists(line).iter().count(), 0);
        let newer = HEADER.replace('1', "2");
        assert_eq!(lists(&format!("{newer}{line}")).iter().count(), 0);
        assert_eq!(lists(&format!("{HEADER}{line}")).iter().count(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[\\[\\]{}\":,a-z0-9\n-]{0,200}", address: u64) {
            let text = format!("{HEADER}{text}");
            let mut lists = CodeLists::default();
            let problem = lists.add(text.as_bytes(), 7, b"/x/");
            lists.at(b"/x/a", address);
            let lines = text.lines().skip(1).filter(|line| !line.is_empty()).count();
            assert_eq!(problem.is_some(), lists.iter().count() < lines);
        }
    }
}
