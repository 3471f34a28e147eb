//! Existing files with the map's name, and changes by others.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use publish_perf_map::{Cause, Options, PerfMap};
use tempfile::TempDir;

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join(format!("perf-{}.map", std::process::id()))
}

fn create(folder: &TempDir) -> Result<PerfMap, publish_perf_map::Error> {
    PerfMap::create(Options::new().directory(folder.path()))
}

fn refusal(folder: &TempDir) -> Cause {
    let error = create(folder).expect_err("it should have been refused");
    assert_eq!(error.path(), path(folder));
    // Taken apart by hand, as causes cannot be copied.
    match error.cause() {
        Cause::NotRegular => Cause::NotRegular,
        Cause::Linked => Cause::Linked,
        &Cause::Owner { uid } => Cause::Owner { uid },
        &Cause::Writable { mode } => Cause::Writable { mode },
        _ => panic!("{error}"),
    }
}

/// A map with its reports.
fn reporting(folder: &TempDir) -> (PerfMap, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&said);
    let reporter = move |why: &str| log.lock().unwrap().push(why.to_owned());
    let map = PerfMap::create(Options::new().directory(folder.path()).reporter(reporter));
    (map.unwrap(), said)
}

/// Waits until the next load examines the file: it does so ten milliseconds after the last time, by
/// a clock that has steps of up to ten.
fn until_a_check_is_due() {
    std::thread::sleep(Duration::from_millis(40));
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_new_file_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let map = create(&folder).unwrap();
    map.load(0x7f00_1000, 0x40, b"fib");
    let metadata = fs::metadata(path(&folder)).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o600);
    assert_eq!(map.path(), Some(path(&folder)));
    assert_eq!(text(&path(&folder)), "7f001000 40 fib\n");
}

#[test]
fn names_are_sanitised() {
    let folder = tempfile::tempdir().unwrap();
    let map = create(&folder).unwrap();
    map.load(0x1000, 0x10, b"a\nffff 10 forged\x1b[31m\0");
    map.load(0x2000, 0x10, b"f");
    map.load(0x3000, 0x10, b"");
    map.load(0x4000, 0x10, b"\xff\xfe");
    map.load(0x5000, 0, b"nothing");
    map.load(u64::MAX, 2, b"beyond");
    map.load(u64::MAX - 1, u64::MAX, b"beyond");
    let expected = "1000 10 a?ffff 10 forged?[31m?\n2000 10 f  \n3000 10 [unnamed]\n\
                    4000 10 \u{fffd}\u{fffd}\n";
    assert_eq!(text(&path(&folder)), expected);
}

#[test]
fn files_that_are_not_ours_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let path = path(&folder);

    let nowhere = folder.path().join("nowhere");
    let mkfifo = || std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    let occupations: [&dyn Fn(); 4] = [
        &|| symlink(&victim, &path).unwrap(),
        &|| symlink(&nowhere, &path).unwrap(),
        &|| fs::create_dir(&path).unwrap(),
        &|| assert!(mkfifo().success()),
    ];
    for occupy in occupations {
        occupy();
        assert!(matches!(refusal(&folder), Cause::NotRegular));
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
    }
    assert!(!nowhere.exists());

    fs::hard_link(&victim, &path).unwrap();
    assert!(matches!(refusal(&folder), Cause::Linked));
    fs::remove_file(&path).unwrap();

    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).unwrap();
    assert!(matches!(refusal(&folder), Cause::Writable { mode: 0o646 }));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    create(&folder).unwrap();

    assert_eq!(text(&victim), "precious");
}

#[test]
fn a_missing_folder_is_an_error() {
    let map = PerfMap::create(Options::new().directory("/nonexistent/folder"));
    let error = map.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/folder") && error.contains("No such file"), "{error}");
}

#[test]
fn a_file_of_this_process_is_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    // Its last line had no newline.
    fs::write(path(&folder), "5000 10 theirs\n6000 10 torn").unwrap();
    let map = create(&folder).unwrap();
    map.load(0x1000, 0x10, b"ours");
    map.load(0x2000, 0x10, b"ours too");
    let expected = "5000 10 theirs\n6000 10 torn\n1000 10 ours\n2000 10 ours too\n";
    assert_eq!(text(&path(&folder)), expected);
}

