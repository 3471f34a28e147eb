//! Writes a recording of an AArch64 machine, with a sample in each code of a jitdump that node wrote there: `sample-aarch64 DUMP RECORDING`.
//! For `scripts/foreign.sh`.

use std::path::PathBuf;

use end_to_end::sampled::Dump;

fn main() {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let (dump, recording) = (paths.next().expect("a dump"), paths.next().expect("a recording"));
    Dump::read(&dump).recording(&dump, "aarch64").write(&recording);
}
