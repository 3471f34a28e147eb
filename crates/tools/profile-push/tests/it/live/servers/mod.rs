//! Profiles reach receivers made of OpenTelemetry's official stubs, over HTTP and gRPC, plain and encrypted, whatever these do.

mod divided;
mod killed;
mod made;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use end_to_end::pprof::pprof_top;
use end_to_end::tool::{run, tool};
use profile_export::Format;
use profile_push::{
    BodyKind, Cause, Delivery, Destination, Event, HttpClient, HttpSettings, Next, Partial,
    ProfileBody, Protocol, Spool, Transport, Unreachable, Verdict,
};
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use end_to_end::receiver::{self, Receiver};

fn folder() -> TempDir {
    TempDir::with_prefix("jitscribe-push-").expect("a folder")
}

fn destination(receiver: &Receiver, protocol: Protocol) -> Destination {
    match protocol {
        Protocol::OtlpHttp => Destination::otlp_http(&receiver.http()),
        Protocol::OtlpGrpc => Destination::otlp_grpc(&receiver.grpc(), false),
        Protocol::Pyroscope => Destination::pyroscope(&receiver.http()),
    }
    .expect("a URL")
}

fn client(receiver: &Receiver, protocol: Protocol) -> HttpClient {
    client_with(receiver, protocol, HttpSettings::default())
}

fn client_with(receiver: &Receiver, protocol: Protocol, settings: HttpSettings) -> HttpClient {
    HttpClient::new(destination(receiver, protocol), settings).expect("a client")
}

/// The profiles with these numbers, which wait in memory.
fn in_memory(numbers: &[u64]) -> Delivery {
    let mut delivery = Delivery::in_memory(1 << 20);
    for number in numbers {
        delivery.push(&made::body(*number)).expect("space");
    }
    delivery
}

/// What waits in a spool at this path.
fn spooled(path: &Path) -> Delivery {
    let spool = Spool::open(path, BodyKind::Otlp, 1 << 20).expect("a spool");
    Delivery::with_spool(spool, 1 << 20)
}

/// A clock that jumps over waits.
struct Clock {
    now: Instant,
    waits: Vec<Duration>,
}

impl Clock {
    fn new() -> Self {
        Self { now: Instant::now(), waits: Vec::new() }
    }
}

/// Sends until nothing is left, or the server refuses everything.
fn deliver(delivery: &mut Delivery, client: &mut HttpClient, clock: &mut Clock) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match delivery.next(clock.now, &mut events) {
            Next::Send(body) => {
                let verdict = match client.send(&body) {
                    Ok(answer) => Verdict::of(client.protocol(), &answer, SystemTime::now()),
                    Err(unreachable) => unreachable.into(),
                };
                delivery.answered(verdict, clock.now, &mut events);
            }
            Next::Wait(until) => {
                clock.waits.push(until - clock.now);
                clock.now = until;
            }
            Next::Nothing => return events,
            other => panic!("{other:?}"),
        }
        if events.iter().any(|event| matches!(event, Event::Refused { .. })) {
            return events;
        }
        assert!(events.len() < 1000, "it does not end: {events:?}");
    }
}

/// What happened, in a word each.
fn words(events: &[Event]) -> Vec<String> {
    let word = |event: &Event| match event {
        Event::Delivered { partial: None, .. } => "delivered".to_owned(),
        Event::Delivered { partial: Some(Partial { rejected, message }), .. } => {
            format!("delivered, not {rejected}: {message}")
        }
        Event::Postponed { cause: Cause::Unreachable(cause), .. } => match cause {
            Unreachable::Timeout { .. } => "timeout".to_owned(),
            Unreachable::Broken { .. } => "broken".to_owned(),
            other => other.to_string(),
        },
        Event::Postponed { cause, .. } => format!("postponed: {cause}"),
        Event::Refused { cause: Cause::Unreachable(Unreachable::Certificate { .. }), .. } => {
            "certificate".to_owned()
        }
        Event::Divided { cause: Cause::Grpc { code, .. }, .. } => format!("divided: gRPC {code}"),
        Event::Divided { cause, .. } => format!("divided: {cause}"),
        Event::Refused { cause, .. } => format!("refused: {cause}"),
        Event::Rejected { cause, .. } => format!("rejected: {cause}"),
        other => format!("{other:?}"),
    };
    events.iter().map(word).collect()
}

