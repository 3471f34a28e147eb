//! Lines of TypeScript that is compiled in memory: the file of a script has other lines than what V8 compiles.

use std::fs;
use std::path::Path;
use std::process::Command;

use end_to_end::jitscribe::{jitscribe, report};
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::tool::{deno, esbuild, run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// The lines of the workload that say `// hot: NAME`.
fn hot_lines() -> Vec<u64> {
    let text = fs::read_to_string(workload("typed.ts")).expect("the workload");
    let is_hot = |(number, line): (usize, &str)| line.contains("// hot: ").then_some(number + 1);
    text.lines().enumerate().filter_map(is_hot).map(|number| number as u64).collect()
}

/// Records a program, and returns how many samples perf has on which line of `typed.ts`; what is on no line of it does not count.
fn lines(program: &mut Command, folder: &Path) -> Vec<u64> {
    let mut record = jitscribe();
    record.args(["record", "--json", "-F", "999", "-o", "it.data", "--"]);
    record.arg(program.get_program()).args(program.get_args());
    record.current_dir(folder).env("DENO_DIR", folder.join("deno"));
    let report: Value = report(&run(&mut record));
    assert!(report["samples"]["named"].as_u64().expect("a number") > 300, "{report}");
    let (data, images) = (folder.join("it.data"), folder.join("it.data.jit"));
    let samples = Perf::installed().samples_in_images(&data, &images, Path::new("/usr/bin"));
    let line = |line: &str| line.split_whitespace().next()?.strip_prefix("typed.ts:")?.parse().ok();
    samples.iter().filter_map(|sample| line(sample.srcline.as_deref()?)).collect()
}

/// At least 95 of 100 samples are on the hot lines, and each of these has some.
fn expect_hot(lines: &[u64]) {
    let hot = hot_lines();
    assert_eq!(hot.len(), 3);
    let on_hot = lines.iter().filter(|line| hot.contains(line)).count();
    assert!(lines.len() > 300 && on_hot * 100 >= lines.len() * 95, "{lines:?}");
    for line in &hot {
        let count = lines.iter().filter(|other| *other == line).count();
        assert!(count > 5, "{count} samples on line {line}");
    }
    // No line is above the work: there, what V8 compiles has its first lines.
    assert!(lines.iter().all(|&line| line > 29), "{lines:?}");
}

/// deno keeps the source map in its cache.
#[test]
fn deno_compiles_typescript() {
    let folder = TempDir::with_prefix("jitscribe-typed-").expect("a folder");
    let mut program = tool(deno());
    expect_hot(&lines(program.arg("run").arg(workload("typed.ts")), folder.path()));
}

/// Loaders compile a script in memory, and put the source map into the text that V8 gets. Here, esbuild has done so before.
#[test]
fn the_map_is_in_what_v8_compiled() {
    let folder = TempDir::with_prefix("jitscribe-typed-").expect("a folder");
    let (script, map) = (folder.path().join("typed.ts"), folder.path().join("compiled.js"));
    fs::copy(workload("typed.ts"), &script).expect("a copy");
    let mut esbuild = tool(esbuild());
    esbuild.args([
        "--minify-whitespace",
        "--sourcemap=inline",
        "--outfile=compiled.js",
        "typed.ts",
    ]);
    run(esbuild.current_dir(folder.path()));
    let mut program = tool("node");
    program.arg(workload("loader.js")).args([&map, &script]);
    expect_hot(&lines(&mut program, folder.path()));
}
