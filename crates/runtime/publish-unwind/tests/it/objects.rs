//! What the loader says about the object file that leads LLVM's libunwind to code: it covers the addresses of code, and no others.
#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use crate::common::others::{all_pass, llvm, llvms};
use crate::common::{CALLER, Page, ROOM, ROWS, unwinders};
use publish_unwind::{Code, Unwind, Unwinders};

/// Whether an object file of the process has a segment there.
fn is_claimed(address: u64) -> bool {
    struct Search {
        address: u64,
        is_found: bool,
    }
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, and the value below.
        unsafe {
            let (info, search) = (&*info, &mut *search.cast::<Search>());
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            search.is_found |= headers.iter().any(|header| {
                let within =
                    search.address.wrapping_sub(info.dlpi_addr.wrapping_add(header.p_vaddr));
                header.p_type == libc::PT_LOAD && within < header.p_memsz
            });
        }
        0
    }
    let mut search = Search { address, is_found: false };
    // SAFETY: the value outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.is_found
}

const IN_A_PAGE: usize = 4096 / ROOM;

/// The pages, of these, that are claimed.
fn claimed(page: &Page, pages: usize) -> Vec<usize> {
    let is = |number: &usize| is_claimed(page.address(number * IN_A_PAGE));
    (0..pages).filter(is).collect()
}

#[test]
fn only_pages_of_code_and_small_gaps_are_claimed() {
    const PAGES: usize = 100;
    if !std::env::var(crate::common::others::EXPECTED).is_ok_and(|kind| kind == "Llvm") {
        return;
    }
    // So that there is an object file, whatever else is loaded.
    let many = Page::new(1000);
    for number in 0..1000 {
        many.load(number);
    }
    assert!(is_claimed(many.address(999)));
    let page = Page::new(PAGES * IN_A_PAGE);
    assert_eq!(claimed(&page, PAGES), []);
    let load = |number: usize| page.load(number * IN_A_PAGE);
    let unload = |number: usize| page.unload(number * IN_A_PAGE);
    for number in [10, 50, 51, 90, 13] {
        load(number);
    }
    // A gap of two pages is too small for a library.
    assert_eq!(claimed(&page, PAGES), [10, 11, 12, 13, 50, 51, 90]);
    load(53);
    load(54);
    assert_eq!(claimed(&page, PAGES), [10, 11, 12, 13, 50, 51, 52, 53, 54, 90]);
    unload(51);
    assert_eq!(claimed(&page, PAGES), [10, 11, 12, 13, 50, 51, 52, 53, 54, 90]);
    unload(53);
    assert_eq!(claimed(&page, PAGES), [10, 11, 12, 13, 50, 54, 90]);
    for number in [10, 54, 90] {
        unload(number);
    }
    assert_eq!(claimed(&page, PAGES), [13, 50]);
    // More places than there are program headers: each code is found all the same.
    let far = Page::new(400 * 5 * IN_A_PAGE);
    let places: Vec<usize> = (0..400).map(|number| number * 5 * IN_A_PAGE).collect();
    for &place in &places {
        far.load(place);
    }
    let count = places.iter().filter(|place| is_claimed(far.address(**place))).count();
    assert!((100..400).contains(&count), "{count}");
    for &place in &places {
        let caught = std::panic::catch_unwind(|| far.caller(place)(throw, place));
        assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&place));
        far.unload(place);
    }
    unload(13);
    unload(50);
    assert_eq!(claimed(&page, PAGES), []);
    assert_eq!(claimed(&far, 2000), []);
    unwinders().unload(many.address(0), (1000 * ROOM) as u64);
    assert!(!is_claimed(many.address(999)));
}

/// When a registry gives up or is dropped, its object file covers no addresses; the next registry uses it again.
#[test]
fn a_dropped_registry_claims_nothing() {
    if !std::env::var(crate::common::others::EXPECTED).is_ok_and(|kind| kind == "Llvm") {
        return;
    }
    let page = Page::new(1000);
    for round in 0..3 {
        let own = Unwinders::find().expect("an unwinder");
        for number in 0..1000 {
            let code = Code::at(page.address(number), CALLER.len() as u64);
            own.load(&code.unwind(Unwind::Rows(&ROWS)));
        }
        let caught = std::panic::catch_unwind(|| page.caller(999)(throw, round));
        assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&round));
        assert!(is_claimed(page.address(0)) && is_claimed(page.address(999)));
        if round == 0 {
            own.give_up();
            assert!(!is_claimed(page.address(0)) && own.take_refusal());
        }
        drop(own);
        assert!(!is_claimed(page.address(999)));
    }
    assert!(objects() <= 2, "{}", objects());
}

/// Number of object files of this kind, of which the other test has one.
fn objects() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a file");
    maps.lines().filter(|line| line.contains("memfd:publish-unwind")).count()
}

extern "C-unwind" fn throw(_: usize, number: usize) {
    std::panic::resume_unwind(Box::new(number));
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn with_llvms_libunwind() {
        for library in llvms() {
            all_pass(llvm(&library), "objects::", "Llvm", &[], 2);
        }
    }
}
