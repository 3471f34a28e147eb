//! The worker task that reads the files in which a runtime describes the code of a process: its perf map and its jitdumps, as the
//! process sees them. Of a file that was read before, it reads only what is new.
//!
//! Any of these files may be on a file system that never responds. The command waits for this worker with a deadline, and gets bytes: no
//! descriptor of such a file, which could block when it is read or closed, leaves the worker.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use code_agent::{FileIdentity, FileKind, FilePart, FileReading, FileStatus, KnownFile};
use code_index::LogFormat;
use rustix::fs::{AtFlags, FileType, OFlags, Statx, StatxFlags, makedev, statx};
use rustix::io::{Errno, pread, retry_on_intr};
use serde::{Deserialize, Serialize};

use super::logs::began;
use super::memory::Mappings;
use super::root::{FOLDER, open_in_root};
use super::written::{WrittenFile, written_files};
use crate::files::{FileSystem, reopen};
use crate::foreign::{Output, Owner, Target};

/// The most bytes that are read of the files of a process at a time.
const MOST: u64 = 1 << 20;
/// The most jitdumps of a process.
const DUMPS: usize = 4;
/// An upper bound for the rounding of file and process times.
const ROUNDED: Duration = Duration::from_secs(1);

/// The task: read what is new in the files of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadSourceFiles {
    /// The process.
    pub pid: u32,
    /// When it started, in clock ticks since boot: another process that has its id by now is not read.
    pub start: u64,
    /// Whether to look for files that are not known.
    pub find: bool,
    /// The files that were read before.
    pub known: Vec<KnownFile>,
}

/// What was read, as it is sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourceFileReadings(pub Vec<FileReading>);

/// A file that is to be read.
struct Wanted<'k> {
    kind: FileKind,
    path: Vec<u8>,
    known: Option<&'k KnownFile>,
    /// Device and inode of the file that the process has mapped or open.
    mapped: Option<(u64, u64)>,
    /// Whether the file is only wanted if it is a log in one of the known formats.
    is_any: bool,
}

impl ReadSourceFiles {
    /// Answers with [`SourceFileReadings`].
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        if start_of(&target)? != self.start {
            return Err(Errno::SRCH.into());
        }
        let (owner, inner) = target.effective_and_inner()?;
        let wanted = self.wanted(&target, inner)?;
        let began = began(self.pid);
        let top = target.file("root", FOLDER)?;
        // From here on, only what the process's user may read.
        owner.become_this()?;
        let mut opened = Vec::new();
        for one in wanted {
            let file = one.open(&top, owner, began);
            // A known file that is gone keeps what it had.
            if file.is_some() || one.known.is_some() {
                opened.push((one, file));
            }
        }
        owner.lock_down()?;
        let mut left = MOST;
        let mut readings = Vec::new();
        for (one, file) in opened {
            let part = match file {
                Some((file, status)) => read_part(&file, status, one.known, left)?,
                None => None,
            };
            left -= part.as_ref().map_or(0, |part| part.bytes.len() as u64);
            readings.push(FileReading { kind: one.kind, path: one.path, part });
        }
        SourceFileReadings(readings).send(output)
    }

    fn wanted(&self, target: &Target, inner: u32) -> io::Result<Vec<Wanted<'_>>> {
        let known = |kind, path: &[u8]| {
            self.known.iter().find(|known| known.kind == kind && known.path == path)
        };
        if !self.find {
            let wanted = self.known.iter().map(|known| Wanted {
                kind: known.kind,
                path: known.path.clone(),
                known: Some(known),
                mapped: None,
                is_any: false,
            });
            return Ok(wanted.collect());
        }
        let markers = markers(Mappings(target.file("maps", OFlags::RDONLY)?.into()))?;
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for Marker { path, file } in markers {
            let kind = FileKind::Jitdump;
            let known = known(kind, &path);
            wanted.push(Wanted { kind, path, known, mapped: Some(file), is_any: false });
        }
        // Of a process whose descriptors cannot be listed, only the other files are known.
        for WrittenFile { path, file } in written_files(target).unwrap_or_default() {
            let kind = FileKind::Jitdump;
            let known = known(kind, &path);
            wanted.push(Wanted { kind, path, known, mapped: Some(file), is_any: known.is_none() });
        }
        let path = format!("/tmp/perf-{inner}.map").into_bytes();
        let kind = FileKind::PerfMap;
        let known = known(kind, &path);
        wanted.push(Wanted { kind, path, known, mapped: None, is_any: false });
        Ok(wanted)
    }
}

