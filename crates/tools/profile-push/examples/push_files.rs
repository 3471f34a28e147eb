//! Pushes files to a server of OTLP through a spool: `push_files SPOOL LIMIT URL FILE…`. Prints a line for each profile that is on the disk, and for what happened.
//!
//! It tries each profile until the first failure: what is left in the spool is sent by the next run.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use profile_push::{
    BodyKind, Delivery, Destination, Event, HttpClient, HttpSettings, ProfileBody, Pusher, Spool,
    State,
};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [spool, limit, url, files @ ..] = &words[..] else {
        return Err("push_files SPOOL LIMIT URL FILE…".into());
    };
    let spool = Spool::open(spool.as_ref(), BodyKind::Otlp, limit.parse()?)?;
    let client = HttpClient::new(Destination::otlp_http(url)?, HttpSettings::default())?;
    let mut pusher = Pusher::new(Delivery::with_spool(spool, 1 << 20), client)?;
    let mut out = std::io::stdout();
    for file in files {
        let pushed = pusher.push(&ProfileBody::otlp(&std::fs::read(file)?))?;
        match pushed.not_spooled {
            None => writeln!(out, "kept {} dropped {}", pushed.id, pushed.dropped)?,
            Some(error) => writeln!(out, "in memory {}: {error}", pushed.id)?,
        }
    }
    loop {
        let mut events = Vec::new();
        let state = pusher.retry(Instant::now(), &mut events);
        for event in &events {
            match event {
                Event::Delivered { id, .. } => writeln!(out, "delivered {id}")?,
                other => writeln!(out, "{other:?}")?,
            }
        }
        match state {
            State::Sending => pusher.wait(Duration::from_secs(1)),
            State::Idle | State::Waiting(_) | State::OtherSender => return Ok(()),
        }
    }
}
