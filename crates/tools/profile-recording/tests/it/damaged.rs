//! Damaged recordings are read as far as possible.

use std::fs;
use std::path::{Path, PathBuf};

use perf_data::Input;
use profile::{CodeId, CodeSource, Totals};
use profile_recording::{Options, read_input};
use proptest::prelude::*;

/// The seeds of the fuzz target: a recording in each form.
fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/perf_data");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the seeds")
        .map(|entry| entry.expect("a seed").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed")).collect()
}

/// Reads a recording, and checks what must hold. Returns the number of samples.
fn check(bytes: Vec<u8>) -> Option<usize> {
    let input = Input::from_bytes(bytes).ok()?;
    let mut read = read_input(Path::new("recording"), input, &Options::default(), &|_| {}).ok()?;
    let profile = &read.profile;
    assert_eq!(Totals::all(profile).samples(), profile.samples().len() as u64);
    assert!(profile.samples().times().is_sorted());
    for sample in profile.samples().iter() {
        assert!(profile.frames_of(sample.stack).count() > 0);
    }
    for code in (0..).map(CodeId).take(profile.codes().len()) {
        read.code.listing(code);
    }
    Some(profile.samples().len())
}

#[test]
fn whole_recordings_have_samples() {
    let counts: Vec<usize> = seeds().into_iter().filter_map(check).collect();
    assert!(counts.iter().filter(|&&count| count > 0).count() >= 3, "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_recordings_are_read_or_refused(
        seed: prop::sample::Index,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        kept in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let seeds = seeds();
        let mut bytes = seed.get(&seeds).clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(kept.index(bytes.len()));
        }
        check(bytes);
    }
}
