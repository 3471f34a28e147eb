//! What each tool must show.

use std::collections::BTreeMap;

use test_privilege::{Privilege, have};

use crate::jit::SOURCE;
use crate::run::{Function, Ran, profile, run, run_within};

/// All tests, by name.
pub const ALL: [(&str, fn()); 20] = [
    ("callgrind_has_names_lines_and_calls", callgrind),
    ("cachegrind_has_names_and_lines", cachegrind),
    ("memcheck_has_whole_stacks", memcheck),
    ("memcheck_shows_inlined_calls", inlined),
    ("massif_has_whole_stacks", massif),
    ("dhat_has_whole_stacks", dhat),
    ("helgrind_has_whole_stacks", helgrind),
    ("memory_of_other_layouts", layouts),
    ("code_on_the_heap", heap),
    ("code_that_moves", moves),
    ("memory_that_is_given_back", remap),
    ("other_threads_run_the_same_pages", threads),
    ("a_fork_has_files_of_its_own", fork),
    ("a_full_disk_ends_it", full_disk),
    ("ten_thousand_functions_one_at_a_time", many),
    ("ten_thousand_functions_in_one_place", rejit),
    ("the_work_for_a_code_does_not_grow_with_the_mappings", mappings),
    ("the_profile_is_without_the_publisher", uncounted),
    ("each_thread_is_counted_while_it_does_not_announce", parallel),
    ("the_choice_of_what_callgrind_counts_is_kept", chosen),
];

const CALLGRIND: &[&str] = &[
    "--tool=callgrind",
    "--compress-strings=no",
    "--compress-pos=no",
    "--callgrind-out-file=DIR/out.%p",
];

const CACHEGRIND: &[&str] =
    &["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=DIR/out.%p"];

fn profile_of(ran: &Ran) -> BTreeMap<String, Function> {
    let files = ran.files("out.");
    assert_eq!(files.len(), 1, "{}", ran.said);
    profile(&files[0])
}

fn lines(function: &Function) -> Vec<(u32, u64)> {
    function
        .lines
        .iter()
        .map(|((file, line), cost)| (file == SOURCE).then_some((*line, *cost)).unwrap())
        .collect()
}

/// Functions that are named only by their address, in any of our object files.
fn nameless(profile: &BTreeMap<String, Function>) -> Vec<&String> {
    let ours = |function: &Function| function.objects.iter().any(|object| object.contains("/jit-"));
    let all = profile.iter().filter(|(name, function)| ours(function) && name.starts_with("0x"));
    all.map(|(name, _)| name).collect()
}

/// The profile, in which all our code has a name.
fn all_named(ran: &Ran) -> BTreeMap<String, Function> {
    let profile = profile_of(ran);
    assert_eq!(nameless(&profile), [""; 0]);
    profile
}

fn callgrind() {
    let ran = run("calls", CALLGRIND);
    let profile = profile_of(&ran);
    let [call, read, count] = ["jit::call", "jit::read", "jit::count"].map(|name| &profile[name]);
    assert_eq!(lines(call), [(20, 9), (21, 3), (22, 6)]);
    assert_eq!(lines(read), [(11, 1), (12, 1)]);
    assert_eq!(lines(count), [(30, 1), (31, 2000), (32, 1)]);
    assert_eq!([call.calls, read.calls, count.calls], [3, 1, 1]);
    let files = ran.files("jit-");
    assert_eq!(files.len(), 1, "{files:?}");
    let object = files[0].to_str().unwrap();
    for function in [call, read, count] {
        assert_eq!(function.objects.iter().map(String::as_str).collect::<Vec<_>>(), [object]);
    }
    // The same as KCachegrind's machine code view.
    let listing =
        std::process::Command::new("objdump").args(["-C", "-d", object]).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    assert!(listing.contains("0000007123456300 <jit::count>:"), "{listing}");
    assert!(listing.contains("7123456302:\tff c9                \tdec    %ecx"), "{listing}");
}

fn cachegrind() {
    let ran = run("calls", CACHEGRIND);
    let text = ran.text("out.");
    let at = text.find("fn=jit::count").unwrap_or_else(|| panic!("{text}"));
    // Functions of one file follow each other.
    let file = text[..at].lines().rfind(|line| line.starts_with("fl="));
    assert_eq!(file, Some(&*format!("fl={SOURCE}")));
    let lines: Vec<&str> = text[at..].lines().skip(1).take(3).collect();
    assert_eq!(lines, ["30 1", "31 2000", "32 1"]);
}

/// Asserts that lines of a tool's output come one after another, each with its text somewhere in it.
fn assert_stack(said: &str, frames: &[&str]) {
    let lines: Vec<&str> = said.lines().collect();
    let fits =
        |window: &[&str]| window.iter().zip(frames).all(|(line, frame)| line.contains(frame));
    assert!(lines.windows(frames.len()).any(fits), "no {frames:#?} in\n{said}");
}