#[test]
fn a_dead_process_s_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let write_long_ago = || {
        let mut file = File::create(path(&folder)).unwrap();
        file.write_all(b"5000 10 stale\n").unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
        file
    };
    // A writer in this process has it open: the clock was changed since.
    let file = write_long_ago();
    let map = create(&folder).unwrap();
    map.load(0x1000, 0x10, b"ours");
    assert_eq!(text(&path(&folder)), "5000 10 stale\n1000 10 ours\n");
    drop((file, map));

    drop(write_long_ago());
    let map = create(&folder).unwrap();
    map.load(0x1000, 0x10, b"ours");
    assert_eq!(text(&path(&folder)), "1000 10 ours\n");
}

#[test]
fn a_dead_process_s_file_of_another_user_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    fs::write(&path, "5000 10 stale\n").unwrap();
    fs::hard_link(&path, folder.path().join("other name")).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert!(matches!(refusal(&folder), Cause::Linked));
    assert_eq!(text(&path), "5000 10 stale\n");
}

#[test]
fn a_second_writer_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let map = create(&folder).unwrap();
    map.load(0x1000, 0x10, b"first");
    let mut other = OpenOptions::new().append(true).open(path(&folder)).unwrap();
    // Enough dead code for the file to be rewritten.
    for n in 0..20_000 {
        map.load(0x2000, 0x10, format!("dead_{n}").as_bytes());
        if n % 100 == 0 {
            writeln!(other, "{:x} 10 other_{n}", 0x10_0000 + n * 0x10).unwrap();
        }
    }
    let inode = other.metadata().unwrap().ino();
    assert_eq!(fs::metadata(path(&folder)).unwrap().ino(), inode, "renamed from under it");
    let file = fs::read(path(&folder)).unwrap();
    let lines: Vec<_> = perf_map::entries(&file).map(Result::unwrap).collect();
    assert_eq!(lines.iter().filter(|line| line.name.starts_with(b"other_")).count(), 200);
    let said: Vec<_> =
        lines.iter().filter(|line| line.size > 0 && line.address < 0x10000).collect();
    assert_eq!(said.len(), 2);
    assert_eq!(said[1].name, b"dead_19999");
}

#[test]
fn two_maps_of_one_process_share_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let maps = [create(&folder).unwrap(), create(&folder).unwrap()];
    for n in 0..1000 {
        for (which, map) in maps.iter().enumerate() {
            let base = 0x1000 * (which as u64 + 1);
            map.load(base + n % 7 * 0x10, 0x10, format!("map{which}_{n}").as_bytes());
        }
    }
    assert!(maps.iter().all(|map| !map.is_off()));
    let file = fs::read(path(&folder)).unwrap();
    let said = perf_map::entries(&file).map(Result::unwrap).filter(|line| line.size > 0);
    assert_eq!(said.count(), 14);
}

/// Between two checks, offsets are those that our lines alone would have.
#[test]
fn lines_of_others_between_ours_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (map, said) = reporting(&folder);
    let mut other = None;
    for n in 0..40_u64 {
        map.load(0x1000 + n * 0x10, 0x10, format!("ours_{n}").as_bytes());
        // A line that is equal to one of ours, and lines in front of ours.
        if n % 7 == 3 {
            let options = || OpenOptions::new().append(true).open(path(&folder)).unwrap();
            let other = other.get_or_insert_with(options);
            writeln!(other, "{:x} 10 ours_{n}\n77000 10 theirs_{n}", 0x1000 + n * 0x10).unwrap();
        }
    }
    // Each line of ours is changed, and only these.
    for n in 0..40_u64 {
        map.load(0x1000 + n * 0x10, 8, format!("again_{n}").as_bytes());
    }
    let expected = |n: u64| -> Vec<String> {
        let mut lines = vec![format!("{:x} 08 ours_{n}", 0x1000 + n * 0x10)];
        if n % 7 == 3 {
            lines.push(format!("{:x} 10 ours_{n}", 0x1000 + n * 0x10));
            lines.push(format!("77000 10 theirs_{n}"));
        }
        lines
    };
    let first = lines_of(&folder, 0..40 + 12);
    let said = said.lock().unwrap();
    assert!(said.is_empty(), "{said:?}");
    let zeroed: Vec<String> = (0..40).flat_map(expected).collect();
    // The whole code is replaced: its first byte is dead.
    let zeroed: Vec<String> = zeroed.iter().map(|line| line.replace(" 08 ", " 00 ")).collect();
    assert_eq!(first, zeroed);
}

