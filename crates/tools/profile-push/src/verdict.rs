//! What an answer means for the profile that was sent.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode;
use prost::Message;

use crate::answer::{Answer, Unreachable};
use crate::destination::Protocol;
use crate::message::{ExportResponse, RetryInfo, Status};
use crate::status_code::GrpcCode;

/// What becomes of a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The server has it.
    Delivered(Option<Partial>),
    /// It is to be sent again.
    Retry {
        /// Why.
        cause: Cause,
        /// How long the server wants to be left alone.
        after: Option<Duration>,
    },
    /// The server takes no profile with these settings: the address, the credentials or the certificates are wrong. The profile is kept.
    Refused(Cause),
    /// The request is too long for the server, which may take the profile in parts.
    TooLong(Cause),
    /// The server does not take this profile, and is not to be asked again.
    Rejected(Cause),
}

/// The server has taken a part of a request, or has a remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// How many profiles of the request it has not taken.
    pub rejected: u64,
    /// Why, in the server's words.
    pub message: String,
}

/// Why a profile was not delivered.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// There was no answer.
    Unreachable(Unreachable),
    /// An answer of HTTP.
    Http {
        /// Its status.
        status: u16,
        /// The server's words, shortened.
        message: String,
    },
    /// An answer of gRPC.
    Grpc {
        /// Its status.
        code: GrpcCode,
        /// The server's words, shortened.
        message: String,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self {
            Self::Unreachable(cause) => return cause.fmt(f),
            Self::Http { status, message } => {
                write!(f, "HTTP {status}")?;
                message
            }
            Self::Grpc { code, message } => {
                write!(f, "gRPC {code}")?;
                message
            }
        };
        if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
    }
}

impl From<Unreachable> for Verdict {
    fn from(cause: Unreachable) -> Self {
        match cause {
            Unreachable::Certificate { .. } => Self::Refused(Cause::Unreachable(cause)),
            Unreachable::Unpack { .. } => Self::Rejected(Cause::Unreachable(cause)),
            _ => Self::Retry { cause: Cause::Unreachable(cause), after: None },
        }
    }
}

impl Verdict {
    /// What an answer means. `now` is what dates in it are compared with.
    #[must_use]
    pub fn of(protocol: Protocol, answer: &Answer, now: SystemTime) -> Self {
        match protocol {
            Protocol::OtlpGrpc => of_grpc(answer, now),
            Protocol::OtlpHttp | Protocol::Pyroscope => of_http(protocol, answer, now),
        }
    }
}

fn of_http(protocol: Protocol, answer: &Answer, now: SystemTime) -> Verdict {
    let status = answer.status;
    if (200..300).contains(&status) {
        let is_otlp = protocol == Protocol::OtlpHttp && is_protobuf(answer);
        return Verdict::Delivered(if is_otlp { partial(&answer.content) } else { None });
    }
    let (message, delay) = words(answer);
    let cause = Cause::Http { status, message };
    match status {
        413 => Verdict::TooLong(cause),
        400 if is_too_long_over_http(&cause) => Verdict::TooLong(cause),
        429 | 502..=504 => Verdict::Retry { cause, after: retry_after(answer, now).or(delay) },
        // Redirections are not followed: credentials would go to where they lead.
        300..=399 | 401 | 403..=405 | 407 | 421 => Verdict::Refused(cause),
        _ => Verdict::Rejected(cause),
    }
}

fn of_grpc(answer: &Answer, now: SystemTime) -> Verdict {
    let code = match answer.grpc_code() {
        Some(GrpcCode::OK) if answer.status == 200 => {
            return Verdict::Delivered(message_of_frame(&answer.content).and_then(partial));
        }
        Some(code) => code,
        // The end is missing: the profile may have arrived or not.
        None if answer.status == 200 => GrpcCode::UNAVAILABLE,
        None => GrpcCode::of_http(answer.status),
    };
    let message = match answer.header("grpc-message") {
        Some(message) => percent_decode(message).decode_utf8_lossy().into_owned(),
        None if answer.status != 200 => format!("HTTP {}", answer.status),
        None => String::new(),
    };
    let cause = Cause::Grpc { code, message: short(&message) };
    let delay = details(answer).and_then(|status| delay(&status));
    match code {
        // A proxy's answer.
        _ if answer.status == 413 => Verdict::TooLong(cause),
        // The latter is that of receivers made with tonic; by its number it would be sent again unchanged.
        GrpcCode::RESOURCE_EXHAUSTED | GrpcCode::OUT_OF_RANGE
            if delay.is_none() && is_too_long_over_grpc(&message) =>
        {
            Verdict::TooLong(cause)
        }
        _ if code.is_retryable() => {
            Verdict::Retry { cause, after: delay.or_else(|| retry_after(answer, now)) }
        }
        GrpcCode::RESOURCE_EXHAUSTED if delay.is_some() => Verdict::Retry { cause, after: delay },
        GrpcCode::UNAUTHENTICATED | GrpcCode::PERMISSION_DENIED | GrpcCode::UNIMPLEMENTED => {
            Verdict::Refused(cause)
        }
        _ => Verdict::Rejected(cause),
    }
}

