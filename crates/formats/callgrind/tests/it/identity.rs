//! Costs and calls belong to the same functions in the copy, whatever the numbers of names mean.

use std::collections::{BTreeMap, HashMap};

use std::rc::Rc;

use callgrind_profile::{
    CodeMap, Columns, Field, Function, Kind, Line, NameRef, Owner, Place, Positions, parse, rewrite,
};
use proptest::prelude::*;

use crate::common::Nothing;

/// Object, file and name.
type Who = (String, String, String);

/// Unknown functions are in no file.
fn who(object: &str, file: &str, name: String) -> Who {
    let file = if object == "???" { "" } else { file };
    (object.to_owned(), file.to_owned(), name)
}

/// Announced code, with a line wherever the profile has none.
struct Announced;

impl CodeMap for Announced {
    fn at(&mut self, address: u64) -> Option<Owner> {
        Nothing.at(address)
    }

    fn function(&mut self, function: u32) -> Function {
        Nothing.function(function)
    }

    fn place(&mut self, _: u32, _: u64) -> Option<Place> {
        None
    }

    fn is_announced(&mut self, object: &[u8]) -> bool {
        object == b"/bin/y"
    }

    fn announced_place(&mut self, function: &[u8], address: u64, line: u64) -> Option<Place> {
        let file: Rc<[u8]> = if function == b"f" { b"x.c" } else { b"z.c" }.as_slice().into();
        let line = (line == 0).then_some(address as u32)?;
        Some(Place { file, line })
    }
}

/// A position: file, address and line.
type At = (String, u64, u64);

/// Self costs by function and position, counts and inclusive costs by caller, callee and position, and jumps by function and both
/// positions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Costs {
    own: BTreeMap<(Who, At), u64>,
    calls: BTreeMap<(Who, Who, At), (u64, u64)>,
    jumps: BTreeMap<(Who, At, At), u64>,
}

/// Reads a profile of one event in the simplest way, and gives lines to announced code if `map` does.
fn costs(profile: &str, map: &mut impl CodeMap) -> Costs {
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
    let (mut file, mut line_file, mut last) = (String::new(), String::new(), Positions::default());
    let (mut called_object, mut called_file, mut called) = (None, None, Who::default());
    let (mut jump_file, mut jump, mut count) = (None, None, None);
    for line in profile.lines() {
        let mut place = |function: &Who, file: &str, positions: &Positions| -> At {
            let address = columns.address(positions).expect("an address");
            // callgrind has no lines of unknown code.
            if function.0 == "???" {
                return (String::new(), address, 0);
            }
            let line = columns.line(positions);
            let is_announced = map.is_announced(function.0.as_bytes());
            let place = map.announced_place(function.2.as_bytes(), address, line);
            match place.filter(|_| is_announced) {
                Some(place) => {
                    let file = String::from_utf8_lossy(&place.file).into_owned();
                    (file, address, place.line.into())
                }
                None => (file.to_owned(), address, line),
            }
        };
        match parse(line.as_bytes()).expect("a line") {
            Line::Name { field, name } => {
                let text = resolve(field.kind(), name);
                match field {
                    Field::Ob => object = text,
                    Field::Fl => (file, line_file) = (text.clone(), text),
                    Field::Fi | Field::Fe => line_file = text,
                    Field::Fn => {
                        function = who(&object, &file, text);
                        line_file.clone_from(&file);
                    }
                    Field::Cob => called_object = Some(text),
                    Field::Cfi | Field::Cfl => called_file = Some(text),
                    Field::Cfn => {
                        let object = called_object.take().unwrap_or_else(|| object.clone());
                        let file = called_file.take().unwrap_or_else(|| line_file.clone());
                        called = who(&object, &file, text);
                    }
                    Field::Jfi => jump_file = Some(text),
                    Field::Jfn => {}
                }
            }
            Line::Calls { count: calls, target } => {
                columns.take(&mut &*target, &last).expect("a target");
                count = Some(calls);
            }
            Line::Jump { taken, target, .. } => {
                jump = Some((taken, columns.take(&mut &*target, &last).expect("a target")));
            }
            Line::Cost(mut rest) => {
                last = columns.take(&mut rest, &last).expect("positions");
                let at = place(&function, &line_file, &last);
                if let Some((taken, target)) = jump.take() {
                    let file = jump_file.take().unwrap_or_else(|| line_file.clone());
                    let target = place(&function, &file, &target);
                    if function.0 != "???" {
                        *costs.jumps.entry((function.clone(), target, at)).or_default() += taken;
                    }
                    continue;
                }
                let text = String::from_utf8_lossy(rest.trim_ascii());
                let cost: u64 = text.parse().expect("a cost");
                match count.take() {
                    Some(count) => {
                        let call = (function.clone(), std::mem::take(&mut called), at);
                        let sum = costs.calls.entry(call).or_default();
                        *sum = (sum.0 + count, sum.1 + cost);
                    }
                    None => *costs.own.entry((function.clone(), at)).or_default() += cost,
                }
            }
            _ => {}
        }
    }
    costs.own.retain(|_, cost| *cost > 0);
    costs
}

/// A name with one of few numbers: defined again, or referred to.
/// Boxed, as the others here: the type of all that is combined takes ten seconds to compile.
fn name(names: &'static [&'static str]) -> BoxedStrategy<String> {
    (1..4_u64, prop::option::of(prop::sample::select(names)))
        .prop_map(|(id, name)| match name {
            Some(name) => format!("({id}) {name}"),
            None => format!("({id})"),
        })
        .boxed()
}

const OBJECTS: &[&str] = &["???", "/bin/x", "/bin/y", "/bin/y"];
const FILES: &[&str] = &["???", "x.c", "y.c"];
const FUNCTIONS: &[&str] = &["main", "0x1000", "0x1010", "0x2000'2", "f"];

fn lines() -> BoxedStrategy<String> {
    let at = || prop::sample::select(vec!["0x1000 1", "+3 *", "* +1", "0x2000 0", "-1 -1"]).boxed();
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
    let jump = (prop::option::of(name(FILES)), at(), at(), 1..99_u64).prop_map(
        |(file, to, from, count)| {
            let file = file.map_or(String::new(), |file| format!("jfi={file}\n"));
            format!("{file}jump={count} {to}\n{from} \n")
        },
    );
    prop_oneof![
        2 => jump.boxed(),
        4 => (at(), 1..99_u64).prop_map(|(at, cost)| format!("{at} {cost}\n")).boxed(),
        3 => function.boxed(),
        3 => call.boxed(),
        1 => name(FILES).prop_map(|name| format!("fi={name}\n")).boxed(),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn what_is_whose_stays(lines in prop::collection::vec(lines(), 0..60)) {
        let names: String = (1..4)
            .map(|id| format!("ob=({id}) /lib/{id}\nfl=({id}) {id}.c\nfn=({id}) n{id}\n0x10 1 {id}\n"))
            .collect();
        let profile = format!("positions: instr line\nevents: Ir\n\n{names}{}", lines.concat());
        for is_announced in [false, true] {
            let mut copy = Vec::new();
            let expected = if is_announced {
                rewrite(profile.as_bytes(), &mut copy, &mut Announced).expect("a profile");
                costs(&profile, &mut Announced)
            } else {
                rewrite(profile.as_bytes(), &mut copy, &mut Nothing).expect("a profile");
                costs(&profile, &mut Nothing)
            };
            let copy = String::from_utf8(copy).expect("UTF-8");
            let found = costs(&copy, &mut Nothing);
            prop_assert_eq!(expected, found, "{}\n=>\n{}", profile, copy);
        }
    }
}
