//! Scripts that were compiled from others: every view and every export shows positions and texts of one and the same file.
//!
//! `source_maps/` has a program, and what tsc 5.9, terser 5.51 and esbuild 0.28 made of it. Node reads their maps as well, and is the oracle.

pub mod readers;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::{Bench, expect_tool};
use readers::Function;
use test_privilege::needs;

const SOURCE: &str = include_str!("source_maps/src/work.ts");
const TSC: [&str; 2] =
    [include_str!("source_maps/tsc/work.js"), include_str!("source_maps/tsc/work.js.map")];
const TERSER: [&str; 2] =
    [include_str!("source_maps/terser/work.js"), include_str!("source_maps/terser/work.js.map")];
const ESBUILD: &str = include_str!("source_maps/esbuild/work.js");

/// The place of `weigh` in a script, and of what it was compiled from, by node's reader of source maps.
const ORACLE: &str = r#"
const { SourceMap } = require("module");
const text = require("fs").readFileSync(process.argv[1], "utf8");
const inline = /sourceMappingURL=data:[^,]*,(\S+)/.exec(text);
const isMapped = inline || require("fs").existsSync("dist/work.js.map");
const empty = '{ "version": 3, "sources": [], "mappings": "" }';
const json = inline ? Buffer.from(inline[1], "base64") : isMapped ? require("fs").readFileSync("dist/work.js.map") : empty;
const before = text.slice(0, text.indexOf("function weigh(") + "function weigh".length).split("\n");
const place = [before.length - 1, before.at(-1).length];
const entry = new SourceMap(JSON.parse(json)).findEntry(...place);
const original = entry.originalSource === undefined ? null : [entry.originalLine + 1, entry.originalColumn + 1];
console.log(JSON.stringify({ compiled: place.map((it) => it + 1), original }));
"#;

/// Writes what webpack 5.113 makes of `module.js` with `devtool: "eval-source-map"`, or `"eval"` without a map: a function that passes the module's text to
/// `eval`, in braces and with comments for the debugger.
const WEBPACK: &str = r#"
const fs = require("fs");
const code = fs.readFileSync("module.js", "utf8").replace(/\n\/\/# sourceMappingURL.*/, "");
let comments = "//# sourceURL=webpack://app/./src/work.ts?\n";
if (fs.existsSync("module.js.map")) {
    const map = JSON.parse(fs.readFileSync("module.js.map"));
    // The lines that webpack puts before a module.
    Object.assign(map, { sources: ["webpack://app/./src/work.ts?a9d5"], sourcesContent: [fs.readFileSync("source.ts", "utf8")], mappings: ";" + map.mappings });
    const base64 = Buffer.from(JSON.stringify(map)).toString("base64");
    comments = `//# sourceURL=[module]\n//# sourceMappingURL=data:application/json;charset=utf-8;base64,${base64}\n//# sourceURL=webpack-internal:///./src/work.ts\n`;
}
const text = `{__webpack_require__.r(__webpack_exports__);\n${code}\n\n${comments}\n}`;
fs.writeFileSync("evaluated.js", text);
fs.mkdirSync("dist", { recursive: true });
fs.writeFileSync("dist/work.js", `/******/ (() => { // webpackBootstrap
/******/ 	"use strict";
/******/ 	var __webpack_modules__ = ({

/***/ "./src/work.ts"
/*!*********************!*\\
  !*** ./src/work.ts ***!
  \\*********************/
(__unused_webpack_module, exports, __webpack_require__) {

const __webpack_exports__ = exports;
eval(${JSON.stringify(text)});

/***/ }

/******/ 	});
/******/ 	const __webpack_require__ = {};
/******/ 	__webpack_require__.r = (exports) => {
/******/ 		Object.defineProperty(exports, Symbol.toStringTag, { value: "Module" });
/******/ 	};
/******/ 	let __webpack_exports__ = {};
/******/ 	__webpack_modules__["./src/work.ts"](0,__webpack_exports__,__webpack_require__);
/******/ })()
;
`);
"#;

/// A file of which positions are shown.
struct Shown<'t> {
    /// How its path ends.
    path: &'t str,
    /// The text; `None` if there is none.
    text: Option<&'t str>,
    /// Line and column where `weigh` begins.
    weigh: (u32, u32),
}

