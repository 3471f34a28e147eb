//! The script in the crate is what its sources give.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_committed_script_is_that_of_the_sources() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let folder = tempfile::tempdir().expect("a folder");
    let built = folder.path().join("built.js");
    let output = Command::new(page.join("build.sh")).arg(&built).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\nscripts/setup.sh installs what it needs");
    let script = fs::read_to_string(&built).expect("a script");
    assert_eq!(
        script,
        fs::read_to_string(page.join("built.js")).expect("a script"),
        "run crates/tools/profile-report/page/build.sh"
    );
    // Nothing in it ends the element that it is in.
    assert!(!script.to_lowercase().contains("</script") && !script.contains("<!--"));
}