/// The stacks of profiles with these numbers.
fn truth(numbers: impl IntoIterator<Item = u64>) -> Vec<BTreeMap<String, u64>> {
    numbers.into_iter().map(|number| made::profile(number).1).collect()
}

/// The stacks that the official stubs read in what was received.
fn stacks(files: &[std::path::PathBuf]) -> Vec<BTreeMap<String, u64>> {
    let stacks = |file: &Value| serde_json::from_value(file["stacks"].clone()).expect("counts");
    receiver::read(files).iter().map(stacks).collect()
}

const OTLP: [Protocol; 2] = [Protocol::OtlpHttp, Protocol::OtlpGrpc];

#[test]
fn both_protocols_deliver_the_same_numbers() {
    let folder = folder();
    let receiver = Receiver::start(folder.path(), &json!({}));
    for protocol in OTLP {
        for gzip in [true, false] {
            let mut settings = HttpSettings::default();
            settings.gzip = gzip;
            settings.headers.set("Authorization", b"Bearer secret").expect("a header");
            let mut client = client_with(&receiver, protocol, settings);
            let events = deliver(&mut in_memory(&[1, 2]), &mut client, &mut Clock::new());
            assert_eq!(words(&events), ["delivered"; 2], "{protocol:?}");
        }
    }
    let files = receiver.files();
    assert_eq!(stacks(&files), truth([1, 2, 1, 2, 1, 2, 1, 2]));
    let ids: Vec<Value> = receiver::read(&files).iter().map(|file| file["ids"].clone()).collect();
    assert!(ids[0] != ids[1] && ids[0][0].as_str().is_some_and(|id| id.len() == 32), "{ids:?}");
    assert_eq!(ids[2..], [&ids[..2], &ids[..2], &ids[..2]].concat());
    for headers in receiver.headers() {
        assert_eq!(headers["authorization"], "Bearer secret", "{headers}");
        let agent = headers["user-agent"].as_str().expect("an agent");
        assert!(agent.starts_with("jitscribe-profile-push/"), "{agent}");
    }
}

#[test]
fn faults_of_a_server_delay_profiles_and_lose_none() {
    let faults = [
        json!({ "status": { "code": 14, "message": "busy" } }),
        json!({ "status": { "code": 8, "message": "full", "retry": 90.5 } }),
        json!({ "status": { "code": 3, "message": "odd profile" } }),
        json!({ "partial": [1, "too old"] }),
    ];
    for protocol in OTLP {
        let folder = folder();
        let receiver = Receiver::with_faults(&folder.path().join("received"), &faults);
        let mut delivery = spooled(&folder.path().join("spool"));
        for number in [1, 2, 3] {
            delivery.push(&made::body(number)).expect("space");
        }
        let mut clock = Clock::new();
        let events = deliver(&mut delivery, &mut client(&receiver, protocol), &mut clock);
        let [busy, full, odd] = match protocol {
            Protocol::OtlpGrpc => {
                ["gRPC UNAVAILABLE", "gRPC RESOURCE_EXHAUSTED", "gRPC INVALID_ARGUMENT"]
            }
            _ => ["HTTP 503", "HTTP 429", "HTTP 400"],
        };
        let expected = [
            format!("postponed: {busy}: busy"),
            format!("postponed: {full}: full"),
            format!("rejected: {odd}: odd profile"),
            "delivered, not 1: too old".into(),
            "delivered".into(),
        ];
        assert_eq!(words(&events), expected);
        let [first, second] = clock.waits[..] else { panic!("two waits: {:?}", clock.waits) };
        assert!(first <= Duration::from_secs(1), "{first:?}");
        assert!(
            second >= Duration::from_millis(90_500) && second < Duration::from_secs(93),
            "{second:?}"
        );
        assert_eq!(stacks(&receiver.files()), truth([2, 3]));
        // What was rejected is kept.
        let Event::Rejected { path: Some(path), .. } = &events[2] else { panic!("{events:?}") };
        assert_eq!(gunzip(&fs::read(path).expect("a file")), made::request(1));
    }
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut content)
        .expect("gzip");
    content
}

