use std::fs;
use std::path::PathBuf;

use jitdump::{Endian, ExtendedCode, Inlined, LineEntry, Load, Move, Writer, WriterConfig};
use proptest::prelude::*;
use tempfile::TempDir;

use super::read::{Code, Origin};
use super::*;
use crate::files::Named;

const PID: u32 = 4_000_000_007;

fn writer() -> Writer<Vec<u8>> {
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: PID, timestamp: 1, flags: 0 };
    Writer::new(Vec::new(), &config).unwrap()
}

fn load<'a>(index: u64, address: u64, name: &'a [u8]) -> Load<'a> {
    const CODE: &[u8] = &[0xc3; 0x40];
    Load {
        pid: PID,
        tid: PID,
        vma: address,
        code_addr: address,
        code_index: index,
        name,
        code: CODE,
        padding: &[],
        missing: 0,
    }
}

/// Files in a folder, and what is known by them beside a file there.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::with_prefix("jitscribe-known-").unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn known(&self, args: &SourceArgs) -> (SymbolIndex, Vec<String>) {
        let mut warnings = Vec::new();
        let beside = self.0.path().join("callgrind.out");
        let known = SymbolIndex::of(args, Some(PID), &beside, &mut warnings).unwrap();
        (known, warnings)
    }
}

fn name(known: &mut SymbolIndex, address: u64) -> Option<String> {
    let at = known.at(address)?;
    Some(String::from_utf8(known.name(&at).unwrap().into_owned()).unwrap())
}

#[test]
fn a_dump_beside_the_file_is_found_by_the_pid_and_the_last_code_wins() {
    let folder = Folder::new();
    let mut dump = writer();
    dump.load(3, &load(1, 0x1000, b"late")).unwrap();
    dump.load(2, &load(2, 0x1020, b"early")).unwrap();
    dump.load(4, &load(3, 0x2000, b"moving")).unwrap();
    let moved = Move {
        pid: PID,
        tid: PID,
        vma: 0x3000,
        old_code_addr: 0x2000,
        new_code_addr: 0x3000,
        code_size: 0x40,
        code_index: 3,
    };
    dump.move_code(5, &moved).unwrap();
    folder.write(&format!("jit-{PID}.dump"), &dump.into_sink());
    folder.write("jit-77.dump", b"another's");
    let (mut known, warnings) = folder.known(&SourceArgs::default());
    assert_eq!(warnings, [""; 0]);
    assert_eq!(name(&mut known, 0x0fff), None);
    assert_eq!(name(&mut known, 0x1030).as_deref(), Some("late"));
    assert_eq!(name(&mut known, 0x1040).as_deref(), Some("early"));
    assert!(known.is_ambiguous_at(0x1020) && known.is_ambiguous_at(0x103f));
    assert!(!known.is_ambiguous_at(0x101f) && !known.is_ambiguous_at(0x1040));
    let early = known.at(0x1041).unwrap();
    assert_eq!((early.start, early.size, early.visible.clone()), (0x1020, 0x40, 0x1040..0x1060));
    assert_eq!(known.load(&early).unwrap().unwrap().bytes, [0xc3; 0x40]);
    // It was in both places.
    assert_eq!(name(&mut known, 0x2000).as_deref(), Some("moving"));
    let moved = known.at(0x303f).unwrap();
    assert_eq!((moved.start, known.load(&moved).unwrap().unwrap().address), (0x3000, 0x2000));
    let all: Vec<_> = known.iter().map(|known| known.visible).collect();
    assert_eq!(all, [0x1000..0x1040, 0x1040..0x1060, 0x2000..0x2040, 0x3000..0x3040]);
}

