//! Whole profiles: what stays unchanged, and what is named.

use crate::common::{Map, Nothing, sums};
use callgrind_profile::{Cause, Error, rewrite};
use proptest::prelude::*;

const HEADER: &str =
    "# callgrind format\nversion: 1\npid: 7\npositions: instr line\nevents: Ir\n\n";

fn named(profile: &str) -> String {
    let mut out = Vec::new();
    rewrite(profile.as_bytes(), &mut out, &mut Map).expect("a profile");
    String::from_utf8(out).expect("UTF-8")
}

fn with(body: &str) -> String {
    format!("{HEADER}{body}")
}

#[test]
fn what_is_known_stays_byte_for_byte() {
    let profile = with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\n+3 * 7\ncob=(2) /lib/y.so\ncfi=(2) y.c\n\
         cfn=(2) f\ncalls=1 0x99 4\n* * 100\njcnd=1/2 +4 +1\n* *\nfi=(2)\n+1 +1 3\nfe=(1)\n+1 -1 2\n\n\
         ob=(2)\nfl=(2)\nfn=(2)\n0x99 4 100\n\ntotals: 117\n",
    );
    assert_eq!(named(&profile), profile);
}

#[test]
fn names_first_said_in_unknown_code_are_said_where_they_are_needed() {
    let out = named(&with(
        "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001000\n0x1000 0 5\ncob=(2) /lib/y.so\ncfi=(2) y.c\n\
         cfn=(2) f\ncalls=1 0x99 4\n* * 100\n\nob=(2)\nfl=(2)\nfn=(2)\n0x99 4 100\n\ntotals: 105\n",
    ));
    assert!(out.contains("ob=(2) /lib/y.so\nfl=(2) y.c\nfn=(2) f\n0x99 4 100\n"), "{out}");
    assert!(out.contains("cob=/lib/y.so\ncfi=y.c\ncfn=f\ncalls=1 0x99 4 \n"), "{out}");
}

#[test]
fn a_caller_says_the_name_object_and_file_of_what_it_calls() {
    let out = named(&with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\ncob=(2) ???\ncfi=(2) ???\n\
         cfn=(2) 0x0000000000001043\ncalls=9 0x1043 0\n* * 90\n\nob=(2)\nfl=(2)\nfn=(2)\n0x1043 0 90\n\n\
         totals: 95\n",
    ));
    assert!(out.contains("cob=jit.so\ncfi=a.lang\ncfn=g\ncalls=9 0x1043 3 \n* * 90\n"), "{out}");
    assert!(out.contains("ob=jit.so\nfl=a.lang\nfn=g\n0x1043 3 90\n"), "{out}");
    assert!(!out.contains("0x00000"), "{out}");
}

/// Names without their objects and files, and lines between.
#[test]
fn what_is_known_stays_byte_for_byte_without_repetitions() {
    let profile = with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\n\nfn=(2) f\n0x20 3 7\ncfn=(1)\ncalls=1 0x10 3 \n\
         * * 5\njfi=(1)\njfn=(2)\njump=3 +4 +1\n* * \n\nfl=(2) y.c\nfn=(3) 0x4711\n+3 +1 2\nfi=(1)\n+1 * 1\n\n\
         fn=(2)\n* * 5\n\nob=(2) ???\nfn=(4) known\n+4 1 1\n\nob=(1)\nfn=(3)\n0x4711 0 2\n\ntotals: 28\n",
    );
    assert_eq!(named(&profile), profile);
}

/// In the copy, a number means the name that the copy defined last.
#[test]
fn redefined_numbers_keep_the_meaning_of_each_definition() {
    let out = named(&with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\n\nob=(2) ???\nfl=(2) ???\nfn=(2) 0x1000\n0x1000 0 7\n\
         cob=(1) /bin/y\ncfi=(1) y.c\ncfn=(1) other\ncalls=1 0x10 3\n* * 5\n\nob=(1)\nfl=(1)\nfn=(1)\n0x10 3 5\n\n\
         ob=(3) /bin/z\ncob=(3) /bin/w\ncfn=(1)\ncalls=1 0x10 3\n0x20 1 1\n\ntotals: 17\n",
    ));
    assert!(out.contains("ob=(1) /bin/y\nfl=(1) y.c\nfn=(1) other\n0x10 3 5\n"), "{out}");
    // The function's object, and then the callee's, which had the same number when it was defined.
    assert!(out.contains("ob=(3) /bin/z\ncob=(3) /bin/w\ncfn=(1)\n"), "{out}");
}

