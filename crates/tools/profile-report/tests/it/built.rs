//! The scripts in the crate are what their sources give.

use std::fs;
use std::path::Path;
use std::process::Command;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn the_committed_scripts_are_those_of_the_sources() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let folder = tempfile::tempdir().expect("a folder");
        let output =
            Command::new(page.join("build.sh")).arg(folder.path()).output().expect("a shell");
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\nscripts/setup.sh installs what it needs");
        for name in ["built.js", "built_difference.js"] {
            let script = fs::read_to_string(folder.path().join(name)).expect("a script");
            assert_eq!(
                script,
                fs::read_to_string(page.join(name)).expect("a script"),
                "run crates/tools/profile-report/page/build.sh"
            );
            // Nothing in it ends the element that it is in.
            assert!(
                !script.to_lowercase().contains("</script") && !script.contains("<!--"),
                "{name}"
            );
        }
    }
}
