//! The names of object files of jitted code: of images with the lists of codes in the same folder, and of what `perf inject --jit` writes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::name::base_name;

/// The name of an image: `jit-PID-NUMBER.elf`, or `jit-PID-NUMBER-PART.elf` if it is one of several of a region.
pub fn image_name(pid: u32, number: usize, part: Option<usize>) -> String {
    match part {
        None => format!("jit-{pid}-{number}.elf"),
        Some(part) => format!("jit-{pid}-{number}-{part}.elf"),
    }
}

/// The process of an image, by its path. `None` if the file has not the name of an image.
pub fn pid_of_image(path: &[u8]) -> Option<u32> {
    let numbers = base_name(path).strip_prefix(b"jit-")?.strip_suffix(b".elf")?;
    let mut parts = numbers.split(|&byte| byte == b'-');
    let pid = parts.next().filter(|pid| is_number(pid))?;
    let is_image = (1..=2).contains(&parts.clone().count()) && parts.all(is_number);
    std::str::from_utf8(pid).ok().filter(|_| is_image)?.parse().ok()
}

/// The number of an image among those of its process. `None` if the file has not the name of an image.
pub fn number_of_image(path: &[u8]) -> Option<usize> {
    pid_of_image(path)?;
    let number = base_name(path).strip_suffix(b".elf")?.split(|&byte| byte == b'-').nth(2)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The process of an object file that `perf inject --jit` writes for one code, by its path: `jitted-PID-NUMBER.so`. `None` if the file has not such
/// a name.
pub fn pid_of_perf_image(path: &[u8]) -> Option<u32> {
    let rest = base_name(path).strip_prefix(b"jitted-")?;
    // Some versions of perf leave this out for code that was moved.
    let numbers = rest.strip_suffix(b".so").unwrap_or(rest);
    let (pid, number) = numbers.split_at_checked(numbers.iter().position(|&byte| byte == b'-')?)?;
    let is_one = is_number(pid) && number.strip_prefix(b"-").is_some_and(is_number);
    std::str::from_utf8(pid).ok().filter(|_| is_one)?.parse().ok()
}

/// The process whose jitted code is in an object file, by its path: an image, or a file of `perf inject --jit`.
pub fn pid_of_jitted(path: &[u8]) -> Option<u32> {
    pid_of_image(path).or_else(|| pid_of_perf_image(path))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Whether a file has the name of an image.
pub fn is_image(path: &[u8]) -> bool {
    pid_of_image(path).is_some()
}

/// The name of the list of codes of a process.
pub fn code_list_name(pid: u32) -> String {
    format!("jit-{pid}.codes.jsonl")
}

/// The list of codes of the process that an image belongs to, in the same folder. `None` if the file does not have the name of an image.
pub fn code_list(image: &Path) -> Option<PathBuf> {
    let pid = pid_of_image(image.file_name()?.as_bytes())?;
    Some(image.with_file_name(OsStr::new(&code_list_name(pid))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_files_are_no_images() {
        for name in [
            "jit-7.dump",
            "jit-7.elf",
            "jit-7-.elf",
            "jit--1.elf",
            "jit-7-1-2-3.elf",
            "jit-+7-1.elf",
            "jit-7-1.elf.old",
            "jit-7-7f0000001000.elf",
            "jit-4294967296-0.elf",
            "jit-7-0.elf/x",
        ] {
            assert_eq!(pid_of_image(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn files_of_perf_inject_are_jitted_code() {
        for name in ["jitted-7-0.so", "/x/jit-1/jitted-7-12.so", "jitted-7-12"] {
            assert_eq!(pid_of_perf_image(name.as_bytes()), Some(7), "{name}");
            assert_eq!(pid_of_jitted(name.as_bytes()), Some(7), "{name}");
            assert!(!is_image(name.as_bytes()), "{name}");
            assert_eq!(code_list(Path::new(name)), None, "{name}");
        }
        for name in [
            "jitted-7.so",
            "jitted--7.so",
            "jitted-7-.so",
            "jitted-7-1-2.so",
            "jitted-7-x.so",
            "jitted-4294967296-1.so",
            "libjitted-7-1.so",
            "jitted-7-1.so.1",
            "jitted-7-1.so/x",
        ] {
            assert_eq!(pid_of_jitted(name.as_bytes()), None, "{name}");
        }
        assert_eq!(pid_of_jitted(b"/x/jit-7-1-2.elf"), Some(7));
    }

    #[test]
    fn a_list_is_beside_the_images_of_its_process() {
        for name in ["jit-7-0.elf", "jit-7-1-12.elf"] {
            let list = code_list(&Path::new("/x").join(name));
            assert_eq!(list, Some("/x/jit-7.codes.jsonl".into()), "{name}");
        }
        assert_eq!(code_list(Path::new("/x/jit-7.dump")), None);
    }

    proptest! {
        #[test]
        fn names_lead_to_their_process(pid: u32, number: usize, part: Option<usize>, bytes: Vec<u8>) {
            let name = image_name(pid, number, part);
            prop_assert_eq!(pid_of_image(format!("/a-1/{name}").as_bytes()), Some(pid));
            prop_assert_eq!(number_of_image(name.as_bytes()), Some(number));
            let _ = (pid_of_image(&bytes), number_of_image(&bytes), pid_of_perf_image(&bytes));
        }
    }
}
