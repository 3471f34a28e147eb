//! Debian's Python, which announces nothing by itself: a program of it announces machine code by the C library.

use end_to_end::jitscribe::{jitscribe, report, shared_library};
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::tool::run;
use tempfile::TempDir;
use test_privilege::{Privilege, have};

#[test]
fn code_that_is_announced_by_ctypes_has_its_name() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let folder = TempDir::with_prefix("jitscribe-python-").expect("a folder");
    let data = folder.path().join("perf.data");
    let mut record = jitscribe();
    record.args(["record", "--json", "-F", "999", "--call-graph=none", "-o"]).arg(&data);
    record.args(["--", "python3"]).arg(workload("announce.py")).arg(shared_library());
    record.env_remove("JITSCRIBE").env_remove("JITSCRIBE_DIR").current_dir(folder.path());
    let report = report(&run(&mut record));
    assert_eq!(report["top"][0]["name"], "announced_by_python", "{report}");

    let samples = Perf::installed().samples(&data);
    let named = samples.iter().filter(|sample| sample.name() == Some("announced_by_python"));
    let count = named.count();
    // Half a second of processor time has about 500 samples.
    assert!(count > 100, "perf shows {count} of {} samples in it: {report}", samples.len());
    assert_eq!(report["top"][0]["samples"], count, "{report}");
}
