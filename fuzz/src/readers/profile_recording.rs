//! Profiles of recordings: any bytes, as a recording whose files are not on this machine.

use std::io;
use std::path::Path;

use jitscribe_inject::files::{Inode, SourceFile, SourceFiles, Untrusted};
use perf_data::Input;
use profile::{CallTree, CodeId, CodeSource, Direction, Totals};
use profile_recording::{Options, RecordedProfile};

/// Opens only the list of codes, which is the rest of the input.
#[derive(Debug)]
struct OnlyList(Vec<u8>);

impl SourceFiles for OnlyList {
    fn open(&self, path: &Path, _: Option<u32>) -> io::Result<SourceFile> {
        if !path.to_string_lossy().ends_with(".codes.jsonl") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut file = tempfile::tempfile()?;
        io::Write::write_all(&mut file, &self.0)?;
        io::Seek::rewind(&mut file)?;
        Ok(SourceFile::new(file))
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn same_file(&self, _: &Path, _: &Path) -> bool {
        false
    }

    fn trust(&self, _: &Path, _: u32, _: Option<Inode>) -> Result<Option<u32>, Untrusted> {
        Ok(None)
    }
}

/// Reads it, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let Ok(input) = Input::from_bytes(bytes.to_vec()) else { return };
    let files = OnlyList(bytes.to_vec());
    let mut options = Options::default();
    options.files = &files;
    let path = Path::new("recording");
    let read = profile_recording::read_input(path, input, &options, &|_| {});
    let Ok(RecordedProfile { profile, mut code, .. }) = read else { return };
    let samples = profile.samples().len() as u64;
    let totals = Totals::all(&profile);
    assert_eq!(totals.samples(), samples);
    let tree = CallTree::of(&profile, profile.samples().iter(), Direction::Callees);
    let roots = tree.roots().iter().filter_map(|&root| tree.node(root));
    assert_eq!(roots.map(|root| root.count.total).sum::<u64>(), samples);
    for number in (0..).map(CodeId).take(profile.codes().len()) {
        code.listing(number);
        code.name_at(number, 0);
    }
}
