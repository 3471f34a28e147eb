use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;
use crate::message::{Any, PartialSuccess, ProtoDuration};

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn answer(status: u16, headers: &[(&str, &str)], content: &[u8]) -> Answer {
    let header = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
    Answer { status, headers: headers.iter().map(header).collect(), content: content.to_vec() }
}

/// Headers of a message.
const PROTOBUF: [(&str, &str); 1] = [("content-type", "application/x-protobuf")];

fn http(answer: &Answer) -> Verdict {
    Verdict::of(Protocol::OtlpHttp, answer, now())
}

fn grpc(answer: &Answer) -> Verdict {
    Verdict::of(Protocol::OtlpGrpc, answer, now())
}

/// The first letter of the variant, and the wait in milliseconds.
fn short_form(verdict: &Verdict) -> (char, Option<u128>) {
    match verdict {
        Verdict::Delivered(_) => ('d', None),
        Verdict::Retry { after, .. } => ('r', after.map(|after| after.as_millis())),
        Verdict::Refused(_) => ('f', None),
        Verdict::TooLong(_) => ('l', None),
        Verdict::Rejected(_) => ('j', None),
    }
}

/// By the table of OTLP's specification: 429, 502, 503 and 504 alone are retried.
#[test]
fn statuses_of_http() {
    for status in 100..600 {
        let expected = match status {
            200..=299 => 'd',
            413 => 'l',
            429 | 502 | 503 | 504 => 'r',
            300..=399 | 401 | 403 | 404 | 405 | 407 | 421 => 'f',
            _ => 'j',
        };
        assert_eq!(short_form(&http(&answer(status, &[], b""))).0, expected, "{status}");
    }
}

/// By the table of OTLP's specification.
#[test]
fn statuses_of_grpc() {
    for code in 0..20 {
        let expected = match code {
            0 => 'd',
            1 | 4 | 10 | 11 | 14 | 15 => 'r',
            7 | 12 | 16 => 'f',
            _ => 'j',
        };
        assert_eq!(short_form(&grpc(&grpc_answer(code, ""))).0, expected, "{code}");
    }
    // A proxy answers in place of the server.
    for (status, expected) in
        [(502, 'r'), (503, 'r'), (404, 'f'), (401, 'f'), (400, 'j'), (413, 'l'), (200, 'r')]
    {
        assert_eq!(short_form(&grpc(&answer(status, &[], b""))).0, expected, "{status}");
    }
    let with_message = grpc_answer(3, "no%20%F0%9F%98%80");
    let Verdict::Rejected(cause) = grpc(&with_message) else { panic!("rejected") };
    assert_eq!(cause.to_string(), "gRPC INVALID_ARGUMENT: no \u{1f600}");
}

/// An answer of gRPC with this code, and this message if it is not empty.
fn grpc_answer(code: u32, message: &str) -> Answer {
    let code = code.to_string();
    let headers = [("grpc-status", code.as_str()), ("grpc-message", message)];
    answer(200, &headers[..if message.is_empty() { 1 } else { 2 }], b"")
}

/// The words of servers, as their sources have them.
#[test]
fn requests_that_are_too_long_are_recognized() {
    for (code, words, expected) in [
        // gRPC's core, on which Python's is built; Go; Java; .NET; tonic.
        (8, "Received message larger than max (5000000 vs. 4194304)", 'l'),
        (8, "grpc: received message larger than max (5000000 vs. 4194304)", 'l'),
        (8, "grpc: received message after decompression larger than max 4194304", 'l'),
        (8, "gRPC message exceeds maximum size 4194304: 5000000", 'l'),
        (8, "Received message exceeds the maximum configured message size.", 'l'),
        (
            11,
            "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes",
            'l',
        ),
        (8, "too many requests, quota exceeded", 'j'),
        (11, "out of range", 'r'),
        (3, "message too large", 'j'),
    ] {
        assert_eq!(short_form(&grpc(&grpc_answer(code, words))).0, expected, "{words}");
    }
    // OpenTelemetry's collector answers 400 with a status as protobuf, Pyroscope with JSON.
    let status =
        Status { code: 3, message: "http: request body too large".into(), details: vec![] };
    let too_large = answer(400, &PROTOBUF, &status.encode_to_vec());
    assert_eq!(short_form(&http(&too_large)).0, 'l');
    for words in [
        "the profile with labels '{}' exceeds the size limit (max_profile_size_byte, actual: 5000000, limit: 4194304)",
        "the profile with labels '{}' exceeds the samples count limit (max_profile_stacktrace_samples, actual: 20000, limit: 16000)",
    ] {
        let json = serde_json::json!({ "code": "invalid_argument", "message": words }).to_string();
        let answer = answer(400, &[("content-type", "application/json")], json.as_bytes());
        assert_eq!(short_form(&Verdict::of(Protocol::Pyroscope, &answer, now())).0, 'l');
    }
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    for (value, expected) in [
        ("7", Some(7_000)),
        (" 0 ", Some(0)),
        ("Tue, 14 Nov 2023 22:14:20 GMT", Some(60_000)),
        ("Tue, 14 Nov 2023 22:13:10 GMT", Some(0)),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
    ] {
        let verdict = http(&answer(503, &[("retry-after", value)], b""));
        assert_eq!(short_form(&verdict), ('r', expected), "{value:?}");
    }
    let verdict = http(&answer(429, &[("retry-after", "99999999999999999999999")], b""));
    let Verdict::Retry { after: Some(after), .. } = verdict else { panic!("a wait") };
    assert_eq!(after, Duration::from_secs(u64::MAX));
}

