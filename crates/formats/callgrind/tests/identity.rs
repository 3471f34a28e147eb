//! Costs and calls belong to the same functions in the copy, whatever the numbers of names mean.

#[path = "common/nothing.rs"]
mod nothing;

use std::collections::{BTreeMap, HashMap};

use callgrind_profile::{Columns, Field, Kind, Line, NameRef, Positions, parse, rewrite};
use nothing::Nothing;
use proptest::prelude::*;

/// Object and name.
type Who = (String, String);

/// Self costs by function, and counts and inclusive costs by caller and callee.
#[derive(Debug, Default, PartialEq, Eq)]
struct Costs {
    own: BTreeMap<Who, u64>,
    calls: BTreeMap<(Who, Who), (u64, u64)>,
}

/// Reads a profile of one event in the simplest way.
fn costs(profile: &str) -> Costs {
    let columns = Columns::parse(b"instr line").expect("columns");
    let mut names: HashMap<(Kind, u64), String> = HashMap::new();
    let mut resolve = |kind: Kind, name: NameRef<'_>| {
        let text = String::from_utf8_lossy(name.text).into_owned();
        let Some(id) = name.id else { return text };
        if !text.is_empty() {
            names.insert((kind, id), text);
        }
        names.get(&(kind, id)).unwrap_or_else(|| panic!("{kind:?} ({id})\n{profile}")).clone()
    };
    let (mut costs, mut object, mut function) = (Costs::default(), String::new(), Who::default());
    let (mut called_object, mut called, mut count) = (None, Who::default(), None);
    for line in profile.lines() {
        match parse(line.as_bytes()).expect("a line") {
            Line::Name { field, name } => {
                let text = resolve(field.kind(), name);
                match field {
                    Field::Ob => object = text,
                    Field::Fn => function = (object.clone(), text),
                    Field::Cob => called_object = Some(text),
                    Field::Cfn => {
                        called = (called_object.take().unwrap_or_else(|| object.clone()), text);
                    }
                    _ => {}
                }
            }
            Line::Calls { count: calls, .. } => count = Some(calls),
            Line::Cost(mut rest) => {
                columns.take(&mut rest, &Positions::default()).expect("positions");
                let text = String::from_utf8_lossy(rest.trim_ascii());
                let cost: u64 = text.parse().expect("a cost");
                match count.take() {
                    Some(count) => {
                        let call = (function.clone(), std::mem::take(&mut called));
                        let sum = costs.calls.entry(call).or_default();
                        *sum = (sum.0 + count, sum.1 + cost);
                    }
                    None => *costs.own.entry(function.clone()).or_default() += cost,
                }
            }
            _ => {}
        }
    }
    costs.own.retain(|_, cost| *cost > 0);
    costs
}

/// A name with one of few numbers: defined again, or referred to.
fn name(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    (1..4_u64, prop::option::of(prop::sample::select(names))).prop_map(|(id, name)| match name {
        Some(name) => format!("({id}) {name}"),
        None => format!("({id})"),
    })
}

const OBJECTS: &[&str] = &["???", "/bin/x", "/bin/y"];
const FILES: &[&str] = &["???", "x.c", "y.c"];
const FUNCTIONS: &[&str] = &["main", "0x1000", "0x1010", "0x2000'2", "f"];

fn lines() -> impl Strategy<Value = String> {
    let at = || prop::sample::select(vec!["0x1000 1", "+3 *", "* +1", "0x2000 0", "-1 -1"]);
    let function =
        (prop::option::of(name(OBJECTS)), prop::option::of(name(FILES)), name(FUNCTIONS)).prop_map(
            |(object, file, name)| {
                let object = object.map_or(String::new(), |object| format!("ob={object}\n"));
                let file = file.map_or(String::new(), |file| format!("fl={file}\n"));
                format!("\n{object}{file}fn={name}\n")
            },
        );
    let call = (
        prop::option::of(name(OBJECTS)),
        prop::option::of(name(FILES)),
        name(FUNCTIONS),
        at(),
        at(),
        1..99_u64,
    )
        .prop_map(|(object, file, name, to, from, cost)| {
            let object = object.map_or(String::new(), |object| format!("cob={object}\n"));
            let file = file.map_or(String::new(), |file| format!("cfi={file}\n"));
            format!("{object}{file}cfn={name}\ncalls=3 {to} \n{from} {cost}\n")
        });
    prop_oneof![
        4 => (at(), 1..99_u64).prop_map(|(at, cost)| format!("{at} {cost}\n")),
        3 => function,
        3 => call,
        1 => name(FILES).prop_map(|name| format!("fi={name}\n")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn what_is_whose_stays(lines in prop::collection::vec(lines(), 0..60)) {
        let names: String = (1..4)
            .map(|id| format!("ob=({id}) /lib/{id}\nfl=({id}) {id}.c\nfn=({id}) n{id}\n0x10 1 {id}\n"))
            .collect();
        let profile = format!("positions: instr line\nevents: Ir\n\n{names}{}", lines.concat());
        let mut copy = Vec::new();
        rewrite(profile.as_bytes(), &mut copy, &mut Nothing).expect("a profile");
        let copy = String::from_utf8(copy).expect("UTF-8");
        prop_assert_eq!(costs(&profile), costs(&copy), "{}\n=>\n{}", profile, copy);
    }
}
