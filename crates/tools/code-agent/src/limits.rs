//! How much is kept and read.

/// Limits of the whole agent, and of each process, which may be hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most processes whose code is known at a time.
    pub processes: usize,
    /// The most sources of code of all processes: each takes a descriptor. A quarter of them may belong to one user other than root.
    pub sources: usize,
    /// The most codes of all processes; each takes 32 bytes.
    pub codes: u64,
    /// The most codes of one process.
    pub codes_of_process: u64,
    /// The most bytes of one process that are read for one update.
    pub bytes_of_update: u64,
    /// How many bytes of one process are read in a second, in the long run. A process that changes more is read less often.
    pub bytes_per_second: u64,
    /// The most bytes of one code that are read to name it.
    pub bytes_of_code: usize,
    /// The most bytes of names and lines that are kept, of codes that were asked for.
    pub bodies: usize,
    /// The most bytes of codes, names and lines of perf maps and jitdumps. A quarter of them may be of one user other than root.
    pub file_bytes: u64,
    /// The most of them of one process.
    pub file_bytes_of_process: u64,
    /// For how many nanoseconds the code of a process that has ended can be asked for.
    pub ended: u64,
    /// The most processes that have ended and can be asked for.
    pub ended_processes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: 4096,
            sources: 8192,
            codes: 4 << 20,
            codes_of_process: 1 << 19,
            bytes_of_update: 64 << 20,
            bytes_per_second: 64 << 20,
            bytes_of_code: 4 << 20,
            bodies: 16 << 20,
            file_bytes: 256 << 20,
            file_bytes_of_process: 32 << 20,
            ended: 60_000_000_000,
            ended_processes: 256,
        }
    }
}
