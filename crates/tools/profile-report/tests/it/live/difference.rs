//! What the page about two profiles shows in Chromium is what they have.

use std::collections::BTreeMap;

use crate::live::shown::{File, expect_nothing_executed, find, picture};
use profile::significance::{binomial_exact, fisher_exact, holm};
use profile::{
    About, Activities, Builder, Code, Frame, Function, FunctionKind, Measure, Profile, SampleRow,
    Selection,
};
use profile_report::{Difference, DifferenceSummary};
use serde_json::json;
use test_browser::{Browser, Page, Seen};

const SIZE: (u32, u32) = (1400, 900);

/// Names that a page which takes names for HTML would execute, and one that breaks lines.
const IMAGE: &str = "<img src=x onerror=\"window.executed=1;alert(1)\">";
const SCRIPT: &str = "</script><script>window.executed=1;alert(1)</script>";
const CONTROL: &str = "\x1b[2J\nnext";

/// Stacks, the outermost function first, each with the tier that compiled it; and the numbers of samples before and after.
type Stacks = [(&'static [(&'static str, &'static str)], [u64; 2])];

const STACKS: &Stacks = &[
    (&[("main", ""), ("handle", ""), ("render", "maglev"), ("escape", "maglev")], [100, 0]),
    (&[("main", ""), ("handle", ""), ("render", "turbofan"), ("escape", "turbofan")], [50, 600]),
    (&[("main", ""), ("handle", ""), ("render", "maglev")], [250, 300]),
    (&[("main", ""), ("handle", ""), ("render", "turbofan")], [0, 200]),
    (&[("main", ""), ("handle", ""), ("parse", "turbofan")], [300, 440]),
    (&[("main", ""), (CONTROL, "")], [60, 130]),
    (&[("main", ""), ("old", "maglev")], [40, 0]),
    (&[("main", ""), (IMAGE, "maglev")], [0, 50]),
    (&[("main", ""), (SCRIPT, "maglev")], [0, 20]),
    (&[("main", ""), ("idle", "")], [200, 260]),
];

/// The differences of each path are these, by their shares: 1,000 samples before, 2,000 after.
const COLORS: [(&str, &str); 11] = [
    ("main", "--noise"),
    // 70 % and 77 %.
    ("main > handle", "--more-4"),
    // 40 % and 55 %.
    ("main > handle > render", "--more-4"),
    // 15 % and 30 %.
    ("main > handle > render > escape", "--more-4"),
    // 30 % and 22 %.
    ("main > handle > parse", "--less-4"),
    // 6 % and 6.5 %.
    ("main > \\x1b[2J\\nnext", "--noise"),
    // 4 % and none.
    ("main > old", "--less-3"),
    // None and 2.5 %.
    ("main > <img src=x onerror=\"window.executed=1;alert(1)\">", "--more-3"),
    // None and 1 %.
    ("main > </script><script>window.executed=1;alert(1)</script>", "--more-2"),
    // 20 % and 13 %.
    ("main > idle", "--less-4"),
    ("", "--root"),
];

/// One side of the stacks. The second is of another version of the program, in which lines have moved.
fn profile(side: usize) -> Profile {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(4711, b"node");
    let thread = builder.thread(process, 4711, b"node");
    let mut about = About::default();
    about.recording = format!("{}-{SCRIPT}.data", ["before", "after"][side]).into_bytes();
    builder.about(about);
    let file = format!("/srv/app-1.{side}.0/render.js");
    let mut codes = BTreeMap::new();
    for (stack, samples) in STACKS {
        let mut last = None;
        for &(name, tier) in *stack {
            let is_native = name == "main" || name == CONTROL;
            let kind = if is_native { FunctionKind::Native } else { FunctionKind::Jitted };
            let mut function = Function::new(builder.string(name.as_bytes()), kind);
            if !is_native {
                function.file = builder.string(file.as_bytes());
                function.line = 7 + u32::from(name == "escape") * side as u32;
            }
            let function = builder.function(function);
            let tier = builder.string(tier.as_bytes());
            let code = *codes.entry((function, tier)).or_insert_with(|| {
                let mut code = Code::new(function, 16);
                (code.tier, code.process) = (tier, Some(process));
                builder.code(code)
            });
            let mut frame = Frame::new(function);
            frame.code = Some(code);
            let frame = builder.frame(frame);
            last = Some(builder.stack(last, frame));
        }
        let stack = last.expect("a frame");
        for time in 0..samples[side] {
            builder.sample(SampleRow { time, thread, event, weight: 1, stack });
        }
    }
    builder.finish()
}

fn shown(name: &str) -> String {
    name.replace('\x1b', "\\x1b").replace('\n', "\\n")
}

/// The samples of what each stack, as names, is counted for.
fn counted(of: impl Fn(&[String]) -> Vec<String>) -> BTreeMap<String, [u64; 2]> {
    let mut all: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (stack, samples) in STACKS {
        let names: Vec<String> = stack.iter().map(|frame| shown(frame.0)).collect();
        for key in of(&names) {
            let counts = all.entry(key).or_default();
            counts.iter_mut().zip(samples).for_each(|(count, samples)| *count += samples);
        }
    }
    all
}

/// The samples of each path of names, before and after.
fn paths() -> BTreeMap<String, [u64; 2]> {
    counted(|names| (1..=names.len()).map(|depth| names[..depth].join(" > ")).collect())
}

/// The samples of each function, those of its own or all, before and after.
fn functions(is_own: bool) -> BTreeMap<String, [u64; 2]> {
    counted(|names| names[if is_own { names.len() - 1 } else { 0 }..].to_vec())
}

/// The page about two profiles, the runs of which are joined in each.
fn compared(
    profiles: [&Profile; 2],
    runs: [usize; 2],
    measure: Measure,
) -> (File, DifferenceSummary) {
    let all = Selection::default();
    let activities = profiles.map(|it| Activities::of(it, it.samples().iter()));
    let difference = Difference { profiles, selections: [&all, &all], activities, runs, measure };
    let mut html = Vec::new();
    let summary = profile_report::write_difference(&difference, &mut html).expect("written");
    assert_eq!(summary.bytes, html.len() as u64);
    assert!(html.starts_with(profile_report::BEGINNING.as_bytes()));
    (File::new(html), summary)
}

fn comparison(measure: Measure) -> (File, DifferenceSummary) {
    compared([&profile(0), &profile(1)], [1, 1], measure)
}

/// The boxes that are drawn: path, samples before and after, and the share of the width.
fn boxes(page: &mut Page<'_>) -> BTreeMap<String, ([u64; 2], f64)> {
    let found: Vec<(String, ([u64; 2], f64))> = find(
        page,
        "(() => { const {flame, session: {comparison}} = jitscribe; const width = document.getElementById('flame').clientWidth;
           const path = (node) => node.item < 0 ? [] : [...path(node.parent), comparison.name(node.item)];
           return flame.boxes.filter(({node}) => node.item >= 0).map(({node, width: wide}) =>
             [path(node).join(' > '), [[comparison.node.total.before[node.row], comparison.node.total.after[node.row]], wide / width]]); })()",
    );
    found.into_iter().collect()
}

