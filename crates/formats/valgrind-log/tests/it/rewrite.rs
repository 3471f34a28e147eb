//! Each format with all, some or no addresses known; and arbitrary content.

use std::io::BufReader;
use std::rc::Rc;

use proptest::prelude::*;
use valgrind_log::{Counts, Error, Frame, Named, Namer, cachegrind, dhat, massif, text, xml};

/// Knows three addresses, and records the queries.
#[derive(Default)]
struct Known {
    asked: Vec<(Option<u32>, u64)>,
    parents: Vec<(u32, u32)>,
}

fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame {
        function: function.into(),
        folder: b"/src".to_vec(),
        file: file.into(),
        line,
        object: b"/tmp/jit-7.dump".to_vec(),
    }
}

impl Namer for Known {
    fn name(&mut self, pid: Option<u32>, address: u64) -> Option<Rc<Named>> {
        self.asked.push((pid, address));
        let (frames, doubtful) = match address {
            0x4a40044 => (vec![frame("fib<int>", "fib.js", 10)], false),
            0x4a40059 => {
                let frames = vec![
                    frame("inner & co", "a.js", 1),
                    frame("middle", "b\"\\.js", 2),
                    frame("outer", "", 0),
                ];
                (frames, true)
            }
            0x4a40060 => (Vec::new(), false),
            _ => return None,
        };
        Some(Named { frames, doubtful }.into())
    }

    fn parent(&mut self, pid: u32, parent: u32) {
        self.parents.push((pid, parent));
    }
}

/// Knows nothing.
struct NoNames;

impl Namer for NoNames {
    fn name(&mut self, _: Option<u32>, _: u64) -> Option<Rc<Named>> {
        None
    }
}

fn text_of(input: &str, namer: &mut impl Namer) -> (String, Counts) {
    let mut out = Vec::new();
    let counts = text::rewrite(input.as_bytes(), &mut out, namer).unwrap();
    (String::from_utf8(out).unwrap(), counts)
}

