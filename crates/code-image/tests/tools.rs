//! What the tools that people use make of an image.

mod common;

use code_image::{Code, Line};
use common::{run, targets, write};

#[test]
fn the_checkers_find_nothing_wrong() {
    let lines = [
        Line { address: 0x10_0040, file: b"/src/a.js", line: 3, column: 9 },
        Line { address: 0x10_0048, file: b"/src/b.js", line: 300, column: 0 },
    ];
    for target in targets() {
        let code = Code {
            start: 0x10_0040,
            size: 16,
            visible: 0x10_0040..0x10_0050,
            name: b"first",
            bytes: &[0; 16],
            lines: &lines,
            ..Code::default()
        };
        let image = write(target, 0x10_0040..0x10_4000, &[code]);
        assert!(!run("readelf", &["-aW"], &image.path()).contains("arning"));
        assert_eq!(run("eu-elflint", &["--gnu-ld"], &image.path()), "No errors\n");
        assert!(run("llvm-dwarfdump", &["--verify"], &image.path()).ends_with("No errors.\n"));
    }
}
