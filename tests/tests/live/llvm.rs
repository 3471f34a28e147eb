//! Source lines of LLVM 14's interpreter with MCJIT, whose jitdump biases their addresses by 0x40.

use end_to_end::live::expect_lines_of;
use end_to_end::recordings::LLVM;

/// Stock perf shows lines 64 bytes further on.
#[test]
fn source_lines_are_the_compilers() {
    let recording = LLVM.get();
    let ours = recording.ours();
    let folder = recording.dir().join(".debug/jit");
    let dump = std::fs::read_dir(&folder)
        .and_then(|mut entries| entries.next().expect("one folder of dumps"))
        .map(|entry| entry.path().join(format!("jit-{}.dump", recording.pid())))
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let checked = expect_lines_of(&dump, &recording.perf().samples_with_lines(&ours.data));
    assert!(checked > recording.raw().len() / 3, "{checked} lines");
}
