//! The watched files, by the program's descriptors of them.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use ::guest::{Holder, LockOwner};
use fallible::Vec;

use crate::announce::Announcer;
use crate::buffer::part;
use crate::disabled::{disable, is_disabled};
use crate::file::{File, Trigger};
use crate::names::Kind;
use crate::owner::{self, Owner};
use crate::{guest, list, poll, span, sys};

/// Maximum number of watched files, and of their descriptors.
pub(crate) const MOST_FILES: usize = 32;
const MOST_FDS: usize = 64;
/// Number of attempts, with a yield in between, for work that cannot be left to another thread.
const MAX_TRIES: u32 = 100_000;

/// The state, which only the holder of the lock accesses.
struct WatchedFiles {
    files: [Option<File>; MOST_FILES],
    announcer: Announcer,
    buffer: Vec<u8>,
    /// Whether it has been checked that nothing else in the process announces code.
    is_checked: bool,
}

struct Guarded(UnsafeCell<Option<WatchedFiles>>);

// SAFETY: only the holder of the lock accesses it, in `with_lock`.
unsafe impl Sync for Guarded {}

static WATCHED: Guarded = Guarded(UnsafeCell::new(None));
static LOCK: LockOwner = LockOwner::new();
/// Whether there are files that the parent has open, too.
static HAS_INHERITED: AtomicBool = AtomicBool::new(false);
/// A bit for each file that is due to be read.
static NOTES: AtomicU64 = AtomicU64::new(0);
/// Descriptors of the program: the descriptor in the low half; the number of the file plus 1 in the high half, with
/// [`OF_DUMP`] if the file is a dump; 0 for a free entry.
static FDS: [AtomicU64; MOST_FDS] = [const { AtomicU64::new(0) }; MOST_FDS];
const OF_DUMP: u64 = 1 << 63;
/// Our own descriptors, -1 for none: one per file for reading, and the log's.
static OWN_FDS: [AtomicI32; MOST_FILES + 1] = [const { AtomicI32::new(-1) }; MOST_FILES + 1];

/// What to do if another thread holds the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfLocked {
    /// Go on: the holder sees the note.
    LeaveNote,
    Wait,
}

/// Runs `work` on the state, and then reads all files that are due.
fn with_lock(if_locked: IfLocked, work: impl FnOnce(&mut WatchedFiles)) {
    if is_disabled() {
        return;
    }
    match owner::current() {
        Owner::ThisProcess => {}
        Owner::OtherProcess => return,
        Owner::Inherited => adopt(),
    }
    let me = sys::thread_id();
    let mut tries = 0;
    while let Err(held) = LOCK.take(me) {
        tries += 1;
        if held == Holder::ThisThread || if_locked == IfLocked::LeaveNote || tries > MAX_TRIES {
            return;
        }
        sys::yield_now();
    }
    let mut work = Some(work);
    loop {
        // SAFETY: this thread has the lock, and cannot get here again while it has it, because `take` then fails.
        let watched = unsafe { &mut *WATCHED.0.get() };
        let watched = watched.get_or_insert_with(WatchedFiles::new);
        // What is not read because memory is exhausted is read after the next write.
        let _ = fallible::attempt(|| {
            if let Some(work) = work.take() {
                work(watched);
            }
            watched.read_noted();
        });
        LOCK.release();
        // A thread that found the lock taken has left a note before.
        if NOTES.load(Acquire) == 0 || LOCK.take(me).is_err() {
            return;
        }
    }
}

/// A descriptor was opened that may be written to.
pub(crate) fn opened(fd: c_int, kind: Kind) {
    with_lock(IfLocked::Wait, |watched| watched.open(fd, kind));
}

/// Whether [`will_write`] may have anything to do.
#[inline]
pub(crate) fn may_be_inherited() -> bool {
    HAS_INHERITED.load(Relaxed) || owner::is_copy()
}

/// Something is about to be written. In a file that the parent has open, too, the content so far belongs to the parent.
pub(crate) fn will_write(fd: c_int) {
    if may_be_inherited()
        && let Some(number) = file_of(fd)
    {
        with_lock(IfLocked::Wait, |watched| {
            if let Some(file) = watched.file(number)
                && file.is_inherited
            {
                file.skip_to_end();
            }
        });
    }
}

