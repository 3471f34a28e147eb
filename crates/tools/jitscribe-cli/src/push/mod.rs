//! `jitscribe push`: sends a recording's profile to a server.

mod args;
mod events;
mod server;

use std::time::{Duration, Instant};

use profile::Profile;
use profile_export::{Format, Options};
use profile_push::{
    BodyKind, Delivery, HttpClient, MEMORY_LIMIT, ProfileBody, Pusher, Spool, State,
};

pub use args::Args;
use events::Tally;
use server::Server;

use crate::{Error, Result, note, recorded, text};

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let server = Server::of(args)?;
    let client = HttpClient::new(server.destination.clone(), server.settings.clone());
    let client = client.map_err(|error| Error::Refused(error.to_string()))?;
    let kind = server.destination.protocol().body_kind();
    let delivery = match &args.spool {
        Some(folder) => {
            let spool = Spool::open(folder, kind, args.spool_limit);
            let spool = spool.map_err(|error| Error::Refused(error.to_string()))?;
            Delivery::with_spool(spool, MEMORY_LIMIT.max(args.spool_limit))
        }
        // There is one profile, however large it is.
        None => Delivery::in_memory(u64::MAX),
    };
    let mut pusher = Pusher::new(delivery, client)
        .map_err(|error| Error::Refused(format!("no thread to send from: {error}")))?;
    if !args.spool_only {
        push(args, &server, kind, &mut pusher)?;
    }
    let mut tally = Tally::default();
    deliver(&mut pusher, Duration::from_secs_f64(args.retry_for), &mut tally);
    tally.finish(args, &server, &pusher)
}

fn push(args: &Args, server: &Server, kind: BodyKind, pusher: &mut Pusher) -> Result<()> {
    let believed = recorded::believed(&args.input);
    let recorded = recorded::read(&args.input, &believed)?;
    let profile = &recorded.profile;
    let mut options = Options::default();
    options.selection = args.selection.of_all_events(profile)?;
    options.resource.clone_from(&server.resource);
    let format = match kind {
        BodyKind::Otlp => Format::Otlp,
        BodyKind::Pyroscope => Format::Pprof,
    };
    let mut content = Vec::new();
    format
        .write(profile, &options, &mut content)
        .map_err(|error| Error::Refused(format!("the profile cannot be encoded: {error}")))?;
    let body = match kind {
        BodyKind::Otlp => ProfileBody::otlp(&content),
        BodyKind::Pyroscope => {
            ProfileBody::pyroscope(&content, &server.labels(&main_process(profile, &options)))
        }
    };
    let samples = options.selection.of(profile).count();
    let missing = recorded::missing(profile);
    let bytes = body.gzipped().len();
    note::say(format_args!(
        "{}: {samples} samples, {bytes} bytes gzipped, to {}{missing}",
        text::path(&args.input),
        text::said(&server.destination.to_string())
    ));
    let pushed = pusher.push(&body).map_err(|error| {
        Error::Refused(format!("{error}; raise --spool-limit, or select samples with --time"))
    })?;
    if let Some(error) = &pushed.not_spooled {
        note::warning(format_args!("not kept on disk: {error}"));
    }
    if pushed.was_there {
        note::say("the spool has this profile already; it is sent once");
    }
    if pushed.dropped > 0 {
        let what = match pushed.dropped {
            1 => "the oldest profile".to_owned(),
            count => format!("the {count} oldest profiles"),
        };
        note::warning(format_args!(
            "dropped from the spool, which was full: {what}; raise --spool-limit to keep more"
        ));
    }
    Ok(())
}

/// The name of the process with the most samples.
fn main_process(profile: &Profile, options: &Options) -> String {
    let mut counts = vec![0_u64; profile.processes().len()];
    for sample in options.selection.of(profile) {
        counts[profile.thread(sample.thread).process.index()] += 1;
    }
    let processes = profile.processes().iter().zip(counts);
    let main = processes.max_by_key(|(_, count)| *count);
    let name = main.map(|(process, _)| profile.text(process.name)).unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Sends until all is delivered, nothing more is to be expected, or the next attempt would be too late.
fn deliver(pusher: &mut Pusher, retry_for: Duration, tally: &mut Tally) {
    let deadline = Instant::now().checked_add(retry_for);
    let is_late = |at: Instant| deadline.is_some_and(|deadline| at > deadline);
    loop {
        let mut events = Vec::new();
        let state = pusher.retry(Instant::now(), &mut events);
        for event in events {
            tally.add(event, deadline);
        }
        if tally.is_hopeless() {
            return;
        }
        let now = Instant::now();
        match state {
            State::Idle => return,
            // The client has a deadline of its own.
            State::Sending => pusher.wait(Duration::from_secs(1)),
            State::Waiting(until) if is_late(until) => return,
            State::Waiting(until) => pusher.wait(until.saturating_duration_since(now)),
            State::OtherSender if is_late(now) => {
                tally.other_sender();
                return;
            }
            State::OtherSender => pusher.wait(Duration::from_millis(200)),
        }
    }
}
