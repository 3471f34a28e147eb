//! Breakpoints at the function that a compiler calls after each change of its list of code for GDB: they say when code was registered.
//!
//! They are events of perf, as those of `perf record -e mem:ADDRESS:x`: the process is not traced, debuggers keep theirs, and the kernel removes them when
//! this command ends, however it ends. Each call costs the process an exception.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use perf_event::data::Record;
use perf_event::events::Breakpoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

/// The most threads of one process, and the most addresses: a processor has four breakpoints.
const THREADS: usize = 64;
const ADDRESSES: usize = 2;
/// The pages of a ring: room for a hundred calls between two readings.
const PAGES: usize = 1;

/// The breakpoints in one process.
#[derive(Default)]
pub struct Breakpoints {
    addresses: Vec<u64>,
    /// By thread.
    set: BTreeMap<u32, Vec<Sampler>>,
}

impl Breakpoints {
    /// Sets breakpoints at these addresses in all threads of a process that have none, and removes those at others.
    ///
    /// # Errors
    /// If one cannot be set: it is not allowed, all are in use, or the machine has none.
    pub fn set(&mut self, pid: u32, addresses: &[u64]) -> io::Result<()> {
        if self.addresses != addresses {
            self.set.clear();
            self.addresses = addresses.to_vec();
        }
        if addresses.is_empty() {
            return Ok(());
        }
        let threads = threads_of(pid)?;
        self.set.retain(|thread, _| threads.contains(thread));
        for thread in threads {
            if self.set.contains_key(&thread) || self.set.len() >= THREADS {
                continue;
            }
            let addresses = addresses.iter().take(ADDRESSES);
            let set = addresses.map(|&address| breakpoint(thread, address)).collect();
            match set {
                Ok(set) => drop(self.set.insert(thread, set)),
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The times of calls since the last time, by `CLOCK_MONOTONIC`.
    pub fn calls(&mut self) -> Vec<u64> {
        let mut times = Vec::new();
        for sampler in self.set.values_mut().flatten() {
            while let Some(record) = sampler.next_record() {
                if let Ok(Record::Sample(sample)) = record.parse_record() {
                    times.extend(sample.time());
                }
            }
        }
        times.sort_unstable();
        times
    }

    /// Descriptors that become readable when there are calls.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.set.values().flatten().map(|sampler| {
            // SAFETY: the sampler owns the descriptor, and closes it only when it is dropped. It is borrowed for longer than what is returned.
            unsafe { BorrowedFd::borrow_raw(sampler.as_raw_fd()) }
        })
    }
}

/// Sets a breakpoint in a thread, in user code alone.
fn breakpoint(thread: u32, address: u64) -> io::Result<Sampler> {
    let thread = i32::try_from(thread).map_err(io::Error::other)?;
    let event = Builder::new(Breakpoint::execute(address))
        .observe_pid(thread)
        .any_cpu()
        .exclude_kernel(true)
        .exclude_hv(true)
        .sample_period(1)
        .sample(SampleFlag::TIME)
        .clockid(Clock::MONOTONIC)
        .wakeup_events(1)
        .enabled(true)
        .build()?;
    event.sampled(PAGES)
}

fn threads_of(pid: u32) -> io::Result<Vec<u32>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok()).collect())
}
