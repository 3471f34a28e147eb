//! The flag that keeps VTune's collector out of the process.
#![cfg(unix)]
#![allow(unsafe_code, clippy::print_stdout)]

use std::ffi::{CStr, c_char, c_void};
use std::process::Command;
use std::ptr::null_mut;

use jitscribe_capi::{Flag, Settings, Str, Subject, jitscribe_open};

/// The flags of the scribe that [`role`] opens.
const FLAGS: &str = "TEST_FLAGS";

unsafe extern "C" fn print(_: *mut c_void, subject: u32, text: *const c_char) {
    // SAFETY: by the header, the text ends with a NUL, and is valid during the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    println!("notice {subject}: {text}");
}

/// Opens a scribe: a process of its own, as its environment must be set before it starts.
#[test]
#[ignore = "run by the other test"]
fn role() {
    let Ok(flags) = std::env::var(FLAGS) else { return };
    let settings = Settings {
        struct_size: size_of::<Settings>(),
        flags: flags.parse().unwrap(),
        reserved: 0,
        limit: 0,
        dump_dir: Str { data: null_mut(), size: 0 },
        replay: None,
        replay_data: null_mut(),
        notice: Some(print),
        notice_data: null_mut(),
    };
    let mut scribe = std::ptr::null();
    // SAFETY: the settings are valid, and so is the place for the scribe.
    unsafe { jitscribe_open(&raw const settings, &raw mut scribe) };
    assert!(!scribe.is_null());
}

#[test]
fn a_flag_keeps_the_collector_out() {
    let said = |flags: u32| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "vtune::role", "--ignored", "--nocapture"])
            .env(FLAGS, flags.to_string());
        for variable in ["INTEL_JIT_PROFILER64", "INTEL_JIT_PROFILER32"] {
            command.env(variable, "/nowhere/collector.so");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let notice = format!("notice {}: VTune is passed no code", Subject::Vtune as u32);
    assert!(said(0).contains(&notice), "{}", said(0));
    let without = said(Flag::NoVtune as u32);
    assert!(!without.contains("notice"), "{without}");
}
