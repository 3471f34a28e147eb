//! What a report shows in Chromium is what the profile has.

use crate::live::shown::{File, find, picture, texts};
use crate::made::{HOT, MILLISECOND, Made};
use profile::{
    Activities, CallTree, CodeId, CodeSource, Direction, Listing, NodeId, Profile, Selection,
    Source, ThreadId, Totals,
};
use serde_json::{Value, json};
use test_browser::{Browser, CTRL, Page, Seen};

const SIZE: (u32, u32) = (1400, 1000);

struct Report {
    file: File,
    profile: Profile,
}

impl Report {
    fn new() -> Self {
        Self::with(&mut Made)
    }

    fn with(code: &mut dyn CodeSource) -> Self {
        let profile = crate::made::profile();
        let (file, _) = File::report(&profile, code);
        Self { file, profile }
    }

    fn open<'b>(&self, browser: &'b mut Browser, fragment: &str) -> Page<'b> {
        self.file.open(browser, fragment, SIZE)
    }

    /// Opens it where instructions are shown.
    fn open_code<'b>(&self, browser: &'b mut Browser, fragment: &str) -> Page<'b> {
        let mut page = self.open(browser, fragment);
        page.wait_for(".instruction");
        page.settle();
        page
    }

    /// The functions with their own and total samples, those with the most own ones first.
    fn functions(&self, selection: &Selection) -> Vec<(String, u64, u64)> {
        let totals = Totals::of(&self.profile, selection.of(&self.profile));
        let text = |id| String::from_utf8_lossy(self.profile.function_name(id)).into_owned();
        totals
            .functions(&self.profile)
            .iter()
            .map(|&(id, count)| (text(id), count.own, count.total))
            .collect()
    }

    /// The boxes of the flame graph: the path of names, and the share of the width.
    fn boxes(&self, selection: &Selection, direction: Direction) -> Vec<(String, f64)> {
        let tree = CallTree::of(&self.profile, selection.of(&self.profile), direction);
        let all: u64 =
            tree.roots().iter().map(|&id| tree.node(id).expect("a node").count.total).sum();
        let mut paths: Vec<String> = Vec::new();
        let mut boxes = Vec::new();
        for node in tree.nodes() {
            let name = String::from_utf8_lossy(self.profile.function_name(node.function));
            let above =
                node.parent.map(|NodeId(at)| paths[at as usize].as_str()).unwrap_or_default();
            let run = match node.repeated {
                1 => String::new(),
                times => format!(" ×{times}"),
            };
            paths.push(format!("{above}/{name}{run}"));
            boxes.push((paths[paths.len() - 1].clone(), node.count.total as f64 / all as f64));
        }
        boxes.sort_by(|a, b| a.0.cmp(&b.0));
        boxes
    }
}

/// The rows of the table of functions.
fn table(page: &mut Page<'_>) -> Vec<(String, u64, u64)> {
    let script = "(() => { const number = (cell) => Number(cell.innerText.replaceAll(',', ''));
        return [...document.querySelectorAll('#functions .row')].map(({children: cells}) => [cells[4].innerText, number(cells[1]), number(cells[3])]); })()";
    find(page, script)
}

/// The boxes of the flame graph that is drawn, except those that are too narrow.
fn boxes(page: &mut Page<'_>) -> Vec<(String, f64)> {
    let mut boxes: Vec<(String, f64)> = find(
        page,
        "(() => { const {flame, session} = jitscribe; const width = document.getElementById('flame').clientWidth;
           const path = (node) => node.item < 0 ? '' : path(node.parent) + '/' + flame.content.name(node);
           return flame.boxes.filter(({node}) => node.item >= 0).map(({node, width: wide}) => [path(node), wide / width]); })()",
    );
    boxes.sort_by(|a, b| a.0.cmp(&b.0));
    boxes
}

/// The cells of a row.
fn cells(page: &mut Page<'_>, selector: &str) -> Vec<String> {
    texts(page, &format!("{selector} > *"))
}

