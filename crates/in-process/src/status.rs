//! What the kernel says of the process.

/// The number of this line of `/proc/self/status` (proc_pid_status(5)), whose name ends in `:`; `None` if there is none.
#[must_use]
pub fn own_status(name: &str) -> Option<i32> {
    // As bytes: the process's name, in it as well, may be any.
    let status = std::fs::read("/proc/self/status").ok()?;
    let mut lines = status.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}
