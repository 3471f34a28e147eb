//! The variables that exporters of OTLP read.

use std::path::PathBuf;
use std::time::Duration;

use crate::destination::{Destination, DestinationError, Protocol};
use crate::headers::{HeaderError, Headers};
use crate::http_client::HttpSettings;

/// What OTLP's variables say. For each, the one for profiles precedes the general one, and an empty one is as one that is not set:
/// `OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`, and so on for `PROTOCOL`, `HEADERS`, `TIMEOUT` (milliseconds), `COMPRESSION`, `CERTIFICATE`,
/// `CLIENT_CERTIFICATE`, `CLIENT_KEY` and `INSECURE`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// How to send: `grpc` or `http/protobuf`, which is the default.
    pub protocol: Protocol,
    /// Whether a server without a scheme in its URL has no TLS.
    pub is_insecure: bool,
    /// How requests are made.
    pub settings: HttpSettings,
    /// The URL, and whether it is for profiles alone.
    endpoint: Option<(String, bool)>,
}

/// Why a variable cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A value is none of those that exist.
    #[error("{name}={value:?}: {expected}")]
    Value {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// Headers cannot be sent.
    #[error("{name}: {cause}")]
    Headers {
        /// The variable.
        name: String,
        /// Why.
        cause: HeaderError,
    },
    /// The own certificate or its key is missing.
    #[error("the client's certificate and its key are needed together")]
    Identity,
}

struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    /// The name and the value of the variable that is set.
    fn get(&self, suffix: &str) -> Option<(String, String)> {
        let names = ["OTEL_EXPORTER_OTLP_PROFILES_", "OTEL_EXPORTER_OTLP_"];
        let mut all = names.into_iter().map(|prefix| format!("{prefix}{suffix}"));
        all.find_map(|name| {
            let value = self.0(&name)?;
            let value = value.trim();
            (!value.is_empty()).then(|| (name, value.to_owned()))
        })
    }

    fn path(&self, suffix: &str) -> Option<PathBuf> {
        self.get(suffix).map(|(_, value)| value.into())
    }
}

impl Environment {
    /// Reads the variables.
    ///
    /// # Errors
    /// If one has a value that it cannot have.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let variables = Variables(get);
        let wrong = |(name, value), expected| EnvironmentError::Value { name, value, expected };
        let mut settings = HttpSettings::default();
        let protocol = match variables.get("PROTOCOL") {
            None => Protocol::OtlpHttp,
            Some((_, value)) if value == "http/protobuf" => Protocol::OtlpHttp,
            Some((_, value)) if value == "grpc" => Protocol::OtlpGrpc,
            Some(other) => return Err(wrong(other, "choose grpc or http/protobuf")),
        };
        if let Some((name, value)) = variables.get("HEADERS") {
            let set = settings.headers.set_list(&value);
            set.map_err(|cause| EnvironmentError::Headers { name, cause })?;
        }
        if let Some(timeout) = variables.get("TIMEOUT") {
            let milliseconds = timeout.1.parse().ok().filter(|milliseconds| *milliseconds > 0);
            let milliseconds =
                milliseconds.ok_or_else(|| wrong(timeout, "not a number of milliseconds"))?;
            settings.timeout = Duration::from_millis(milliseconds);
        }
        match variables.get("COMPRESSION") {
            None => {}
            Some((_, value)) if value == "gzip" => settings.gzip = true,
            Some((_, value)) if value == "none" => settings.gzip = false,
            Some(other) => return Err(wrong(other, "choose gzip or none")),
        }
        settings.tls.authorities = variables.path("CERTIFICATE");
        settings.tls.identity =
            match (variables.path("CLIENT_CERTIFICATE"), variables.path("CLIENT_KEY")) {
                (Some(certificate), Some(key)) => Some((certificate, key)),
                (None, None) => None,
                _ => return Err(EnvironmentError::Identity),
            };
        let is_insecure =
            variables.get("INSECURE").is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"));
        let endpoint = variables.get("ENDPOINT");
        let endpoint = endpoint.map(|(name, url)| (url, name.contains("PROFILES")));
        Ok(Self { protocol, is_insecure, settings, endpoint })
    }

    /// The server: `url` if there is one, or that of the variables, or else the default of the protocol on this machine.
    ///
    /// # Errors
    /// If the URL names no server.
    pub fn destination(&self, url: Option<&str>) -> Result<Destination, DestinationError> {
        match (self.protocol, url, &self.endpoint) {
            (Protocol::OtlpGrpc, Some(url), _) => Destination::otlp_grpc(url, self.is_insecure),
            (Protocol::OtlpGrpc, None, Some((url, _))) => {
                Destination::otlp_grpc(url, self.is_insecure)
            }
            (Protocol::OtlpGrpc, None, None) => {
                Destination::otlp_grpc("http://localhost:4317", false)
            }
            (_, Some(url), _) => Destination::otlp_http(url),
            (_, None, Some((url, true))) => Destination::otlp_http(url),
            (_, None, Some((url, false))) => Destination::otlp_http_below(url),
            (_, None, None) => Destination::otlp_http("http://localhost:4318"),
        }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            protocol: Protocol::OtlpHttp,
            is_insecure: false,
            settings: HttpSettings { headers: Headers::default(), ..HttpSettings::default() },
            endpoint: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        Environment::read(|name| {
            let pair = pairs.iter().find(|(it, _)| *it == name)?;
            Some(pair.1.to_owned())
        })
    }

    #[test]
    fn variables_for_profiles_precede_general_ones() {
        let destination = |pairs: &[_], url| {
            let environment = read(pairs).expect("variables");
            environment.destination(url).expect("a URL").to_string()
        };
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://x/otlp");
        let own = ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "https://y/as/it/is");
        let path = "/v1development/profiles";
        assert_eq!(destination(&[], None), format!("http://localhost:4318{path}"));
        assert_eq!(destination(&[general], None), format!("https://x/otlp{path}"));
        assert_eq!(destination(&[general, own], None), "https://y/as/it/is");
        assert_eq!(destination(&[general, own], Some("http://z")), format!("http://z{path}"));
        let empty = ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", " ");
        assert_eq!(destination(&[general, empty], None), format!("https://x/otlp{path}"));
        let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        assert_eq!(destination(&[grpc], None), "http://localhost:4317 (gRPC)");
        let bare = ("OTEL_EXPORTER_OTLP_ENDPOINT", "x:4317");
        assert_eq!(destination(&[grpc, bare], None), "https://x:4317 (gRPC)");
        let insecure = ("OTEL_EXPORTER_OTLP_INSECURE", "TRUE");
        assert_eq!(destination(&[grpc, bare, insecure], None), "http://x:4317 (gRPC)");
    }

    #[test]
    fn settings_are_read_and_errors_name_the_variable() {
        let environment = read(&[
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
        ]);
        let settings = environment.expect("variables").settings;
        assert_eq!((settings.timeout, settings.gzip), (Duration::from_millis(1500), false));
        assert_eq!(settings.tls.authorities, Some("/ca.pem".into()));
        assert!(settings.headers.as_map().contains_key("a"));
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "10s"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c"),
        ] {
            let error = read(&[(name, value)]).expect_err(name).to_string();
            assert!(error.starts_with(name), "{error}");
        }
        let alone = read(&[("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key")]);
        assert_eq!(alone.expect_err("no certificate"), EnvironmentError::Identity);
    }
}