/// The cells of the table.
fn table(page: &mut Page<'_>) -> Vec<Vec<String>> {
    let script = "[...document.querySelectorAll('#functions .row')].map((row) => [...row.children].map((cell) => cell.innerText))";
    find(page, script)
}

/// The names in the table.
fn names(page: &mut Page<'_>) -> Vec<String> {
    table(page).into_iter().map(|mut row| row.remove(7)).collect()
}

/// The rows that the table has to have: change, shares and numbers, probability, verdict and name; those that changed most first.
fn expected(is_own: bool, time: bool) -> Vec<Vec<String>> {
    let counts = functions(is_own);
    let chance = |&[before, after]: &[u64; 2]| match time {
        true => binomial_exact(before, after, 0.5),
        false => fisher_exact(before, 1000, after, 2000),
    };
    let chances = holm(&counts.values().map(chance).collect::<Vec<f64>>());
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for ((name, [before, after]), chance) in counts.iter().zip(chances) {
        let shares = (*before as f64 / 10.0, *after as f64 / 20.0);
        let change = match time {
            true => (*after as f64 - *before as f64) / 10.0,
            false => shares.1 - shares.0,
        };
        let sign = if change < -1e-9 { "−" } else { "+" };
        let verdict = match (chance < 0.05, before, after) {
            (false, ..) => "noise",
            (true, 0, _) => "new",
            (true, _, 0) => "gone",
            _ if change > 0.0 => "more",
            _ => "less",
        };
        let cells = vec![
            format!("{sign}{:.2}", change.abs()),
            format!("{:.1} %", shares.0),
            before.to_string(),
            format!("{:.1} %", shares.1),
            after.to_string(),
            if chance < 0.001 { "<0.001".to_owned() } else { format!("{chance:.3}") },
            verdict.to_owned(),
            name.clone(),
        ];
        rows.push((change.abs(), cells));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.into_iter().map(|row| row.1).collect()
}

/// Of rows, the cells without the source, and sorted: functions may have changed by the same.
fn sorted(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row[..8].iter().map(|cell| cell.replace(',', "")).collect())
        .collect();
    rows.sort();
    rows
}