fn lines_of(folder: &TempDir, range: std::ops::Range<usize>) -> Vec<String> {
    let text = text(&path(folder));
    text.lines().skip(range.start).take(range.len()).map(str::to_owned).collect()
}

#[test]
fn a_line_that_was_joined_to_an_incomplete_one_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (map, said) = reporting(&folder);
    map.load(0x1000, 0x10, b"first");
    let mut other = OpenOptions::new().append(true).open(path(&folder)).unwrap();
    other.write_all(b"6000 10 half_of_").unwrap();
    map.load(0x2000, 0x10, b"second");
    map.load(0x3000, 0x10, b"third");
    other.write_all(b"a_line\n").unwrap();
    until_a_check_is_due();
    map.load(0x4000, 0x10, b"fourth");
    map.load(0x2000, 0x10, b"fifth");
    let expected = "1000 10 first\n6000 10 half_of_2000 10 second\n3000 10 third\na_line\n\
                    2000 00 second\n4000 10 fourth\n2000 10 fifth\n";
    assert_eq!(text(&path(&folder)), expected);
    assert!(said.lock().unwrap().is_empty());
}

#[test]
fn two_maps_with_the_same_codes_change_lines_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (first, said) = reporting(&folder);
    first.load(0x1000, 0x10, b"code");
    let (second, also_said) = reporting(&folder);
    for map in [&second, &first, &second] {
        for n in 1..5 {
            map.load(0x1000 * n, 0x10, b"code");
        }
    }
    for n in 1..5 {
        first.load(0x1000 * n, 0x10, b"other");
    }
    let text = text(&path(&folder));
    let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!([count(" 10 code"), count(" 00 code"), count(" 10 other")], [4, 9, 4], "{text}");
    assert!(said.lock().unwrap().is_empty() && also_said.lock().unwrap().is_empty());
}

#[test]
fn threads_write_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let map = create(&folder).unwrap();
    let mut other = OpenOptions::new().append(true).open(path(&folder)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let map = &map;
            scope.spawn(move || {
                for n in 0..3000_u64 {
                    let address = (thread + 1) << 32 | (n % 1000) << 12;
                    let name = format!("t{thread}_{n}_{}", "x".repeat((n % 97) as usize));
                    map.load(address, 0x100 + n, name.as_bytes());
                    if n % 3 == 0 {
                        map.unload(address, 0x100 + n);
                    }
                }
            });
        }
        scope.spawn(move || {
            for n in 0..3000 {
                let line = format!("{:x} 10 other_{n}\n", 0x77_0000_0000_u64 + n * 0x10);
                other.write_all(line.as_bytes()).unwrap();
            }
        });
    });
    assert!(!map.is_off());
    let file = fs::read(path(&folder)).unwrap();
    let lines: Vec<_> = perf_map::entries(&file).map(|line| line.expect("a torn line")).collect();
    assert_eq!(lines.len(), 7 * 3000);
    for line in &lines {
        let name = std::str::from_utf8(line.name).unwrap();
        if let Some(n) = name.strip_prefix("other_") {
            assert_eq!(line.address, 0x77_0000_0000 + n.parse::<u64>().unwrap() * 0x10);
            continue;
        }
        let (thread, n) = name.strip_prefix('t').unwrap().split_once('_').unwrap();
        let (n, filler) = n.split_once('_').unwrap();
        let (thread, n): (u64, u64) = (thread.parse().unwrap(), n.parse().unwrap());
        assert_eq!(line.address, (thread + 1) << 32 | (n % 1000) << 12);
        assert_eq!(filler.len() as u64, n % 97);
        let youngest = n >= 2000;
        assert_eq!(line.size, if youngest { 0x100 + n } else { 0 }, "{name}");
    }
}