#[test]
fn lines_and_inlined_calls_move_with_the_code() {
    let line = |address, file: &'static [u8], line| LineEntry { address, file, line, column: 0 };
    let mut dump = writer();
    let code = ExtendedCode {
        timestamp: 2,
        pid: PID,
        tid: PID,
        address: 0x1000,
        size: 0x40,
        index: 1,
        name: b"outer",
        lines: &[line(0x1000, b"a.c", 1), line(0x1010, b"b.c", 20), line(0x1020, b"a.c", 3)],
        inlined: &[
            Inlined {
                name: b"middle".as_slice(),
                file: b"a.c",
                line: 2,
                ranges: vec![0x1008..0x1010, 0x1010..0x1020],
                ..Inlined::default()
            },
            Inlined {
                parent: Some(0),
                name: b"inner".as_slice(),
                file: b"b.c",
                line: 15,
                ranges: vec![0x1010..0x1014, 0x1014..0x1018],
                ..Inlined::default()
            },
        ],
        ..ExtendedCode::default()
    };
    dump.extended(&code).unwrap();
    let moved = Move {
        pid: PID,
        tid: PID,
        vma: 0x5000,
        old_code_addr: 0x1000,
        new_code_addr: 0x5000,
        code_size: 0x40,
        code_index: 1,
    };
    dump.move_code(5, &moved).unwrap();
    let folder = Folder::new();
    let path = folder.write("moved-here", &dump.into_sink());
    let args = SourceArgs { jitdump: vec![Named { pid: None, path }], ..SourceArgs::default() };
    let (mut known, _) = folder.known(&args);
    for base in [0x1000, 0x5000] {
        let code = known.at(base).unwrap();
        let places = known.places(&code).unwrap();
        let told = |offset: u64| {
            let places = places.at(base + offset).map(|place| {
                let text = |bytes| str::from_utf8(bytes).unwrap();
                format!("{} {}:{}", text(place.function), text(place.file), place.line)
            });
            places.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(told(0), "outer a.c:1");
        assert_eq!(told(0x8), "middle a.c:1, outer a.c:2");
        assert_eq!(told(0x10), "inner b.c:20, middle b.c:15, outer a.c:2");
        assert_eq!(told(0x18), "middle b.c:20, outer a.c:2");
        assert_eq!(told(0x20), "outer a.c:3");
    }
}

#[test]
fn a_perf_map_is_known_where_no_dump_says_more() {
    let folder = Folder::new();
    folder.write(&format!("perf-{PID}.map"), b"1000 40 of the map\nbroken\n2000 40 f\n2000 40 f\n");
    let mut dump = writer();
    dump.load(2, &load(1, 0x1020, b"of the dump")).unwrap();
    folder.write(&format!("jit-{PID}.dump"), &dump.into_sink());
    let (mut known, warnings) = folder.known(&SourceArgs::default());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(name(&mut known, 0x1000).as_deref(), Some("of the map"));
    assert_eq!(name(&mut known, 0x1020).as_deref(), Some("of the dump"));
    // The two files say the same in their own words, and a line may be told twice.
    assert!(!known.is_ambiguous_at(0x1020) && !known.is_ambiguous_at(0x2000));
    let code = known.at(0x1000).unwrap();
    assert!(known.load(&code).unwrap().is_none());
    let places = known.places(&code).unwrap();
    let place =
        jitscribe_inject::Frame { function: b"of the map", file: b"", line: 0, inlined: false };
    assert_eq!(places.at(0x1000).collect::<Vec<_>>(), [place]);
    assert_eq!(known.sources().len(), 2);
}

#[test]
fn files_of_other_processes_are_left_alone_and_named_ones_must_be_there() {
    let folder = Folder::new();
    folder.write("perf-1.map", b"1000 40 init\n");
    let (known, _) = folder.known(&SourceArgs::default());
    assert!(known.is_empty());
    let missing = SourceArgs {
        perf_map: vec!["1=nowhere".parse().unwrap()],
        jitdump: vec!["nowhere".parse().unwrap()],
        ..SourceArgs::default()
    };
    let beside = folder.0.path().join("x");
    let refused = SymbolIndex::of(&missing, Some(PID), &beside, &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().starts_with("nowhere: "), "{refused}");
    let others = SourceArgs {
        perf_map: vec!["1=nowhere".parse().unwrap()],
        aux_dir: vec![folder.0.path().into()],
        ..SourceArgs::default()
    };
    let (known, warnings) = folder.known(&others);
    assert!(known.is_empty() && warnings.is_empty());
}

proptest! {
    #[test]
    fn owners_agree_with_a_table(
        codes in prop::collection::vec((0u64..60, 1u64..20, 0u64..3, 0u32..2), 0..25),
    ) {
        let mut codes: Vec<Code> = codes
            .into_iter()
            .map(|(start, size, name, file)| Code {
                start,
                size,
                name,
                origin: Origin::Map { file, name: 0..0 },
            })
            .collect();
        // As they are read: file by file.
        codes.sort_by_key(|code| code.origin.file());
        let mut owners = Owners::of(codes.clone());
        let identity = |code: &Code| (code.start, code.size, code.name);
        let mut ascending = Vec::new();
        for address in 0..90 {
            let there: Vec<&Code> =
                codes.iter().filter(|code| code.range().contains(&address)).collect();
            let found = owners.at(address).map(|(visible, id)| {
                assert!(visible.contains(&address));
                identity(owners.code(id))
            });
            prop_assert_eq!(found, there.last().map(|code| identity(code)));
            let differ = there.windows(2).any(|pair| {
                !pair[0].is_like(pair[1]) && pair[0].origin.file() == pair[1].origin.file()
            });
            prop_assert_eq!(owners.is_ambiguous_at(address), differ);
            for name in 0..3 {
                let last = there.iter().rfind(|code| code.name == name);
                let found = owners.named_at(name, address).map(|(visible, id)| {
                    assert!(visible.contains(&address));
                    identity(owners.code(id))
                });
                if differ {
                    prop_assert_eq!(found, last.map(|code| identity(code)));
                }
            }
        }
        for (range, id) in owners.iter() {
            ascending.push(range.clone());
            for address in range {
                prop_assert_eq!(owners.at(address).unwrap().1, id);
            }
        }
        prop_assert!(ascending.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}

#[test]
fn a_strangers_files_are_left_out_unless_they_are_named() {
    if !test_privilege::have(&[test_privilege::Privilege::OtherUsers]) {
        return;
    }
    let folder = Folder::new();
    folder.write("callgrind.out", b"");
    let mut dump = writer();
    dump.load(1, &load(0, 0x1000, b"code")).unwrap();
    let map = folder.write(&format!("perf-{PID}.map"), b"5000 10 name\n");
    let dump = folder.write(&format!("jit-{PID}.dump"), &dump.into_sink());
    assert_eq!(folder.known(&SourceArgs::default()).0.sources().len(), 2);
    for path in [&map, &dump] {
        std::os::unix::fs::chown(path, Some(12345), None).unwrap();
    }
    let (known, warnings) = folder.known(&SourceArgs::default());
    assert!(known.is_empty());
    for (path, option) in [(&map, "--perf-map"), (&dump, "--jitdump")] {
        let named = format!("{option} {PID}={}", crate::text::shell_word(path));
        let told = |told: &&String| told.contains("user 12345") && told.contains(&named);
        assert_eq!(warnings.iter().filter(told).count(), 1, "{warnings:?}");
    }
    let named = |path: &Path| vec![Named { pid: None, path: path.to_owned() }];
    let args = SourceArgs { perf_map: named(&map), jitdump: named(&dump), ..SourceArgs::default() };
    let (known, warnings) = folder.known(&args);
    assert_eq!((known.sources().len(), warnings), (2, Vec::new()));
}