fn changes(rows: &[Vec<String>]) -> Vec<f64> {
    rows.iter()
        .map(|row| row[0].trim_start_matches(['+', '−']).parse().expect("a number"))
        .collect()
}

#[test]
fn boxes_have_the_samples_of_both_and_the_width_of_one() {
    let (file, _) = comparison(Measure::Share);
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "", SIZE);
    for (side, all) in [(1, 2000), (0, 1000)] {
        let expected: BTreeMap<String, ([u64; 2], f64)> = paths()
            .into_iter()
            .filter(|(_, counts)| counts[side] > 0)
            .map(|(path, counts)| (path, (counts, counts[side] as f64 / f64::from(all))))
            .collect();
        let shown = boxes(&mut page);
        assert_eq!(
            shown.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "side {side}"
        );
        for (path, (counts, width)) in &expected {
            assert_eq!(shown[path].0, *counts, "{path}");
            assert!((shown[path].1 - width).abs() < 1e-9, "{path}: {} {width}", shown[path].1);
        }
        picture(&mut page, &format!("difference-{side}"));
        // What is in one recording only is seen by its width.
        assert_eq!(shown.contains_key("main > old"), side == 0);
        page.click("#width-before");
    }
    assert_eq!(page.eval("location.hash"), "#width=before");
    // A box has the numbers, the shares and the probability of its path.
    page.key("w");
    let at: (f64, f64) = find(
        &mut page,
        "(() => { const {flame, session: {comparison}} = jitscribe; const r = document.getElementById('flame-canvas').getBoundingClientRect();
           const box = flame.boxes.find(({node}) => node.item >= 0 && comparison.name(node.item) === 'escape');
           return [r.x + box.x + box.width / 2, r.y + box.y + 10]; })()",
    );
    page.hover(at);
    assert_eq!(
        page.text("#tooltip").lines().collect::<Vec<_>>(),
        [
            "escape",
            "/srv/app-1.1.0/render.js:8",
            "jitted",
            "before: 150 samples (15.0 %)",
            "after: 600 samples (30.0 %)",
            "change: +15.00 percentage points, more than chance (probability <0.001)",
            "in the function itself: 150 before, 600 after",
        ]
    );
    // A click selects and zooms, Escape undoes both.
    page.click_at(at, 0);
    assert_eq!(page.eval("location.hash"), "#fn=escape");
    assert!(page.text("#details").starts_with("escape"), "{}", page.text("#details"));
    assert_eq!(boxes(&mut page)["main > handle > render > escape"].1, 1.0);
    page.key("Escape");
    assert_eq!(boxes(&mut page)["main > handle > render > escape"].1, 0.3);
    page.key("Escape");
    assert_eq!(page.eval("location.hash"), "");
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn boxes_have_the_colours_of_the_change_and_grey_where_it_may_be_chance() {
    let (file, _) = comparison(Measure::Share);
    let colors = BTreeMap::from(COLORS);
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "", SIZE);
    for theme in ["light", "dark"] {
        page.set_media(theme == "dark", false);
        let mut seen = BTreeMap::new();
        for width in ["after", "before"] {
            page.click(&format!("#width-{width}"));
            // The pixel in each box near its end, where it has no text, and the colours of the style sheet.
            let pixels: Vec<(String, String)> = find(
                &mut page,
                "(() => { const {flame, session: {comparison}} = jitscribe; const context = document.getElementById('flame-canvas').getContext('2d');
                   const path = (node) => node.item < 0 ? [] : [...path(node.parent), comparison.name(node.item)];
                   return flame.boxes.map(({node, x, y, width}) => {
                     const [r, g, b] = context.getImageData(Math.round(x + width - 4), y + 2, 1, 1).data;
                     return [path(node).join(' > '), `rgb(${r}, ${g}, ${b})`]; }); })()",
            );
            for (path, color) in pixels {
                let expected = page.eval(&format!(
                    "(() => {{ const probe = document.body.appendChild(document.createElement('i')); probe.style.color = 'var({})';
                       const color = getComputedStyle(probe).color; probe.remove(); return color; }})()",
                    colors[path.as_str()]
                ));
                assert_eq!(json!(color), expected, "{theme} {width} {path}");
                seen.insert(path, color);
            }
        }
        assert_eq!(seen.len(), COLORS.len());
        let different: std::collections::BTreeSet<&String> = seen.values().collect();
        assert_eq!(different.len(), 7, "{seen:?}");
        picture(&mut page, &format!("difference-{theme}"));
    }
    let legend = page.text("#legend");
    assert!(legend.contains("may be chance") && legend.contains("0.5, 2, 5"), "{legend}");
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn the_table_has_both_numbers_and_says_what_may_be_chance() {
    let (file, summary) = comparison(Measure::Share);
    let rows = expected(true, false);
    let changed = rows.iter().filter(|row| row[6] != "noise").count();
    assert_eq!(
        (summary.samples, summary.functions, summary.changed),
        ([1000, 2000], rows.len(), changed)
    );
    assert!(changed < rows.len() && changed > 3, "{rows:?}");
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "", SIZE);
    let shown = table(&mut page);
    assert_eq!(sorted(&shown), sorted(&rows));
    assert!(changes(&shown).is_sorted_by(|a, b| a >= b), "{shown:?}");
    assert_eq!(shown[0][8], "/srv/app-1.1.0/render.js:8");
    // In functions and what they call.
    page.key("s");
    assert_eq!(sorted(&table(&mut page)), sorted(&expected(false, false)));
    page.click("#compared-own");
    // By each column.
    let number = |row: &Vec<String>, cell: usize| row[cell].parse::<f64>().unwrap_or(0.0);
    for (order, cell) in [("before", 2), ("after", 4)] {
        page.click(&format!("#functions .head .{order}"));
        let shown = sorted_as_shown(&mut page);
        assert!(shown.is_sorted_by(|a, b| number(a, cell) >= number(b, cell)), "{shown:?}");
        assert_eq!(page.text("#functions .sorted").to_lowercase(), order);
    }
    page.click("#functions .head .chance");
    let shown = sorted_as_shown(&mut page);
    assert!(shown.is_sorted_by(|a, b| number(a, 5) <= number(b, 5)), "{shown:?}");
    page.click("#functions .head .name");
    let shown = sorted_as_shown(&mut page);
    assert!(shown.is_sorted_by(|a, b| a[7] <= b[7]), "{shown:?}");
    page.click("#functions .head .verdict");
    let verdicts: Vec<String> =
        sorted_as_shown(&mut page).into_iter().map(|row| row[6].clone()).collect();
    assert_eq!(verdicts, ["new", "new", "more", "less", "less", "gone", "noise", "noise"]);
    // Changes alone.
    page.key("n");
    assert_eq!(page.text("#shown"), format!("{changed} functions"));
    assert!(table(&mut page).iter().all(|row| row[6] != "noise"));
    page.key("n");
    // A row selects its function in the graph, and the keys move to the next.
    page.click("#functions .head .name");
    page.click("#functions .row:nth-child(3)");
    let names = names(&mut page);
    assert!(page.text("#details").starts_with(&names[2]), "{}", page.text("#details"));
    page.key("ArrowDown");
    assert!(page.text("#details").starts_with(&names[3]), "{}", page.text("#details"));
    // A search dims boxes and leaves rows out.
    page.key("/");
    page.type_text("ESCAP");
    assert_eq!(self::names(&mut page), ["escape"]);
    let found = page.text("#selection");
    assert!(found.ends_with("15.0 % → 30.0 % matches"), "{found}");
    assert_eq!(page.finish(), Seen::default());
}

