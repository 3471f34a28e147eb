//! Every tier's code against the evaluator, on the demo program and on random ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::evaluate::evaluate;
use crate::options::Options;
use crate::parser::parse;
use crate::plan::{self, Step};

fn engine(program: &Program, frames: FrameKind, memory: MemoryKind) -> Engine<'_> {
    let announcer = Announcer::new(&Options::default(), "test".into()).unwrap();
    Engine::new(program, frames, memory, 1 << 18, announcer, None).unwrap()
}

fn all(program: &Program) -> Vec<FunctionId> {
    (0..program.functions.len()).map(FunctionId).collect()
}

/// Loads the program at each tier in turn, with every kind of frame, and compares `name(argument)`.
fn assert_agreement(text: &str, name: &str, arguments: &[i64]) {
    let program = parse(text).unwrap();
    let main = program.find(name).unwrap();
    let mut expected = Printed::default();
    let values: Vec<i64> =
        arguments.iter().map(|n| evaluate(&program, main, &[*n], &mut expected)).collect();
    for frames in [FrameKind::Pointer, FrameKind::None] {
        let mut engine = engine(&program, frames, MemoryKind::Memfd);
        engine.load(&all(&program), &Tier::ALL).unwrap();
        for tier in Tier::ALL {
            for id in all(&program) {
                engine.replace(id, tier).unwrap();
            }
            let run = arguments.iter().map(|n| engine.call(main, *n).unwrap());
            assert_eq!(run.collect::<Vec<_>>(), values, "{frames:?} {tier:?} {text}");
            assert_eq!(engine.take_printed(), expected, "{frames:?} {tier:?} {text}");
        }
        for id in all(&program) {
            engine.relocate(id).unwrap();
        }
        let run = arguments.iter().map(|n| engine.call(main, *n).unwrap());
        assert_eq!(run.collect::<Vec<_>>(), values, "moved, {frames:?} {text}");
    }
}

#[test]
fn the_demo_program_means_the_same_at_every_tier() {
    let program = parse(plan::DEMO).unwrap();
    for step in plan::demo(&program) {
        let Step::Run(_, calls) = step else { continue };
        for (id, _) in calls {
            assert_agreement(plan::DEMO, &program.function(id).name, &[0, 1, 7, 12]);
        }
    }
}

const OPERATORS: [&str; 18] = [
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&",
    "||",
];

#[test]
fn arithmetic_at_the_edges_means_the_same() {
    let edges = [i64::MIN, i64::MIN + 1, -64, -1, 0, 1, 2, 63, 64, i64::MAX];
    for operator in OPERATORS {
        for edge in edges {
            // The least number has no literal of its own.
            let edge = match edge {
                i64::MIN => "(-9223372036854775807 - 1)".into(),
                edge => edge.to_string(),
            };
            let text =
                format!("fn f(n) {{ return (n {operator} {edge}) ^ 3 * ({edge} {operator} n); }}");
            assert_agreement(&text, "f", &edges);
        }
    }
}

#[test]
fn a_replaced_code_has_its_predecessors_address_and_a_freed_one_is_succeeded() {
    let program = parse("fn f(n) { return n + 1; } fn g(n) { return n - 1; }").unwrap();
    let [f, g] = [FunctionId(0), FunctionId(1)];
    for memory in [MemoryKind::Anonymous, MemoryKind::Memfd] {
        let mut engine = engine(&program, FrameKind::Pointer, memory);
        engine.load(&[f], &Tier::ALL).unwrap();
        engine.replace(f, Tier::Speed).unwrap();
        assert_eq!(engine.call(f, 1).unwrap(), 2);
        engine.relocate(f).unwrap();
        assert_eq!(engine.call(f, 1).unwrap(), 2);
        engine.free(f).unwrap();
        let error = engine.call(f, 1).unwrap_err();
        assert_eq!(error.to_string(), "f: called a function that is not loaded");
        engine.load(&[g], &[Tier::Baseline]).unwrap();
        assert_eq!(engine.call(g, 1).unwrap(), 0);
        engine.load(&[f], &[Tier::Baseline]).unwrap();

        let versions = engine.versions();
        let first = versions[0].address;
        let moved = versions[2].address;
        assert_ne!(first, moved);
        let places: Vec<u64> = versions.iter().map(|version| version.address).collect();
        assert_eq!(places, [first, first, moved, moved, first]);
        assert_eq!(versions[2].moved_from, Some(first));
        for (dead, successor) in [(0, 1), (1, 2), (2, 3), (1, 4)] {
            assert!(versions[dead].died.unwrap() <= versions[successor].loaded);
        }
        assert!(versions[3..].iter().all(|version| version.died.is_none()));
    }
}

#[test]
fn what_is_left_behind_traps() {
    let program = parse("fn f(n) { return n; }").unwrap();
    let mut engine = engine(&program, FrameKind::None, MemoryKind::Anonymous);
    engine.load(&[FunctionId(0)], &[Tier::Baseline]).unwrap();
    let Loaded { slot, .. } = engine.loaded[0].unwrap();
    engine.relocate(FunctionId(0)).unwrap();
    let left = &engine.arena.memory().bytes()[slot.offset..slot.offset + slot.size];
    assert!(left.iter().all(|byte| *byte == 0xcc));
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    let program = parse("fn f(n) { return n; } fn g() { return 1; }").unwrap();
    let [f, g] = [FunctionId(0), FunctionId(1)];
    let mut engine = engine(&program, FrameKind::Pointer, MemoryKind::Anonymous);
    assert!(matches!(engine.free(f), Err(Error::Plan { .. })));
    assert!(matches!(engine.replace(f, Tier::Speed), Err(Error::Plan { .. })));
    engine.load(&[f, g], &[Tier::Speed]).unwrap();
    assert!(matches!(engine.load(&[f], &[Tier::Speed]), Err(Error::Plan { .. })));
    assert!(matches!(engine.call(g, 0), Err(Error::Plan { .. })));
    let tiny = Announcer::new(&Options::default(), "test".into()).unwrap();
    let mut tiny =
        Engine::new(&program, FrameKind::Pointer, MemoryKind::Anonymous, 1, tiny, None).unwrap();
    let full = (0..100).find_map(|_| {
        let loaded = tiny.load(&[f], &Tier::ALL);
        tiny.loaded[0] = None;
        loaded.err()
    });
    assert!(matches!(full, Some(Error::ArenaFull { .. })));
}

