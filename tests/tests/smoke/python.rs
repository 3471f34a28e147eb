//! Debian's Python, which announces nothing by itself: a program of it announces machine code by the C library.

use end_to_end::jitscribe::shared_library;
use end_to_end::record::Record;
use end_to_end::runtimes::script;
use end_to_end::tool::argument;
use test_privilege::needs;

#[test]
fn code_that_is_announced_by_ctypes_has_its_name() {
    needs!(Perf);
    let program = ["python3", &script("announce.py"), &argument(shared_library())];
    let recorded = Record::new(&["-F", "999", "--call-graph=none"]).program(&program);
    let (report, samples) = (&recorded.report, recorded.samples());
    assert_eq!(report["top"][0]["name"], "announced_by_python", "{report}");
    let named = samples.iter().filter(|sample| sample.name() == Some("announced_by_python"));
    let count = named.count();
    // Half a second of processor time has about 500 samples.
    assert!(count > 100, "perf shows {count} of {} samples in it: {report}", samples.len());
    assert_eq!(report["top"][0]["samples"], count, "{report}");
}
