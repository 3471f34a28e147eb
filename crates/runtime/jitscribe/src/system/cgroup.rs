//! The memory limit of the process's cgroup: a log of the default size must not fill a small container.

use std::path::Path;

use fallible::PathText;

/// Groups are nested. Limits are not set deeper than this below the group with the lowest limit.
const DEPTH: usize = 5;

/// The lowest limit that applies to the process, in bytes; `None` if there is none, or none can be read.
pub(crate) fn memory_limit() -> Option<u64> {
    let mut buffer = [0; 4096];
    let groups = guest::begin_of("/proc/self/cgroup", &mut buffer)?;
    least(&PathText::new("/sys/fs/cgroup")?, str::from_utf8(groups).ok()?)
}

/// The lines of `groups` are those of `/proc/self/cgroup`: number, controllers, path (cgroups(7)).
fn least(root: &PathText, groups: &str) -> Option<u64> {
    let line = |line| {
        let mut fields = str::splitn(line, 3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    };
    // The memory controller is in one hierarchy: in one of version 1 that names it, or else in that of version 2.
    let lines = || groups.lines().filter_map(line);
    let of_memory = |(controllers, _): &(&str, &str)| controllers.split(',').any(|c| c == "memory");
    let (root, path, files) = if let Some((_, path)) = lines().find(of_memory) {
        (root.join("memory")?, path, &["memory.limit_in_bytes"][..])
    } else {
        let (_, path) = lines().find(|(controllers, _)| controllers.is_empty())?;
        (PathText::new(root)?, path, &["memory.max", "memory.high"][..])
    };
    let path = path.trim_start_matches('/');
    // A path that leads out of the namespace belongs to groups that cannot be read.
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let around = Path::new(path).ancestors().take(DEPTH);
    let limits = around.flat_map(|group| {
        let group = root.join(group);
        files.iter().filter_map(move |file| limit(&group.as_ref()?.join(file)?))
    });
    limits.min()
}

/// `max` and the very large number of version 1 mean that there is no limit.
fn limit(file: &PathText) -> Option<u64> {
    let mut buffer = [0; 32];
    let text = str::from_utf8(guest::begin_of(file, &mut buffer)?).ok()?;
    text.trim().parse().ok().filter(|limit| *limit < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::least;

    #[test]
    fn the_lowest_limit_of_the_enclosing_groups_applies() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let least = |groups: &str| least(&fallible::PathText::new(root.path()).unwrap(), groups);
        assert_eq!(least("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(least("0::/a/b\n"), None);
        write("a/memory.max", "9000\n");
        assert_eq!(least("0::/a/b\n"), Some(9000));
        write("a/b/memory.high", "7000\n");
        assert_eq!((least("0::/a/b\n"), least("0::/a\n")), (Some(7000), Some(9000)));
        write("memory/a/memory.limit_in_bytes", "5000\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(least("5:cpu,memory:/a\n0::/\n"), Some(5000));
        assert_eq!(least("5:cpu:/a\n4:memory:/\n0::/\n"), None);
        assert_eq!(least("0::/../a\nno line\n::\n"), None);
    }
}
