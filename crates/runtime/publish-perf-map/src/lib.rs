//! Keeps `/tmp/perf-PID.map` of the process it is linked into up to date while code is loaded, moved
//! and unloaded. perf, bpftrace and other readers of perf maps find at each address the code that
//! was there last.
//!
//! ```
//! use publish_perf_map::{Options, PerfMap};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("publish-perf-map-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let map = PerfMap::create(Options::new().directory(&folder).reporter(|why| eprintln!("{why}")))?;
//! map.load(0x7f00_0000_1000, 0x40, b"fib");
//! map.moved(0x7f00_0000_1000, 0x7f00_0000_2000, 0x40);
//! map.unload(0x7f00_0000_2000, 0x40);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Content of the file
//!
//! A perf map has no timestamps, and cannot express that code is unloaded. If two lines cover an
//! address, our reader (`perf-map`) uses the later one, and stock perf either of them. So our lines
//! never overlap: when code is loaded over old code, the old line's size is overwritten in place,
//! with the same number of digits, down to 0, which matches nothing. Dead code keeps its line until
//! its addresses are reused, because samples taken in it need its name.
//!
//! If code is loaded into the middle of other code, the outer code stays alive around it. If code is
//! loaded over the beginning of other code, or over its end and beyond, the other code is dead.
//!
//! # Size of the file
//!
//! When the lines of dead code are larger than those of live code, and larger than 256 KiB, the file
//! is rewritten next to the old one and renamed: with all live code, and the youngest 128 KiB of
//! dead code. So a file is never larger than twice its live lines, or its live lines plus 256 KiB,
//! and the work per event is constant.
//!
//! **If others write to the file, too** (another runtime in the same process, or the process itself
//! before an `exec`), it is never renamed, because they would go on writing to a deleted file. Their
//! lines are not changed. Ours are still overwritten in place, so they stay correct, but the file
//! does not shrink any more. A writer that truncates the file or writes without `O_APPEND` destroys
//! our lines. This is detected when one of them has to be changed, and the map is given up. Lines of
//! others may overlap ours.
//!
//! A file that is deleted while the process runs, for example by a cleaner of `/tmp`, is rewritten
//! by the next load that examines it.
//!
//! # What it costs
//!
//! A load makes one system call, which writes the line, and two more for each older line that is
//! overwritten. An unload makes none. Memory: 45 to 70 bytes for each line in the file, without the
//! names.
//!
//! The file is examined once in 64 loads, and by the first load after ten milliseconds without a
//! check: whether it has been deleted or truncated, whether the descriptor is still ours, and
//! whether others have written to it. Until then:
//!
//! - a deleted file is not restored. Its lines are not lost: the new file gets them, too;
//! - lines of others may be between ours, whose places are then not where they are thought to be.
//!   They are searched for at the next check, and before one of them is changed;
//! - if another writer has not ended its line, ours becomes part of it. It is written again at the
//!   next check;
//! - a descriptor that the program has closed is written to. It has a high number, so that no other
//!   file has it: a program that closes all descriptors opens its next files under the lowest ones.
//!   The write fails, and the map is given up.
//!
//! From the first line of another writer on, and within 16 MiB of the limit on file sizes, the file
//! is examined before each load, and asked where the line went: two system calls more. So is it
//! from the beginning if the file existed, or if another map of this process has opened an existing
//! one.
//!
//! # Limits
//!
//! Not for signal handlers, because there is a lock. It is given up, and the map with it, if a
//! handler that interrupted its thread asks for it, or if another thread has it for five seconds.
//! If an allocation fails, the map is given up. Two processes with equal pids in different pid
//! namespaces that share one `/tmp` and one user cannot tell their files apart. A `RLIMIT_FSIZE`
//! that is lowered while the map is open is not noticed.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("perf maps are a Linux matter");

mod compact;
mod descriptor;
mod error;
mod file;
mod find;
mod line;
mod lock;
mod open;
mod options;
mod process_start;
mod publisher;
mod state;
mod table;

pub use error::{Cause, Error};
pub use options::Options;
pub use publisher::PerfMap;
