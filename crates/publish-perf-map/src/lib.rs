//! Keeps `/tmp/perf-PID.map` of the process it is linked into true: code comes, moves and goes,
//! and perf, bpftrace and whoever else reads perf maps finds at each address the code that was
//! there last.
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
//! # What the file says
//!
//! A perf map has no times and cannot say that code is gone. Where two lines claim an address,
//! our reader (`perf-map`) believes the later one, stock perf either of them. So no two lines of
//! ours ever overlap: when code is loaded over old code, the old line's size is overwritten
//! where it stands, with as many digits, down to 0, which matches nothing. Dead code whose
//! addresses were not used again keeps its line, as the samples taken in it need its name.
//!
//! Code loaded into the midst of other code leaves the outer one alive around it; code loaded
//! over the beginning of other code, or over its end and beyond, says that the other is dead.
//!
//! # How long it grows
//!
//! When the lines of dead code are more than those of live code, and more than 256 KiB, the
//! file is written anew beside and renamed: with all live code, and the youngest 128 KiB of
//! dead code. So a file is never longer than twice its live lines, or these and 256 KiB, and
//! the work is constant for each event.
//!
//! **If others write the file too** (another runtime in the same process, or the process itself
//! before an `exec`), it is never renamed: they would go on writing to a file without a name.
//! Nor are their lines touched. Ours still give way in place, so what we say stays true, but the
//! file is not shortened any more. A writer that truncates the file or writes without
//! `O_APPEND` destroys our lines; we notice when we come to change one and give the map up.
//! Lines of others may overlap ours.
//!
//! A file that is deleted while the process runs, as by cleaners of `/tmp`, is written anew with
//! the next load.
//!
//! # What it costs
//!
//! A load is three system calls (is the file still ours; one `write` of the whole line; where
//! did it go), each older line that gives way two more. An unload is none. Memory: 45 to 70
//! bytes for each line in the file, without the names.
//!
//! # Limits
//!
//! Not for signal handlers: there is a lock. Memory that cannot be had ends the process, as it
//! does everywhere in Rust's standard library. Two processes with equal pids in different pid
//! namespaces that share one `/tmp` and one user cannot tell their files apart. A
//! `RLIMIT_FSIZE` that is lowered while the map is open is not seen.

#[cfg(not(target_os = "linux"))]
compile_error!("perf maps are a Linux matter");

mod born;
mod compact;
mod descriptor;
mod error;
mod file;
mod line;
mod open;
mod options;
mod publisher;
mod state;
mod table;

pub use error::{Cause, Error};
pub use options::Options;
pub use publisher::PerfMap;
