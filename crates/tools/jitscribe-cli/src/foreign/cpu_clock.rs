//! The processor time of another process.
#![allow(unsafe_code)]

/// How many nanoseconds of processor time the threads of a process have used. A process that has used no more than before has
/// changed nothing since. `None` if there is no such process.
pub fn processor_time(pid: u32) -> Option<u64> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    // As `clock_getcpuclockid` computes it: the inverted id, and 2 for the clock of the scheduler. This needs no privilege.
    let clock: libc::clockid_t = (!pid << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes; the kernel checks the clock.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if done != 0 {
        return None;
    }
    let (seconds, rest) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn it_stands_still_while_a_process_sleeps_and_ends_with_it() {
        let before = processor_time(std::process::id()).expect("our own");
        let work: u64 =
            std::hint::black_box((0..100_000_u64).fold(0, |sum, n| sum ^ n.rotate_left(3)));
        assert!(processor_time(std::process::id()).expect("our own") > before, "{work}");
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        use std::io::{Read, Write};
        let mut echo = [0; 1];
        let mut round = |cat: &mut std::process::Child| {
            cat.stdin.as_mut().expect("a pipe").write_all(b"x").expect("written");
            cat.stdout.as_mut().expect("a pipe").read_exact(&mut echo).expect("read");
        };
        round(&mut cat);
        // It sleeps in `read` soon after it has answered, and then uses nothing.
        let mut last = processor_time(cat.id()).expect("it runs");
        while let now = processor_time(cat.id()).expect("it runs")
            && now != last
        {
            last = now;
        }
        round(&mut cat);
        while processor_time(cat.id()).expect("it runs") == last {
            std::thread::yield_now();
        }
        cat.kill().expect("killed");
        cat.wait().expect("ended");
        assert_eq!(processor_time(cat.id()), None);
    }
}
