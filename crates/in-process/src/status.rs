//! What the kernel says of the process.

/// The numbers of these lines of `/proc/self/status` (proc_pid_status(5)), whose names end in `:`. `None` if one is missing.
#[must_use]
pub fn own_status<const N: usize>(names: [&str; N]) -> Option<[i32; N]> {
    // As bytes: the process's name, in it as well, may be any.
    let status = std::fs::read("/proc/self/status").ok()?;
    let number = |name: &str| {
        let mut lines = status.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    };
    let mut numbers = [0; N];
    for (found, name) in numbers.iter_mut().zip(names) {
        *found = number(name)?;
    }
    Some(numbers)
}