#[test]
fn frames_of_text_are_named_and_inlined_calls_are_lines() {
    let log = "\
==7== Parent PID: 5
printed by the program==7== Invalid read
==7==    at 0x4A40044: ???
==7==    by 0x4A40059: ??? (in /memfd:jit (deleted))
==7==    by 0x10938F: main (prog.c:57)
==7==  Address 0x4a512b0 is 0 bytes after
the program--8--    at 0x4A40059: ???\r
**9**    at 0x1: ???
==00:00:00:01.234 10==    at 0x4A40044: ???
==7x==    at 0x4A40044: ???
at 0x4A40044: ???
==7==    at 0x4A40060: ???";
    let mut known = Known::default();
    let (named, counts) = text_of(log, &mut known);
    assert_eq!(
        named,
        "\
==7== Parent PID: 5
printed by the program==7== Invalid read
==7==    at 0x4A40044: fib<int> (fib.js:10)
==7==    by 0x4A40059: inner & co (a.js:1)
==7==    by 0x4A40059: middle (b\"\\.js:2)
==7==    by 0x4A40059: outer (in /tmp/jit-7.dump)
==7==    by 0x10938F: main (prog.c:57)
==7==  Address 0x4a512b0 is 0 bytes after
the program--8--    at 0x4A40059: inner & co (a.js:1)\r
--8--    by 0x4A40059: middle (b\"\\.js:2)\r
--8--    by 0x4A40059: outer (in /tmp/jit-7.dump)\r
**9**    at 0x1: ???
==00:00:00:01.234 10==    at 0x4A40044: fib<int> (fib.js:10)
==7x==    at 0x4A40044: ???
at 0x4A40044: ???
==7==    at 0x4A40060: ???"
    );
    assert_eq!(known.parents, [(7, 5)]);
    let pids: Vec<_> = known.asked.iter().map(|(pid, _)| pid.unwrap()).collect();
    assert_eq!(pids, [7, 7, 8, 9, 10, 7]);
    assert_eq!((counts.frames, counts.unknown, counts.named, counts.doubtful), (7, 6, 4, 2));
    // In processes 8 and 10 it ends in JIT-compiled code.
    assert_eq!((counts.stacks, counts.broken), (3, 2));
}

#[test]
fn stacks_that_lead_nowhere_are_counted_and_those_cut_short_are_not() {
    let stack = |frames: &[&str]| {
        let mut log = String::from("==7== Invalid read\n");
        for (number, frame) in frames.iter().enumerate() {
            let word = if number == 0 { "at" } else { "by" };
            log += &format!("==7==    {word} {frame}\n");
        }
        log
    };
    let broken = |log: &str| {
        let counts = text_of(log, &mut Known::default()).1;
        (counts.stacks, counts.broken)
    };
    let (jit, main, lost) = ("0x4A40044: ???", "0x1: main (a.c:1)", "0x1FFF: ???");
    assert_eq!(broken(&stack(&[jit, main])), (1, 0));
    assert_eq!(broken(&stack(&[jit, lost, main])), (1, 1));
    assert_eq!(broken(&stack(&[main, jit])), (1, 1));
    assert_eq!(broken(&stack(&[lost, main])), (0, 0));
    assert_eq!(broken(&stack(&[jit; 12])), (1, 0));
    assert_eq!(broken(&format!("--7--    --num-callers=13\n{}", stack(&[jit; 12]))), (1, 1));
}

#[test]
fn loss_records_that_become_equal_are_counted_and_left() {
    let record = |address: &str, number, kind: &str| {
        format!(
            "==7== 10 bytes in 1 blocks are {kind} lost in loss record {number} of 3\n\
             ==7==    at 0x48417B4: malloc (in /m.so)\n==7==    by {address}: ???\n==7==    \
             by 0x10: main (a.c:1)\n==7== \n"
        )
    };
    let log = [
        record("0x4A40044", 1, "definitely"),
        record("0x4A40044", 2, "definitely"),
        record("0x4A40044", 3, "possibly"),
        record("0x4A40059", 3, "definitely"),
    ]
    .concat();
    let (named, counts) = text_of(&log, &mut Known::default());
    assert_eq!((counts.stacks, counts.repeated), (4, 1));
    assert_eq!(named.matches("loss record").count(), 4);
    assert_eq!(text_of(&log, &mut NoNames).1.repeated, 0);
}

#[test]
fn frames_of_xml_get_the_elements_that_valgrind_would_write() {
    let log = "<?xml version=\"1.0\"?>
<pid>7</pid>
<ppid>5</ppid>
<error>
  <kind>Leak_DefinitelyLost</kind>
  <stack>
    <frame>
      <ip>0x4A40044</ip>
    </frame>
    <frame><ip>0x4A40059</ip><obj>/memfd:a</obj></frame>
    <frame>
      <ip>0x10938F</ip>
      <obj>/prog</obj>
      <fn>main</fn>
    </frame>
  </stack>
</error>
";
    let mut known = Known::default();
    let mut out = Vec::new();
    let counts = xml::rewrite(log.as_bytes(), &mut out, &mut known).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "<?xml version=\"1.0\"?>
<pid>7</pid>
<ppid>5</ppid>
<error>
  <kind>Leak_DefinitelyLost</kind>
  <stack>
    <frame>
      <ip>0x4A40044</ip>
      <obj>/tmp/jit-7.dump</obj>
      <fn>fib&lt;int&gt;</fn>
      <dir>/src</dir>
      <file>fib.js</file>
      <line>10</line>
    </frame>
    <frame><ip>0x4A40059</ip><obj>/memfd:a</obj><fn>inner &amp; co</fn><dir>/src</dir><file>a.js\
         </file><line>1</line></frame>
    <frame><ip>0x4A40059</ip><obj>/memfd:a</obj><fn>middle</fn><dir>/src</dir><file>b\"\\.js</file>\
         <line>2</line></frame>
    <frame><ip>0x4A40059</ip><obj>/memfd:a</obj><fn>outer</fn></frame>
    <frame>
      <ip>0x10938F</ip>
      <obj>/prog</obj>
      <fn>main</fn>
    </frame>
  </stack>
</error>
"
    );
    assert_eq!(known.asked, [(Some(7), 0x4a40044), (Some(7), 0x4a40059)]);
    assert_eq!(known.parents, [(7, 5)]);
    assert_eq!((counts.frames, counts.unknown, counts.named, counts.stacks), (3, 2, 2, 1));
}

/// Only spaces indent a tree: a line that begins differently is not part of it.
#[test]
fn other_white_space_in_a_file_of_massifs_stays() {
    let file =
        "desc: x\nsnapshot=0\n\u{c} n1: 4096 0x48: f (a.c:1)\n\tn0: 1 0x49: ???\n n0: 1 0x50: g\n";
    let mut out = Vec::new();
    let counts = massif::rewrite(file.as_bytes(), &mut out, &mut NoNames).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), file);
    assert_eq!(counts.frames, 1);
}

