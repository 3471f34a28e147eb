//! The thread blocks the expected signals, and its creator blocks no more than before.
#![cfg(target_os = "linux")]

use std::fs;

use test_privilege::{Privilege, have};

/// The signals that this thread blocks, according to the kernel: bit N - 1 is signal N.
fn blocked() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn all_signals_are_blocked_in_the_spawned_thread_only() {
    if !have(&[Privilege::Kernel]) {
        return;
    }
    // KILL and STOP cannot be blocked, and the C library reserves 32 and 33.
    let cannot = [9, 19, 32, 33].iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
    let before = blocked();
    let (sender, receiver) = std::sync::mpsc::channel();
    jitscribe_guest::spawn("guest", move || {
        let name = fs::read_to_string("/proc/thread-self/comm").unwrap();
        sender.send((blocked(), name)).unwrap();
    })
    .unwrap();
    let (within, name) = receiver.recv().unwrap();
    assert_eq!((within | cannot, name.trim()), (u64::MAX, "guest"));
    assert_eq!(blocked(), before);
}
