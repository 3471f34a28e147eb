//! libunwind's functions, looked up at run time.
#![allow(dead_code, reason = "each user uses some of it")]
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

type Getcontext = unsafe extern "C" fn(*mut c_void) -> c_int;
type InitLocal = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Step = unsafe extern "C" fn(*mut c_void) -> c_int;
type GetReg = unsafe extern "C" fn(*mut c_void, c_int, *mut u64) -> c_int;
type GetProcName = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut u64) -> c_int;
type Backtrace = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;

/// The library.
pub struct Libunwind {
    getcontext: Getcontext,
    init: InitLocal,
    step: Step,
    get_reg: GetReg,
    get_name: GetProcName,
    backtrace: Backtrace,
}

/// Larger than `unw_context_t` and `unw_cursor_t`.
#[repr(C, align(16))]
struct Room([u64; 640]);

/// `unw_getcontext` and others, which are macros, and the number of the program counter.
#[cfg(target_arch = "x86_64")]
const NAMES: [&std::ffi::CStr; 5] = [
    c"_Ux86_64_getcontext",
    c"_ULx86_64_init_local",
    c"_ULx86_64_step",
    c"_ULx86_64_get_reg",
    c"_ULx86_64_get_proc_name",
];
#[cfg(target_arch = "x86_64")]
const PROGRAM_COUNTER: c_int = 16;
/// The context is the C library's, and the library has no function for it.
#[cfg(target_arch = "aarch64")]
const NAMES: [&std::ffi::CStr; 5] = [
    c"getcontext",
    c"_ULaarch64_init_local",
    c"_ULaarch64_step",
    c"_ULaarch64_get_reg",
    c"_ULaarch64_get_proc_name",
];
/// It is where the return address was.
#[cfg(target_arch = "aarch64")]
const PROGRAM_COUNTER: c_int = 30;

impl Libunwind {
    /// Loads it.
    pub fn load() -> Self {
        // SAFETY: names that end with a NUL, and functions of these types.
        unsafe {
            let library = libc::dlopen(c"libunwind.so.8".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null(), "libunwind8; see scripts/setup.sh");
            let find = |name: &std::ffi::CStr| {
                let found = libc::dlsym(library, name.as_ptr());
                assert!(!found.is_null(), "{name:?}");
                found
            };
            Self {
                getcontext: std::mem::transmute::<*mut c_void, Getcontext>(find(NAMES[0])),
                init: std::mem::transmute::<*mut c_void, InitLocal>(find(NAMES[1])),
                step: std::mem::transmute::<*mut c_void, Step>(find(NAMES[2])),
                get_reg: std::mem::transmute::<*mut c_void, GetReg>(find(NAMES[3])),
                get_name: std::mem::transmute::<*mut c_void, GetProcName>(find(NAMES[4])),
                backtrace: std::mem::transmute::<*mut c_void, Backtrace>(find(c"unw_backtrace")),
            }
        }
    }

    /// Calls `visit` with each frame's address, step by step, and with its name if requested.
    #[inline(never)]
    pub fn steps(&self, mut visit: impl FnMut(u64, &dyn Fn() -> Option<String>)) {
        let (mut context, mut cursor) = (Room([0; 640]), Room([0; 640]));
        // SAFETY: both are large enough; this frame stays during the walk.
        unsafe {
            (self.getcontext)((&raw mut context).cast());
            assert_eq!((self.init)((&raw mut cursor).cast(), (&raw mut context).cast()), 0);
            let cursor = (&raw mut cursor).cast::<c_void>();
            loop {
                let mut ip = 0;
                (self.get_reg)(cursor, PROGRAM_COUNTER, &raw mut ip);
                if ip == 0 {
                    return;
                }
                visit(ip, &|| {
                    let (mut name, mut offset) = ([0_u8; 256], 0);
                    let done = (self.get_name)(cursor, name.as_mut_ptr(), 256, &raw mut offset);
                    let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
                    (done == 0).then(|| String::from_utf8_lossy(text).into_owned())
                });
                if (self.step)(cursor) <= 0 {
                    return;
                }
            }
        }
    }

    /// The addresses, by `unw_step`.
    #[inline(never)]
    pub fn walk(&self) -> Vec<u64> {
        let mut all = Vec::new();
        self.steps(|ip, _| all.push(ip));
        all
    }

    /// The addresses, by `unw_backtrace`.
    #[inline(never)]
    pub fn backtrace(&self) -> Vec<u64> {
        let mut all = vec![std::ptr::null_mut(); 4096];
        // SAFETY: there is space for this number.
        let count = unsafe { (self.backtrace)(all.as_mut_ptr(), 4096) };
        // On AArch64, libunwind's answers are one byte before the return addresses.
        let before = if cfg!(target_arch = "aarch64") { 1 } else { 0 };
        all[..count as usize].iter().map(|ip| ip.addr() as u64 + before).collect()
    }
}
