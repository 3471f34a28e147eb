//! The profiles of windows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use profile::Profile;

use super::args::Args;
use crate::{Result, recorded, windows};

/// Windows of time, one after the other.
#[derive(Debug)]
pub struct Windows(windows::Windows);

/// One window.
#[derive(Debug)]
pub struct Window {
    /// What ran.
    pub profile: Profile,
    /// What there is to say of JVMs that were asked, and what `record` had to say.
    pub messages: Vec<String>,
}

impl Windows {
    /// Asks the processes to announce their code.
    pub fn begin(args: &Args) -> Result<Self> {
        // Nothing is shown of bytes.
        let options = ["--quiet", "--no-memory"];
        windows::Windows::begin(&args.windows, args.freq, &args.interval, &options).map(Self)
    }

    /// Ends the window that is being recorded, and makes it the last one, once it is set.
    pub fn ends(&self) -> Arc<AtomicBool> {
        self.0.ends()
    }

    /// Records the next window, and reads it. `None` if there is none: the processes have ended, or a signal came.
    pub fn next(&mut self) -> Result<Option<Window>> {
        let Some(window) = self.0.next()? else { return Ok(None) };
        let profile = recorded::read_quietly(&window.recording())?;
        Ok(Some(Window { profile, messages: window.messages.clone() }))
    }
}
