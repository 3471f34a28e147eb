//! The program in a process of its own, recorded by perf.

use std::collections::BTreeSet;

use end_to_end::jitscribe::jitscribe;
use end_to_end::perf::Perf;
use end_to_end::tool::run;
use tempfile::TempDir;
use test_privilege::{Privilege, have};

#[test]
fn a_recorded_program_has_names_lines_and_stacks() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/loops.bf");
    let folder = TempDir::with_prefix("jitscribe-dynasm-").expect("a temporary folder");
    let mut record = jitscribe();
    record.args(["record", "-F", "999", "-g", "--"]).arg(env!("CARGO_BIN_EXE_bf-jit"));
    record.arg(program).arg("1").current_dir(folder.path()).env("HOME", folder.path());
    let printed = run(&mut record);
    assert_eq!(printed.stdout, "A\n");

    let (perf, data) = (Perf::installed(), folder.path().join("perf.data"));
    let samples = perf.samples_with_lines(&data);
    let loops = |name: &str| name.starts_with("loop at ");
    let (mut names, mut lines) = (BTreeSet::new(), BTreeSet::new());
    for sample in &samples {
        assert!(!sample.in_anonymous_memory() || sample.symbol.is_some(), "no name: {sample}");
        let Some(name) = sample.name().filter(|name| loops(name)) else { continue };
        names.insert(name.to_owned());
        let line = sample.srcline.as_deref().and_then(|line| line.strip_prefix("loops.bf:"));
        let line: u32 = line.and_then(|line| line.parse().ok()).unwrap_or_else(|| {
            panic!("{sample} is at {:?}", sample.srcline);
        });
        let own = if name == "loop at 2:2" { 2..=6 } else { 8..=14 };
        assert!(own.contains(&line), "{name}: {line}");
        lines.insert(line);
    }
    for name in ["loop at 2:2", "loop at 8:2"] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    // The innermost loops.
    assert!(lines.contains(&4) && lines.contains(&12), "{lines:?}");

    let chains = perf.chains(&data);
    let in_loops = chains
        .iter()
        .filter(|chain| chain.frames.first().and_then(|frame| frame.name()).is_some_and(loops));
    let (through, all) = in_loops.fold((0, 0), |(through, all), chain| {
        (through + usize::from(chain.passes("program")), all + 1)
    });
    assert!(all > 100 && through * 100 > all * 98, "{through} of {all} stacks pass the program");
}
