//! What happened to profiles: said as it happens, and summed up.

use std::time::Instant;

use profile_push::{Event, Pusher};

use super::args::Args;
use super::report::{Made, Report};
use super::server::Server;
use crate::inject::json::SCHEMA_VERSION;
use crate::text::shell_word;
use crate::{Error, Result, note, text};

/// What happened so far.
#[derive(Debug, Default)]
pub struct Tally {
    delivered: u64,
    delivered_bytes: u64,
    retried: u64,
    divided: u64,
    dropped: u64,
    rejected: u64,
    /// The server takes nothing with these settings.
    refused: Option<String>,
    /// Why the last attempt failed.
    last_failure: Option<String>,
    has_other_sender: bool,
}

fn profiles(count: u64) -> String {
    if count == 1 { "1 profile".into() } else { format!("{count} profiles") }
}

impl Tally {
    /// Says what happened, and counts it. Nothing is tried again after the deadline.
    pub fn add(&mut self, event: Event, deadline: Option<Instant>) {
        match event {
            Event::Delivered { bytes, partial, .. } => {
                self.delivered += 1;
                self.delivered_bytes += bytes;
                if let Some(partial) = partial {
                    let message = text::said(&partial.message);
                    match partial.rejected {
                        0 => note::warning(format_args!("the server says: {message}")),
                        count => {
                            self.rejected += count;
                            note::warning(format_args!(
                                "the server rejected {count} of the request's profiles: {message}"
                            ));
                        }
                    }
                }
            }
            Event::Postponed { cause, until, .. } => {
                let wait = until.saturating_duration_since(Instant::now()).as_secs_f64();
                let cause = text::said(&cause.to_string()).to_string();
                if deadline.is_none_or(|deadline| until <= deadline) {
                    self.retried += 1;
                    note::warning(format_args!("not sent: {cause}; trying again in {wait:.1} s"));
                }
                self.last_failure = Some(cause);
            }
            Event::Refused { cause, .. } => {
                self.refused = Some(text::said(&cause.to_string()).to_string());
            }
            Event::Divided { cause, dropped, .. } => {
                self.divided += 1;
                let cause = text::said(&cause.to_string()).to_string();
                let said = format!("too long for the server: {cause}; sending it in parts");
                // A limit far below the length divides often.
                match self.divided {
                    1 => note::warning(said),
                    _ => note::detail(said),
                }
                self.dropped(dropped);
            }
            Event::Rejected { cause, path, .. } => {
                self.rejected += 1;
                let cause = text::said(&cause.to_string()).to_string();
                let kept = path.map(|path| format!("; kept as {}", text::path(&path)));
                note::warning(format_args!(
                    "the server rejected a profile: {cause}{}",
                    kept.unwrap_or_default()
                ));
            }
            Event::Damaged { path } => {
                note::warning(format_args!("damaged, and not sent: {}", text::path(&path)));
            }
            Event::SpoolFailed(error) => {
                let cause = error.to_string();
                note::warning(format_args!("the spool cannot be used: {cause}"));
                self.last_failure = Some(cause);
            }
            other => note::detail(format_args!("{other:?}")),
        }
    }

    /// Says and counts that profiles were dropped from the spool.
    pub fn dropped(&mut self, count: u64) {
        self.dropped += count;
        let what = match count {
            0 => return,
            1 => "the oldest profile".to_owned(),
            count => format!("the {count} oldest profiles"),
        };
        note::warning(format_args!(
            "dropped from the spool, which was full: {what}; raise --spool-limit to keep more"
        ));
    }

    /// Whether the server would refuse another try, too.
    pub fn is_hopeless(&self) -> bool {
        self.refused.is_some()
    }

    /// Another process sends what is in the spool.
    pub fn other_sender(&mut self) {
        self.has_other_sender = true;
    }

    /// What was done, and what is left.
    pub fn report(&self, args: &Args, server: &Server, made: Made, pusher: &Pusher) -> Report {
        let input = text::named_file(&args.input).unwrap_or(&args.input);
        let unsent = pusher.only_in_memory();
        Report {
            schema_version: SCHEMA_VERSION,
            verb: "push",
            input: (!args.spool_only).then(|| input.to_string_lossy().into_owned()),
            server: server.destination.to_string(),
            samples: made.samples,
            requests: made.requests,
            bytes: made.bytes,
            sent: self.delivered,
            sent_bytes: self.delivered_bytes,
            retried: self.retried,
            divided: self.divided,
            rejected: self.rejected,
            dropped: self.dropped,
            spooled: pusher.usage().waiting.saturating_sub(unsent),
            unsent,
            refused: self.refused.clone(),
            last_failure: self.last_failure.clone(),
            has_other_sender: self.has_other_sender,
        }
    }

    /// Says what was done, and what is left.
    pub fn finish(self, args: &Args, server: &Server, pusher: &Pusher) -> Result<()> {
        let usage = pusher.usage();
        let to = text::said(&server.destination.to_string()).to_string();
        if self.delivered > 0 || usage.waiting == 0 && self.rejected == 0 {
            let sent = profiles(self.delivered);
            note::say(format_args!("sent {sent} to {to}"));
        }
        let spooled = usage.waiting.saturating_sub(pusher.only_in_memory());
        let cause = self.refused.as_ref().or(self.last_failure.as_ref());
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        if let Some(folder) = args.spool.as_deref().filter(|_| spooled > 0) {
            let folder = shell_word(folder);
            let why = match self.has_other_sender {
                true => "; another process sends from this spool".to_owned(),
                false => format!("{cause}; the next push with --spool {folder} sends what is kept"),
            };
            note::warning(format_args!("kept in {folder}: {}{why}", profiles(spooled)));
        }
        if let Some(refused) = &self.refused {
            return Err(Error::Refused(format!(
                "{to} refuses profiles: {refused}; check the URL, --header and --ca"
            )));
        }
        if pusher.only_in_memory() > 0 {
            return Err(Error::Refused(format!(
                "not sent{cause}; the recording is unchanged: push it again, or pass --spool DIR to keep what cannot be sent"
            )));
        }
        match self.rejected {
            0 => Ok(()),
            count => Err(Error::Refused(format!("{to} rejected {}", profiles(count)))),
        }
    }
}
