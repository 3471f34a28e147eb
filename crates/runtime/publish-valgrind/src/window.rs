//! Maps an object file over code for a moment, which is all that Valgrind needs.
//!
//! Valgrind reads the symbols of a file when the file is mapped executable at the addresses of its text. It
//! keeps them when other memory takes that place, as long as that memory arrives by `mremap`, and not
//! through a hole made by `munmap`. So the runtime's pages are moved aside, the file is mapped, and the same
//! pages are moved back: their content, protection and identity (of shared memory, too) are unchanged.
//!
//! In between, the code is not there. No other thread sees this: Valgrind runs one thread at a time. It
//! switches threads after a counted number of blocks, or in system calls that wait, which none of these
//! does, and runs signal handlers only then. [`turn::begin`] ensures that the time slice is long enough.
//! Without Valgrind, none of this is done.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::error::Cause;
use crate::turn;

/// Mappings begin at multiples of this. If pages are larger, a system call fails.
pub(crate) const PAGE: u64 = 4096;

/// Maximum number of pieces in a range: protections may change from page to page.
const PIECES: usize = 512;

/// A page range of this process, for system calls.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    len: usize,
}

impl Span {
    fn new(start: u64, end: u64) -> Result<Self, Cause> {
        let len = end.checked_sub(start).and_then(|len| usize::try_from(len).ok());
        match (usize::try_from(start), len) {
            (Ok(start), Some(len)) if len > 0 => Ok(Self { start, len }),
            _ => Err(Cause::Place),
        }
    }

    fn pointer(self) -> *mut c_void {
        with_exposed_provenance_mut(self.start)
    }
}

/// Whether all pages of the range are mapped.
pub(crate) fn is_mapped(start: u64, end: u64) -> bool {
    const AT_ONCE: usize = 256;
    let Ok(span) = Span::new(start, end) else { return false };
    let mut resident = [0_u8; AT_ONCE];
    (0..span.len).step_by(AT_ONCE * PAGE as usize).all(|at| {
        let len = (span.len - at).min(AT_ONCE * PAGE as usize);
        let pages = with_exposed_provenance_mut(span.start + at);
        // SAFETY: there is a byte of space for each page; nothing else is written. The call fails if a page
        // is missing. Unlike `msync`, memcheck accepts it.
        unsafe { libc::mincore(pages, len, resident.as_mut_ptr()) == 0 }
    })
}

/// Maps pages without access wherever none are mapped. Whether all pages of the range are mapped then.
pub(crate) fn fill(start: u64, end: u64) -> bool {
    let is_free = |at| !is_mapped(at, at + PAGE);
    let mut at = start;
    while at < end {
        let mut behind = at;
        while behind < end && is_free(behind) {
            behind += PAGE;
        }
        if behind > at && !map_there(at, behind) {
            return false;
        }
        at = behind.max(at + PAGE);
    }
    true
}

/// Maps pages without access, if no page of the range is mapped.
fn map_there(start: u64, end: u64) -> bool {
    let Ok(span) = Span::new(start, end) else { return false };
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping. It replaces none: without `MAP_FIXED` the address is a wish.
    let mapped = unsafe { mmap_anonymous(span.pointer(), span.len, ProtFlags::empty(), flags) };
    let Ok(mapped) = mapped else { return false };
    if mapped != span.pointer() {
        // SAFETY: the new mapping, whose address no other code has.
        let _ = unsafe { munmap(mapped, span.len) };
    }
    mapped == span.pointer()
}

/// The first page of each object file, mapped writable elsewhere: the second thing that Valgrind needs. It
/// is never written to, nor unmapped.
#[derive(Debug)]
pub(crate) struct Anchor(Span);

impl Anchor {
    fn map(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let len = PAGE as usize;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { mmap(null_mut(), len, prot, MapFlags::PRIVATE, fd, 0) }?;
        Ok(Self(Span { start: at.expose_provenance(), len }))
    }

    fn map_again(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the page is ours, and there are no pointers to it.
        unsafe { mmap(self.0.pointer(), self.0.len, prot, flags, fd, 0) }.map(drop)
    }

    /// Unmaps the page.
    pub(crate) fn unmap(self) {
        // SAFETY: the page is ours, and there are no pointers to it.
        let _ = unsafe { munmap(self.0.pointer(), self.0.len) };
    }
}

/// A page without content.
#[derive(Debug)]
pub(crate) struct SparePage(Span);

/// Maps an empty page.
pub(crate) fn spare_page() -> Result<SparePage, Cause> {
    let len = PAGE as usize;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE) }
        .map_err(Cause::system("reserve memory"))?;
    Ok(SparePage(Span { start: at.expose_provenance(), len }))
}

impl SparePage {
    pub(crate) fn address(&self) -> u64 {
        self.0.start as u64
    }

    /// Unmaps the page.
    pub(crate) fn unmap(self) {
        // SAFETY: the page is ours, and there are no pointers to it.
        let _ = unsafe { munmap(self.0.pointer(), self.0.len) };
    }
}