fn assert_boxes(shown: &[(String, f64)], expected: &[(String, f64)]) {
    let wide = |each: &&(String, f64)| each.1 * f64::from(SIZE.0) > 1.0;
    let (shown, expected): (Vec<_>, Vec<_>) =
        (shown.iter().filter(wide).collect(), expected.iter().filter(wide).collect());
    let names =
        |boxes: &[&(String, f64)]| boxes.iter().map(|each| each.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&shown), names(&expected));
    assert!(shown.len() > 3, "{shown:?}");
    for (one, other) in shown.iter().zip(&expected) {
        assert!((one.1 - other.1).abs() < 1e-9, "{one:?} {other:?}");
    }
}

/// The span and the threads that are selected, as a selection of the profile's samples.
fn selected(page: &mut Page<'_>, profile: &Profile) -> Selection {
    let state = "(({span, threads}) => [span, threads && [...threads]])(jitscribe.session.state)";
    let (span, threads): (Option<[f64; 2]>, Option<Vec<u32>>) = find(page, state);
    let first = profile.samples().times()[0];
    let mut selection = Selection::default();
    selection.times = span.map(|[start, end]| first + start as u64..first + end as u64);
    selection.threads = threads.map(|threads| threads.into_iter().map(ThreadId).collect());
    selection
}

#[test]
fn tables_and_boxes_are_those_of_the_profile_for_all_samples_and_for_a_selection() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "");
    let all = Selection::default();
    assert_boxes(&boxes(&mut page), &report.boxes(&all, Direction::Callees));
    picture(&mut page, "flame");
    page.key("i");
    assert_boxes(&boxes(&mut page), &report.boxes(&all, Direction::Callers));
    page.key("i");
    page.click("[data-view=functions]");
    assert_eq!(table(&mut page), report.functions(&all));
    picture(&mut page, "functions");

    // A span, by dragging.
    let (x, y) = page.middle("#timeline-canvas");
    page.drag((x - 200.0, y), (x + 150.0, y));
    let span = selected(&mut page, &report.profile);
    let times = span.times.clone().expect("a span");
    let wide = (times.end - times.start) as f64 / (2_000 * MILLISECOND) as f64;
    assert!((0.2..0.4).contains(&wide), "{wide}");
    assert_eq!(table(&mut page), report.functions(&span));
    assert_ne!(report.functions(&span), report.functions(&all));
    let (samples, all_samples) = (span.of(&report.profile).count(), report.profile.samples().len());
    let shown = page.text("#selection").replace(',', "");
    assert!(shown.starts_with(&format!("{samples} of {all_samples} samples")), "{shown}");
    picture(&mut page, "span");

    // A thread in it, and another one.
    page.click(".lane-label.thread");
    let thread = selected(&mut page, &report.profile);
    assert_eq!((&thread.times, thread.threads.as_ref().map(Vec::len)), (&span.times, Some(1)));
    assert_eq!(table(&mut page), report.functions(&thread));
    let other = page.middle(".lane-label.thread:nth-of-type(3)");
    page.click_at(other, CTRL);
    let both = selected(&mut page, &report.profile);
    assert_eq!(both.threads.as_ref().map(Vec::len), Some(2));
    assert_eq!(table(&mut page), report.functions(&both));
    page.key("1");
    assert_boxes(&boxes(&mut page), &report.boxes(&both, Direction::Callees));

    // Escape undoes the span, then the threads.
    page.key("2");
    page.key("Escape");
    page.key("Escape");
    assert_eq!(table(&mut page), report.functions(&all));
    assert_eq!(page.finish(), Seen::default());
}

/// The line in the head: what was done in all samples, as `report --stdio` prints it.
#[test]
fn the_head_says_what_was_done() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "");
    let profile = &report.profile;
    let all = profile.samples().len() as u64;
    let parts = Activities::of(profile, profile.samples().iter()).parts(all);
    assert!(parts.len() > 2, "{parts:?}");
    let tenths = |samples: u64| (samples * 1000 + all / 2) / all;
    let words = parts.iter().map(|&(name, samples)| {
        format!("{}.{} % {name}", tenths(samples) / 10, tenths(samples) % 10)
    });
    assert_eq!(page.text("#activities"), words.collect::<Vec<_>>().join(" · "));
    assert_eq!(page.finish(), Seen::default());
}

