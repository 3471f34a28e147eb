//! Every single allocation fails once: the process survives, and Windows knows all code or none.
#![cfg(all(windows, target_arch = "x86_64"))]
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

use publish_unwind::{Code, Unwind, Unwinders};
use windows_sys::Win32::System::Diagnostics::Debug::RtlLookupFunctionEntry;
use windows_sys::Win32::System::Memory::{MEM_RESERVE, PAGE_NOACCESS, VirtualAlloc};

/// The failing allocator.
struct Refusing;

thread_local! {
    /// Number of allocations that succeed, and whether those after the failing one succeed.
    static LEFT: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
    static REFUSED: Cell<u32> = const { Cell::new(0) };
}

impl Refusing {
    fn grants() -> bool {
        let Some((left, is_one)) = LEFT.get() else { return true };
        if let Some(left) = left.checked_sub(1) {
            LEFT.set(Some((left, is_one)));
            return true;
        }
        if is_one {
            LEFT.set(None);
        }
        REFUSED.set(REFUSED.get() + 1);
        false
    }
}

// SAFETY: the system's allocator, which may refuse.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        if Self::grants() { unsafe { System.alloc(layout) } } else { ptr::null_mut() }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        if Self::grants() { unsafe { System.realloc(at, layout, size) } } else { ptr::null_mut() }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

const SIZE: u64 = 16;

fn is_known(address: u64) -> bool {
    let mut base = 0;
    // SAFETY: this only looks up an address.
    !unsafe { RtlLookupFunctionEntry(address, &raw mut base, ptr::null_mut()) }.is_null()
}

fn at(base: u64, number: u64) -> u64 {
    base + number * 64
}

fn load(unwinders: &Unwinders, start: u64, unwind: &Unwind<'_>) {
    unwinders.load(&Code::at(start, SIZE).unwind(*unwind));
}

/// Loads, moves and unloads code in a reservation with as much code as a table holds. Returns code that is loaded at the end,
/// and code that is not.
fn churn(unwinders: &Unwinders, base: u64) -> ([u64; 4], [u64; 2]) {
    // Behind all others, for a table of their own; and in descending order, for tables that are replaced and divided.
    for number in (900..910).chain((580..600).rev()) {
        load(unwinders, at(base, number), &Unwind::FRAME_POINTER);
    }
    load(unwinders, at(base, 400), &Unwind::FramePointerAlways { signed: false });
    unwinders.moved(at(base, 400), at(base, 500), SIZE);
    unwinders.moved(at(base, 700), at(base, 450), SIZE);
    unwinders.unload(at(base, 710), SIZE);
    let known = [450, 500, 580, 909].map(|number| at(base, number));
    (known, [at(base, 400), at(base, 710)])
}

#[test]
fn every_allocation_may_be_refused() {
    for make in [|| Unwinders::find().expect("Windows has one"), Unwinders::with_plain_tables] {
        for is_one in [true, false] {
            // SAFETY: new memory, of which only the addresses are used.
            let base = unsafe { VirtualAlloc(ptr::null(), 1 << 16, MEM_RESERVE, PAGE_NOACCESS) };
            let base = base.addr() as u64;
            assert_ne!(base, 0);
            let mut granted = 0;
            loop {
                let unwinders = make();
                for number in 600..890 {
                    load(&unwinders, at(base, number), &Unwind::FRAME_POINTER);
                }
                REFUSED.set(0);
                LEFT.set(Some((granted, is_one)));
                let (known, unknown) = churn(&unwinders, base);
                LEFT.set(None);
                let is_refused = REFUSED.get() > 0;
                let is_off = unwinders.take_refusal();
                for address in known {
                    assert_eq!(is_known(address), !is_off, "{granted} granted, {is_one}");
                }
                for address in unknown {
                    assert!(!is_known(address), "{granted} granted, {is_one}");
                }
                assert!(is_refused || !is_off, "{granted} granted, {is_one}");
                unwinders.give_up();
                assert!(!is_known(at(base, 800)));
                if !is_refused {
                    break;
                }
                granted += 1;
            }
            // Otherwise nothing was tested.
            assert!(granted > 50, "{granted}");
        }
    }
}