/// Something was written.
pub(crate) fn wrote(fd: c_int) {
    if let Some(number) = file_of(fd) {
        NOTES.fetch_or(1 << number, Release);
        with_lock(IfLocked::LeaveNote, |_| ());
    }
}

/// Something was written by the stream of a dump. Returns whether the file has been read up to the end of what was written, which is
/// the end of a record, and nothing else of this process writes to the file.
pub(crate) fn wrote_by_stream(fd: c_int) -> bool {
    let Some(number) = file_of(fd) else { return false };
    NOTES.fetch_or(1 << number, Release);
    let mut is_between = false;
    with_lock(IfLocked::LeaveNote, |watched| {
        watched.read_noted();
        is_between = watched.file(number).is_some_and(|file| file.is_between_records())
            && FDS.iter().filter(|place| is_of(place.load(Relaxed), number)).count() == 1;
    });
    is_between
}

/// A descriptor is closed, or becomes another file's.
pub(crate) fn closed(fd: c_int) {
    if owner::is_borrowed() {
        return;
    }
    for place in &FDS {
        let entry = place.load(Acquire);
        if entry != 0 && entry as u32 == fd as u32 {
            let _ = place.compare_exchange(entry, 0, AcqRel, Relaxed);
            NOTES.fetch_or(1 << number_of(entry), Release);
        }
    }
    with_lock(IfLocked::LeaveNote, |_| ());
}

/// All descriptors from `first` to `last` are closed.
pub(crate) fn closed_between(first: u32, last: u32) {
    for place in &FDS {
        let entry = place.load(Acquire);
        if entry != 0 && (first..=last).contains(&(entry as u32)) {
            closed(entry as u32 as c_int);
        }
    }
}

/// A descriptor was duplicated.
pub(crate) fn duplicated(fd: c_int, new: c_int) {
    if let Some(number) = file_of(fd) {
        with_lock(IfLocked::Wait, |watched| watched.add_fd(new, number));
    }
}

/// A file was mapped writable.
pub(crate) fn mapped(fd: c_int) {
    let Some(number) = file_of(fd) else { return };
    with_lock(IfLocked::Wait, |watched| watched.is_mapped(number));
}

/// Reads all files that are written through a mapping. Returns whether there are any.
pub(crate) fn poll() -> bool {
    let mut goes_on = true;
    with_lock(IfLocked::LeaveNote, |watched| {
        goes_on = false;
        for number in 0..MOST_FILES {
            if watched.file(number).is_some_and(|file| file.is_polled()) {
                goes_on = true;
                watched.read_file(number, Trigger::Polled);
            }
        }
    });
    goes_on && !is_disabled()
}

/// Reads all files for the last time, because the process ends.
pub(crate) fn read_at_exit() {
    with_lock(IfLocked::Wait, |watched| {
        for number in 0..MOST_FILES {
            watched.read_file(number, Trigger::Last);
        }
    });
}

/// Whether the program is about to close one of our descriptors, which it does not know about.
pub(crate) fn is_own(fd: c_int) -> bool {
    fd >= 0
        && OWN_FDS.iter().any(|own| own.load(Relaxed) == fd)
        && !owner::is_borrowed()
        && !LOCK.is(sys::thread_id())
}

/// Our own descriptors, in no particular order.
pub(crate) fn own_fds() -> impl Iterator<Item = u32> {
    OWN_FDS.iter().filter_map(|own| u32::try_from(own.load(Relaxed)).ok())
}

/// Gives up one of our descriptors, because the program uses its number.
pub(crate) fn relocate_own_fd(fd: c_int) {
    with_lock(IfLocked::Wait, |watched| {
        for (number, place) in watched.files.iter_mut().enumerate() {
            if let Some(file) = place
                && file.reader == fd
            {
                file.reader = sys::move_to_high_number(fd);
                set_own(number, file.reader);
            }
        }
        // The log stays mapped.
        let _ = own_place(MOST_FILES)
            .and_then(|own| own.compare_exchange(fd, -1, Relaxed, Relaxed).ok());
    });
}