impl Shown<'_> {
    /// The lines of `weigh`.
    fn has(&self, line: u64) -> bool {
        let first = u64::from(self.weigh.0);
        (first..first + 9).contains(&line)
    }

    #[track_caller]
    fn expect_path(&self, path: &Value) {
        let path = path.as_str().expect("a path");
        assert!(path.ends_with(self.path), "{path} is not {}", self.path);
    }
}

fn bench(script: &str, map: Option<&str>, source: Option<&str>) -> Bench {
    let bench = Bench::with("dist/work.js", script);
    bench.open();
    map.inspect(|map| _ = bench.write("dist/work.js.map", map));
    source.inspect(|source| _ = bench.write("src/work.ts", source));
    bench
}

fn record(bench: &Bench) {
    bench.record("-F 999 -o run.data -- node dist/work.js").ok();
}

/// The place of `weigh` in the script and in the source.
fn oracle(bench: &Bench, script: &str) -> [Option<(u32, u32)>; 2] {
    let answer = bench.run(&["node", "-e", ORACLE, script]);
    let answer: Value = serde_json::from_str(&answer).expect("node's answer");
    ["compiled", "original"].map(|of| serde_json::from_value(answer[of].clone()).expect("a place"))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no array"))
}

/// Checks what all views and exports of `run.data` say of `weigh`, and of the functions without a name.
fn expect_one_file(bench: &Bench, shown: &Shown<'_>) {
    expect_annotated(bench, shown);
    let export = |options: &str| bench.ask(&format!("export -i run.data -o - {options}")).ok();
    expect_firefox(&export("--firefox").json(), shown);

    let cpuprofile = export("--cpuprofile").json();
    let nodes = array(&cpuprofile["nodes"]).iter();
    let nodes: Vec<_> = nodes.filter(|node| node["callFrame"]["functionName"] == "weigh").collect();
    assert!(!nodes.is_empty(), "no weigh");
    for node in nodes {
        let frame = &node["callFrame"];
        shown.expect_path(&frame["url"]);
        let place = [&frame["lineNumber"], &frame["columnNumber"]];
        let place = place.map(|number| number.as_i64().expect("a number") + 1);
        assert_eq!(place, [i64::from(shown.weigh.0), i64::from(shown.weigh.1)]);
        for tick in node["positionTicks"].as_array().into_iter().flatten() {
            assert!(shown.has(tick["line"].as_u64().expect("a line")), "{node}");
        }
    }

    let speedscope = export("--speedscope").json();
    let frames = array(&speedscope["shared"]["frames"]).iter();
    let frames: Vec<_> = frames.filter(|frame| frame["name"] == "weigh").collect();
    assert_eq!(frames.len(), 1, "{frames:?}");
    shown.expect_path(&frames[0]["file"]);
    assert_eq!(frames[0]["line"], shown.weigh.0);

    expect_chrome(&export("--chrome").json(), shown);
    bench.ask("export -i run.data --force -o run.pprof --pprof").ok();
    expect_functions(&readers::pprof(&bench.read("run.pprof"), "weigh"), shown);
    bench.ask("export -i run.data --force -o run.otlp --otlp").ok();
    expect_functions(&readers::otlp(&bench.read("run.otlp"), "weigh"), shown);
    expect_page(bench, shown);

    // Formats that know names alone.
    let folded = export("--folded --lines").stdout;
    let name = format!("(anonymous) {}:", shown.path.rsplit('/').next().expect("a name"));
    let names = folded.split([';', ' ', '\n']).collect::<Vec<_>>();
    let places: BTreeSet<&str> = names
        .windows(2)
        .filter(|two| two[0] == "(anonymous)" && two[1].starts_with(&name["(anonymous) ".len()..]))
        .map(|two| two[1])
        .collect();
    assert!(places.len() >= 2, "callbacks are apart: {places:?} in {folded:.2000}");

    let listed = bench.ask("report -i run.data --stdio").ok().stdout;
    let row = listed.lines().find(|row| row.contains(" weigh ")).expect("a row");
    assert!(row.contains(&format!("{}:{}", shown.path, shown.weigh.0)), "{row}");
    assert!(listed.contains(&name), "{listed}");
}

