//! Mapping an object file over code for a moment, which is all that valgrind wants to see.
//!
//! Valgrind reads the symbols of a file when the file is mapped executable where its text is to
//! be, and goes on knowing them when other memory takes that place, as long as it comes there
//! by `mremap` and not by way of a hole that `munmap` made. So the runtime's pages are moved
//! aside, the file is mapped, and the very same pages are moved back: their contents, protection
//! and identity (of shared memory, too) stay as they were.
//!
//! In between the code is not there. No other thread sees that: valgrind runs one at a time,
//! changes turns at blocks of code that it counts or in system calls that wait, which none of
//! these is, and runs signal handlers only then. [`turn::begin`] makes sure that the turn
//! lasts. Elsewhere than under valgrind none of this is ever done.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::error::Cause;
use crate::turn;

/// Mappings start on multiples of this. Where pages are larger, a system call fails.
pub(crate) const PAGE: u64 = 4096;

/// How many pieces a range may consist of: protections that change from page to page.
const PIECES: usize = 512;

/// A page range of this process, as system calls take it.
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
        // SAFETY: there is a byte of room for each page asked for; nothing else is written. It
        // fails where a page is missing. Memcheck lets it ask, unlike `msync`.
        unsafe { libc::mincore(pages, len, resident.as_mut_ptr()) == 0 }
    })
}

/// The page at the start of each object file, mapped writable at a place of its own: the second
/// thing that valgrind wants to see. It is never written to, nor unmapped.
#[derive(Debug)]
pub(crate) struct Anchor(Span);

impl Anchor {
    fn map(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let len = PAGE as usize;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe { mmap(null_mut(), len, prot, MapFlags::PRIVATE, fd, 0) }?;
        Ok(Self(Span { start: at.expose_provenance(), len }))
    }

    fn map_again(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the page is ours, and nobody has a pointer to it.
        unsafe { mmap(self.0.pointer(), self.0.len, prot, flags, fd, 0) }.map(drop)
    }

    /// Gives the page back.
    pub(crate) fn unmap(self) {
        // SAFETY: the page is ours, and nobody has a pointer to it.
        let _ = unsafe { munmap(self.0.pointer(), self.0.len) };
    }
}

/// A page of no meaning.
#[derive(Debug)]
pub(crate) struct SparePage(Span);

/// Maps one that is empty.
pub(crate) fn spare_page() -> Result<SparePage, Cause> {
    let len = PAGE as usize;
    // SAFETY: a new mapping where the kernel finds room.
    let at = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE) }
        .map_err(Cause::system("reserve memory"))?;
    Ok(SparePage(Span { start: at.expose_provenance(), len }))
}

impl SparePage {
    pub(crate) fn address(&self) -> u64 {
        self.0.start as u64
    }

    /// Gives the page back.
    pub(crate) fn unmap(self) {
        // SAFETY: the page is ours, and nobody has a pointer to it.
        let _ = unsafe { munmap(self.0.pointer(), self.0.len) };
    }
}

/// Has valgrind read the object file, whose text lies in it from `offset` on, for the pages from
/// `start` to `end`, and forget what it knew of them. They are as before afterwards.
///
/// `anchor` is the file's page of the time before, if it was shown already.
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
    // SAFETY: a new mapping where the kernel finds room.
    let aside = unsafe { mmap_anonymous(null_mut(), span.len, ProtFlags::empty(), flags) }
        .map_err(Cause::system("reserve memory"))?;
    let aside = Span { start: aside.expose_provenance(), len: span.len };
    turn::begin();
    let mut moved = Pieces::none();
    let result = moved.take_aside(span, aside).and_then(|()| {
        // SAFETY: the range is a hole now. Valgrind takes this as the end of what it knows of it.
        let _ = unsafe { munmap(span.pointer(), span.len) };
        let prot = ProtFlags::READ | ProtFlags::EXEC;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the range is a hole, which nobody else fills before it is ours again: see above.
        unsafe { mmap(span.pointer(), span.len, prot, flags, fd, offset) }.map(drop)
    });
    moved.bring_back(span, aside);
    let moved = moved.extent();
    if moved < aside.len {
        // SAFETY: this part of the reserved memory was not used. The other is a hole by now.
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
    // Some calls deep, and some locals.
    let reach = 1 << 16;
    here.saturating_add(reach) >= span.start && here < span.start.saturating_add(span.len + reach)
}

/// What was moved aside: the lengths of pieces that follow one another, in pages. No memory is taken for it,
/// since the pages moved may be the allocator's.
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

    /// Bytes that were moved aside.
    fn extent(&self) -> usize {
        self.each().last().map_or(0, |(at, len)| at + len)
    }

    /// Moves all pages aside, in as few pieces as the kernel and valgrind take: one whose pages
    /// differ in their protection is not taken whole.
    fn take_aside(&mut self, span: Span, aside: Span) -> Result<(), Errno> {
        let page = PAGE as usize;
        let largest = usize::from(u16::MAX) * page;
        let (mut at, mut len) = (0, span.len.min(largest));
        while at < span.len {
            let Some(place) = self.pages.get_mut(self.count) else { return Err(Errno::NOMEM) };
            // SAFETY: the destination is a part of what was reserved. The source is pages that
            // come back before anybody else runs.
            let moved = unsafe { relocate(span.start + at, aside.start + at, len) };
            match moved {
                Ok(()) => {
                    *place = (len / page) as u16;
                    self.count += 1;
                    at += len;
                    len = (span.len - at).min(largest);
                }
                Err(errno) if len <= page => return Err(errno),
                Err(_) => len = (len / 2).next_multiple_of(page),
            }
        }
        Ok(())
    }

    /// Moves all back.
    fn bring_back(&self, span: Span, aside: Span) {
        for (at, len) in self.each() {
            // SAFETY: the destination is a hole, or the object file's pages, which nobody uses; the
            // source is what was there before.
            let back = unsafe { relocate(aside.start + at, span.start + at, len) };
            if back.is_err() {
                // The kernel has no room for one more mapping. With the file's pages gone there is
                // one less than when the move aside succeeded.
                // SAFETY: as above.
                let _ = unsafe { munmap(with_exposed_provenance_mut(span.start + at), len) };
                // SAFETY: as above.
                let _ = unsafe { relocate(aside.start + at, span.start + at, len) };
            }
        }
    }
}

/// Moves pages, in place of what is there. (rustix 1.1 asks for `MAP_FIXED`, which is another flag.)
///
/// # Safety
/// Nobody uses what is at the destination, and nobody uses the pages before they are back.
unsafe fn relocate(from: usize, to: usize, len: usize) -> Result<(), Errno> {
    let (from, to) = (with_exposed_provenance_mut(from), with_exposed_provenance_mut::<c_void>(to));
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: what the caller must see to.
    let moved = unsafe { libc::mremap(from, len, len, flags, to) };
    if moved == libc::MAP_FAILED {
        let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(Errno::from_raw_os_error(code));
    }
    Ok(())
}