fn sorted_as_shown(page: &mut Page<'_>) -> Vec<Vec<String>> {
    table(page)
        .into_iter()
        .map(|row| row.into_iter().map(|cell| cell.replace(',', "").replace("<0.", "0.")).collect())
        .collect()
}

#[test]
fn times_are_compared_in_percent_of_the_first_recording() {
    let (file, _) = comparison(Measure::Time(1.0));
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "", SIZE);
    assert_eq!(sorted(&table(&mut page)), sorted(&expected(true, true)));
    page.key("s");
    assert_eq!(sorted(&table(&mut page)), sorted(&expected(false, true)));
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn links_open_what_they_name_and_hostile_names_stay_text() {
    let (file, _) = comparison(Measure::Share);
    let mut browser = Browser::start();
    let link = "#width=before&compared=total&order=name&changes=1&fn=old&q=o";
    let mut page = file.open(&mut browser, link, SIZE);
    assert_eq!(page.eval("location.hash"), link);
    for pressed in ["width-before", "compared-total", "changes"] {
        assert_eq!(
            page.eval(&format!("document.getElementById('{pressed}').ariaPressed")),
            "true",
            "{pressed}"
        );
    }
    assert!(page.text("#details").starts_with("old"));
    // Each change is in the address.
    page.key("w");
    page.key("s");
    page.key("n");
    assert_eq!(page.eval("location.hash"), "#order=name&q=o&fn=old");
    page.eval("location.hash = '#width=before'");
    page.settle();
    assert_eq!(page.eval("jitscribe.session.state.width"), "before");
    assert_eq!(page.finish(), Seen::default());

    let hostile =
        format!("#fn={SCRIPT}&q=(a%2B)%2B$&order=__proto__&width=constructor&compared=toString");
    for fragment in ["", hostile.as_str(), "#q=/(/"] {
        let mut page = file.open(&mut browser, fragment, SIZE);
        page.eval("jitscribe.session.update({query: ''})");
        for id in 0..functions(false).len() {
            page.eval(&format!("jitscribe.session.update({{fn: {id}}})"));
        }
        for x in (10..1390).step_by(60) {
            page.hover((f64::from(x), 130.0));
        }
        for key in ["?", "Escape", "d", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp"] {
            page.key(key);
        }
        let names = names(&mut page);
        assert!(names.contains(&IMAGE.to_owned()) && names.contains(&SCRIPT.to_owned()));
        assert!(page.text("#about").contains(SCRIPT));
        expect_nothing_executed(&mut page);
        assert_eq!(page.finish(), Seen::default());
    }
}

