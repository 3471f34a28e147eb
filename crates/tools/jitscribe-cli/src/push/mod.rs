//! `jitscribe push`: sends a recording's profile to a server.

mod args;
mod events;
mod report;
mod server;

use std::time::{Duration, Instant};

use profile::Profile;
use profile_export::{Format, Options};
use profile_push::{
    BodyKind, Delivery, HttpClient, MEMORY_LIMIT, ProfileBody, Pusher, Spool, State,
};

pub use args::Args;
use events::Tally;
use report::Made;
use server::Server;

use crate::inject::print_json;
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
    let mut tally = Tally::default();
    let made = match args.spool_only {
        true => Made::default(),
        false => push(args, &server, &mut pusher, &mut tally)?,
    };
    deliver(&mut pusher, Duration::from_secs_f64(args.retry_for), &mut tally);
    if args.json {
        print_json(&tally.report(args, &server, made, &pusher))?;
    }
    tally.finish(args, &server, &pusher)
}

fn push(args: &Args, server: &Server, pusher: &mut Pusher, tally: &mut Tally) -> Result<Made> {
    let protocol = server.destination.protocol();
    let kind = protocol.body_kind();
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
    let limit = args.request_limit.unwrap_or(protocol.usual_limit());
    let bodies = body.divided(limit).map_err(|error| {
        Error::Refused(format!(
            "the profile is longer than {limit} bytes, and cannot be divided: {error}; raise --request-limit, or select samples with --time"
        ))
    })?;
    let bytes = bodies.iter().map(|body| body.gzipped().len() as u64).sum();
    let samples = options.selection.of(profile).count() as u64;
    let made = Made { samples, requests: bodies.len() as u64, bytes };
    let requests = match made.requests {
        1 => String::new(),
        count => format!(" in {count} requests"),
    };
    let missing = recorded::missing(profile);
    note::say(format_args!(
        "{}: {samples} samples, {bytes} bytes gzipped{requests}, to {}{missing}",
        text::path(&args.input),
        text::said(&server.destination.to_string())
    ));
    let pushed = pusher.push_parts(&bodies).map_err(|error| {
        Error::Refused(format!("{error}; raise --spool-limit, or select samples with --time"))
    })?;
    if let Some(error) = pushed.iter().find_map(|pushed| pushed.not_spooled.as_ref()) {
        note::warning(format_args!("not kept on disk: {error}"));
    }
    if pushed.iter().any(|pushed| pushed.was_there) {
        note::say("the spool has this profile already; it is sent once");
    }
    tally.dropped(pushed.iter().map(|pushed| pushed.dropped).sum());
    Ok(made)
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
