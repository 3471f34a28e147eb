//! The mode that keeps VTune's collector out of the process.
#![cfg(unix)]
#![allow(unsafe_code, clippy::print_stdout)]

use std::ffi::{CStr, c_char, c_void};
use std::process::Command;

use jitscribe_capi::{Mode, Settings, Subject, jitscribe_open};

/// The mode for VTune of the scribe that [`role`] opens.
const MODE: &str = "TEST_MODE";

unsafe extern "C" fn print(_: *mut c_void, subject: u32, text: *const c_char) {
    // SAFETY: by the header, the text ends with a NUL, and is valid during the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    println!("notice {subject}: {text}");
}

/// Opens a scribe: a process of its own, as its environment must be set before it starts.
#[test]
#[ignore = "run by the other test"]
fn role() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let settings = Settings {
        struct_size: size_of::<Settings>(),
        vtune: mode.parse().unwrap(),
        notice: Some(print),
        // SAFETY: zeros are numbers, empty texts, and no functions.
        ..unsafe { std::mem::zeroed() }
    };
    let mut scribe = std::ptr::null();
    // SAFETY: the settings are valid, and so is the place for the scribe.
    unsafe { jitscribe_open(&raw const settings, &raw mut scribe) };
    assert!(!scribe.is_null());
}

#[test]
fn off_keeps_the_collector_out() {
    let said = |mode: Mode| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "vtune::role", "--ignored", "--nocapture"]);
        command.env(MODE, (mode as u32).to_string());
        for variable in ["INTEL_JIT_PROFILER64", "INTEL_JIT_PROFILER32"] {
            command.env(variable, "/nowhere/collector.so");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let notice = format!("notice {}: VTune is passed no code", Subject::Vtune as u32);
    assert!(said(Mode::Auto).contains(&notice), "{}", said(Mode::Auto));
    let without = said(Mode::Off);
    assert!(!without.contains("notice"), "{without}");
}
