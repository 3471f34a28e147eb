//! Writes images, in a thread of its own: a slow disk delays no answer.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use code_agent::{BuildId, ImageChange};

use super::folder::Folder;
use crate::foreign::{Clock, Deadline, Limit};
use crate::{Error, Result};

/// What became of a change.
#[derive(Debug)]
pub struct Done {
    pub id: BuildId,
    /// The size of the image in bytes.
    pub size: u64,
    pub what: What,
}

/// What was tried, and whether it succeeded.
#[derive(Debug)]
pub enum What {
    Written(std::io::Result<()>),
    NotRemoved(std::io::Error),
}

/// The thread that writes.
#[derive(Debug)]
pub struct Writer {
    changes: Sender<ImageChange>,
    done: Receiver<Done>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(folder: Folder) -> Result<Self> {
        let (changes, received) = channel();
        let (sender, done) = channel();
        let work = move || {
            for change in received {
                if let Some(done) = apply(&folder, change) {
                    let _ = sender.send(done);
                }
            }
        };
        thread::Builder::new().name("images".to_owned()).spawn(work).map_err(|error| {
            Error::Refused(format!("the thread that writes images cannot be started: {error}"))
        })?;
        Ok(Self { changes, done })
    }

    /// Passes a change. How much waits is bounded by [`code_agent::Images`].
    pub fn pass(&self, change: ImageChange) {
        let _ = self.changes.send(change);
    }

    /// What was done since the last call.
    pub fn done(&self) -> impl Iterator<Item = Done> {
        self.done.try_iter()
    }

    /// Waits until all is written, but not for long: a disk may not respond.
    pub fn finish(self) {
        /// The longest that it may take.
        const PATIENCE: Limit = Limit::of(Duration::from_secs(5));
        drop(self.changes);
        let mut deadline = Deadline::new(PATIENCE, PATIENCE, Clock::now());
        while !deadline.is_over(Clock::now()) {
            match self.done.recv_timeout(deadline.pause(Clock::now())) {
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            deadline.look(Clock::now(), || None);
        }
    }
}

fn apply(folder: &Folder, change: ImageChange) -> Option<Done> {
    match change {
        ImageChange::Write { id, content } => {
            let written = folder.write(id, &content);
            Some(Done { id, size: content.len() as u64, what: What::Written(written) })
        }
        ImageChange::Remove(id) => {
            let error = folder.remove(id).err()?;
            Some(Done { id, size: folder.size(id), what: What::NotRemoved(error) })
        }
    }
}