/// Whether the words of an error 400 say that a request was too long: those of Go's server, as OpenTelemetry's collector answers, and of Pyroscope.
fn is_too_long_over_http(cause: &Cause) -> bool {
    let Cause::Http { message, .. } = cause else { return false };
    ["request body too large", "exceeds the size limit", "exceeds the samples count limit"]
        .into_iter()
        .any(|words| message.contains(words))
}

/// Whether the words of an error say that a message was too long. No code says it: these are the words of gRPC in C++, Go, Java, .NET and Rust.
fn is_too_long_over_grpc(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("message")
        && ["larger than", "too large", "exceeds"].into_iter().any(|words| message.contains(words))
}

fn is_protobuf(answer: &Answer) -> bool {
    answer.header("content-type").is_some_and(|kind| kind.starts_with(b"application/x-protobuf"))
}

/// The content of a message of gRPC that is not compressed: a byte, the length, the content.
fn message_of_frame(content: &[u8]) -> Option<&[u8]> {
    let (head, rest) = content.split_first_chunk::<5>()?;
    let [0, length @ ..] = head else { return None };
    rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn partial(content: &[u8]) -> Option<Partial> {
    let partial = ExportResponse::decode(content).ok()?.partial_success?;
    let rejected = u64::try_from(partial.rejected_profiles).unwrap_or(0);
    let is_silent = rejected == 0 && partial.error_message.is_empty();
    (!is_silent).then(|| Partial { rejected, message: short(&partial.error_message) })
}

/// What the server says in the content of an answer that is an error, and how long to wait.
fn words(answer: &Answer) -> (String, Option<Duration>) {
    if is_protobuf(answer) {
        return match Status::decode(&answer.content[..]) {
            Ok(status) => (short(&status.message), delay(&status)),
            Err(_) => (String::new(), None),
        };
    }
    let is_json =
        answer.header("content-type").is_some_and(|it| it.starts_with(b"application/json"));
    if is_json
        && let Ok(json) = serde_json::from_slice::<serde_json::Value>(&answer.content)
        && let Some(message) = json.get("message").and_then(serde_json::Value::as_str)
    {
        return (short(message), None);
    }
    if (300..400).contains(&answer.status)
        && let Some(location) = answer.header("location")
    {
        return (short(&format!("redirects to {}", String::from_utf8_lossy(location))), None);
    }
    let is_text = answer.header("content-type").is_none_or(|it| it.starts_with(b"text/plain"));
    let text = String::from_utf8_lossy(if is_text { &answer.content } else { &[] });
    (short(text.lines().next().unwrap_or_default().trim()), None)
}

/// The header `Retry-After`: seconds, or a date.
fn retry_after(answer: &Answer, now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(answer.header("retry-after")?).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large is a long time.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn details(answer: &Answer) -> Option<Status> {
    let bytes = BASE64.decode(answer.header("grpc-status-details-bin")?).ok()?;
    Status::decode(&bytes[..]).ok()
}

/// The wait of a `RetryInfo`.
fn delay(status: &Status) -> Option<Duration> {
    let info = status.details.iter().find(|it| it.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&info.value[..]).ok()?.retry_delay.unwrap_or_default();
    let seconds = u64::try_from(delay.seconds).unwrap_or(0);
    let nanoseconds = u32::try_from(delay.nanos).unwrap_or(0).min(999_999_999);
    Some(Duration::new(seconds, nanoseconds))
}

/// How many bytes of a server's words are kept.
const LONGEST: usize = 500;

fn short(text: &str) -> String {
    match text.char_indices().find(|(place, _)| *place >= LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
