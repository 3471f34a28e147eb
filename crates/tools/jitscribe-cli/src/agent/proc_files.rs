//! What `/proc` has of a process that no process can delay.

use std::fs;

use crate::process::inner_pid;

/// What `/proc/PID/stat` has of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Its name, which is that of another program once it has called exec.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
}

/// A flag of threads of the kernel (`PF_KTHREAD`).
const KERNEL: u64 = 0x0020_0000;

impl Stat {
    /// Of a process; `None` if it has ended.
    pub fn read(pid: u32) -> Option<Self> {
        // The name may contain any bytes.
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        let (front, behind) = text.rsplit_once(')')?;
        let (_, name) = front.split_once('(')?;
        let mut fields = behind.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let flags: u64 = fields.nth(5)?.parse().ok()?;
        let start = fields.nth(12)?.parse().ok()?;
        Some(Self { start, name: name.to_owned(), is_kernel: flags & KERNEL != 0 })
    }
}

/// The id of a process in its own pid namespace.
pub fn inner(pid: u32) -> u32 {
    inner_pid(pid).unwrap_or(pid)
}

/// The id of the container that a process is in: 64 hexadecimal digits in the path of its control group, as containerd, CRI-O,
/// Docker and Podman name it.
pub fn container(pid: u32) -> Option<String> {
    container_in(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

fn container_in(cgroup: &str) -> Option<String> {
    let paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let names = paths.flat_map(|path| path.rsplit('/'));
    let mut ids = names.filter_map(|name| {
        let name = name.strip_suffix(".scope").unwrap_or(name);
        let id = name.rsplit(['-', ':']).next()?;
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| id.to_owned())
    });
    ids.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_behind_a_name_with_anything_in_it() {
        let rest = "S 1 2 3 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 98765 1000 10";
        let stat = Stat::parse(&format!("42 (a) R (b) {rest}")).unwrap();
        assert_eq!((stat.start, stat.name.as_str(), stat.is_kernel), (98765, "a) R (b", false));
        let kernel = rest.replace("4194304", "2129984");
        assert!(Stat::parse(&format!("2 (kthreadd) {kernel}")).unwrap().is_kernel);
        assert_eq!(Stat::parse(&format!("2 (gone) {}", rest.replacen('S', "Z", 1))), None);
        assert_eq!(Stat::parse("2 (short) S 1"), None);
        assert!(Stat::read(std::process::id()).unwrap().start > 0);
    }

    #[test]
    fn containers_by_their_control_groups() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("0::/system.slice/docker-{id}.scope"),
            format!("12:memory:/docker/{id}"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("0::/kubepods/besteffort/pod1/{id}/init"),
            format!("0::/kubepods-pod1.slice:cri-containerd:{id}"),
            format!("1:name=systemd:/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(container_in(&path).as_deref(), Some(&*id), "{path}");
        }
        for path in ["", "0::/", "0::/user.slice/user-0.slice/session-1.scope", "x"] {
            assert_eq!(container_in(path), None);
        }
    }
}
