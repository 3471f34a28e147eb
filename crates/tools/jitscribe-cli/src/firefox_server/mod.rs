//! Serves a profile to the Firefox Profiler, and answers its questions for source and assembly.
//!
//! The front end comes from profiler.firefox.com and runs in the user's browser, from where it asks this server on 127.0.0.1. Any other page in that
//! browser can send requests here as well: they need the token in the path, which only the printed URL has.

mod http;

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use printable::Hexadecimal;
use profile_export::Options;
use profile_export::firefox::{self, Method, Request, Symbols};
use profile_recording::RecordedProfile;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::text::Out;
use crate::{Error, Result, note};
use http::Answer;

/// Where the front end is.
const FRONT_END: &str = "https://profiler.firefox.com";

/// Serves until it is interrupted. The port is on 127.0.0.1; 0 is any that is free.
pub fn serve(mut recorded: RecordedProfile<'_>, options: &Options, port: u16) -> Result<()> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over)).map_err(failed("signals"))?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(failed(&format!("127.0.0.1:{port}")))?;
    let port = listener.local_addr().map_err(failed("127.0.0.1"))?.port();
    let token = token().map_err(failed("/dev/urandom"))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    firefox::write(&recorded.profile, options, &mut gzip).map_err(failed("the profile"))?;
    let served = Served {
        base: format!("/{token}"),
        host: format!("127.0.0.1:{port}"),
        profile: gzip.finish().map_err(failed("the profile"))?.into(),
        symbols: Symbols::of(&recorded.profile),
    };
    let requests = http::listen(listener);
    let mut out = Out::new();
    out.line(url(&served.host, &token))?;
    out.finish()?;
    note::say("open this URL in a browser; end with Ctrl-C");
    while !is_over.load(Ordering::Relaxed) {
        let Ok((request, reply)) = requests.recv_timeout(Duration::from_millis(200)) else {
            continue;
        };
        note::detail(format_args!(
            "{:?} {}",
            request.method,
            crate::text::name(request.path.as_bytes())
        ));
        // A connection that is closed has no use for its answer.
        let _ = reply.send(served.answer(&request, &mut recorded.code));
    }
    Ok(())
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Error {
    let what = what.to_owned();
    move |cause| Error::Refused(format!("{what}: {cause}"))
}

/// A secret: 128 bits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Hexadecimal(&bytes).to_string())
}

fn url(host: &str, token: &str) -> String {
    let encoded = |url: &str| url.replace(':', "%3A").replace('/', "%2F");
    let server = format!("http://{host}/{token}");
    let profile = encoded(&format!("{server}/profile.json"));
    format!("{FRONT_END}/from-url/{profile}?symbolServer={}", encoded(&server))
}

struct Served {
    base: String,
    host: String,
    /// Compressed.
    profile: Arc<[u8]>,
    symbols: Symbols,
}

impl Served {
    fn answer(&self, request: &Request, code: &mut dyn profile::CodeSource) -> Answer {
        // A name that leads to 127.0.0.1 is another site's.
        let port = self.host.rsplit(':').next().unwrap_or_default();
        if request.host != self.host && request.host != format!("localhost:{port}") {
            return Answer::status(403);
        }
        let Some(path) = request.path.strip_prefix(&self.base) else {
            return Answer::status(404);
        };
        match (request.method, path) {
            (Method::Options, _) => Answer::status(204),
            (Method::Get, "/profile.json") => Answer::gzipped_json(Arc::clone(&self.profile)),
            (Method::Post, path) => match self.symbols.answer(path, &request.body, code) {
                Some(answer) => Answer::json(answer.to_string().into_bytes()),
                None => Answer::status(404),
            },
            _ => Answer::status(404),
        }
    }
}