#[test]
fn it_prints_and_fits_narrow_windows() {
    let (file, _) = comparison(Measure::Share);
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "#fn=escape", SIZE);
    assert!(page.print() > 10_000);
    for size in [(1920, 1080), (1000, 700), (420, 800)] {
        page.set_size(size);
        let wider = page.eval("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wider, 0, "at {size:?}");
        assert!(boxes(&mut page).len() > 5 && !table(&mut page).is_empty(), "at {size:?}");
        picture(&mut page, &format!("difference-{}", size.0));
    }
    assert_eq!(page.finish(), Seen::default());
}

/// A profile of functions with these names, each called by the one before.
fn named(names: &[Vec<u8>], samples: u64) -> Profile {
    let mut builder = Builder::new();
    let event = builder.event(IMAGE.as_bytes());
    let process = builder.process(1, SCRIPT.as_bytes());
    let thread = builder.thread(process, 1, SCRIPT.as_bytes());
    let mut about = About::default();
    about.recording = names.concat();
    builder.about(about);
    let mut stack = None;
    for name in names {
        let mut function = Function::new(builder.string(name), FunctionKind::Jitted);
        (function.file, function.line) = (function.name, u32::MAX);
        let function = builder.function(function);
        let frame = builder.frame(Frame::new(function));
        let last = builder.stack(stack, frame);
        stack = Some(last);
        for time in 0..samples {
            builder.sample(SampleRow { time, thread, event, weight: u64::MAX, stack: last });
        }
    }
    builder.finish()
}

#[test]
fn long_and_unprintable_names_neither_execute_nor_hang() {
    let mut names: Vec<Vec<u8>> =
        [IMAGE, SCRIPT, CONTROL, "<!--<script>", "__proto__", "\u{202e}gnp.exe", "(a+)+$", ""]
            .map(|name| name.as_bytes().to_vec())
            .into();
    names.push(b"\xff\xfe\x80".to_vec());
    names.push(vec![b'x'; 1 << 20]);
    names.push("\u{ffa0}<b>".repeat(1 << 17).into_bytes());
    let (before, after) = (named(&names, 3), named(&names[1..], 200));
    let mut joined = profile::Runs::new();
    for _ in 0..2 {
        joined.add(&after, &Selection::default());
    }
    let joined = joined.finish();
    let mut browser = Browser::start();
    for (after, runs) in [(&after, [1, 1]), (&joined, [1, 2])] {
        let (file, summary) = compared([&before, after], runs, Measure::Share);
        // Long names are shortened.
        assert!(summary.bytes < 1 << 17, "{}", summary.bytes);
        let mut page = file.open(&mut browser, "", SIZE);
        for id in 0..names.len() {
            page.eval(&format!("jitscribe.session.update({{fn: {id}}})"));
        }
        for key in ["w", "s", "n", "?", "Escape", "ArrowDown", "ArrowRight"] {
            page.key(key);
        }
        page.hover((600.0, 150.0));
        expect_nothing_executed(&mut page);
        let several = page.text("#selection").contains("in 2 recordings");
        assert_eq!(several, runs[1] == 2);
        assert_eq!(page.finish(), Seen::default());
    }
}