/// Frames of one function without a name, one behind the other, are one box with their number.
#[test]
fn runs_without_a_name_are_one_box() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "");
    let run = "[libcrypto.so.3] ×3";
    let ends = |page: &mut Page<'_>, end: &str| {
        boxes(page).iter().filter(|(path, _)| path.ends_with(end)).count()
    };
    assert_eq!(ends(&mut page, run), 1);
    page.key("i");
    assert_eq!(ends(&mut page, run), 1);
    page.key("i");
    page.click("[data-view=tree]");
    let rows = "[...document.querySelectorAll('#tree .row')].map((row) => row.innerText)";
    // It is below the end of its stack.
    let closed: Vec<String> = find(&mut page, rows);
    let end = closed.iter().position(|row| row.contains("stack ends here")).expect("a row");
    page.click(&format!("#tree .row:nth-of-type({}) .toggle", end + 1));
    let open: Vec<String> = find(&mut page, rows);
    let runs = open.iter().filter(|row| row.contains("libcrypto")).collect::<Vec<_>>();
    assert!(runs.len() == 1 && runs[0].contains(run), "{open:?}");
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn boxes_have_the_colours_of_their_tiers_in_the_light_and_in_the_dark() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "");
    page.key("t");
    for theme in ["light", "dark"] {
        page.set_media(theme == "dark", false);
        // The pixel in each wide box near its end, where it has no text, and the colour of its category.
        let pairs: Vec<[String; 3]> = find(
            &mut page,
            "(() => { const {flame, session} = jitscribe; const canvas = document.getElementById('flame-canvas');
               const context = canvas.getContext('2d'); const probe = document.body.appendChild(document.createElement('i'));
               const pairs = flame.boxes.filter(({node, width}) => node.item >= 0 && width > 8).map(({node, x, y, width}) => {
                 const {color, label} = session.categories.list[session.grouping.categoryOf[node.item]];
                 probe.style.color = `var(${color})`;
                 const [r, g, b] = context.getImageData(Math.round(x + width - 4), y + 2, 1, 1).data;
                 return [label, `rgb(${r}, ${g}, ${b})`, getComputedStyle(probe).color]; });
               probe.remove(); return pairs; })()",
        );
        assert!(pairs.iter().any(|pair| pair[0] == "jitted: maglev"), "{pairs:?}");
        assert!(pairs.iter().any(|pair| pair[0] == "kernel"), "{pairs:?}");
        assert!(pairs.iter().all(|pair| pair[1] == pair[2]), "{theme}: {pairs:?}");
        picture(&mut page, &format!("tiers-{theme}"));
    }
    // A switch overrides what the system prefers.
    let dark = page.eval("getComputedStyle(document.body).backgroundColor");
    page.click("#theme");
    assert_ne!(page.eval("getComputedStyle(document.body).backgroundColor"), dark);
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn keys_and_clicks_lead_from_a_function_to_its_code_callers_and_callees() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "#view=functions");
    // Search, then the first row.
    page.key("/");
    page.type_text("escap");
    assert_eq!(table(&mut page).iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ["escape"]);
    let escape = report.functions(&Selection::default())[0].clone();
    assert_eq!(escape.0, "escape");
    let share =
        format!("{:.1} % matches", 100.0 * escape.2 as f64 / report.profile.samples().len() as f64);
    assert!(page.text("#selection").contains(&share), "{} {share}", page.text("#selection"));
    page.key("Enter");
    page.key("ArrowDown");
    assert!(page.text("#details").starts_with("escape"), "{}", page.text("#details"));
    // Its callers: in the tree below it.
    page.key("c");
    page.key("3");
    page.key("Escape");
    let tree = page.text("#tree .rows");
    for name in ["escape", "row", "render", "handle", "_start"] {
        assert!(tree.contains(name), "{tree}");
    }
    picture(&mut page, "callers");
    // What render calls.
    let id = page.eval("[...document.querySelectorAll('#tree .row')].find((row) => row.innerText.endsWith('render')).dataset.function");
    page.click(&format!("#tree .row[data-function='{}'] .name", id.as_str().expect("a number")));
    page.key("f");
    let tree = page.text("#tree .rows");
    assert!(tree.contains("v8::internal::Heap::Scavenge()") && !tree.contains("handle"), "{tree}");
    page.key("Escape");
    assert!(page.text("#tree .rows").contains("handle"));
    // The help, and its end.
    page.key("?");
    assert!(page.text("#help").contains("previous or next compilation"));
    picture(&mut page, "help");
    page.key("Escape");
    assert_eq!(page.eval("document.getElementById('help').open"), false);
    // In the flame graph: zoom by a click, out by Escape, and with the keys from box to box.
    page.key("1");
    let place = "(() => { const {flame, session} = jitscribe; const r = document.getElementById('flame-canvas').getBoundingClientRect();
        const box = flame.boxes.find(({node}) => node.item >= 0 && session.grouping.name(node.item) === 'render');
        return [r.x + box.x + box.width / 2, r.y + box.y + 10, box.width]; })()";
    let before: (f64, f64, f64) = find(&mut page, place);
    page.click_at((before.0, before.1), 0);
    assert_eq!(page.eval(place)[2], SIZE.0);
    page.key("ArrowDown");
    assert!(page.text("#details").starts_with("row"), "{}", page.text("#details"));
    page.key("Escape");
    assert_eq!(find::<(f64, f64, f64)>(&mut page, place), before);
    page.key("Enter");
    let title = page.text("#code .code-title");
    assert!(title.starts_with("row"), "{title}");
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn source_and_assembly_show_the_samples_of_lines_and_instructions() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open_code(&mut browser, "#fn=render");
    // The compilation with the most samples.
    let totals = Totals::all(&report.profile);
    let (code, count) = report
        .profile
        .numbered_codes()
        .map(|(id, _)| (id, totals.of_code(id)))
        .max_by_key(|(_, count)| count.own)
        .expect("a code");
    let title = page.text("#code .code-title select option:checked");
    let generation = report.profile.code(code).generation;
    assert_eq!(title, format!("#{generation}, turbofan, {} samples", count.own));
    // Of its instructions, the hot one and the call.
    let all = report.profile.samples().len() as f64;
    let expected = |own: &dyn Fn(u64) -> bool| {
        let frames = report.profile.samples().iter().filter(|sample| {
            let frame = report.profile.frames_of(sample.stack).next().expect("a frame");
            let start = report.profile.code(code).address;
            frame.code == Some(code) && own(frame.address - start)
        });
        format!("{:.1}", 100.0 * frames.count() as f64 / all)
    };
    let row = |page: &mut Page<'_>, offset: u64| {
        cells(page, &format!(".instruction[data-offset='{offset}']"))
    };
    let hot = row(&mut page, HOT);
    assert_eq!(hot[0], expected(&|offset| offset == HOT));
    let words: Vec<_> = hot[5].split_whitespace().collect();
    assert_eq!(words, ["add", "rax,", "qword", "ptr", "[rdi]"]);
    let call = row(&mut page, 21);
    assert_eq!(call[0], "");
    assert_ne!(call[1], "");
    assert!(call[5].contains("Builtins_StringAdd"), "{call:?}");
    // A branch has a label, and its target too.
    let jump = row(&mut page, 19);
    let label = hot[4].trim_end_matches(':');
    assert!(!label.is_empty() && jump[5].ends_with(label), "{jump:?} {label}");
    // The inlined calls are opened, and lead to the line.
    let place = page.text(".place-line.is-inlined");
    assert_eq!(
        place.split_whitespace().collect::<Vec<_>>(),
        ["17", "›", "row:11", "›", "escape:5"]
    );
    let line = |page: &mut Page<'_>, number: u32| {
        cells(page, &format!(".source-line[data-line='{number}']"))
    };
    assert_eq!(line(&mut page, 5)[3], "    out += TABLE[c] ?? c;");
    let inlined: u64 = totals
        .functions(&report.profile)
        .iter()
        .find(|(id, _)| report.profile.function_name(*id) == b"escape")
        .expect("escape")
        .1
        .own;
    assert_eq!(line(&mut page, 5)[0], format!("{:.1}", 100.0 * inlined as f64 / all));
    assert_eq!(line(&mut page, 17)[0], "");
    assert_eq!(line(&mut page, 17)[1], line(&mut page, 5)[1]);
    assert_eq!(line(&mut page, 11)[1], line(&mut page, 5)[1]);
    assert!(page.text("#code .source .pane-head").contains("changed after the recording"));
    picture(&mut page, "code");
    page.click(".source-line[data-line='5'] .text");
    assert_eq!(page.eval("[...document.querySelectorAll('.instruction.selected')].map((row) => Number(row.dataset.offset))"), json!([9, 12, 16, 19]));
    // The bytes, on request.
    page.click("#code .pane-head button");
    assert_eq!(row(&mut page, HOT)[3], "48 03 07");
    // Another compilation, by a key.
    let before = page.text("#code .code-title select option:checked");
    page.key("]");
    assert_ne!(page.text("#code .code-title select option:checked"), before);
    assert_eq!(page.finish(), Seen::default());
}