fn expect_chrome(trace: &Value, shown: &Shown<'_>) {
    let nodes = array(&trace["traceEvents"]).iter().flat_map(|event| {
        let nodes = &event["args"]["data"]["cpuProfile"]["nodes"];
        nodes.as_array().into_iter().flatten()
    });
    let frames = nodes.map(|node| &node["callFrame"]);
    let frames: Vec<_> = frames.filter(|frame| frame["functionName"] == "weigh").collect();
    assert!(!frames.is_empty(), "no weigh");
    for frame in frames {
        shown.expect_path(&frame["url"]);
        let place = [&frame["lineNumber"], &frame["columnNumber"]];
        let place = place.map(|number| number.as_i64().expect("a number") + 1);
        assert_eq!(place, [i64::from(shown.weigh.0), i64::from(shown.weigh.1)]);
    }
}

fn expect_functions(functions: &[Function], shown: &Shown<'_>) {
    let [weigh] = functions else { panic!("{functions:?}") };
    shown.expect_path(&json!(weigh.file));
    assert_eq!(weigh.line, u64::from(shown.weigh.0));
    assert!(
        !weigh.lines.is_empty() && weigh.lines.iter().all(|line| shown.has(*line)),
        "{weigh:?}"
    );
}

fn expect_page(bench: &Bench, shown: &Shown<'_>) {
    bench.ask("report -i run.data -o run.html").ok();
    let page = String::from_utf8(bench.read("run.html")).expect("UTF-8");
    let page = readers::page(&page, "weigh");
    expect_functions(&page.functions, shown);
    assert!(!page.places.is_empty(), "the code of weigh has lines");
    for (file, line) in page.places {
        shown.expect_path(&json!(file));
        assert!(line == 0 || shown.has(line), "line {line}");
    }
    let text = page.sources.iter().find(|(file, _)| file.ends_with(shown.path));
    let text = text.map(|(_, lines)| lines.join("\n"));
    let known = shown.text.map(|text| text.lines().collect::<Vec<_>>().join("\n"));
    assert_eq!(text, known);
}

fn expect_annotated(bench: &Bench, shown: &Shown<'_>) {
    let annotated = bench.ask("annotate -i run.data weigh --json").ok().json();
    let function = &annotated["function"];
    shown.expect_path(&function["file"]);
    assert_eq!([&function["line"], &function["column"]], [shown.weigh.0, shown.weigh.1]);
    let lines: Vec<_> =
        array(&annotated["lines"]).iter().filter(|line| line["line"] != 0).collect();
    let texts: Vec<&str> = shown.text.map(|text| text.lines().collect()).unwrap_or_default();
    let mut samples = 0;
    for line in lines {
        let number = line["line"].as_u64().expect("a number");
        let text = texts.get(usize::try_from(number - 1).expect("a line"));
        let text = text.map(|text| text.replace('\t', "    "));
        let cut = |text: &str| text.trim().chars().take(150).collect::<String>();
        let found = line["text"].as_str().map(&cut);
        assert_eq!(found.unwrap_or_default(), text.as_deref().map(&cut).unwrap_or_default());
        let own = line["samples"].as_u64().expect("a number");
        assert!(own == 0 || shown.has(number), "{line}");
        samples += own;
    }
    let all = annotated["samples"].as_u64().expect("a number");
    assert!(samples * 2 > all, "{samples} of {all} samples of weigh have a line");
}

