//! The options of `jitscribe push`.

use std::path::PathBuf;

use clap::{ArgGroup, ValueEnum};

use crate::selection::SelectionArgs;

/// Send a recording's profile to a server: OpenTelemetry (OTLP) or Pyroscope
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("server").required(true).args(["otlp", "pyroscope"]),
    after_help = "EXAMPLES:
  jitscribe record -o run.data -- node app.js
  jitscribe push -i run.data --otlp http://localhost:4318
  jitscribe push -i run.data --otlp https://collector:4317 --protocol grpc --ca ca.pem
  jitscribe push -i run.data --pyroscope http://localhost:4040 --service shop

  # requests that a server with a lower limit takes
  jitscribe push -i run.data --otlp http://collector:4318 --request-limit 1M

  # what cannot be sent is kept, and sent by the next push
  jitscribe push -i run.data --otlp http://collector:4318 --spool /var/spool/jitscribe
  jitscribe push --spool-only --otlp http://collector:4318 --spool /var/spool/jitscribe

The environment variables of OTLP exporters (OTEL_EXPORTER_OTLP_ENDPOINT and others),
OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are read. docs/push.md describes retries and the spool."
)]
pub struct Args {
    /// Send OTLP to this URL [default: OTEL_EXPORTER_OTLP_ENDPOINT, or this machine]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub otlp: Option<Option<String>>,
    /// Send pprof to Pyroscope at this URL
    #[arg(long, value_name = "URL")]
    pub pyroscope: Option<String>,
    /// How OTLP is sent [default: OTEL_EXPORTER_OTLP_PROTOCOL, or http]
    #[arg(long, value_name = "PROTOCOL", conflicts_with = "pyroscope")]
    pub protocol: Option<ProtocolArg>,
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub input: PathBuf,
    /// The name of the service [default: OTEL_SERVICE_NAME, or the name of the process]
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Add a header to requests; with =@FILE, its value is read from a file
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub headers: Vec<String>,
    /// Trust the certificates of these authorities (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Show this certificate to the server (PEM)
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
    /// Whether requests are compressed [default: OTEL_EXPORTER_OTLP_COMPRESSION, or gzip]
    #[arg(long, value_name = "ENCODING")]
    pub compression: Option<CompressionArg>,
    /// How long a request may take, in seconds [default: OTEL_EXPORTER_OTLP_TIMEOUT, or 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// How long a request may be before it is compressed, for example 1M; a longer profile is sent in several
    /// [default: 20M, or 4M with gRPC and Pyroscope]
    #[arg(long, value_name = "SIZE", value_parser = request_limit)]
    pub request_limit: Option<u64>,
    /// How long to try again, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub retry_for: f64,
    /// Keep profiles in this folder until the server has them
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// How much the spool may hold, for example 64M; beyond, the oldest profiles are dropped
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub spool_limit: u64,
    /// Send what the spool holds, and no recording
    #[arg(long, requires = "spool", conflicts_with = "input")]
    pub spool_only: bool,
    /// Print a report as JSON (docs/scripts.md)
    #[arg(long)]
    pub json: bool,
    // The last one: its heading is for all options behind it.
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// How OTLP is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolArg {
    /// HTTP with protobuf, usually at port 4318
    #[value(alias = "http/protobuf")]
    Http,
    /// gRPC, usually at port 4317
    Grpc,
}

/// Whether requests are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressionArg {
    /// Compressed
    Gzip,
    /// As they are
    None,
}

/// A number of seconds, at most a year.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match (0.0..=31_536_000.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("not between 0 and a year".into()),
    }
}

/// Bytes, with K, M, G or T for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err("not a size such as 64M".into()),
    };
    let number: u64 = number.parse().map_err(|_| "not a size such as 64M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large".into())
}

/// A length of requests: a shorter one would make thousands of them out of any recording.
fn request_limit(text: &str) -> Result<u64, String> {
    match size(text)? {
        limit if limit < 16 << 10 => Err("less than 16K".into()),
        limit => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("64M", 64 << 20), ("1g", 1 << 30), ("5KiB", 5 << 10)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "M", "1.5M", "-1", "1X", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(request_limit("16K"), Ok(16 << 10));
        assert!(request_limit("15K").is_err() && request_limit("0").is_err());
    }

    #[test]
    fn seconds_are_bounded() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for wrong in ["", "-1", "nan", "inf", "1e9", "10s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
