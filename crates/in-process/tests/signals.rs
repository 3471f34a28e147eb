//! What the thread blocks, and that who starts it blocks nothing more than before.
#![cfg(target_os = "linux")]

use std::fs;

/// The signals that this thread blocks, as the kernel says: bit N - 1 is signal N.
fn blocked() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn all_signals_are_blocked_in_it_and_none_elsewhere() {
    // KILL and STOP cannot be, and the C library keeps 32 and 33 for itself.
    let cannot = [9, 19, 32, 33].iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
    let before = blocked();
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = in_process::spawn("guest", move || {
        let name = fs::read_to_string("/proc/thread-self/comm").unwrap();
        sender.send((blocked(), name)).unwrap();
    });
    let (within, name) = receiver.recv().unwrap();
    thread.unwrap().join().unwrap();
    assert_eq!((within | cannot, name.trim()), (u64::MAX, "guest"));
    assert_eq!(blocked(), before);
}
