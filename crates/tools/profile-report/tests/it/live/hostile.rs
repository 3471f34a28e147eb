//! Names, paths and sources of strangers execute nothing in the page, and don't hang it.

use crate::live::shown::{File, expect_nothing_executed, find};
use crate::made::{Made, Maker};
use profile::{
    Code, CodeId, CodeSource, Frame, FunctionKind, ListedFrame, ListedLine, Listing, Missing,
    SampleRow, Source,
};
use test_browser::{Browser, Seen};

/// What a page that takes names for HTML would execute.
const MARK: &str =
    "<img src=x onerror=\"window.executed=1;alert(1)\"><script>window.executed=1;alert(1)</script>";

/// Names that are dangerous in HTML, in scripts, in terminals, and by their length.
fn names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        MARK,
        "</script><script>window.executed=1;alert(1)</script>",
        "<!--<script>",
        "]]></style><iframe src=javascript:alert(1)>",
        "javascript:alert(1)",
        "\" onmouseover=\"alert(1)",
        "${window.executed=1}`",
        "\x1b[2J\x1b]0;title\x07",
        "a\nb\r\nc\u{2028}d",
        "\u{202e}gnp.exe",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "#fn=x&view=code",
        // Sources with colours.
        "</script><script>window.executed=1;alert(1)</script>.js",
        "<b>.php",
        "(a+)+$",
        "",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.push(b"\xff\xfe\x80".to_vec());
    names.push(vec![b'x'; 1 << 20]);
    names.push("\u{ffa0}<b>".repeat(1 << 17).into_bytes());
    names
}

/// Code and sources with the names in them.
struct Hostile(Vec<Vec<u8>>);

impl CodeSource for Hostile {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let frame = |name: &Vec<u8>| ListedFrame {
            function: name.clone(),
            file: name.clone(),
            line: u32::MAX,
            column: u32::MAX,
        };
        // A call, and a piece of an instruction.
        let bytes = vec![0xe8, 0, 0, 0, 0, 0x0f];
        let frames = self.0.iter().map(frame).collect();
        let lines = vec![ListedLine { offset: 0, frames }];
        Some(Listing { address: u64::MAX - u64::from(code.0), machine: 62, bytes, lines })
    }

    fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        Some((MARK.into(), u64::MAX))
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        let mut text = self.0.join(&b'\n');
        text.extend(vec![b'y'; 1 << 20]);
        Some(Source { text, is_newer: true })
    }
}

#[test]
fn nothing_is_executed_requested_or_hung_by_names_paths_and_sources() {
    let mut maker = Maker::new();
    let event = maker.builder.event(MARK.as_bytes());
    let other = maker.builder.event(b"other");
    let names = names();
    let process = maker.builder.process(1, MARK.as_bytes());
    let mut stack = None;
    let mut time = 0;
    for (number, name) in names.iter().enumerate() {
        let tid = u32::try_from(number).expect("a number");
        let thread = maker.builder.thread(process, tid, name);
        let kind = FunctionKind::ALL[number % FunctionKind::ALL.len()];
        let function = maker.function(name, kind, name, u32::MAX);
        let mut code = Code::new(function, u64::MAX);
        code.tier = maker.builder.string(name);
        (code.symbol, code.process, code.address) = (code.tier, Some(process), u64::MAX);
        (code.loaded, code.gone) = (Some(u64::MAX - 5), Some(0));
        let code = maker.builder.code(code);
        for depth in [0, 1] {
            let mut frame = Frame::new(function);
            (frame.code, frame.address, frame.line) = (Some(code), u64::MAX, u32::MAX);
            (frame.depth, frame.column) = (depth, u32::MAX);
            let frame = maker.builder.frame(frame);
            stack = Some(maker.builder.stack(stack, frame));
        }
        let stack = stack.expect("a stack");
        let event = if number % 5 == 4 { other } else { event };
        maker.builder.sample(SampleRow { time, thread, event, weight: u64::MAX, stack });
        let path = maker.builder.string(name);
        let cause = String::from_utf8_lossy(name).into_owned();
        maker.builder.missing(Missing { path, cause, samples: u64::MAX });
        time = u64::saturating_add(time, 1 << 62);
        time = time.min(u64::MAX - 1);
    }
    let mut about = profile::About::default();
    (about.recording, about.host, about.machine) = (MARK.into(), MARK.into(), MARK.into());
    (about.command, about.to_utc) = (names.clone(), Some(i64::MAX));
    about.frequency = Some(u64::MAX);
    maker.builder.about(about);
    let profile = maker.builder.finish();
    let (file, summary) = File::report(&profile, &mut Hostile(names));
    assert!(summary.listings > 0 && summary.sources > 0, "{summary:?}");
    // Long names are shortened, and equal lines are packed.
    assert!(summary.bytes < 1 << 20, "{}", summary.bytes);

    let mut browser = Browser::start();
    let hostile_link =
        format!("#fn={MARK}&q=(a%2B)%2B$&t=0-1e999&focus=__proto__&code=1e99&threads=NaN");
    for fragment in ["", &hostile_link] {
        let mut page = file.open(&mut browser, &fragment.replace(' ', "%20"), (1200, 900));
        for view in ["flame", "functions", "tree", "code", "generations", "unnamed"] {
            for id in 0..profile.functions().len() {
                page.eval(&format!(
                    "jitscribe.session.update({{view: '{view}', fn: {id}, code: -1, event: {}}})",
                    id % 2
                ));
                if view == "flame" || view == "unnamed" {
                    break;
                }
            }
            page.settle();
            page.hover((600.0, 500.0));
            page.hover((400.0, 60.0));
        }
        for key in ["1", "i", "t", "w", "2", "ArrowDown", "c", "3", "f", "?", "Escape", "z", "d"] {
            page.key(key);
        }
        page.key("/");
        page.type_text(MARK);
        page.eval("jitscribe.session.update({view: 'functions', query: '', focus: -1, event: -1})");
        page.settle();
        let names: Vec<String> = find(
            &mut page,
            "[...document.querySelectorAll('#functions .row .name')].map((each) => each.textContent)",
        );
        assert!(names.iter().any(|name| name == MARK), "{names:.2000?}");
        expect_nothing_executed(&mut page);
        assert!(page.print() > 0);
        assert_eq!(page.finish(), Seen::default());
    }
}

#[test]
fn the_policy_of_the_page_forbids_requests() {
    let (file, _) = File::report(&crate::made::profile(), &mut Made);
    let mut browser = Browser::start();
    let mut page = file.open(&mut browser, "", (800, 600));
    // So that the listener is seen to see.
    page.eval("new Promise((done) => { const image = new Image(); image.onerror = () => done(); image.src = 'http://127.0.0.1:9/x'; })");
    page.eval("(alert('seen'), 0)");
    let seen = page.finish();
    assert_eq!(seen.dialogs, ["seen"]);
    assert!(seen.errors.iter().any(|error| error.contains("Content Security Policy")), "{seen:?}");
}