/// A number within a name has no meaning if the line that defined it was left out.
#[test]
fn numbers_in_names_are_said() {
    let out = named(&with(
        "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x1000\n0x1000 0 7\ncob=(2) /lib/y.so\ncfn=(2) f\ncalls=1 0x99 4\n* * 2\n\n\
         ob=(2)\nfl=(2) y.c\nfn=(3) (2)'2\n0x99 4 1\n\nfn=(2)\n0x99 4 1\n\ntotals: 9\n",
    ));
    assert!(out.contains("fn=(3) f'2\n"), "{out}");
    assert!(out.contains("fn=(2) f\n"), "{out}");
}

/// `f` runs to its end and jumps to `g`, whose cost was part of `f`'s.
#[test]
fn a_jump_to_a_beginning_is_a_call() {
    let out = named(&with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\ncob=(2) ???\ncfi=(2) ???\n\
         cfn=(2) 0x1000\ncalls=2 0x1000 0\n* * 26\n\nob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 2\n+4 0 2\n\
         jump=2 0x1040 0\n* 0\n0x1040 0 2\n+4 0 20\n\ntotals: 31\n",
    ));
    // A name that would be read as a number is not written unchanged.
    assert!(out.contains("fn=_(1) f\n"), "{out}");
    assert!(out.contains("cfn=g\ncalls=2 +60"), "{out}");
    assert!(out.contains("\n* * 22\n"), "{out}");
    assert_eq!(sums(out.as_bytes()), [31]);
}

/// `f` goes round five times: four jumps to its beginning, the last visit with an instruction more. Each jump includes the
/// visits behind it, and the memory accesses in them. Which visit had the cache miss is unknown.
#[test]
fn a_ring_that_is_entered_once_includes_what_is_behind_each_jump() {
    let profile = |calls: u64| {
        HEADER.replace("Ir", "Ir Dr D1mr")
            + &format!(
                "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\ncob=(2) ???\ncfi=(2) ???\ncfn=(2) 0x1000\n\
                 calls={calls} 0x1000 0\n* * 11 6 2\n\nob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 5 5 1\n+4 0 5\n\
                 jcnd=4/5 0x1000 0\n* 0\n+4 0 1 1 1\n\ntotals: 16 6 2\n",
            )
    };
    let inclusive = |profile: &str| {
        let out = named(profile);
        let call = out.split("cfn=_(1) f\ncalls=4 ").nth(1).expect("the jump");
        let costs = call.lines().nth(1).expect("its costs");
        costs.strip_prefix("* *").expect("the same place").trim().to_owned()
    };
    // Ir: 9 + 7 + 5 + 3. Dr: 5 + 4 + 3 + 2.
    assert_eq!(inclusive(&profile(1)), "24 14");
    assert_eq!(inclusive(&profile(2)), "0");
}

/// `g` is called twice in this part, and once more at the end of the part before, where the call is counted. It comes after
/// `f`, which always jumps at its end, and so it was not reached from there.
#[test]
fn what_always_jumps_does_not_lead_to_the_next_instruction() {
    let out = named(&with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\ncob=(2) ???\ncfi=(2) ???\n\
         cfn=(2) 0x1040\ncalls=2 0x1040 0\n* * 7\n\nob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 1\n0x103e 0 1\n\
         jump=1 0x2000 0\n* 0\n0x1040 0 3\n+4 0 3\njump=1 0x1000 0\n* 0\n0x2000 0 1\n\ntotals: 14\n",
    ));
    // All executions of `g` are its own, written once.
    assert!(out.contains("fn=g\n0x1040 0 3\n+4 4 3\n"), "{out}");
    assert_eq!(sums(out.as_bytes()), [14]);
}

/// On arm64 callgrind treats every plain `B` as a call. In code that it knows, such a call into the same function is
/// a recursion, and one to the beginning of another function is what a tail jump is on other machines.
#[test]
fn a_branch_of_arm64_is_a_call_as_callgrind_has_it() {
    let out = named(&with(
        "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\n0x10 3 5\ncob=(2) ???\ncfi=(2) ???\n\
         cfn=(2) 0x0000000000001000\ncalls=2 0x1000 0\n* * 46\n\n\
         ob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 4\n+4 0 2\ncfn=(3) 0x0000000000001010\ncalls=2 0x1010 0\n* * 40\n\n\
         fn=(3)\n0x1010 0 2\n0x1030 0 2\ncfn=(4) 0x0000000000001010'2\ncalls=2 0x1010 0\n* * 36\n\n\
         fn=(4)\n0x1010 0 6\n0x1030 0 4\ncfn=(4)\ncalls=4 0x1010 0\n* * 30\n\
         0x1034 0 2\ncfn=(5) 0x0000000000001040\ncalls=2 0x1040 0\n* * 24\n\nfn=(5)\n0x1040 0 24\n\ntotals: 51\n",
    ));
    // The first iteration, and the others.
    let calls: Vec<_> =
        out.match_indices("cfn=_(1) f'2\ncalls=").map(|(at, _)| &out[at + 19..at + 20]).collect();
    assert_eq!(calls, ["2", "2", "4"], "{out}");
    assert_eq!(out.matches("cfn=g\ncalls=2 ").count(), 1, "{out}");
    assert_eq!(out.matches("fn=_(1) f\n").count(), 2, "{out}");
    assert!(!out.contains("0x00000"), "{out}");
    assert_eq!(sums(out.as_bytes()), [51]);
}