/// The lines of branches: for each target (its row) the rows that a line passes, those with a corner, those with an arrow, and whether the
/// pieces of the line join.
fn branch_lines(page: &mut Page<'_>) -> Value {
    page.eval(
        "(() => { const found = {};
           for (const piece of document.querySelectorAll('.branches [data-branch]')) {
             const row = Number(piece.parentElement.dataset.row);
             const branch = (found[piece.dataset.branch] ??= {line: [], turn: [], arrow: [], joined: true, on: 0, bottom: null, x: null});
             const kind = ['line', 'turn', 'arrow'].find((kind) => piece.classList.contains(kind));
             branch[kind].push(row);
             branch.on += piece.classList.contains('on');
             if (kind !== 'line') continue;
             const r = piece.getBoundingClientRect();
             if (branch.bottom !== null && (Math.abs(r.top - branch.bottom) > 0.01 || r.left !== branch.x)) branch.joined = false;
             [branch.bottom, branch.x] = [r.bottom, r.left]; }
           for (const branch of Object.values(found)) { delete branch.bottom; branch.isHighlighted = branch.on > 0; delete branch.on; }
           return found; })()",
    )
}

#[test]
fn branches_are_drawn_to_their_targets_and_highlighted() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open_code(&mut browser, "#fn=render");
    let row = |page: &mut Page<'_>, offset: u64| {
        let row = page.eval(&format!("Number(document.querySelector('.instruction[data-offset=\"{offset}\"] .branches').dataset.row)"));
        row.as_u64().expect("a row")
    };
    let [out, jump, hot, back] = [26, 7, HOT, 19].map(|offset| row(&mut page, offset));
    // `je` to the end, and the loop within it.
    let mut expected = json!({
        out.to_string(): {"line": (jump..=out).collect::<Vec<_>>(), "turn": [jump, out], "arrow": [out], "joined": true, "x": null, "isHighlighted": false},
        hot.to_string(): {"line": (hot..=back).collect::<Vec<_>>(), "turn": [hot, back], "arrow": [hot], "joined": true, "x": null, "isHighlighted": false},
    });
    let lines = |page: &mut Page<'_>| {
        let mut lines = branch_lines(page);
        let x = [&lines[out.to_string()], &lines[hot.to_string()]].map(|it| it["x"].as_f64());
        // The inner one is closer to the instructions.
        assert!(x[0] < x[1], "{x:?}");
        for key in [out, hot] {
            lines[key.to_string()]["x"] = Value::Null;
        }
        lines
    };
    assert_eq!(lines(&mut page), expected);
    let label = page.eval("(() => { const [line, label] = ['.branches', '.label'].map((each) => document.querySelector(`.instruction[data-offset=\"9\"] ${each}`).getBoundingClientRect()); return label.left - line.right; })()");
    assert!(label.as_f64().is_some_and(|space| (0.0..20.0).contains(&space)), "{label}");
    picture(&mut page, "branches");
    // The pointer on one of its ends highlights a branch.
    for offset in [19, HOT] {
        let at = page.middle(&format!(".instruction[data-offset='{offset}'] .text"));
        page.hover(at);
        expected[hot.to_string()]["isHighlighted"] = true.into();
        assert_eq!(lines(&mut page), expected);
    }
    picture(&mut page, "branches-highlighted");
    let at = page.middle(".instruction[data-offset='21'] .text");
    page.hover(at);
    expected[hot.to_string()]["isHighlighted"] = false.into();
    assert_eq!(lines(&mut page), expected);
    // With bytes, too.
    page.click("#code .pane-head button");
    page.hover((5.0, 5.0));
    assert_eq!(lines(&mut page), expected);
    picture(&mut page, "branches-bytes");
    assert_eq!(page.finish(), Seen::default());
}

