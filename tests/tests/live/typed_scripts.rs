//! Lines of TypeScript that is compiled in memory: the file of a script has other lines than what V8 compiles.

use std::fs;
use std::path::Path;

use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::record::Record;
use end_to_end::runtimes::script;
use end_to_end::tool::{argument, deno, esbuild, run, tool};

/// The lines of the workload that say `// hot: NAME`.
fn hot_lines() -> Vec<u64> {
    let text = fs::read_to_string(workload("typed.ts")).expect("the workload");
    let is_hot = |(number, line): (usize, &str)| line.contains("// hot: ").then_some(number + 1);
    text.lines().enumerate().filter_map(is_hot).map(|number| number as u64).collect()
}

/// Records a program. At least 95 of 100 samples that perf has on lines of `typed.ts` are on the hot lines, and each of these has
/// some.
fn expect_hot(record: Record, program: &[&str]) {
    let cache = record.folder().join("deno");
    let recorded = record.env("DENO_DIR", cache).program(program);
    let report = &recorded.report;
    assert!(report["samples"]["named"].as_u64().expect("a number") > 300, "{report}");
    let (data, images) = (recorded.data(), recorded.images());
    let samples = Perf::installed().samples_in_images(&data, &images, Path::new("/usr/bin"));
    let line = |line: &str| line.split_whitespace().next()?.strip_prefix("typed.ts:")?.parse().ok();
    let lines: Vec<u64> =
        samples.iter().filter_map(|sample| line(sample.srcline.as_deref()?)).collect();
    let hot = hot_lines();
    assert_eq!(hot.len(), 3);
    let on_hot = lines.iter().filter(|line| hot.contains(line)).count();
    assert!(lines.len() > 300 && on_hot * 100 >= lines.len() * 95, "{lines:?}");
    for line in &hot {
        let count = lines.iter().filter(|other| *other == line).count();
        assert!(count > 5, "{count} samples on line {line}");
    }
    // What V8 compiles has its first lines above the work. Only the module's own code begins there.
    let above: Vec<u64> = lines.iter().copied().filter(|&line| line <= 29).collect();
    let is_module = above.iter().all(|&line| line == 1) && above.len() * 100 <= lines.len();
    assert!(is_module, "{lines:?}");
}

/// deno keeps the source map in its cache.
#[test]
fn deno_compiles_typescript() {
    let program = [&argument(deno()), "run", &script("typed.ts")];
    expect_hot(Record::new(&["-F", "999"]), &program);
}

/// Loaders compile a script in memory, and put the source map into the text that V8 gets. Here, esbuild has done so before.
#[test]
fn the_map_is_in_what_v8_compiled() {
    let record = Record::new(&["-F", "999"]);
    fs::copy(workload("typed.ts"), record.folder().join("typed.ts")).expect("a copy");
    let mut esbuild = tool(esbuild());
    esbuild.args(["--minify-whitespace", "--sourcemap=inline", "--outfile=compiled.js"]);
    esbuild.args(["typed.ts"]);
    run(esbuild.current_dir(record.folder()));
    let [map, typed] = ["compiled.js", "typed.ts"].map(|name| argument(record.folder().join(name)));
    expect_hot(record, &["node", &script("loader.js"), &map, &typed]);
}