/// Small callees are compiled in place by the optimising tiers, with all that they call, but no function
/// into itself and none that is large.
#[test]
fn small_callees_are_inlined() {
    let text = "fn main(n) { return outer(n) + inner(n) + large(n); }
        fn outer(n) { return inner(n) + main(n - 1); }
        fn inner(n) { if n > 5 { return 1; } return n; }
        fn large(n) { return n + n + n + n + n + n + n + n + n + n + n + n; }";
    let program = parse(text).unwrap();
    let mut compiler = Compiler::new(FrameKind::Pointer).unwrap();
    let mut calls = |name: &str, tier| -> Vec<(String, Option<u32>)> {
        let compiled = compiler.compile(&program, program.find(name).unwrap(), tier).unwrap();
        let name = |id: FunctionId| program.function(id).name.clone();
        compiled.calls.iter().map(|call| (name(call.callee), call.parent)).collect()
    };
    assert_eq!(calls("main", Tier::Baseline), []);
    for tier in [Tier::Speed, Tier::Compact] {
        let expected = [("outer", None), ("inner", Some(0)), ("inner", None)];
        assert_eq!(calls("main", tier), expected.map(|(name, at)| (name.to_owned(), at)));
    }
}

/// An expression over `a`, `b`, `c` and the functions before number `callable`.
fn expression(callable: usize) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        select(vec!["a", "b", "c"]).prop_map(str::to_owned),
        (0..100_i64).prop_map(|n| n.to_string()),
        (0..=i64::MAX).prop_map(|n| n.to_string()),
    ];
    leaf.prop_recursive(4, 12, 2, move |inner| {
        let binary = (inner.clone(), select(OPERATORS.to_vec()), inner.clone())
            .prop_map(|(a, operator, b)| format!("({a} {operator} {b})"));
        let unary = (select(vec!["-", "!"]), inner.clone()).prop_map(|(o, a)| format!("{o}{a}"));
        let print = inner.clone().prop_map(|a| format!("print({a})"));
        let call = (0..callable.max(1), vec(inner, 5)).prop_map(move |(callee, arguments)| {
            if callable == 0 {
                return arguments[0].clone();
            }
            match PARAMETERS[callee] {
                1 => format!("apply(f{callee}, {})", arguments[0]),
                count => format!("f{callee}({})", arguments[..count].join(", ")),
            }
        });
        prop_oneof![6 => binary, 2 => unary, 1 => print, 2 => call]
    })
}

const PARAMETERS: [usize; 3] = [1, 3, 5];

/// Statements; every loop has a counter of its own and ends.
fn statements(callable: usize) -> impl Strategy<Value = String> {
    let assign = (select(vec!["a", "b", "c"]), expression(callable))
        .prop_map(|(name, value)| format!("{name} = {value};"));
    let leaf = prop_oneof![
        8 => assign,
        1 => expression(callable).prop_map(|value| format!("return {value};")),
    ];
    leaf.prop_recursive(3, 8, 3, move |inner| {
        let block = vec(inner, 0..3).prop_map(|statements| statements.join("\n"));
        prop_oneof![
            (expression(callable), block.clone(), block.clone()).prop_map(
                |(condition, then, other)| {
                    format!("if {condition} {{\n{then}\n}} else {{\n{other}\n}}")
                }
            ),
            (expression(callable), block).prop_map(|(condition, body)| format!(
                "if 1 {{ let i = 0; while i < 3 && {condition} {{ i = i + 1;\n{body}\n}} }}"
            )),
        ]
    })
}

fn function(name: String, parameters: usize, callable: usize) -> impl Strategy<Value = String> {
    let head = ["a", "b", "c", "d", "e"][..parameters].join(", ");
    let lets: String =
        ["a", "b", "c"].iter().skip(parameters).map(|name| format!("let {name} = 3;\n")).collect();
    vec(statements(callable), 1..4).prop_map(move |body| {
        format!("fn {name}({head}) {{\n{lets}{}\nreturn a ^ b + c;\n}}\n", body.join("\n"))
    })
}

fn program() -> impl Strategy<Value = String> {
    (
        function("f0".into(), PARAMETERS[0], 0),
        function("f1".into(), PARAMETERS[1], 1),
        function("f2".into(), PARAMETERS[2], 2),
        function("main".into(), 1, 3),
    )
        .prop_map(|(f0, f1, f2, main)| [main, f2, f0, f1].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_programs_mean_the_same_at_every_tier(text in program(), n: i64) {
        assert_agreement(&text, "main", &[0, n]);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z(){};=+<0-9 \n€]{0,80}|fn f\\([a-e,]{0,9}\\) \\{.{0,60}\\}") {
        let _ = parse(&text);
    }
}