/// Twelve jumps, each around the next.
struct Nested;

impl CodeSource for Nested {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let jumps = (0..12_u8).flat_map(|at| [0xeb, 2 * (23 - at) - 2 * at - 2]);
        // `xchg ax, ax`.
        let bytes = jumps.chain([0x66, 0x90].repeat(12)).collect();
        (code.0 == 0).then_some(Listing { address: 0, machine: 62, bytes, lines: Vec::new() })
    }

    fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        None
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        None
    }
}

#[test]
fn more_branches_than_there_is_space_for_are_left_out_and_counted() {
    let report = Report::with(&mut Nested);
    let mut browser = Browser::start();
    let mut page = report.open_code(&mut browser, "#fn=render&code=0");
    let lines = branch_lines(&mut page);
    let targets: Vec<String> = lines.as_object().expect("branches").keys().cloned().collect();
    // The shortest ones.
    assert_eq!(targets, (12..20).map(|row| row.to_string()).collect::<Vec<_>>());
    assert_eq!(lines["19"]["line"], json!((4..=19).collect::<Vec<_>>()));
    let head = page.text("#code .panes section:nth-child(2) .pane-head");
    assert!(head.contains("Branches to 4 targets are not drawn."), "{head}");
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn compilations_lie_on_the_axis_of_time_and_can_be_compared() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "#fn=render&view=generations");
    page.wait_for(".different");
    page.settle();
    let totals = Totals::all(&report.profile);
    let first = report.profile.samples().times()[0];
    let whole =
        (report.profile.samples().times()[report.profile.samples().len() - 1] - first) as f64;
    let rows: Vec<(String, String, String, f64, f64)> = find(
        &mut page,
        "[...document.querySelectorAll('.generation[data-code]')].map((row) => { const bar = row.querySelector('.life').style;
          return [row.children[1].innerText, row.children[2].innerText, row.children[5].innerText, parseFloat(bar.left), parseFloat(bar.width)]; })",
    );
    assert_eq!(rows.len(), 4);
    for ((id, code), (number, tier, samples, left, width)) in
        report.profile.numbered_codes().zip(rows)
    {
        assert_eq!(number, format!("#{}", code.generation));
        assert_eq!(tier, String::from_utf8_lossy(report.profile.text(code.tier)));
        assert_eq!(samples.replace(',', ""), totals.of_code(id).own.to_string());
        let part = |time: u64| (100.0 * time.saturating_sub(first) as f64 / whole).min(100.0);
        let (loaded, gone) = (part(code.loaded.expect("a time")), code.gone.map_or(100.0, part));
        assert!((left - loaded).abs() < 0.01, "{number} {left} {loaded}");
        assert!((width - (gone - loaded)).abs() < 0.01, "{number} {width} {loaded} {gone}");
    }
    // `dec rsi` became `nop`.
    let head = page.text("#generations .pane-head");
    assert!(head.contains("instructions: 1 removed, 1 added"), "{head}");
    assert!(page.text(".different.removed .text").starts_with("dec"));
    assert!(page.text(".different.added .text").starts_with("nop"));
    picture(&mut page, "generations");
    // Those of one program are the same.
    page.click(".generation[data-code='0'] input[name=side-0]");
    page.click(".generation[data-code='2'] input[name=side-1]");
    assert!(page.text("#generations .pane-head").contains("instructions: 0 removed, 0 added"));
    page.key("6");
    let unnamed = page.text("#unnamed");
    for text in ["[libcrypto.so.3]", "[the copy of the stack ends here]", "has another build-id"] {
        assert!(unnamed.contains(text), "{unnamed}");
    }
    picture(&mut page, "unnamed");
    assert_eq!(page.finish(), Seen::default());
}