/// Makes Valgrind read the object file, whose text begins at `offset`, for the pages from `start` to `end`,
/// and forget what it knew about them. Afterwards the pages are unchanged.
///
/// `anchor` is the page of the file's previous version, if that was shown.
pub(crate) fn show(
    fd: BorrowedFd<'_>,
    offset: u64,
    (start, end): (u64, u64),
    anchor: &mut Option<Anchor>,
) -> Result<(), Cause> {
    let span = Span::new(start, end)?;
    if holds_stack(span) {
        return Err(Cause::Stack);
    }
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let aside = unsafe { mmap_anonymous(null_mut(), span.len, ProtFlags::empty(), flags) }
        .map_err(Cause::system("reserve memory"))?;
    let aside = Span { start: aside.expose_provenance(), len: span.len };
    turn::begin();
    let mut moved = Pieces::none();
    let result = moved.move_aside(span, aside).and_then(|()| {
        // SAFETY: the range is a hole now. Valgrind discards what it knows about it.
        let _ = unsafe { munmap(span.pointer(), span.len) };
        let prot = ProtFlags::READ | ProtFlags::EXEC;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the range is a hole, which no other thread fills before it is ours again: see above.
        unsafe { mmap(span.pointer(), span.len, prot, flags, fd, offset) }.map(drop)
    });
    moved.move_back(span, aside);
    let moved = moved.extent();
    if moved < aside.len {
        // SAFETY: this part of the reserved memory was not used. The other part is a hole by now.
        let _ =
            unsafe { munmap(with_exposed_provenance_mut(aside.start + moved), aside.len - moved) };
    }
    result.map_err(Cause::system("map the object file over the code"))?;
    match anchor {
        Some(anchor) => anchor.map_again(fd),
        None => Anchor::map(fd).map(|new| *anchor = Some(new)),
    }
    .map_err(Cause::system("map the object file"))
}

/// Whether this thread's stack is in the range, which then cannot be moved.
fn holds_stack(span: Span) -> bool {
    let here = 0_u8;
    let here = (&raw const here).expose_provenance();
    // Covers a few nested calls, and their locals.
    let reach = 1 << 16;
    here.saturating_add(reach) >= span.start && here < span.start.saturating_add(span.len + reach)
}

/// What was moved aside: the lengths of adjacent pieces, in pages. It does not allocate, because the moved
/// pages may belong to the allocator.
struct Pieces {
    pages: [u16; PIECES],
    count: usize,
}

impl Pieces {
    const fn none() -> Self {
        Self { pages: [0; PIECES], count: 0 }
    }

    /// Offset and length of each piece, ascending.
    fn each(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.pages[..self.count].iter().scan(0, |end, &pages| {
            let (at, len) = (*end, usize::from(pages) * PAGE as usize);
            *end += len;
            Some((at, len))
        })
    }

    /// Number of bytes that were moved aside.
    fn extent(&self) -> usize {
        self.each().last().map_or(0, |(at, len)| at + len)
    }

    /// Moves all pages aside, in as few pieces as the kernel and Valgrind allow: pages with different
    /// protections cannot be moved together.
    fn move_aside(&mut self, span: Span, aside: Span) -> Result<(), Errno> {
        let page = PAGE as usize;
        let largest = usize::from(u16::MAX) * page;
        let (mut at, mut len, mut most) = (0, span.len.min(largest), largest);
        let mut before = 0;
        while at < span.len {
            let Some(place) = self.pages.get_mut(self.count) else { return Err(Errno::NOMEM) };
            // SAFETY: the destination is a part of the reserved memory. The source is pages that come back
            // before anything else runs.
            let moved = unsafe { relocate(span.start + at, aside.start + at, len) };
            match moved {
                Ok(()) => {
                    *place = (len / page) as u16;
                    self.count += 1;
                    at += len;
                    // Where protections change from page to page, larger pieces are tried for every second page only, and
                    // not all of the rest.
                    if before == len {
                        most = most.saturating_mul(2).min(largest);
                    }
                    before = if before == len { 0 } else { len };
                    len = (span.len - at).min(most);
                }
                Err(errno) if len <= page => return Err(errno),
                Err(_) => {
                    len = (len / 2).next_multiple_of(page);
                    most = len;
                }
            }
        }
        Ok(())
    }

    /// Moves everything back.
    fn move_back(&self, span: Span, aside: Span) {
        for (at, len) in self.each() {
            // SAFETY: the destination is a hole, or the object file's pages, which are not used; the source
            // is what was there before.
            let back = unsafe { relocate(aside.start + at, span.start + at, len) };
            if back.is_err() {
                // The kernel does not allow one more mapping. Without the file's pages, there is one mapping
                // less than when the move aside succeeded.
                // SAFETY: as above.
                let _ = unsafe { munmap(with_exposed_provenance_mut(span.start + at), len) };
                // SAFETY: as above.
                let _ = unsafe { relocate(aside.start + at, span.start + at, len) };
            }
        }
    }
}

/// Moves pages, replacing what is there. (rustix 1.1 requires `MAP_FIXED`, which is another flag.)
///
/// # Safety
/// The content of the destination is not used, and the pages are not used before they are back.
unsafe fn relocate(from: usize, to: usize, len: usize) -> Result<(), Errno> {
    let (from, to) = (with_exposed_provenance_mut(from), with_exposed_provenance_mut::<c_void>(to));
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: guaranteed by the caller.
    let moved = unsafe { libc::mremap(from, len, len, flags, to) };
    if moved == libc::MAP_FAILED {
        return Err(last_error());
    }
    Ok(())
}

fn last_error() -> Errno {
    // SAFETY: `errno` of this thread, which exists as long as the thread.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
