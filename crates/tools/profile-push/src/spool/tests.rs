use std::os::unix::fs::symlink;

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::file_name::BLOCK;
use super::*;

fn folder() -> TempDir {
    TempDir::with_prefix("jitscribe-spool-").expect("a folder")
}

fn open(folder: &TempDir, limit: u64) -> Spool {
    Spool::open(folder.path(), BodyKind::Otlp, limit).expect("a spool")
}

/// A spool with space for all that a test has, and its folder.
fn spool() -> (TempDir, Spool) {
    with_limit(1 << 20)
}

fn with_limit(limit: u64) -> (TempDir, Spool) {
    let folder = folder();
    let spool = open(&folder, limit);
    (folder, spool)
}

fn body(text: &str) -> ProfileBody {
    ProfileBody::otlp(text.as_bytes())
}

fn add(spool: &Spool, bodies: &[ProfileBody]) {
    for body in bodies {
        spool.add(body).expect("space");
    }
}

/// What waits first.
fn oldest(spool: &Spool) -> Spooled {
    spool.oldest().expect("a folder").expect("a file")
}

fn is_empty(spool: &Spool) -> bool {
    spool.oldest().expect("a folder").is_none()
}

/// What waits, the oldest first, while it is removed.
fn drained(spool: &Spool) -> Vec<ProfileBody> {
    let mut all = Vec::new();
    while let Some(spooled) = spool.oldest().expect("a folder") {
        let Content::Whole(body) = spool.read(&spooled).expect("a file") else { panic!("damaged") };
        all.push(body);
        spool.remove(&spooled).expect("removed");
    }
    all
}

#[test]
fn profiles_leave_in_order_and_each_once() {
    let (folder, spool) = spool();
    let bodies = ["one", "two", "three"].map(body);
    for body in &bodies {
        assert_eq!(spool.add(body).expect("space"), Added::default());
    }
    assert!(spool.add(&bodies[1]).expect("space").was_there);
    let usage = Usage { waiting: 3, set_aside: 0, bytes: 3 * BLOCK };
    assert_eq!(spool.usage().expect("a folder"), usage);
    // Another process opens it.
    assert_eq!(drained(&open(&folder, 1 << 20)), bodies);
    assert_eq!(spool.usage().expect("a folder"), Usage::default());
}