/// Functions of one name on one line, as minified scripts have them, differ in all views by the column, and links find each.
#[test]
fn functions_that_share_a_line_have_their_column() {
    let mut builder = profile::Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    for (time, (name, line, column)) in
        (0..).zip([("f", 1, 10), ("f", 1, 2045), ("f", 2, 10), ("g", 1, 5)])
    {
        let name = builder.string(name.as_bytes());
        let mut function = profile::Function::new(name, profile::FunctionKind::Jitted);
        function.file = builder.string(b"/x/a.js");
        (function.line, function.column) = (line, column);
        let function = builder.function(function);
        let frame = builder.frame(profile::Frame::new(function));
        let stack = builder.stack(None, frame);
        builder.sample(profile::SampleRow { time, thread, event, weight: 1, stack });
    }
    let (file, _) = File::report(&builder.finish(), &mut Made);
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "", SIZE);
    let mut paths: Vec<String> = boxes(&mut page).into_iter().map(|(path, _)| path).collect();
    paths.sort();
    assert_eq!(paths, ["/f", "/f a.js:1:10", "/f a.js:1:2045", "/g"]);
    assert_eq!(page.finish(), Seen::default());
    let link = "#view=functions&fn=f&fn-at=%2Fx%2Fa.js%3A1%3A2045";
    let mut page = file.open(&mut browser, link, SIZE);
    let mut places = texts(&mut page, "#functions .row .path");
    places.sort();
    assert_eq!(places, ["/x/a.js:1", "/x/a.js:1:10", "/x/a.js:1:2045", "/x/a.js:2"]);
    let details = texts(&mut page, "#details .path");
    assert_eq!(details, ["/x/a.js:1:2045"]);
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn links_open_what_they_name_and_follow_what_is_looked_at() {
    let report = Report::new();
    let mut browser = Browser::start();
    let link = "#view=functions&fn=render&t=0.25-0.75&threads=4711&q=e&apart=1";
    let mut page = report.open(&mut browser, link);
    let selection = selected(&mut page, &report.profile);
    let first = report.profile.samples().times()[0];
    assert_eq!(selection.times, Some(first + 250 * MILLISECOND..first + 750 * MILLISECOND));
    assert_eq!(selection.threads, Some(vec![ThreadId(0)]));
    assert!(page.text("#details").starts_with("render"));
    // With the tiers apart, there is a row for each that ran then.
    let rows = table(&mut page);
    assert_eq!(rows.iter().filter(|row| row.0 == "render").count(), 2, "{rows:?}");
    page.key("t");
    page.key("Escape");
    page.key("3");
    let now: String = find(&mut page, "location.hash");
    for part in ["view=tree", "fn=render", "t=0.25-0.75", "threads=4711"] {
        assert!(now.contains(part), "{now}");
    }
    assert!(!now.contains("apart") && !now.contains("q="), "{now}");
    // A link to what the profile does not have opens all.
    assert_eq!(page.finish(), Seen::default());
    let mut page = report.open(&mut browser, "#fn=none&t=9-1&threads=5&view=x&event=77&code=99");
    assert!(page.text("#selection").starts_with("3,762 of 3,762"), "{}", page.text("#selection"));
    assert_eq!(page.eval("jitscribe.session.state.view"), "flame");
    assert_eq!(page.finish(), Seen::default());
}