#[test]
fn inlined_calls_make_a_tree_of_massif_deeper() {
    let file = "desc: x
cmd: ./prog
snapshot=1
heap_tree=peak
n2: 9 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 5 0x4A40059: ???
  n0: 3 0x4A40044: ???
  n0: 2 in 2 places, all below massif's threshold (1.00%)
 n0: 4 0x1: ???
#-----------
";
    let mut out = Vec::new();
    let counts = massif::rewrite(file.as_bytes(), &mut out, &mut Known::default()).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "desc: x
cmd: ./prog
snapshot=1
heap_tree=peak
n2: 9 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 5 0x4A40059: inner & co (a.js:1)
  n1: 5 0x4A40059: middle (b\"\\.js:2)
   n2: 5 0x4A40059: outer (in /tmp/jit-7.dump)
    n0: 3 0x4A40044: fib<int> (fib.js:10)
    n0: 2 in 2 places, all below massif's threshold (1.00%)
 n0: 4 0x1: ???
#-----------
"
    );
    assert_eq!((counts.unknown, counts.named), (3, 2));
    for other in ["", "desc: x\n", "==7== snapshot=1\n"] {
        let refused = massif::rewrite(other.as_bytes(), Vec::new(), &mut NoNames);
        assert!(refused.is_err(), "{other}");
    }
}

fn dhat_of(input: &str, namer: &mut impl Namer) -> Result<(String, Counts), Error> {
    let found = dhat::survey(input.as_bytes(), namer)?;
    let mut out = Vec::new();
    let counts = dhat::rewrite(input.as_bytes(), &mut out, &found)?;
    Ok((String::from_utf8(out).unwrap(), counts))
}

#[test]
fn inlined_calls_are_frames_of_their_own_in_dhat() {
    let file = r#"{"dhatFileVersion":2
,"cmd":"./prog \"fs\": [2]"
,"pid":7
,"pps":
 [{"tb":472,"acc":[2,-3]
  ,"fs":[1,2, 3]
  }
 ,{"fs":[2,4],"tb":1}
 ]
,"ftbl":
 ["[root]"
 ,"0x4A40044: ???"
 ,"0x4A40059: ??? (in /memfd:a)"
 ,"0x1: main (a.c:1)"
 ,"0x2: ???"
 ]
}
"#;
    let mut known = Known::default();
    let (named, counts) = dhat_of(file, &mut known).unwrap();
    assert_eq!(
        named,
        r#"{"dhatFileVersion":2
,"cmd":"./prog \"fs\": [2]"
,"pid":7
,"pps":
 [{"tb":472,"acc":[2,-3]
  ,"fs":[1,2,5,6, 3]
  }
 ,{"fs":[2,5,6,4],"tb":1}
 ]
,"ftbl":
 ["[root]"
 ,"0x4A40044: fib<int> (fib.js:10)"
 ,"0x4A40059: inner & co (a.js:1)"
 ,"0x1: main (a.c:1)"
 ,"0x2: ???"
 ,"0x4A40059: middle (b\"\\.js:2)"
 ,"0x4A40059: outer (in /tmp/jit-7.dump)"
 ]
}
"#
    );
    // Without inlined calls, everything except the table is unchanged.
    let plain = file.replace("0x4A40059", "0x4A40061").replace("[1,2, 3]", r#"["]\"",{"a":[1]}]"#);
    let (named, _) = dhat_of(&plain, &mut Known::default()).unwrap();
    assert_eq!(named, plain.replace("0x4A40044: ???", "0x4A40044: fib<int> (fib.js:10)"));
    assert_eq!(known.asked.first(), Some(&(Some(7), 0x4a40044)));
    assert_eq!((counts.frames, counts.unknown, counts.named, counts.doubtful), (5, 3, 2, 1));
    assert!(dhat_of("{\"pid\":7}", &mut NoNames).is_err());
    let long = format!("{{\"dhatFileVersion\":2,\"cmd\":\"{}\"}}", "x".repeat(1 << 21));
    assert!(dhat_of(&long, &mut NoNames).is_err());
}

#[test]
fn cachegrind_says_how_much_is_unknown() {
    let file = "desc: I1 cache: 1\ncmd: ./prog\nevents: Ir Dr\nfl=a.c\nfn=main\n1 5 1\n2 6 .\n\
                fl=???\nfn=???\n0 331 24\nfl=b.c\nfn=f\n9 1 1\nsummary: 400 30\n";
    let profile = cachegrind::read(file.as_bytes()).unwrap();
    assert_eq!(profile.events, ["Ir", "Dr"]);
    assert_eq!((profile.total, profile.unknown), (vec![400, 30], vec![331, 24]));
    assert!(cachegrind::read(&b"1 2\n"[..]).is_err() && cachegrind::read(&b""[..]).is_err());
}