fn memcheck() {
    for option in ["--keep-debuginfo=no", "--keep-debuginfo=yes"] {
        let options = ["--tool=memcheck", "--leak-check=full", "--num-callers=50"];
        let ran = run("calls", &[&options[..], &["--read-inline-info=no", option]].concat());
        let above = ["jit::call (jitted.lang:21)", "(roles.rs:"];
        let read = ["Invalid read of size 8", "jit::read (jitted.lang:11)"];
        assert_stack(&ran.said, &[&read[..], &above[..]].concat());
        let leak = ["432,100 bytes in 1 blocks", "malloc", "tools::jit::leak"];
        assert_stack(&ran.said, &[&leak[..], &above[..]].concat());
        for begin in ["Invalid read of size 8", "432,100 bytes in 1 blocks are"] {
            let from = ran.said.find(begin).unwrap();
            let stack = ran.said[from..].lines().skip(1);
            let mut stack =
                stack.take_while(|line| line.contains("at 0x") || line.contains("by 0x"));
            assert!(stack.any(|line| line.contains(": main (")), "{}", &ran.said[from..]);
        }
        assert_eq!(ran.said.matches("432,100 bytes in 1 blocks are").count(), 1);
    }
}

fn inlined() {
    let ran = run("inlined", &["--tool=memcheck"]);
    let stack = [
        "Invalid read of size 8",
        "jit::inner (jitted.lang:11)",
        "jit::middle (other.lang:51)",
        "jit::outer (jitted.lang:41)",
        "jit::call (jitted.lang:21)",
    ];
    assert_stack(&ran.said, &stack);
    for frame in &stack {
        assert_eq!(ran.said.matches(frame).count(), 2, "{frame}\n{}", ran.said);
    }
}

fn massif() {
    let ran = run("calls", &["--tool=massif", "--threshold=0.0", "--massif-out-file=DIR/out.%p"]);
    let text = ran.text("out.");
    assert_stack(&text, &["tools::jit::leak", "jit::call (jitted.lang:21)", "(roles.rs:"]);
}

fn dhat() {
    let ran = run("calls", &["--tool=dhat", "--dhat-out-file=DIR/out.%p"]);
    let text = ran.text("out.");
    assert!(text.contains(": jit::call (jitted.lang:21)\""), "{text}");
}

fn helgrind() {
    let ran = run("race", &["--tool=helgrind"]);
    let race = ["Possible data race during read of size 8", "Locks held: none"];
    let stack = ["jit::read (jitted.lang:11)", "jit::call (jitted.lang:21)"];
    assert_stack(&ran.said, &[race, stack].concat());
}

fn layouts() {
    let profile = all_named(&run("layouts", CALLGRIND));
    assert_eq!(profile["in_twice"].cost(), 2 * 2002);
    assert_eq!(profile["in_twice_too"].cost(), 2002);
    for page in 0..16 {
        let times = if page % 3 == 0 { 16 - page } else { 1 };
        let function = &profile[&format!("in_page_{page}")];
        assert_eq!(lines(function), [(30, times), (31, 200 * times), (32, times)], "{page}");
    }
}

fn heap() {
    let profile = all_named(&run("heap", CALLGRIND));
    let on_heap: Vec<_> = profile.iter().filter(|(name, _)| name.starts_with("on_heap_")).collect();
    assert_eq!(on_heap.len(), 40);
    for (name, function) in on_heap {
        assert_eq!(lines(function), [(30, 1), (31, 2000), (32, 1)], "{name}");
    }
}

fn full_disk() {
    if !have(&[Privilege::Mounts]) {
        return;
    }
    let mount = "mkdir small; mount -t tmpfs -o size=300k none small";
    let profile = profile_of(&run_within(mount, "full", CALLGRIND));
    // It keeps what it knew by then.
    let named: Vec<_> = profile.iter().filter(|(name, _)| name.starts_with("fills_")).collect();
    assert!(named.len() > 20, "{named:?}");
    assert!(named.iter().all(|(_, function)| function.cost() == 22), "{named:?}");
    assert!(!profile.contains_key("too_late"));
}

fn moves() {
    let profile = all_named(&run("moves", CALLGRIND));
    assert_eq!(profile["moves"].cost(), 3 * 2002);
    assert_eq!(profile["stays"].cost(), 2002);
    // It had moved when the profile was written; what ran here lost its lines.
    assert_eq!(profile["moves"].lines.get(&(SOURCE.to_owned(), 31)), Some(&4000));
}

fn remap() {
    let profile = all_named(&run("remap", CALLGRIND));
    let first = profile.iter().filter(|(name, _)| name.starts_with("first_"));
    let costs: Vec<u64> = first.map(|(_, function)| function.cost()).collect();
    assert_eq!(costs, [22; 100]);
    assert_eq!(profile["grows"].calls, 200);
}

fn threads() {
    let ran = run("threads", &[CALLGRIND, &["--fair-sched=try"]].concat());
    let profile = all_named(&ran);
    assert_eq!(profile["new"].cost(), 200 * 102);
    assert_eq!(profile["new"].calls, 200);
}