#[test]
fn a_call_of_nothing_that_was_named_stays_with_its_costs() {
    let profile =
        with("ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) main\ncalls=1 0x99 4\n0x10 3 5\n\ntotals: 0\n");
    assert_eq!(named(&profile), profile);
}

/// The costs of collected code come behind it.
#[test]
fn a_jump_at_the_end_takes_no_costs_of_others() {
    let profile = with("ob=???\nfn=0x1000\n0x1000 0 7\nob=/bin/x\nfn=f\njump=2 0x10 0\n");
    let mut out = Vec::new();
    let summary = rewrite(profile.as_bytes(), &mut out, &mut Map).expect("a profile");
    assert!(summary.is_cut_off);
    assert_eq!(sums(&out), [7]);
}

#[test]
fn a_cost_that_is_no_number_is_damage() {
    let profile = with("ob=(1) ???\nfl=(1) ???\nfn=(1) 0x1000\n0x1000 0 2x4\n\ntotals: 2\n");
    let damaged = rewrite(profile.as_bytes(), Vec::new(), &mut Map);
    let Err(Error::Damaged { line, cause, .. }) = damaged else { panic!("{damaged:?}") };
    assert_eq!((line, cause), (10, Cause::NoNumber));
}

#[test]
fn callers_in_names_are_named() {
    for (name, expected) in [
        ("f'0x0000000000001040'2'main", "f'g'2'main"),
        // Whose name has the end of a line.
        ("main'0x0000000000001000", "main'(1) f"),
    ] {
        let out = named(&with(&format!(
            "ob=(1) /bin/x\nfl=(1) x.c\nfn=(1) {name}\n0x10 3 5\n\ntotals: 5\n"
        )));
        assert!(out.contains(&format!("fn=(1) {expected}\n0x10 3 5\n")), "{out}");
    }
}

#[test]
fn without_instructions_code_is_renamed() {
    let profile = "positions: line\nevents: Ir\nob=(1) ???\nfl=(1) ???\nfn=(1) 0x1040\n0 7\ncfn=(2) 0x9000\n\
        calls=1 0\n0 3\nfn=(2)\n0 3\nfn=(3) 0x2000\n0 1\n\ntotals: 11\n";
    let mut out = Vec::new();
    let summary = rewrite(profile.as_bytes(), &mut out, &mut Map).expect("a profile");
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(out.contains("ob=jit.so\nfl=a.lang\nfn=g\n0 7\n"), "{out}");
    // A call without an object refers to its caller's, which is a different one now.
    assert!(out.contains("cob=(1) ???\ncfi=???\ncfn=(2) 0x9000\ncalls=1 0\n0 3\n"), "{out}");
    assert!(out.contains("ob=(1)\nfl=(1) ???\nfn=(2)\n0 3\n"), "{out}");
    let ir = &summary.events[0];
    assert_eq!((ir.unknown, ir.named, ir.total), (11, 8, 11));
    assert!(!summary.has_instructions);
}

#[test]
fn each_part_has_its_own() {
    let part = "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x1000\n0x1000 0 4\n\ntotals: 4\n";
    let out = named(&with(&format!(
        "{part}\npart: 2\n\n{}",
        part.replace(" ???", "").replace(" 0x1000\n0", "\n0")
    )));
    assert_eq!(out.matches("fl=a.lang\nfn=_(1) f\n0x1000 0 4\n").count(), 2, "{out}");
}