/// Pieces that files consist of, and others.
fn parts(of_format: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(of_format).prop_map(|part| part.as_bytes().to_vec());
    let any = prop::collection::vec(any::<u8>(), 0..5);
    prop::collection::vec(prop_oneof![9 => known, 1 => any], 0..60).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn text_stays_where_nothing_is_known(log in parts(&[
        "==7==", "--7--", "**", "==", " ", "    at ", "    by ", "0x4A40044", "0x4A40059", ": ???", "\n",
        "\r", " (in ", ")", "0x", "ffffffffffffffffff", "in loss record ", " blocks", "Parent PID: ",
    ])) {
        let mut out = Vec::new();
        text::rewrite(&log[..], &mut out, &mut NoNames).unwrap();
        prop_assert_eq!(&out, &log);
        // Named frames are not named again.
        let (mut named, mut again) = (Vec::new(), Vec::new());
        text::rewrite(&log[..], &mut named, &mut Known::default()).unwrap();
        let counts = text::rewrite(&named[..], &mut again, &mut Known::default()).unwrap();
        prop_assert_eq!(counts.named, 0);
        prop_assert_eq!(again, named);
    }

    #[test]
    fn xml_stays_where_nothing_is_known(log in parts(&[
        "<frame>", "</frame>", "<ip>", "</ip>", "0x4A40044", "0x4A40059", "<obj>", "</obj>", "<fn>",
        "</fn>", "<stack>", "</stack>", "<kind>Leak_", "</kind>", "\n  ", "<", ">", "<pid>7</pid>",
        "<frame>\n  <ip>0x4A40044</ip>\n</frame>",
    ])) {
        let mut out = Vec::new();
        xml::rewrite(&log[..], &mut out, &mut NoNames).unwrap();
        prop_assert_eq!(&out, &log);
        let mut named = Vec::new();
        xml::rewrite(&log[..], &mut named, &mut Known::default()).unwrap();
    }

    #[test]
    fn massif_stays_where_nothing_is_known(file in parts(&[
        "n1: ", "n0: ", "  ", " ", "\n", "5 ", "0x4A40044", "0x4A40059", ": ???", " (in x)", "snapshot=1\n",
        "\n n1: 5 0x4A40059: ???\n", "\n  n1: 5 0x4A40059: ???\n",
    ])) {
        let file = [b"desc: \nsnapshot=1\n".as_slice(), &file].concat();
        let mut out = Vec::new();
        massif::rewrite(&file[..], &mut out, &mut NoNames).unwrap();
        prop_assert_eq!(&out, &file);
        let (mut named, mut again) = (Vec::new(), Vec::new());
        massif::rewrite(&file[..], &mut named, &mut Known::default()).unwrap();
        massif::rewrite(&named[..], &mut again, &mut Known::default()).unwrap();
        prop_assert_eq!(again, named);
    }

    #[test]
    fn dhat_stays_where_nothing_is_known(file in parts(&[
        "{", "}", "[", "]", ",", ":", "\"", "\\", " ", "\n", "1", "\"pps\":[{", "\"fs\":[1,2,3]", "\"ftbl\":[",
        "\"0x4A40059: ???\"", "\"0x4A40044: ???\"", "\"pid\":7", "true",
    ])) {
        let file = [b"{\"dhatFileVersion\":2,".as_slice(), &file].concat();
        let found = dhat::survey(&file[..], &mut NoNames).unwrap();
        let mut out = Vec::new();
        dhat::rewrite(&file[..], &mut out, &found).unwrap();
        prop_assert_eq!(&out, &file);
        let found = dhat::survey(&file[..], &mut Known::default()).unwrap();
        out.clear();
        dhat::rewrite(&file[..], &mut out, &found).unwrap();
        // A tiny read buffer gives the same result.
        let drops = || BufReader::with_capacity(3, &file[..]);
        let found = dhat::survey(drops(), &mut Known::default()).unwrap();
        let mut by_drops = Vec::new();
        dhat::rewrite(drops(), &mut by_drops, &found).unwrap();
        prop_assert_eq!(by_drops, out);
    }

    #[test]
    fn any_profile_is_read(file in parts(&[
        "events: Ir Dr\n", "fn=???\n", "fn=f\n", "1 2 3\n", "1 18446744073709551615\n", "summary: 1\n", ".",
    ])) {
        let _ = cachegrind::read(&file[..]);
    }
}
