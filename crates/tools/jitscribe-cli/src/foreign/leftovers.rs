//! Temporary files that a worker creates in a foreign folder. They are removed however the worker ends, even if it is killed, as
//! happens when its answer is no longer needed.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, unlinkat};
use rustix::pipe::{PipeFlags, pipe_with};

use super::sys;

/// The maximum number of bytes of names.
const MOST: u64 = 1 << 12;

/// The maximum number of seconds for removing the files. No process waits for that, so a machine on which it gets no processor time
/// for long is no reason to leave files behind.
const LONGEST: u32 = 60;

/// Keeps a list of names in one folder. Another process waits until this one has ended, and then removes these files.
#[derive(Debug)]
pub struct Leftovers(OwnedFd);

impl Leftovers {
    /// Creates a list for this folder. Must be called in a worker, which has a single thread.
    ///
    /// # Errors
    /// If the other process cannot be created.
    pub fn of(folder: impl AsFd) -> io::Result<Self> {
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        if sys::fork()?.is_some() {
            return Ok(Self(tell));
        }
        // All other descriptors are closed, so that others can notice the end of the worker.
        if sys::keep_only(told.as_fd(), folder.as_fd()).is_ok() {
            remove_at_the_end();
        }
        sys::exit()
    }

    /// Adds the name of a file that is about to be created. A name must not contain newlines.
    pub fn add(&self, name: &str) {
        self.tell('+', name);
    }

    /// Removes the name of a file that no longer exists or was never created.
    pub fn forget(&self, name: &str) {
        self.tell('-', name);
    }

    fn tell(&self, what: char, name: &str) {
        // If the other process has been killed, nothing cleans up, which is acceptable. SIGPIPE is ignored.
        let _ = rustix::io::write(&self.0, format!("{what}{name}\n").as_bytes());
    }
}

/// Runs the other process: its standard input is the list, its standard output is the folder.
#[expect(
    clippy::disallowed_methods,
    reason = "standard output is a folder here, and nothing is written to it"
)]
fn remove_at_the_end() {
    let mut text = String::new();
    if io::stdin().take(MOST).read_to_string(&mut text).is_err() {
        return;
    }
    // No process waits for this one or ends it, and the folder's file system may not respond.
    sys::end_after(LONGEST);
    for name in left(&text) {
        let _ = unlinkat(io::stdout(), name, AtFlags::empty());
    }
}

fn left(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some(("+", name)) => drop(names.insert(name)),
            Some(("-", name)) => drop(names.remove(name)),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_was_not_forgotten_is_removed_when_its_maker_is_gone() {
        assert_eq!(left("+a\n+b\n-a\n+c\n-c\n\nx").into_iter().collect::<Vec<_>>(), ["b"]);
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = File::open(dir.path()).expect("opened");
        for name in ["gone", "kept"] {
            fs::write(dir.path().join(name), "").expect("written");
        }
        // In a process of its own, as a worker is: another test's processes might have copies of its descriptors.
        let Some(maker) = sys::fork().expect("another process") else {
            if let Ok(leftovers) = Leftovers::of(folder) {
                leftovers.add("gone");
                leftovers.add("kept");
                leftovers.forget("kept");
                let _ = fs::write(dir.path().join("ready"), "");
                std::thread::sleep(Duration::from_secs(600));
            }
            sys::exit();
        };
        let end = Instant::now() + Duration::from_secs(60);
        while !dir.path().join("ready").exists() {
            assert!(Instant::now() < end, "it is not ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(dir.path().join("gone").exists());
        rustix::process::kill_process(maker, rustix::process::Signal::KILL).expect("killed");
        rustix::process::waitpid(Some(maker), rustix::process::WaitOptions::empty())
            .expect("ended");
        let end = Instant::now() + Duration::from_secs(60);
        while dir.path().join("gone").exists() {
            assert!(Instant::now() < end, "it is left");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(dir.path().join("kept").exists());
    }
}