#[test]
fn it_prints_and_fits_narrow_windows() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "#view=functions");
    assert!(page.print() > 10_000);
    for (width, height) in [(1920, 1080), (1000, 700), (420, 800)] {
        page.set_size((width, height));
        for view in ["flame", "functions", "tree", "code", "generations", "unnamed"] {
            page.eval(&format!("jitscribe.session.update({{view: '{view}', fn: jitscribe.session.profile.functionName(0) ? [...Array(20).keys()].find((id) => jitscribe.session.profile.functionName(id) === 'render') : -1}})"));
            page.settle();
            let wider = page.eval("document.documentElement.scrollWidth - innerWidth");
            assert_eq!(wider, 0, "{view} at {width}");
            picture(&mut page, &format!("{view}-{width}"));
        }
    }
    assert_eq!(page.finish(), Seen::default());
}

/// The parts of the source in view that have a colour.
fn colored(page: &mut Page<'_>, kind: &str) -> Vec<String> {
    texts(page, &format!(".source-line .syntax-{kind}"))
}

#[test]
fn sources_have_the_colours_of_their_language() {
    let report = Report::new();
    let mut browser = Browser::start();
    let mut page = report.open(&mut browser, "#fn=escape");
    page.wait_for(".source-line");
    assert_eq!(colored(&mut page, "comment"), ["// Renders pages."]);
    let strings = ["''", "'<li>'", "'</li>'", "''"];
    assert_eq!(colored(&mut page, "string"), strings);
    let function = ["export", "function"];
    let keywords = [
        &function[..],
        &["let", "for", "const", "of", "return"],
        &function,
        &["return"],
        &function,
        &["const", "for", "const", "of", "return"],
    ];
    assert_eq!(colored(&mut page, "keyword"), keywords.concat());
    // The text is what it was.
    let lines: Vec<String> = find(
        &mut page,
        "[...document.querySelectorAll('.source-line .text')].map((line) => line.textContent)",
    );
    let source = Made.source(crate::made::FILE).expect("a source").text;
    assert_eq!(lines.join("\n"), String::from_utf8_lossy(&source).trim_end());
    // Each colour can be read on its background, in the light and in the dark: the contrast that WCAG 2 asks of texts.
    for theme in ["light", "dark"] {
        page.set_media(theme == "dark", false);
        let contrasts: Vec<f64> = find(
            &mut page,
            "(() => { const luminance = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((value) => value / 255)
                 .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
                 .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
               const surface = luminance(getComputedStyle(document.querySelector('main')).backgroundColor);
               return ['keyword', 'string', 'comment', 'number'].map((kind) => {
                 const probe = document.querySelector('main').appendChild(document.createElement('span')); probe.className = `syntax-${kind}`;
                 const own = luminance(getComputedStyle(probe).color); probe.remove();
                 return (Math.max(own, surface) + 0.05) / (Math.min(own, surface) + 0.05); }); })()",
        );
        assert!(contrasts.iter().all(|contrast| *contrast >= 4.5), "{theme}: {contrasts:?}");
        picture(&mut page, &format!("colours-{theme}"));
    }
    assert_eq!(page.finish(), Seen::default());
}