impl Wanted<'_> {
    /// Opens the file if it is a regular one that tells about this process.
    fn open(
        &self,
        top: &OwnedFd,
        owner: Owner,
        began: Option<SystemTime>,
    ) -> Option<(OwnedFd, FileStatus)> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        // A link is not followed: it may have been placed by another user. O_PATH does not open the file itself.
        let found = open_in_root(top, path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = statx(&found, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        let status = status(&stat);
        let FileIdentity { device, inode, .. } = status.identity;
        let is_regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
        if !is_regular || FileSystem::of(&found) == FileSystem::Kernel {
            return None;
        }
        // Any user may create files in `/tmp`.
        let is_believed = [0, owner.user].contains(&stat.stx_uid)
            || self.mapped == Some((device, inode))
            || self.known.is_some_and(|known| known.status.identity == status.identity);
        // A map may be that of an earlier process with this id.
        let is_stale = self.mapped.is_none()
            && self.known.is_none()
            && began.is_some_and(|began| is_before(status.modified, began));
        if !is_believed || is_stale {
            return None;
        }
        let file = reopen(&found, OFlags::RDONLY).ok()?;
        (!self.is_any || is_log(&file)).then_some((file, status))
    }
}

/// Whether a file begins as a log in one of the known formats does.
fn is_log(file: &OwnedFd) -> bool {
    let mut head = [0; jitdump::HEADER_SIZE as usize];
    let count = read(file, 0, &mut head).unwrap_or(0);
    head.get(..count).is_some_and(|head| LogFormat::of(head).is_some())
}

