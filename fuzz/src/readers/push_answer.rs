//! Answers of servers that profiles are pushed to: a status, headers, a content.

use std::time::{Duration, SystemTime};

use profile_push::{Answer, Protocol, Verdict};

const NAMES: [&str; 7] = [
    "content-type",
    "grpc-message",
    "grpc-status",
    "grpc-status-details-bin",
    "location",
    "retry-after",
    "other",
];

/// Two bytes are the status. Lines with a digit and a value are headers; the content is behind an empty line.
pub fn run(input: &[u8]) {
    let Some((status, mut rest)) = input.split_first_chunk::<2>() else { return };
    let mut answer = Answer { status: u16::from_le_bytes(*status) % 600, ..Answer::default() };
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        let Some((name, value)) = line.split_first() else { break };
        let name = NAMES[usize::from(*name) % NAMES.len()];
        answer.headers.push((name.to_owned(), value.to_vec()));
    }
    answer.content = rest.to_vec();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for protocol in [Protocol::OtlpHttp, Protocol::OtlpGrpc, Protocol::Pyroscope] {
        match Verdict::of(protocol, &answer, now) {
            Verdict::Delivered(partial) => {
                assert!((200..300).contains(&answer.status));
                assert!(partial.is_none_or(|partial| partial.message.len() < 600));
            }
            Verdict::Retry { cause, .. }
            | Verdict::Refused(cause)
            | Verdict::TooLong(cause)
            | Verdict::Rejected(cause) => {
                assert!(cause.to_string().len() < 700);
            }
        }
    }
}