/// Before a fork: takes the lock, so that no thread is in the middle of anything. Returns whether that succeeded.
pub(crate) fn lock_for_fork() -> bool {
    if !owner::is_own() {
        return false;
    }
    let me = sys::thread_id();
    for _ in 0..MAX_TRIES {
        match LOCK.take(me) {
            Ok(()) => return true,
            Err(Holder::ThisThread) => return false,
            Err(Holder::OtherThread) => sys::yield_now(),
        }
    }
    false
}

/// In the parent of a fork: releases the lock, and reads what became due in between.
pub(crate) fn unlock_after_fork() {
    LOCK.release();
    if NOTES.load(Acquire) != 0 {
        with_lock(IfLocked::LeaveNote, |_| ());
    }
}

/// In the child of a fork: releases the lock, whose holder exists only in the parent.
pub(crate) fn reset_lock() {
    LOCK.release();
}

/// In the child of a fork: adopts the watched files at once.
pub(crate) fn adopt_after_fork() {
    with_lock(IfLocked::LeaveNote, |_| ());
}

/// In the child of a fork, on one thread: goes on with the files that are open.
fn adopt() {
    if !LOCK.is_free() {
        // Another thread was in the middle of something, and its state is not known.
        disable();
        return;
    }
    owner::adopted();
    NOTES.store(0, Relaxed);
    with_lock(IfLocked::LeaveNote, |watched| {
        for file in watched.files.iter_mut().flatten() {
            file.inherit();
            HAS_INHERITED.store(true, Relaxed);
        }
    });
}

fn number_of(entry: u64) -> usize {
    ((entry & !OF_DUMP) >> 32) as usize - 1
}

/// Whether an entry is a descriptor of this file.
fn is_of(entry: u64, number: usize) -> bool {
    entry != 0 && number_of(entry) == number
}

fn entry_of(fd: c_int) -> Option<u64> {
    let mut entries = FDS.iter().map(|place| place.load(Acquire));
    entries.find(|&entry| entry != 0 && entry as u32 == fd as u32)
}

/// The number of a descriptor's file, if it is watched.
fn file_of(fd: c_int) -> Option<usize> {
    entry_of(fd).map(number_of)
}

/// The kind of a descriptor's file, if it is watched.
pub(crate) fn kind_of(fd: c_int) -> Option<Kind> {
    entry_of(fd).map(|entry| if entry & OF_DUMP == 0 { Kind::Map } else { Kind::Dump })
}

fn own_place(number: usize) -> Option<&'static AtomicI32> {
    OWN_FDS.get(number)
}

fn set_own(number: usize, fd: c_int) {
    if let Some(place) = own_place(number) {
        place.store(fd, Relaxed);
    }
    span::set_own(own_fds());
}

impl WatchedFiles {
    fn new() -> Self {
        Self {
            files: [const { None }; MOST_FILES],
            announcer: Announcer::default(),
            buffer: Vec::new(),
            is_checked: false,
        }
    }

    fn file(&mut self, number: usize) -> Option<&mut File> {
        self.files.get_mut(number)?.as_mut()
    }

    fn open(&mut self, fd: c_int, kind: Kind) {
        if !self.is_checked && !self.announcer.has_scribe() {
            let Some(is_announced) = has_other_log(&mut self.buffer) else { return };
            self.is_checked = true;
            if is_announced {
                return disable();
            }
        }
        let Some(status) = sys::status(fd).filter(|status| status.is_regular) else { return };
        let existing = self
            .files
            .iter()
            .position(|file| file.as_ref().is_some_and(|file| file.identity == status.identity));
        let number = match existing {
            Some(number) => {
                if file_is_closed(number) {
                    let Self { files, announcer, .. } = self;
                    if let Some(Some(file)) = files.get_mut(number) {
                        file.reopened(status, number, announcer);
                    }
                } else {
                    // Opening may have truncated it.
                    self.read_file(number, Trigger::Written);
                }
                number
            }
            None => {
                let Some(number) = self.free_place() else { return };
                let Some(reader) = sys::reopen(fd) else { return };
                if let Some(place) = self.files.get_mut(number) {
                    *place = Some(File::new(kind, reader, status));
                }
                set_own(number, reader);
                list::add(fd, &mut self.buffer);
                number
            }
        };
        self.add_fd(fd, number);
    }