#[test]
fn a_deleted_file_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let (map, said) = reporting(&folder);
    map.load(0x1000, 0x10, b"before");
    map.load(0x3000, 0x10, b"gone");
    map.load(0x3000, 0x20, b"instead");
    fs::remove_file(path(&folder)).unwrap();
    // This one may still go to the deleted file, from which it is copied.
    map.load(0x5000, 0x10, b"unseen");
    until_a_check_is_due();
    map.load(0x2000, 0x10, b"after");
    let lines = "1000 10 before\n3000 20 instead\n5000 10 unseen\n2000 10 after\n";
    assert_eq!(text(&path(&folder)), lines);
    assert_eq!(fs::metadata(path(&folder)).unwrap().mode() & 0o777, 0o600);

    // But not over a file that took its place.
    fs::remove_file(path(&folder)).unwrap();
    fs::write(path(&folder), "not ours").unwrap();
    until_a_check_is_due();
    map.load(0x4000, 0x10, b"lost");
    map.load(0x5000, 0x10, b"lost");
    assert_eq!(text(&path(&folder)), "not ours");
    assert!(map.is_off() && map.path().is_none());
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("another file has taken its name"), "{said:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Each load finds out where the line of the previous one is, which examines the file, too.
#[test]
fn a_deleted_file_is_created_again_while_one_code_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (map, said) = reporting(&folder);
    map.load(0x1000, 0x10, b"first");
    fs::remove_file(path(&folder)).unwrap();
    for _ in 0..3 {
        map.load(0x1000, 0x10, b"again");
    }
    assert!(text(&path(&folder)).ends_with("1000 10 again\n"));
    assert!(said.lock().unwrap().is_empty());
}

#[test]
fn a_writer_that_destroys_our_lines_is_detected() {
    // Shorter than it was.
    let folder = tempfile::tempdir().unwrap();
    let (map, said) = reporting(&folder);
    map.load(0x1000, 0x10, b"ours");
    File::create(path(&folder)).unwrap();
    until_a_check_is_due();
    map.load(0x2000, 0x10, b"ours");
    assert_eq!(said.lock().unwrap().len(), 1);
    assert!(map.is_off());

    // Before the file is examined again, the line of a code that is replaced is not found.
    fs::remove_file(path(&folder)).unwrap();
    let (map, said) = reporting(&folder);
    map.load(0x1000, 0x10, b"ours");
    map.load(0x2000, 0x10, b"ours");
    File::create(path(&folder)).unwrap();
    map.load(0x1000, 0x20, b"again");
    assert_eq!(said.lock().unwrap().len(), 1);
    assert!(map.is_off());

    // The same length, but different content: its lines are not changed. The line is missed before
    // the new one is written if the file was not examined since, and else when it has to be
    // changed.
    for (is_examined, theirs, ours) in [
        (false, "7000 10 theirs_and_longer\n", ""),
        (true, "7000 10 ours\n", "2000 10 ours\n1000 20 again\n"),
    ] {
        fs::remove_file(path(&folder)).unwrap();
        let (map, said) = reporting(&folder);
        map.load(0x1000, 0x10, b"ours");
        if is_examined {
            until_a_check_is_due();
            map.load(0x2000, 0x10, b"ours");
        }
        let mut other = OpenOptions::new().write(true).open(path(&folder)).unwrap();
        other.write_all(theirs.as_bytes()).unwrap();
        map.load(0x1000, 0x20, b"again");
        assert_eq!(text(&path(&folder)), [theirs, ours].concat());
        assert_eq!(said.lock().unwrap().len(), 1);
        assert!(said.lock().unwrap()[0].contains("another writer"), "{said:?}");
    }
}

#[test]
fn the_file_is_removed_at_the_end_only_if_requested() {
    let folder = tempfile::tempdir().unwrap();
    drop(create(&folder).unwrap());
    assert!(path(&folder).exists());
    fs::remove_file(path(&folder)).unwrap();

    let removing = || {
        let options = Options::new().directory(folder.path()).remove_at_end(true);
        PerfMap::create(options).unwrap()
    };
    drop(removing());
    assert!(!path(&folder).exists());

    let map = removing();
    map.load(0x1000, 0x10, b"ours");
    map.close();
    assert!(!path(&folder).exists());
    map.load(0x2000, 0x10, b"ours");
    map.close();
    assert!(!path(&folder).exists());

    // Not the file that has its name by then.
    let map = removing();
    fs::remove_file(path(&folder)).unwrap();
    fs::write(path(&folder), "not ours").unwrap();
    drop(map);
    assert!(path(&folder).exists());
}

#[test]
fn the_iterator_of_a_batch_may_use_the_map() {
    let folder = tempfile::tempdir().unwrap();
    let map = create(&folder).unwrap();
    map.load_many((0..5000_u64).map(|n| {
        if n % 1000 == 0 {
            map.load(0x100_0000 + n * 0x10, 0x10, b"within");
        }
        (0x10_0000 + n * 0x10, 0x10, "batch")
    }));
    assert_eq!(text(&path(&folder)).lines().count(), 5005);
}