fn status(seconds: i64, nanos: i32) -> Vec<u8> {
    let info = RetryInfo { retry_delay: Some(ProtoDuration { seconds, nanos }) };
    let other = Any { type_url: "type.googleapis.com/google.rpc.DebugInfo".into(), value: vec![1] };
    let any = Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".into(),
        value: info.encode_to_vec(),
    };
    Status { code: 8, message: "full".into(), details: vec![other, any] }.encode_to_vec()
}

#[test]
fn retry_info_makes_exhaustion_temporary() {
    let exhausted = |details: &str| {
        grpc(&answer(200, &[("grpc-status", "8"), ("grpc-status-details-bin", details)], b""))
    };
    assert_eq!(short_form(&grpc(&grpc_answer(8, ""))), ('j', None));
    for (seconds, nanos, expected) in
        [(3, 500_000_000, 3_500), (0, 0, 0), (-5, -5, 0), (1, i32::MAX, 1_999)]
    {
        let bytes = status(seconds, nanos);
        let padded = base64::engine::general_purpose::STANDARD.encode(&bytes);
        for text in [padded.as_str(), padded.trim_end_matches('=')] {
            assert_eq!(short_form(&exhausted(text)), ('r', Some(expected)));
        }
    }
    assert_eq!(short_form(&exhausted("no base64!")), ('j', None));
    // Over HTTP, the status is the content.
    let verdict = http(&answer(429, &PROTOBUF, &status(2, 0)));
    let Verdict::Retry { cause, after } = verdict else { panic!("a wait") };
    assert_eq!((&*cause.to_string(), after), ("HTTP 429: full", Some(Duration::from_secs(2))));
}

#[test]
fn partial_success_is_told() {
    let partial = PartialSuccess { rejected_profiles: 3, error_message: "no names".into() };
    let content = ExportResponse { partial_success: Some(partial) }.encode_to_vec();
    let expected = Verdict::Delivered(Some(Partial { rejected: 3, message: "no names".into() }));
    assert_eq!(http(&answer(200, &PROTOBUF, &content)), expected);
    let mut framed = vec![0, 0, 0, 0, content.len() as u8];
    framed.extend(&content);
    assert_eq!(grpc(&answer(200, &[("grpc-status", "0")], &framed)), expected);
    let empty = ExportResponse { partial_success: Some(PartialSuccess::default()) }.encode_to_vec();
    assert_eq!(http(&answer(200, &PROTOBUF, &empty)), Verdict::Delivered(None));
}

#[test]
fn the_words_of_servers_are_kept_short() {
    let words = |kind: &str, content: &str| {
        let answer = answer(400, &[("content-type", kind)], content.as_bytes());
        match Verdict::of(Protocol::Pyroscope, &answer, now()) {
            Verdict::Rejected(cause) => cause.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(words("text/plain", "bad\nprofile"), "HTTP 400: bad");
    assert_eq!(
        words("application/json", r#"{"code":"x","message":"no label"}"#),
        "HTTP 400: no label"
    );
    assert_eq!(words("text/html", "<html>"), "HTTP 400");
    assert!(words("text/plain", &"ü".repeat(10_000)).len() < 520);
    let moved = answer(301, &[("location", "https://x/")], b"");
    let Verdict::Refused(cause) = http(&moved) else { panic!("refused") };
    assert_eq!(cause.to_string(), "HTTP 301: redirects to https://x/");
}

proptest! {
    #[test]
    fn any_answer_has_a_verdict(
        status in 100..600_u16,
        names in proptest::collection::vec(prop::sample::select(vec![
            "content-type", "grpc-status", "grpc-message", "grpc-status-details-bin", "retry-after", "location",
        ]), 0..5),
        value in prop::sample::select(vec!["application/x-protobuf", "application/json", "0", "8", "14", "%zz%f", "AAAA", ""]),
        content in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let headers = names.into_iter().map(|name| (name, value)).collect::<Vec<_>>();
        let answer = answer(status, &headers, &content);
        for protocol in [Protocol::OtlpHttp, Protocol::OtlpGrpc, Protocol::Pyroscope] {
            // Delivered is only what the server says it has.
            if let Verdict::Delivered(_) = Verdict::of(protocol, &answer, now()) {
                prop_assert!((200..300).contains(&status));
            }
        }
    }
}
