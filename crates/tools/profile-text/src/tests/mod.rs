//! The views of a made profile, as a user sees them.

mod shared_lines;

use profile::{Activities, Compared, Comparison, Direction, Measure, SampleRow, Selection, Totals};

use crate::made::{Made, made, text};
use crate::{
    Annotated, Difference, Found, Generations, Parts, Sort, Top, Tree, Wanted, find, hottest,
};

/// The first sample.
const START: u64 = 1_005_000_000;

#[test]
fn the_top_list() {
    let Made { profile, .. } = made();
    let totals = Totals::all(&profile);
    let top = Top::of(&profile, &totals, Sort::Own, 1.0);
    assert_eq!(text(&top.lines()), include_str!("top.txt"));
    let names = |sort| -> Vec<String> {
        Top::of(&profile, &totals, sort, 0.0)
            .functions
            .into_iter()
            .map(|row| row.function.name)
            .collect()
    };
    assert_eq!(names(Sort::Own), ["add", "fib", "main", "rare\n\x1b[2J"]);
    assert_eq!(names(Sort::Total), ["main", "fib", "add", "rare\n\x1b[2J"]);
    assert_eq!(names(Sort::Name), ["add", "fib", "main", "rare\n\x1b[2J"]);
}

#[test]
fn the_call_tree() {
    let Made { profile, .. } = made();
    let tree = |direction, least, depth| {
        text(&Tree::of(&profile, profile.samples().iter(), direction, least, depth).lines())
    };
    assert_eq!(tree(Direction::Callees, 0.6, None), include_str!("callees.txt"));
    assert_eq!(tree(Direction::Callers, 0.0, Some(2)), include_str!("callers.txt"));
}

fn annotated(wanted: &Wanted) -> Annotated {
    let Made { profile, fib, mut code, .. } = made();
    Annotated::of(&profile, &Selection::default(), fib, &mut code, wanted)
}

#[test]
fn a_function_with_its_instructions() {
    let annotated = annotated(&Wanted::default());
    assert_eq!(text(&annotated.lines(Parts::Mixed, START)), include_str!("mixed.txt"));
    let all: u64 = annotated.codes[0].instructions.iter().map(|each| each.samples).sum();
    assert_eq!((all, annotated.samples_in_code), (185, 195));
}

/// As of interpreted code, whose frames have no lines.
#[test]
fn a_function_without_lines_has_the_source_of_its_definition() {
    let mut builder = profile::Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    let name = builder.string(b"fib");
    let mut function = profile::Function::new(name, profile::FunctionKind::Interpreted);
    (function.file, function.line, function.column) = (builder.string(b"fib.toy"), 2, 5);
    let function = builder.function(function);
    let frame = builder.frame(profile::Frame::new(function));
    let stack = builder.stack(None, frame);
    builder.sample(SampleRow { time: 1, thread, event, weight: 1, stack });
    let (profile, mut code) = (builder.finish(), made().code);
    let selection = Selection::default();
    let annotated = Annotated::of(&profile, &selection, function, &mut code, &Wanted::default());
    let lines: Vec<_> =
        annotated.lines.iter().map(|line| (line.line, line.text.is_some(), line.samples)).collect();
    assert_eq!(lines[..3], [(0, false, 1), (2, true, 0), (3, true, 0)]);
    // It is found by its place, with the column and without.
    let totals = Totals::all(&profile);
    for typed in ["fib", "fib fib.toy:2", "fib fib.toy:2:5"] {
        assert_eq!(find(&profile, &totals, typed), Found::Function(function, Vec::new()));
    }
}

#[test]
fn a_function_with_its_source() {
    let annotated = annotated(&Wanted::default());
    assert_eq!(text(&annotated.lines(Parts::Source, START)), include_str!("source.txt"));
}

#[test]
fn other_compilations_are_shown_on_request() {
    let wanted = Wanted { generations: Generations::Number(1), ..Wanted::default() };
    let annotated_first = annotated(&wanted);
    assert_eq!(text(&annotated_first.lines(Parts::Assembly, START)), include_str!("first.txt"));
    let shown = |wanted: &Wanted| -> Vec<u32> {
        let annotated = annotated(wanted);
        annotated.codes.iter().filter(|code| code.is_shown).map(|code| code.generation).collect()
    };
    assert_eq!(shown(&Wanted { generations: Generations::All, ..Wanted::default() }), [2, 1]);
    assert_eq!(shown(&Wanted { tier: Some("Baseline".into()), ..Wanted::default() }), [1]);
    assert_eq!(shown(&Wanted { tier: Some("none".into()), ..Wanted::default() }), [0; 0]);
}

#[test]
fn an_inlined_function_is_shown_where_it_runs() {
    let Made { profile, add, mut code, .. } = made();
    let annotated =
        Annotated::of(&profile, &Selection::default(), add, &mut code, &Wanted::default());
    assert_eq!(text(&annotated.lines(Parts::Mixed, START)), include_str!("inlined.txt"));
}

#[test]
fn functions_are_found_by_what_is_typed() {
    let Made { profile, fib, add, code } = made();
    let totals = Totals::all(&profile);
    assert_eq!(profile.code(code.baseline()).function, fib);
    for typed in ["fib", "fib fib.toy:2"] {
        assert_eq!(find(&profile, &totals, typed), Found::Function(fib, vec![]), "{typed}");
    }
    assert_eq!(find(&profile, &totals, "AD"), Found::Function(add, vec![]));
    let Found::Several(several) = find(&profile, &totals, "toy") else { panic!() };
    assert_eq!(several.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [add, fib]);
    assert_eq!(find(&profile, &totals, "nothing"), Found::Nothing);
    // add has more samples than fib, into whose code it is inlined everywhere.
    assert_eq!(hottest(&profile, &totals), Some(add));
}

#[test]
fn the_difference_of_two_recordings() {
    let Made { profile, .. } = made();
    let is_other =
        |sample: &SampleRow| sample.time.is_multiple_of(3) || sample.time > 1_400_000_000;
    let samples: [&mut dyn Iterator<Item = SampleRow>; 2] =
        [&mut profile.samples().iter(), &mut profile.samples().iter().filter(is_other)];
    let profiles = [&profile, &profile];
    let comparison = Comparison::of(profiles, samples, Compared::Own, Measure::Share);
    let activities = [
        Activities::of(&profile, profile.samples().iter()),
        Activities::of(&profile, profile.samples().iter().filter(is_other)),
    ];
    let difference =
        Difference::of(profiles, activities, &comparison, Compared::Own, Measure::Share);
    assert_eq!(text(&difference.lines(true)), include_str!("difference.txt"));
    assert!(!text(&difference.lines(false)).contains("noise"));
}

/// Scripts read these fields: docs/look.md.
#[test]
fn views_are_json() {
    let annotated = serde_json::to_value(annotated(&Wanted::default())).expect("JSON");
    let instruction = &annotated["codes"][0]["instructions"][4];
    assert_eq!(instruction["bytes"], "4801f8");
    assert_eq!(instruction["frames"][0]["function"], "add");
    assert_eq!(instruction["samples"], 135);
    assert_eq!(annotated["lines"][1]["text"], "    if (n <= 1) return n");
    let Made { profile, .. } = made();
    let totals = Totals::all(&profile);
    let top = serde_json::to_value(Top::of(&profile, &totals, Sort::Own, 0.0)).expect("JSON");
    assert_eq!(top["functions"][1]["tiers"][0]["tier"], "optimized");
    assert_eq!(top["functions"][1]["name"], "fib");
}