#[test]
fn proxies_and_broken_connections_delay_profiles() {
    let faults = [
        json!({ "http": 502, "body": "bad gateway" }),
        json!({ "http": 503, "headers": { "Retry-After": "1800" } }),
        json!({ "cut": "request" }),
        json!({ "cut": "response" }),
        json!({ "hang": true }),
        json!({ "http": 500, "body": "oops" }),
    ];
    let folder = folder();
    let receiver = Receiver::with_faults(folder.path(), &faults);
    let mut settings = HttpSettings::default();
    // A server that is slow for another reason is asked once more, which the expectation below allows for.
    settings.timeout = Duration::from_secs(3);
    let mut client = client_with(&receiver, Protocol::OtlpHttp, settings);
    let mut clock = Clock::new();
    let events = deliver(&mut in_memory(&[1, 2]), &mut client, &mut clock);
    let expected = [
        "postponed: HTTP 502: bad gateway",
        "postponed: HTTP 503",
        "broken",
        "broken",
        "timeout",
        "rejected: HTTP 500: oops",
        "delivered",
    ];
    assert_eq!(words(&events), expected);
    assert!(clock.waits[1] >= Duration::from_secs(1800), "{:?}", clock.waits);
    // The one whose answer was cut had arrived.
    assert_eq!(stacks(&receiver.files()), truth([1, 2]));
}

#[test]
fn wrong_settings_are_refused_and_lose_nothing() {
    let faults = [
        json!({ "http": 401, "body": "who are you?" }),
        json!({ "http": 302, "headers": { "Location": "http://127.0.0.1:1/" } }),
    ];
    let folder = folder();
    let receiver = Receiver::with_faults(folder.path(), &faults);
    let mut delivery = in_memory(&[1]);
    let mut client = client(&receiver, Protocol::OtlpHttp);
    let mut clock = Clock::new();
    let mut said = Vec::new();
    for _ in 0..3 {
        said.extend(words(&deliver(&mut delivery, &mut client, &mut clock)));
    }
    let expected = [
        "refused: HTTP 401: who are you?",
        "refused: HTTP 302: redirects to http://127.0.0.1:1/",
        "delivered",
    ];
    assert_eq!(said, expected);
    // A long wait, for somebody to change the settings.
    assert_eq!(clock.waits, [Duration::from_secs(60); 2]);
}

#[test]
fn an_hour_without_a_receiver_loses_nothing() {
    for protocol in OTLP {
        let folder = folder();
        let received = folder.path().join("received");
        let receiver = Receiver::start(&received, &json!({}));
        let mut client = client(&receiver, protocol);
        let ports = json!({ "http": receiver.http_port, "grpc": receiver.grpc_port });
        drop(receiver);
        let spool_path = folder.path().join("spool");
        let mut delivery = spooled(&spool_path);
        let mut now = Instant::now();
        let mut attempts = 0;
        for minute in 0..60 {
            delivery.push(&made::body(minute)).expect("space");
            // Ours is restarted in the middle.
            if minute == 30 {
                drop(delivery);
                delivery = spooled(&spool_path);
            }
            for _ in 0..60 {
                let mut events = Vec::new();
                if let Next::Send(body) = delivery.next(now, &mut events) {
                    attempts += 1;
                    let unreachable = client.send(&body).expect_err("nobody listens");
                    assert!(matches!(unreachable, Unreachable::Connect { .. }), "{unreachable}");
                    delivery.answered(unreachable.into(), now, &mut events);
                }
                now += Duration::from_secs(1);
            }
        }
        // Doubling waits: a handful at the beginning of each run, and one or two a minute.
        assert!((60..200).contains(&attempts), "{attempts}");
        let receiver = Receiver::start(&received, &ports);
        let mut clock = Clock { now, waits: Vec::new() };
        let events = deliver(&mut delivery, &mut client, &mut clock);
        assert_eq!(words(&events), ["delivered"; 60]);
        assert_eq!(stacks(&receiver.files()), truth(0..60));
    }
}

/// Certificates of two authorities: `NAME.pem` and `NAME.key` of each, of a server on 127.0.0.1, and of a client.
fn certificates(folder: &Path) {
    let openssl = |words: &str| {
        let mut command: Command = tool("openssl");
        run(command.current_dir(folder).args(words.split(' ')));
    };
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for name in ["ca", "other"] {
        openssl(&format!(
            "{new} -keyout {name}.key -out {name}.pem -subj /CN={name} -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign"
        ));
    }
    for (name, extensions) in [
        ("server", "-addext subjectAltName=IP:127.0.0.1 -addext extendedKeyUsage=serverAuth"),
        ("client", "-addext extendedKeyUsage=clientAuth"),
    ] {
        openssl(&format!(
            "{new} -CA ca.pem -CAkey ca.key -keyout {name}.key -out {name}.pem -subj /CN={name} -addext basicConstraints=critical,CA:FALSE {extensions}"
        ));
    }
}

