//! Functions of one name on one line, as minified scripts have them: the column tells them apart, and only them.

use profile::{
    Activities, Builder, Compared, Comparison, Direction, Frame, Function, FunctionKind, Measure,
    Profile, SampleRow, Totals,
};

use crate::made::text;
use crate::{Difference, Found, Sort, Top, Tree, find};

/// A profile of functions named `f` and `g`, each called by the one before, with this line and column and a sample of their own.
fn on_lines(functions: &[(&str, u32, u32)]) -> Profile {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    let mut stack = None;
    for (time, (name, line, column)) in (0..).zip(functions) {
        let mut function = Function::new(builder.string(name.as_bytes()), FunctionKind::Jitted);
        function.file = builder.string(b"/x/a.js");
        (function.line, function.column) = (*line, *column);
        let function = builder.function(function);
        let frame = builder.frame(Frame::new(function));
        let last = builder.stack(stack, frame);
        stack = Some(last);
        builder.sample(SampleRow { time, thread, event, weight: 1, stack: last });
    }
    builder.finish()
}

/// What a view shows behind its numbers.
fn names(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| line.find(['f', 'g']).map(|at| &line[at..]));
    names.filter(|name| name.contains(".js") || name.len() == 1).collect()
}

#[test]
fn functions_that_share_a_line_have_their_column() {
    let profile = on_lines(&[("f", 1, 10), ("g", 1, 30), ("f", 1, 2045), ("f", 2, 10)]);
    let totals = Totals::all(&profile);
    let top = text(&Top::of(&profile, &totals, Sort::Total, 0.0).lines());
    let placed = ["f  /x/a.js:1:10", "g  /x/a.js:1", "f  /x/a.js:1:2045", "f  /x/a.js:2"];
    assert_eq!(names(&top.replace("function", "")), placed, "{top}");
    let tree = Tree::of(&profile, profile.samples().iter(), Direction::Callees, 0.0, None);
    let tree = text(&tree.lines());
    for name in ["f a.js:1:10\n", " g\n", "f a.js:1:2045\n", " f\n"] {
        assert_eq!(tree.matches(name).count(), 1, "{name:?} in {tree}");
    }
    let [first, other] = [0, 2].map(profile::FunctionId);
    for (typed, found) in [
        ("f /x/a.js:1:10", Found::Function(first, vec![])),
        ("f /x/a.js:1:2045", Found::Function(other, vec![])),
        // As the tree shows it.
        ("f a.js:1:2045", Found::Function(other, vec![])),
        ("f /x/a.js:1", Found::Function(first, vec![other])),
    ] {
        assert_eq!(find(&profile, &totals, typed), found, "{typed}");
    }
}

/// In a comparison, they may be of different recordings.
#[test]
fn functions_that_share_a_line_of_two_recordings_have_their_column() {
    let profiles = [
        on_lines(&[("f", 1, 10), ("f", 1, 30), ("g", 1, 5)]),
        on_lines(&[("f", 1, 10), ("g", 1, 5), ("g", 2, 5)]),
    ];
    let [before, after] = &profiles;
    let samples: [&mut dyn Iterator<Item = SampleRow>; 2] =
        [&mut before.samples().iter(), &mut after.samples().iter()];
    let comparison = Comparison::of([before, after], samples, Compared::Own, Measure::Share);
    let activities = [before, after].map(|it| Activities::of(it, it.samples().iter()));
    let difference =
        Difference::of([before, after], activities, &comparison, Compared::Own, Measure::Share);
    let difference = text(&difference.lines(true));
    for place in ["f  /x/a.js:1:10\n", "f  /x/a.js:1:30\n", "g  /x/a.js:1\n", "g  /x/a.js:2\n"] {
        assert_eq!(difference.matches(place).count(), 1, "{place:?} in {difference}");
    }
}