/// When a process started, in clock ticks since boot.
fn start_of(target: &Target) -> io::Result<u64> {
    let mut text = Vec::new();
    File::from(target.file("stat", OFlags::RDONLY)?).read_to_end(&mut text)?;
    // The name, in parentheses, may contain any bytes.
    let text = String::from_utf8_lossy(&text);
    let behind = text.rsplit_once(')').map(|(_, behind)| behind);
    behind
        .and_then(|behind| behind.split_ascii_whitespace().nth(19)?.parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A jitdump that a process has mapped.
struct Marker {
    path: Vec<u8>,
    /// Device and inode.
    file: (u64, u64),
}

/// The jitdumps that a process has mapped.
fn markers(mut mappings: Mappings) -> io::Result<Vec<Marker>> {
    let mut markers: Vec<Marker> = Vec::new();
    mappings.each(|mapping| {
        let path = mapping.path();
        if mapping.is_marker()
            && markers.len() < DUMPS
            && markers.iter().all(|known| known.path != path)
        {
            let file = (mapping.device, mapping.inode);
            markers.push(Marker { path: path.to_owned(), file });
        }
    })?;
    Ok(markers)
}

fn status(stat: &Statx) -> FileStatus {
    let created = if stat.stx_mask & StatxFlags::BTIME.bits() == 0 {
        (0, 0)
    } else {
        (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)
    };
    FileStatus {
        identity: FileIdentity {
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            created,
        },
        size: stat.stx_size,
        modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
    }
}

fn is_before((seconds, nanoseconds): (i64, u32), time: SystemTime) -> bool {
    let Ok(seconds) = u64::try_from(seconds) else { return true };
    let modified = Duration::new(seconds, nanoseconds.min(999_999_999));
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    modified.saturating_add(ROUNDED) < since
}

/// Reads at most `most` bytes of what is new; `None` if nothing is.
fn read_part(
    file: &OwnedFd,
    status: FileStatus,
    known: Option<&KnownFile>,
    most: u64,
) -> io::Result<Option<FilePart>> {
    let from = match known.filter(|known| known.status.identity == status.identity) {
        // Written again from its beginning, it may be of its kind.
        Some(known) if known.is_ignored && status.size >= known.status.size => return Ok(None),
        Some(known) if known.is_ignored => 0,
        Some(known) if known.status == status && known.offset == status.size => return Ok(None),
        Some(known) if status.size >= known.offset && is_continued(file, known)? => known.offset,
        _ => 0,
    };
    let count = status.size.saturating_sub(from).min(most);
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
    // It may have been truncated by now.
    let count = read(file, from, &mut bytes)?;
    bytes.truncate(count);
    Ok(Some(FilePart { status, from, bytes }))
}

/// Whether the bytes that were read last are still there. A file that was written again has others.
fn is_continued(file: &OwnedFd, known: &KnownFile) -> io::Result<bool> {
    let mut last = vec![0; known.last.len()];
    let from = known.offset.saturating_sub(last.len() as u64);
    let count = read(file, from, &mut last)?;
    Ok(last.get(..count) == Some(known.last.as_slice()))
}

fn read(file: &OwnedFd, at: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match retry_on_intr(|| pread(file, &mut *rest, at.saturating_add(done as u64)))? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

impl SourceFileReadings {
    /// A length, the readings as JSON of this length, and their bytes.
    fn send(&self, output: &mut Output) -> io::Result<()> {
        let lengths: Vec<(&FileReading, usize)> = self
            .0
            .iter()
            .map(|reading| (reading, reading.part.as_ref().map_or(0, |part| part.bytes.len())))
            .collect();
        let head = serde_json::to_vec(&lengths)?;
        let length = u32::try_from(head.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        output.bytes(&length.to_ne_bytes())?;
        output.bytes(&head)?;
        for part in self.0.iter().filter_map(|reading| reading.part.as_ref()) {
            output.bytes(&part.bytes)?;
        }
        Ok(())
    }

    /// Parses an answer. A worker may have been taken over by what it read.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`].
    pub fn parse(answer: &[u8]) -> io::Result<Self> {
        let parsed = || {
            let (length, rest) = answer.split_first_chunk()?;
            let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
            let (head, mut rest) = rest.split_at_checked(length)?;
            let lengths: Vec<(FileReading, usize)> = serde_json::from_slice(head).ok()?;
            let mut readings = Vec::new();
            for (mut reading, length) in lengths {
                let (bytes, behind) = rest.split_at_checked(length)?;
                rest = behind;
                if let Some(part) = &mut reading.part {
                    part.bytes = bytes.to_owned();
                }
                readings.push(reading);
            }
            rest.is_empty().then_some(Self(readings))
        };
        parsed().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn opened(path: &Path) -> (OwnedFd, FileStatus) {
        let file = OwnedFd::from(File::open(path).expect("opened"));
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = statx(&file, "", AtFlags::EMPTY_PATH, wanted).expect("its status");
        (file, status(&stat))
    }

    /// Reads what is new since `known`, at most `most` bytes.
    fn part(path: &Path, known: Option<&KnownFile>, most: u64) -> Option<FilePart> {
        let (file, status) = opened(path);
        read_part(&file, status, known, most).expect("read")
    }

    fn known(part: &FilePart) -> KnownFile {
        KnownFile {
            kind: FileKind::PerfMap,
            path: b"/tmp/perf-1.map".to_vec(),
            status: part.status,
            offset: part.from + part.bytes.len() as u64,
            last: part.bytes.clone(),
            is_ignored: false,
        }
    }

    #[test]
    fn only_what_is_new_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf-1.map");
        fs::write(&path, "1000 10 first\n").expect("written");
        let first = part(&path, None, 1 << 20).expect("all of it");
        assert_eq!((first.from, first.bytes.as_slice()), (0, &b"1000 10 first\n"[..]));
        assert!(!first.is_cut());
        assert_eq!(part(&path, Some(&known(&first)), 1 << 20), None);
        let mut file = fs::OpenOptions::new().append(true).open(&path).expect("opened");
        file.write_all(b"2000 10 second\n").expect("written");
        let second = part(&path, Some(&known(&first)), 4).expect("what is new");
        assert_eq!((second.from, second.bytes.as_slice()), (14, &b"2000"[..]));
        assert!(second.is_cut());
        let rest = part(&path, Some(&known(&second)), 1 << 20).expect("the rest");
        assert_eq!((rest.from, rest.bytes.as_slice()), (18, &b" 10 second\n"[..]));
    }

    #[test]
    fn a_file_that_was_replaced_truncated_or_written_again_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf-1.map");
        let all = |text: &str, before: &KnownFile| {
            let part = part(&path, Some(before), 1 << 20).expect("something new");
            assert_eq!((part.from, part.bytes.as_slice()), (0, text.as_bytes()));
            known(&part)
        };
        fs::write(&path, "1000 10 first\n").expect("written");
        let before = known(&part(&path, None, 1 << 20).expect("all of it"));
        // In place, and longer.
        fs::write(&path, "1000 10 other and longer\n").expect("written");
        let before = all("1000 10 other and longer\n", &before);
        // In place, and shorter.
        fs::write(&path, "1 1 s\n").expect("written");
        let before = all("1 1 s\n", &before);
        // Another file with the same beginning.
        fs::write(folder.path().join("new"), "1 1 s\n2 1 t\n").expect("written");
        fs::rename(folder.path().join("new"), &path).expect("renamed");
        let before = all("1 1 s\n2 1 t\n", &before);
        fs::write(&path, "").expect("written");
        all("", &before);
        // One that was none of its kind is read again when it was.
        let ignored = KnownFile { is_ignored: true, ..before };
        let status = FileStatus { size: 3, ..opened(&path).1 };
        let ignored = KnownFile { status, ..ignored };
        assert!(part(&path, Some(&ignored), 1 << 20).is_some_and(|part| part.from == 0));
        fs::write(&path, "garbage").expect("written");
        assert_eq!(part(&path, Some(&ignored), 1 << 20), None);
    }

    #[test]
    fn times_of_files_and_processes() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert!(is_before((98, 0), time));
        assert!(!is_before((99, 500_000_000), time));
        assert!(is_before((-5, 0), time));
        let target = Target::open(std::process::id()).expect("this process");
        assert!(start_of(&target).expect("a time") > 0);
    }

    proptest! {
        #[test]
        fn any_answer_is_parsed(answer in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = SourceFileReadings::parse(&answer);
        }

        #[test]
        fn an_answer_that_is_cut_is_none(length in 0usize..100, cut in 1usize..50) {
            let head = format!(
                r#"[[{{"kind":"PerfMap","path":[47],"part":{{"status":{{"identity":{{"device":1,"inode":2,"created":[0,0]}},"size":9,"modified":[0,0]}},"from":0}}}},{length}]]"#
            );
            let mut answer = u32::try_from(head.len()).unwrap().to_ne_bytes().to_vec();
            answer.extend(head.as_bytes());
            answer.extend(vec![7; length]);
            let all = SourceFileReadings::parse(&answer).unwrap();
            prop_assert_eq!(all.0[0].part.as_ref().unwrap().bytes.len(), length);
            answer.truncate(answer.len() - cut);
            prop_assert!(SourceFileReadings::parse(&answer).is_err());
        }
    }
}