fn fork() {
    let options = ["--trace-children=yes"];
    let ran = run("fork", &[CALLGRIND, &options].concat());
    let mut seen = Vec::new();
    for file in ran.files("out.") {
        let profile = profile(&file);
        assert_eq!(nameless(&profile), [""; 0]);
        for who in ["in_parent", "in_child"] {
            if let Some(function) = profile.get(who) {
                let pid = file.extension().unwrap().to_str().unwrap();
                let own = format!("/jit-{pid}-");
                let is_own = function.objects.iter().all(|object| object.contains(&own));
                assert!(is_own, "{function:?}");
                assert_eq!(function.cost(), 2002);
                seen.push(who);
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, ["in_child", "in_parent"]);
}

fn many() {
    let ran = run("many", CALLGRIND);
    let profile = all_named(&ran);
    for number in 0..10_000 {
        let function = &profile[&format!("many_{number}")];
        assert_eq!(lines(function), [(30, 2), (31, 40), (32, 2)], "{number}");
        assert_eq!(function.calls, 2);
    }
    // One object file for some pages, not for each function, nor for everything.
    assert!((10..200).contains(&ran.files("jit-").len()), "{:?}", ran.files("jit-"));
}

fn rejit() {
    let ran = run("rejit", CALLGRIND);
    let profile = all_named(&ran);
    for number in 0..10_000 {
        let (kind, cost) = [("count", 22), ("read", 2), ("call", 6)][number % 3];
        assert_eq!(profile[&format!("jit::{kind}_{number}")].cost(), cost, "{number}");
    }
    assert_eq!(ran.files("jit-").len(), 1);
}

fn mappings() {
    // cachegrind counts every instruction of the process.
    let instructions = |numbers: [u64; 4]| {
        let role =
            numbers.iter().fold("mappings".to_owned(), |role, number| format!("{role} {number}"));
        let ran = run(&role, CACHEGRIND);
        let total = ran.said.lines().find_map(|line| line.split_once("refs:")).unwrap().1;
        let objects = ran.files("jit-").len();
        (total.trim().replace(',', "").parse::<u64>().unwrap(), objects)
    };
    for mappings in [100, 4000, 20_000] {
        let (ascending, descending) = (50, 50);
        let [(before, _), (after, objects)] =
            [0, 1].map(|announced| instructions([mappings, ascending, descending, announced]));
        let per_code = (after - before) / (ascending + descending);
        println!("{mappings} mappings: {per_code} instructions for a code");
        assert!((2000..=10_000).contains(&per_code), "{mappings} mappings: {per_code}");
        assert!((6..12).contains(&objects), "{objects} objects");
    }
}

/// The cost of what has a name that begins with `prefix`.
fn cost_of(profile: &BTreeMap<String, Function>, prefix: &str) -> u64 {
    let all = profile.iter().filter(|(name, _)| name.starts_with(prefix));
    all.map(|(_, function)| function.cost()).sum()
}

fn total(profile: &BTreeMap<String, Function>) -> u64 {
    cost_of(profile, "")
}

fn uncounted() {
    let totals = [0, 1].map(|announced| {
        let ran = run(&format!("mappings 400 200 200 {announced}"), CALLGRIND);
        total(&profile_of(&ran))
    });
    // What remains is what holds signals back.
    let per_code = totals[1].abs_diff(totals[0]) / 400;
    println!("{per_code} instructions of a code are in the profile");
    assert!(per_code < 400, "{totals:?}");
}

fn parallel() {
    let profile = all_named(&run("parallel", CALLGRIND));
    for thread in 0..4 {
        for number in 0..200 {
            let function = &profile[&format!("of_{thread}_{number}")];
            assert_eq!((function.cost(), function.calls), (202, 1), "{thread} {number}");
        }
    }
    let share = cost_of(&profile, "publish_valgrind") as f64 / total(&profile) as f64;
    assert!(share < 0.01, "{share}");
}

fn chosen() {
    let with = |role: &str, option: &str| profile_of(&run(role, &[CALLGRIND, &[option]].concat()));
    // It counts a function only. In there the publisher is counted, whose work depends a little on what is there; its work
    // elsewhere, thousands of instructions for each of 200 codes, is not.
    let [few, many] =
        ["chosen 0", "chosen 100"].map(|role| with(role, "--toggle-collect=chosen_part"));
    for profile in [&few, &many] {
        assert_eq!(profile["inside"].cost(), 10 * 22);
        assert_eq!(cost_of(profile, "outside"), 0);
    }
    assert!(total(&few).abs_diff(total(&many)) < 20_000, "{} {}", total(&few), total(&many));
    // It counts nothing.
    assert_eq!(total(&with("chosen 100", "--collect-atstart=no")), 0);
    // Another option whose name is similar.
    let all = with("chosen 100", "--collect-jumps=no");
    assert_eq!(all["outside"].cost(), 200 * 22);
    assert!(cost_of(&all, "publish_valgrind") < total(&all) / 100);
}