/// Functions, frames and files are tables of their own.
fn expect_firefox(firefox: &Value, shown: &Shown<'_>) {
    let shared = &firefox["shared"];
    let [functions, frames] = ["funcTable", "frameTable"].map(|table| &shared[table]);
    let text = |number: &Value| &shared["stringArray"][number.as_u64().expect("a string") as usize];
    let mut found = 0;
    for (number, name) in array(&functions["name"]).iter().enumerate() {
        if text(name) != "weigh" {
            continue;
        }
        found += 1;
        let source = functions["source"][number].as_u64().expect("a source");
        shown.expect_path(text(&shared["sources"]["filename"][source as usize]));
        assert_eq!(functions["lineNumber"][number], shown.weigh.0);
        let of_function = |at: &usize| frames["func"][*at] == number;
        let rows = 0..array(&frames["func"]).len();
        for line in rows.filter(of_function).filter_map(|at| frames["line"][at].as_u64()) {
            assert!(shown.has(line), "line {line}");
        }
    }
    assert_eq!(found, 1);
}

#[test]
fn positions_are_those_of_the_source_on_the_disk() {
    needs!(Perf);
    expect_tool("node");
    // tsc's map has no text. The second is the same as an index map, whose parts are in sections.
    let map: Value = serde_json::from_str(TSC[1]).expect("a map");
    let section = json!({ "offset": { "line": 0, "column": 0 }, "map": map });
    let sections = json!({ "version": 3, "sections": [section] }).to_string();
    for map in [TSC[1], &sections] {
        let bench = bench(TSC[0], Some(map), Some(SOURCE));
        record(&bench);
        let [_, Some(weigh)] = oracle(&bench, "dist/work.js") else {
            panic!("node knows no place")
        };
        let text = Some(SOURCE);
        expect_one_file(&bench, &Shown { path: "/src/work.ts", text, weigh });
    }
}

#[test]
fn texts_are_those_of_the_map() {
    needs!(Perf);
    expect_tool("node");
    for (script, map) in [(TERSER[0], Some(TERSER[1])), (ESBUILD, None)] {
        let bench = bench(script, map, None);
        record(&bench);
        let [_, Some(weigh)] = oracle(&bench, "dist/work.js") else {
            panic!("node knows no place")
        };
        // What terser was given is what tsc wrote, and that is from the source.
        let (path, text) = ("/src/work.ts", Some(SOURCE).filter(|_| map.is_none()));
        let kept = serde_json::from_str::<Value>(map.unwrap_or("{}")).expect("a map");
        let kept = kept["sourcesContent"][0].as_str().map(str::to_owned);
        let shown = Shown { path, text: text.or(kept.as_deref()), weigh };
        expect_one_file(&bench, &shown);
    }
}

/// A source that the map leaves out, and no map at all.
#[test]
fn without_a_source_positions_are_those_of_the_script() {
    needs!(Perf);
    expect_tool("node");
    let mut map: Value = serde_json::from_str(TSC[1]).expect("a map");
    map["sources"] = json!([null]);
    let bench = bench(TSC[0], Some(&map.to_string()), Some(SOURCE));
    record(&bench);
    let [Some(weigh), _] = oracle(&bench, "dist/work.js") else { panic!("node knows no place") };
    expect_one_file(&bench, &Shown { path: "/dist/work.js", text: Some(TSC[0]), weigh });
}

/// Text that is passed to `eval` is in no file. V8's code log has it, without a name: it names itself, and has its map.
#[test]
fn text_that_was_evaluated_has_a_map() {
    needs!(Perf);
    expect_tool("node");
    for map in [Some(TSC[1]), None] {
        let bench = Bench::with("module.js", TSC[0]).and("source.ts", SOURCE);
        bench.open();
        map.inspect(|map| _ = bench.write("module.js.map", map));
        bench.run(&["node", "-e", WEBPACK]);
        record(&bench);
        let evaluated = String::from_utf8(bench.read("evaluated.js")).expect("UTF-8");
        let shown = match (map, oracle(&bench, "evaluated.js")) {
            (Some(_), [_, Some(weigh)]) => {
                Shown { path: "webpack/app/src/work.ts?a9d5", text: Some(SOURCE), weigh }
            }
            (None, [Some(weigh), None]) => {
                Shown { path: "webpack/app/./src/work.ts?", text: Some(&evaluated), weigh }
            }
            (_, other) => panic!("node's places: {other:?}"),
        };
        expect_one_file(&bench, &shown);
    }
}
