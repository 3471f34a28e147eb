//! A connection to an agent that may get no processor time for a while.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use crate::foreign::{Clock, Deadline, Limit, Target, Usage};

/// How long the agent may take for each part of an answer, and for the whole.
const SILENCE: Limit = Limit::of(Duration::from_secs(30));
const WHOLE: Limit = Limit::of(Duration::from_secs(120));

/// A connection that is given up if the agent does not respond although it could.
#[derive(Debug)]
pub struct Patient<'s> {
    stream: &'s UnixStream,
    /// The agent; `None` if it is in another pid namespace.
    agent: Option<(u32, Target)>,
    deadline: Deadline,
}

impl<'s> Patient<'s> {
    /// A deadline for what is sent and received from now on.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(stream: &'s UnixStream) -> io::Result<Self> {
        let deadline = Deadline::new(SILENCE, WHOLE, Clock::now());
        let look = Some(deadline.pause(Clock::now()));
        stream.set_read_timeout(look)?;
        stream.set_write_timeout(look)?;
        let pid = socket_peercred(stream)?.pid.as_raw_nonzero().get().unsigned_abs();
        let agent = Target::open(pid).ok().map(|folder| (pid, folder));
        Ok(Self { stream, agent, deadline })
    }

    fn repeat(
        &mut self,
        mut transfer: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let done = transfer(self.stream);
            let clock = Clock::now();
            match done {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    self.look(clock)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => {
                    self.deadline.progress(clock);
                    self.look(clock)?;
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn look(&mut self, clock: Clock) -> io::Result<()> {
        let agent = &self.agent;
        self.deadline.look(clock, || {
            let (pid, folder) = agent.as_ref()?;
            Usage::of_threads(*pid, folder, |_| true)
        });
        if self.deadline.is_over(clock) {
            return Err(io::Error::new(ErrorKind::TimedOut, "the agent does not respond"));
        }
        Ok(())
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.repeat(|mut stream| stream.read(bytes))
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.repeat(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_received_and_silence_is_an_error() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let mut patient = Patient::new(&ours).expect("a connection");
        let late = std::thread::spawn(move || {
            // Longer than one look.
            std::thread::sleep(Duration::from_millis(250));
            theirs.write_all(b"late").expect("sent");
            theirs
        });
        let mut bytes = [0; 4];
        patient.read_exact(&mut bytes).expect("received");
        assert_eq!(&bytes, b"late");
        let _open = late.join().expect("sent");
        let soon = Limit::of(Duration::from_millis(50));
        patient.deadline = Deadline::new(soon, soon, Clock::now());
        assert_eq!(patient.read(&mut bytes).expect_err("silence").kind(), ErrorKind::TimedOut);
    }
}
