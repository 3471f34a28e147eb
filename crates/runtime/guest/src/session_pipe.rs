//! The request of a recorder to a library that it has loaded into this process.
//!
//! A recorder keeps a named pipe open for writing for as long as it records. The system closes the pipe however the recorder
//! ends, so code is never announced for a recorder that is gone. A pipe also works where the recorder's process is not
//! visible, as in a container.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};

use crate::spawn;

/// The reading end of the recorder's pipe.
#[derive(Debug)]
pub struct SessionPipe(File);

impl SessionPipe {
    /// Opens it. `None` if no one has it open for writing, or if it is not a pipe.
    pub fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        // Do not block: the recorder may be gone by now.
        let mut options = File::options();
        let mut pipe = options.read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
        let is_pipe = pipe.metadata().is_ok_and(|file| file.file_type().is_fifo());
        let is_open = is_pipe && pipe.read(&mut [0]).is_err_and(is_empty);
        (is_open && fcntl_setfl(&pipe, OFlags::empty()).is_ok()).then_some(Self(pipe))
    }

    /// Calls `then` when the recorder has written something, or is gone. Returns whether the watch could be started.
    pub fn watch(mut self, then: impl FnOnce() + Send + 'static) -> bool {
        let wait = move || {
            while self.0.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
            }
            then();
            // Closed last: this tells the recorder that it is done.
            drop(self);
        };
        spawn("jitscribe-hold", wait).is_ok()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what is_err_and passes")]
fn is_empty(error: std::io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::{TryRecvError, channel};
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_session_lasts_until_the_pipe_is_written_or_closed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        assert!(SessionPipe::open(&path).is_none(), "no writer has it open");
        for is_written in [true, false] {
            let mut theirs = File::options().read(true).write(true).open(&path).expect("theirs");
            let (done, ended) = channel();
            assert!(
                SessionPipe::open(&path).expect("it is open").watch(move || done.send(()).unwrap())
            );
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(ended.try_recv(), Err(TryRecvError::Empty));
            if is_written {
                theirs.write_all(b".").expect("written");
            } else {
                drop(theirs);
            }
            ended.recv_timeout(Duration::from_secs(20)).expect("the session ends");
        }
    }

    #[test]
    fn other_files_start_no_session() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("file");
        std::fs::write(&path, "").expect("written");
        assert!(
            SessionPipe::open(&path).is_none()
                && SessionPipe::open(&dir.path().join("none")).is_none()
        );
    }
}