#[test]
fn certificates_are_checked_on_both_sides() {
    let folder = folder();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    let start = |name: &str, clients: Option<&str>| {
        let clients = clients.map(file);
        let tls = json!({ "certificate": file("server.pem"), "key": file("server.key"), "clients": clients });
        Receiver::start(&file(name), &json!({ "tls": tls }))
    };
    let open = start("open", None);
    let closed = start("closed", Some("ca.pem"));
    for protocol in OTLP {
        let client_of = |receiver: &Receiver, authority: &str, has_identity: bool| {
            let mut settings = HttpSettings::default();
            settings.tls.authorities = Some(file(authority));
            settings.tls.identity = has_identity.then(|| (file("client.pem"), file("client.key")));
            client_with(receiver, protocol, settings)
        };
        for (attempt, receiver, authority, has_identity, expected) in [
            ("without a client's certificate", &open, "ca.pem", false, "delivered"),
            ("another authority", &open, "other.pem", false, "certificate"),
            ("with a client's certificate", &closed, "ca.pem", true, "delivered"),
        ] {
            let mut client = client_of(receiver, authority, has_identity);
            let events = deliver(&mut in_memory(&[1]), &mut client, &mut Clock::new());
            assert_eq!(words(&events), [expected], "{protocol:?}, {attempt}");
        }
        let mut client = client_of(&closed, "ca.pem", false);
        match client.send(&made::body(1)).expect_err("no certificate") {
            Unreachable::Certificate { .. } => {}
            // gRPC's server closes the connection, and does not say why.
            Unreachable::Broken { .. } if protocol == Protocol::OtlpGrpc => {}
            other => panic!("{protocol:?}: {other}"),
        }
    }
    assert_eq!(stacks(&open.files()), truth([1, 1]));
    assert_eq!(stacks(&closed.files()), truth([1, 1]));

    let error = |authorities: &Path| {
        let mut settings = HttpSettings::default();
        settings.tls.authorities = Some(authorities.to_owned());
        let client = HttpClient::new(destination(&open, Protocol::OtlpHttp), settings);
        client.expect_err("no certificates").to_string()
    };
    let empty = file("server.key");
    assert_eq!(error(&empty), format!("{}: no certificate in it", empty.display()));
    assert!(error(&file("absent")).contains("absent"));
}

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

#[test]
fn pyroscope_gets_what_pprof_reads() {
    let folder = folder();
    let receiver = Receiver::with_faults(
        &folder.path().join("received"),
        &[
            json!({ "http": 429, "type": "application/json", "body": r#"{"code":"resource_exhausted","message":"slow down"}"#, "headers": { "Retry-After": "5" } }),
        ],
    );
    let labels = [("service_name".to_owned(), "app".to_owned())];
    let body = ProfileBody::pyroscope(&made::encoded(3, Format::Pprof), &labels);
    let mut delivery = Delivery::in_memory(1 << 20);
    delivery.push(&body).expect("space");
    let mut clock = Clock::new();
    let events = deliver(&mut delivery, &mut client(&receiver, Protocol::Pyroscope), &mut clock);
    assert_eq!(words(&events), ["postponed: HTTP 429: slow down", "delivered"]);
    let [file] = &receiver.files()[..] else { panic!("one file") };
    let request = PushRequest::decode(&fs::read(file).expect("a file")[..]).expect("a request");
    let [series] = &request.series[..] else { panic!("one series") };
    let labels: Vec<_> =
        series.labels.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
    assert_eq!(labels, [("__name__", "process_cpu"), ("service_name", "app")]);
    let pprof = folder.path().join("sent.pb.gz");
    fs::write(&pprof, &series.samples[0].raw_profile).expect("written");
    let counts: Vec<u64> = made::profile(3).1.into_values().collect();
    let [main, outer, inner] = counts[..] else { panic!("three stacks") };
    let expected = [
        ("main".to_owned(), (main, main + outer + inner)),
        ("outer".to_owned(), (outer, outer + inner)),
        ("inner".to_owned(), (inner, inner)),
    ];
    assert_eq!(pprof_top(&pprof, folder.path(), &[]), expected.into());
}