    /// An entry for one more file: a free one, or that of a closed file.
    fn free_place(&mut self) -> Option<usize> {
        let free = self.files.iter().position(Option::is_none);
        free.or_else(|| {
            let closed = (0..MOST_FILES).find(|&number| file_is_closed(number))?;
            self.release(closed);
            Some(closed)
        })
    }

    fn release(&mut self, number: usize) {
        if let Some(file) = self.files.get_mut(number).and_then(Option::take) {
            set_own(number, -1);
            sys::close(file.reader);
        }
    }

    fn add_fd(&mut self, fd: c_int, number: usize) {
        let Ok(low) = u32::try_from(fd) else { return };
        let of_dump = self.file(number).is_some_and(|file| file.kind() == Kind::Dump);
        let of_dump = if of_dump { OF_DUMP } else { 0 };
        let entry = u64::from(low) | (number as u64 + 1) << 32 | of_dump;
        for place in &FDS {
            if place.load(Relaxed) as u32 == low && place.load(Relaxed) != 0 {
                place.store(0, Relaxed);
            }
        }
        let free = FDS.iter().find(|place| place.load(Relaxed) == 0);
        if let Some(place) = free {
            place.store(entry, Release);
        }
        set_span();
    }

    fn is_mapped(&mut self, number: usize) {
        if let Some(file) = self.file(number) {
            file.is_mapped();
            poll::begin(|| guest::isolated(poll));
        }
    }

    fn read_file(&mut self, number: usize, when: Trigger) {
        let Self { files, announcer, buffer, .. } = self;
        if let Some(Some(file)) = files.get_mut(number)
            && !(file.is_inherited && when != Trigger::Written)
        {
            file.read_new(when, number, buffer, announcer);
            if when == Trigger::Last && fallible::so_far().is_err() {
                announcer.left_out();
            }
            if file.is_ignored() {
                for place in &FDS {
                    let entry = place.load(Relaxed);
                    if is_of(entry, number) {
                        place.store(0, Relaxed);
                    }
                }
                self.release(number);
                set_span();
            }
        }
        if let Some(log) = self.announcer.log_fd()
            && own_place(MOST_FILES).is_some_and(|own| own.load(Relaxed) != log)
        {
            set_own(MOST_FILES, log);
        }
    }

    fn read_noted(&mut self) {
        loop {
            let notes = NOTES.swap(0, AcqRel);
            if notes == 0 || is_disabled() {
                return;
            }
            for number in (0..MOST_FILES).filter(|number| notes >> number & 1 != 0) {
                let is_closed = file_is_closed(number);
                self.read_file(number, if is_closed { Trigger::Last } else { Trigger::Written });
                if is_closed {
                    set_span();
                    if self.file(number).is_some_and(|file| !file.is_kept()) {
                        self.release(number);
                    }
                }
            }
        }
    }
}

/// Whether the program has no descriptor of it any more.
fn file_is_closed(number: usize) -> bool {
    !FDS.iter().any(|place| is_of(place.load(Acquire), number))
}

fn set_span() {
    let fds = FDS.iter().map(|place| place.load(Relaxed)).filter(|&entry| entry != 0);
    span::set(fds.map(|entry| entry as u32 as c_int));
}

/// Whether the process already has a code log: then the program announces its code itself. `None` if memory is exhausted.
fn has_other_log(buffer: &mut Vec<u8>) -> Option<bool> {
    const NAME: &[u8] = b"/memfd:jitscribe";
    let space = part(buffer, 1 << 16);
    if space.is_empty() {
        return None;
    }
    let Some(maps) = sys::open_to_read(c"/proc/self/maps") else { return Some(false) };
    // The end of the previous chunk is kept at the front: a name may begin there.
    let (mut offset, mut kept) = (0, 0);
    let found = loop {
        let read = sys::read_at(maps, space.get_mut(kept..).unwrap_or_default(), offset);
        let filled = space.get(..kept + read).unwrap_or_default();
        if read == 0 || filled.windows(NAME.len()).any(|part| part == NAME) {
            break read > 0;
        }
        let rest = filled.len().saturating_sub(NAME.len() - 1);
        (offset, kept) = (offset + read as u64, filled.len() - rest);
        space.copy_within(rest..rest + kept, 0);
    };
    sys::close(maps);
    Some(found)
}