#[test]
fn errors_name_the_place_of_the_damage() {
    let error =
        |profile: &str| rewrite(profile.as_bytes(), std::io::sink(), &mut Map).expect_err("damage");
    let unknown = error(&with("fn=(1) f\n0x10 3 5\nfn=(2)\n"));
    let Error::Damaged { offset, line, cause } = unknown else { panic!("{unknown}") };
    let place = (HEADER.len() + 18) as u64;
    assert_eq!((offset, line, cause), (place, 9, Cause::UnknownName(2)));
    assert!(error(&with("fn=(1) f\nwhat\n")).to_string().contains("line 8 "));
    assert!(error("").to_string().contains("not a callgrind profile"));
}

/// Lines as in profiles, in any order.
fn line() -> impl Strategy<Value = String> {
    let address = prop::sample::select(vec![
        0x10_u64, 0x1000, 0x1003, 0x1040, 0x1044, 0x2000, 0x2010, 0x3000,
    ]);
    let position = prop_oneof![
        address.clone().prop_map(|address| format!("{address:#x}")),
        (1..64_u64).prop_map(|distance| format!("+{distance}")),
        Just("*".to_owned()),
    ];
    let id = 1..4_u64;
    prop_oneof![
        6 => (position.clone(), 0..50_u64).prop_map(|(at, cost)| format!("{at} 0 {cost}")),
        2 => (address.clone(), "('2|'3)?").prop_map(|(at, level)| format!("fn={at:#018x}{level}")),
        1 => Just("fn=main".to_owned()),
        2 => prop::sample::select(vec!["ob=???", "ob=/bin/x", "fl=???", "fl=x.c", "fi=y.c", ""])
            .prop_map(str::to_owned),
        3 => (prop::sample::select(vec!["cob=???\n", "cob=/bin/x\n", ""]), address.clone(), position.clone(), 1..9_u64)
            .prop_map(|(object, to, at, count)| {
                format!("{object}cfn={to:#x}\ncalls={count} {to:#x} 0\n{at} 0 {}", count * 7)
            }),
        3 => (address, position, 1..9_u64)
            .prop_map(|(to, at, count)| format!("jcnd={count}/9 {to:#x} 0\n{at} 0")),
        1 => (prop::sample::select(vec!["ob", "fl", "fn", "cfn"]), id)
            .prop_map(|(key, id)| format!("{key}=({id}) n{id}")),
    ]
}

proptest! {
    #[test]
    fn no_cost_is_lost(lines in prop::collection::vec(line(), 0..80)) {
        let profile = with(&format!("ob=???\nfl=???\nfn=0x1000\n{}\n", lines.join("\n")));
        let mut out = Vec::new();
        let summary = rewrite(profile.as_bytes(), &mut out, &mut Map).expect("a profile");
        prop_assert_eq!(sums(&out), sums(profile.as_bytes()), "{}", String::from_utf8_lossy(&out));
        prop_assert!(summary.events[0].named <= summary.events[0].unknown);
        // Named code is not named again, and stays unchanged.
        let mut again = Vec::new();
        let left = rewrite(&*out, &mut again, &mut Nothing).expect("a profile");
        prop_assert_eq!(left.events[0].unknown, summary.events[0].unknown - summary.events[0].named);
        prop_assert_eq!(sums(&again), sums(&out));
    }

    #[test]
    fn any_bytes_are_read(bytes in "[fcobnlj=0-9x()+* \n:'a-z]{0,200}") {
        let profile = format!("events: Ir\n{bytes}");
        _ = rewrite(profile.as_bytes(), std::io::sink(), &mut Map);
    }
}

/// Memory is allocated for every event on every line.
#[test]
fn more_events_than_anybody_counts_are_refused() {
    let profile = format!("positions: line\nevents:{}\n\nfn=f\n1 1\n", " e".repeat(257));
    let error = rewrite(profile.as_bytes(), &mut Vec::new(), &mut Map).expect_err("too many");
    let Error::Damaged { line, cause, .. } = error else { panic!("{error}") };
    assert_eq!((line, cause), (2, Cause::TooManyEvents));
}

/// Lines of a context all belong to it, even if other lines are in between.
#[test]
fn a_context_may_go_on_later() {
    let out = named(&with(
        "ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000002000\n0x2004 0 5\njump=2 0x2001 0\n* 0\n\n\
         fn=(2) 0x0000000000001001\n0x1001 0 70\n\nfn=(1)\n0x2001 0 7\n\nfn=(2)\n0x1002 0 30\n\n\
         fn=(1)\n0x2004 0 2\n\ntotals: 114\n",
    ));
    assert!(out.contains("fn=h\n0x2001 0 7\n+3 0 7\njump=2 -3 0 \n* 0 \n"), "{out}");
    assert!(out.contains("0x1001 1 70\n+1 +1 30\n"), "{out}");
}
