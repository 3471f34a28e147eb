//! A busy processor, for tests.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Threads that use all of a processor. A process there with the lowest priority gets a hundredth of it, however busy the others are.
#[derive(Debug)]
pub struct Busy {
    /// The number of the processor.
    pub cpu: usize,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts them; `None` if the kernel does not tell for how long threads wait for processors, so that nothing can be tested.
    #[expect(clippy::print_stderr, reason = "who reads the tests should know")]
    pub fn start() -> Option<Self> {
        if !std::path::Path::new("/proc/self/schedstat").exists() {
            eprintln!("skipped: needs /proc/PID/schedstat (CONFIG_SCHED_INFO)");
            return None;
        }
        let all = sched_getaffinity(None).expect("processors");
        let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).expect("a processor");
        let is_over = Arc::new(AtomicBool::new(false));
        let busy = || {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                stay_on(cpu).expect("a processor");
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..2).map(|_| busy()).collect();
        Some(Self { cpu, is_over, threads })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Makes this thread run on one processor only.
///
/// # Errors
/// The system's error.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}