#[test]
fn the_oldest_are_dropped_beyond_the_limit() {
    let (_folder, spool) = with_limit(3 * BLOCK);
    let bodies: Vec<_> = (0..5).map(|number| body(&format!("profile {number}"))).collect();
    let dropped: Vec<_> =
        bodies.iter().map(|body| spool.add(body).expect("space").dropped).collect();
    assert_eq!(dropped, [0, 0, 0, 1, 1]);
    assert_eq!(drained(&spool), bodies[2..]);

    let long: Vec<u8> =
        (0..200_000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let error = spool.add(&ProfileBody::otlp(&long)).expect_err("too large");
    assert!(matches!(error, SpoolError::TooLarge { limit, .. } if limit == 3 * BLOCK), "{error}");
}

#[test]
fn what_was_set_aside_is_dropped_first() {
    let (_folder, spool) = with_limit(2 * BLOCK);
    let [first, second, third] = ["one", "two", "three"].map(body);
    add(&spool, &[first.clone(), second]);
    let newest = spool.list().expect("a folder").pop().expect("a file");
    let aside = spool.set_aside(&newest).expect("renamed");
    assert!(aside.to_string_lossy().ends_with(".otlp.rejected") && aside.exists());
    let usage = spool.usage().expect("a folder");
    assert_eq!((usage.waiting, usage.set_aside), (1, 1));
    assert_eq!(spool.add(&third).expect("space").dropped, 0);
    assert!(!aside.exists());
    assert_eq!(drained(&spool), [first, third]);
}

#[test]
fn damage_is_found_and_set_aside() {
    let (_folder, spool) = spool();
    for change in [
        &b"shorter"[..],
        b"",
        b"exactly the length of nothing, and longer than the profile was before",
    ] {
        add(&spool, &[body("a profile")]);
        let spooled = oldest(&spool);
        fs::write(spool.path(&spooled), change).expect("written");
        let spooled = oldest(&spool);
        let Content::Damaged(path) = spool.read(&spooled).expect("a file") else { panic!("whole") };
        assert_eq!(fs::read(path).expect("a file"), change);
        assert!(is_empty(&spool));
    }
    add(&spool, &[body("a profile")]);
    let spooled = oldest(&spool);
    fs::remove_file(spool.path(&spooled)).expect("removed");
    assert_eq!(spool.read(&spooled).expect("no error"), Content::Gone);
}

#[test]
fn files_of_others_are_left_alone() {
    let (folder, spool) = spool();
    let digits = "0".repeat(32);
    let outside = folder.path().join("outside");
    fs::write(&outside, "x").expect("written");
    // A link, a folder, a number that has no successor, and names that are nearly right.
    symlink(&outside, folder.path().join(format!("{:020}-{digits}.otlp", 1))).expect("a link");
    fs::create_dir(folder.path().join(format!("{:020}-{digits}.otlp", 2))).expect("a folder");
    for name in [
        "1-x.otlp".to_owned(),
        format!("{:019}-{digits}.otlp", 3),
        format!("{:020}-{digits}.txt", 4),
        format!("+{:019}-{digits}.otlp", 5),
        format!("99999999999999999999-{digits}.otlp"),
    ] {
        fs::write(folder.path().join(name), "x").expect("written");
    }
    assert_eq!(spool.usage().expect("a folder"), Usage::default());
    let one = body("one");
    spool.add(&one).expect("space");
    assert_eq!(drained(&spool), std::slice::from_ref(&one));
    assert_eq!(fs::read(&outside).expect("a file"), b"x");

    fs::write(folder.path().join(format!("{}-{digits}.otlp", u64::MAX)), "x").expect("written");
    let error = spool.add(&one).expect_err("no number");
    assert!(matches!(error, SpoolError::NoNumber { .. }), "{error}");
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let (folder, spool) = spool();
    let left = folder.path().join(format!(".{:020}-{}.otlp.new", 7, "0".repeat(32)));
    let of_another = folder.path().join(".hidden.new");
    for path in [&left, &of_another] {
        fs::write(path, "half").expect("written");
    }
    assert_eq!(spool.usage().expect("a folder"), Usage::default());
    add(&spool, &[body("one")]);
    assert!(!left.exists() && of_another.exists());
}

#[test]
fn the_parts_of_a_profile_take_its_place() {
    let (_folder, spool) = spool();
    let [whole, next] = ["whole", "next"].map(body);
    let halves = ["half", "other half"].map(body);
    add(&spool, &[whole.clone(), next.clone()]);
    let spooled = oldest(&spool);
    let path = spool.path(&spooled);
    assert_eq!(spool.replace(&spooled, &halves).expect("space"), 0);
    assert!(!path.exists());
    // A process was killed before it could remove the whole: it is divided again, into the same files.
    let before = spool.list().expect("a folder");
    fs::write(&path, whole.gzipped()).expect("written");
    assert_eq!(spool.replace(&spooled, &halves).expect("space"), 0);
    assert_eq!(spool.list().expect("a folder"), before);
    let mut all = drained(&spool);
    assert_eq!(all.pop().as_ref(), Some(&next));
    all.sort_by_key(ProfileBody::id);
    let mut expected = halves.to_vec();
    expected.sort_by_key(ProfileBody::id);
    assert_eq!(all, expected);
    // A body that the spool dropped before it was divided is not replaced by its parts.
    assert_eq!(spool.replace(&spooled, &halves).expect("no file"), 0);
    assert!(is_empty(&spool));
}

#[test]
fn parts_that_need_more_space_drop_the_oldest() {
    let (_folder, spool) = with_limit(2 * BLOCK);
    let [whole, next] = ["whole", "next"].map(body);
    let halves = ["half", "other half"].map(body);
    add(&spool, &[whole, next.clone()]);
    let spooled = oldest(&spool);
    assert_eq!(spool.replace(&spooled, &halves).expect("space"), 1);
    let left = drained(&spool);
    assert!(left.len() == 2 && halves.contains(&left[0]) && left[1] == next, "{left:?}");
    assert!(spool.fits([BLOCK, BLOCK].into_iter()).is_ok());
    let error = spool.fits([BLOCK, BLOCK + 1].into_iter()).expect_err("three blocks");
    assert!(matches!(error, SpoolError::TooLarge { .. }), "{error}");
}

#[test]
fn one_process_sends() {
    let folder = folder();
    let [mut first, mut second] = [(); 2].map(|()| open(&folder, 1 << 20));
    assert!(first.is_sender().expect("a lock") && first.is_sender().expect("a lock"));
    assert!(!second.is_sender().expect("a lock"));
    // Adding does not wait for the sender.
    second.add(&body("one")).expect("space");
    assert!(first.stop_sending() && !first.stop_sending());
    assert!(second.is_sender().expect("a lock"));
}

#[test]
fn kinds_do_not_mix() {
    let folder = folder();
    let otlp = open(&folder, 1 << 20);
    let pyroscope = Spool::open(folder.path(), BodyKind::Pyroscope, 1 << 20).expect("a spool");
    let other = ProfileBody::pyroscope(b"pprof", &[]);
    pyroscope.add(&other).expect("space");
    otlp.add(&body("one")).expect("space");
    assert_eq!(drained(&otlp), [body("one")]);
    assert_eq!(drained(&pyroscope), [other]);
}

proptest! {
    #[test]
    fn names_are_read_as_they_are_written(number: u64, id: u128, kind: bool, state in 0..3_u8, size: u64) {
        let kind = if kind { BodyKind::Otlp } else { BodyKind::Pyroscope };
        let state = [FileState::Waiting, FileState::Rejected, FileState::Damaged][usize::from(state)];
        let id = BodyId::parse(&format!("{id:032x}")).expect("an id");
        let spooled = Spooled { number, id, kind, state, size };
        prop_assert_eq!(Spooled::parse(&spooled.name(), size), Some(spooled));
    }

    #[test]
    fn any_name_is_read(name in "[0-9a-f+.\\-otlprejcdyw]{0,80}") {
        if let Some(spooled) = Spooled::parse(&name, 0) {
            prop_assert_eq!(spooled.name(), name);
        }
    }
}

/// Of thousands of files, each is looked at once, and what another process adds or drops in between counts.
#[test]
fn the_folder_is_listed_once() {
    let (folder, spool) = spool();
    let bodies: Vec<ProfileBody> =
        (0..50).map(|number| body(&format!("profile {number}"))).collect();
    add(&spool, &bodies);
    let first = oldest(&spool);
    assert_eq!(spool.listed.borrow().len(), 50);
    let other = open(&folder, 1 << 20);
    other.remove(&first).expect("removed");
    let last = body("added by another process");
    other.add(&last).expect("space");
    assert_eq!(drained(&spool), [&bodies[1..], &[last]].concat());
    assert_eq!(spool.listed.borrow().len(), 0);
}

#[test]
fn what_is_too_large_is_not_read() {
    let (_folder, spool) = spool();
    add(&spool, &[body("a profile")]);
    let spooled = oldest(&spool);
    let path = spool.path(&spooled);
    File::options().write(true).open(path).and_then(|file| file.set_len(2 << 30)).expect("a hole");
    spool.listed.borrow_mut().clear();
    let spooled = oldest(&spool);
    let Content::Damaged(path) = spool.read(&spooled).expect("a file") else { panic!("whole") };
    assert!(path.is_file());
    assert!(is_empty(&spool));
}

/// Another user, in a folder of his, or a process that was stopped.
#[test]
fn a_lock_that_is_never_free_is_an_error() {
    let (folder, spool) = spool();
    let held = File::open(folder.path().join("lock")).expect("a file");
    held.lock().expect("free");
    let locked = spool.lock_within(Duration::from_millis(20));
    assert!(matches!(locked, Err(SpoolError::Locked { .. })));
    drop(held);
    assert!(spool.lock_within(Duration::ZERO).is_ok());
    let path = folder.path().join("lock");
    fs::remove_file(&path).expect("a file");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    assert!(matches!(spool.add(&body("a profile")), Err(SpoolError::File { .. })));
}