/// The same code with a long source, which is one comment from its first line on.
struct Long;

impl CodeSource for Long {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        Made.listing(code)
    }

    fn name_at(&mut self, code: CodeId, address: u64) -> Option<(Vec<u8>, u64)> {
        Made.name_at(code, address)
    }

    fn source(&mut self, file: &[u8]) -> Option<Source> {
        let mut source = Made.source(file)?;
        source.text = b"/*\n".to_vec();
        source.text.extend(b"return 'not a string';\n".repeat(60_000));
        source.text.extend(b"*/ return 'a string';\n");
        Some(source)
    }
}

#[test]
fn the_end_of_a_long_source_has_its_colours_once_all_above_is_read() {
    let (file, summary) = File::report(&crate::made::profile(), &mut Long);
    assert_eq!(summary.sources, 1);
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "#fn=escape", SIZE);
    page.wait_for(".source-line");
    assert_eq!(colored(&mut page, "keyword"), [""; 0]);
    page.eval("document.querySelector('.pane.source .rows').scrollTop = 1e9");
    page.wait_for(".source-line .syntax-keyword");
    assert_eq!(colored(&mut page, "keyword"), ["return"]);
    assert_eq!(colored(&mut page, "string"), ["'a string'"]);
    let comments = colored(&mut page, "comment");
    assert_eq!(comments.last().map(String::as_str), Some("*/"));
    assert_eq!(comments[0], "return 'not a string';");
    assert_eq!(page.finish(), Seen::default());
}
