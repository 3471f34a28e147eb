//! Where profiles are sent to.

use std::fmt;

use http::Uri;
use http::uri::{PathAndQuery, Scheme};

use crate::profile_body::BodyKind;

/// How profiles are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// OTLP over HTTP, with protobuf.
    OtlpHttp,
    /// OTLP over gRPC.
    OtlpGrpc,
    /// Pyroscope's `push.v1.PusherService`, over HTTP, as its own clients send.
    Pyroscope,
}

impl Protocol {
    /// What is sent.
    #[must_use]
    pub const fn body_kind(self) -> BodyKind {
        match self {
            Self::OtlpHttp | Self::OtlpGrpc => BodyKind::Otlp,
            Self::Pyroscope => BodyKind::Pyroscope,
        }
    }

    /// How many bytes of a profile servers take at once by default, before it is compressed: gRPC's limit of a message, that of OpenTelemetry's collector, and Pyroscope's
    /// `max_profile_size_bytes`.
    #[must_use]
    pub const fn usual_limit(self) -> u64 {
        match self {
            Self::OtlpHttp => 20 << 20,
            Self::OtlpGrpc | Self::Pyroscope => 4 << 20,
        }
    }
}

const OTLP_PATH: &str = "/v1development/profiles";
const GRPC_PATH: &str =
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
const PYROSCOPE_PATH: &str = "/push.v1.PusherService/Push";

/// A server, and how to speak to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    protocol: Protocol,
    is_tls: bool,
    host: String,
    port: u16,
    uri: Uri,
}

/// Why a URL names no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url:?}: {cause}")]
pub struct DestinationError {
    url: String,
    cause: &'static str,
}

impl Destination {
    /// A server of OTLP over HTTP. A URL without a path gets the path that OTLP names: `http://localhost:4318`.
    ///
    /// # Errors
    /// If it is no URL with `http` or `https`.
    pub fn otlp_http(url: &str) -> Result<Self, DestinationError> {
        Self::parse(Protocol::OtlpHttp, url, |path| match path {
            "" => OTLP_PATH.to_owned(),
            path => path.to_owned(),
        })
    }

    /// A server of OTLP over HTTP, below whose URL the path of OTLP is: as the variable `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    ///
    /// # Errors
    /// If it is no URL with `http` or `https`.
    pub fn otlp_http_below(url: &str) -> Result<Self, DestinationError> {
        Self::parse(Protocol::OtlpHttp, url, |path| format!("{path}{OTLP_PATH}"))
    }

    /// A server of OTLP over gRPC: `http://localhost:4317`, or `https`. Without a scheme, `is_insecure` says that there is no TLS.
    ///
    /// # Errors
    /// If it is no URL, or has a path.
    pub fn otlp_grpc(url: &str, is_insecure: bool) -> Result<Self, DestinationError> {
        let scheme = if is_insecure { "http" } else { "https" };
        let with_scheme =
            if url.contains("://") { url.to_owned() } else { format!("{scheme}://{url}") };
        let mut has_path = false;
        let destination = Self::parse(Protocol::OtlpGrpc, &with_scheme, |path| {
            has_path = !path.is_empty();
            GRPC_PATH.to_owned()
        })?;
        if has_path {
            return Err(error(
                url,
                "gRPC has no path in its URL; is this a URL for OTLP over HTTP?",
            ));
        }
        Ok(destination)
    }

    /// A server of Pyroscope: `http://localhost:4040`, or a URL below which it is.
    ///
    /// # Errors
    /// If it is no URL with `http` or `https`.
    pub fn pyroscope(url: &str) -> Result<Self, DestinationError> {
        Self::parse(Protocol::Pyroscope, url, |path| format!("{path}{PYROSCOPE_PATH}"))
    }

    fn parse(
        protocol: Protocol,
        url: &str,
        path: impl FnOnce(&str) -> String,
    ) -> Result<Self, DestinationError> {
        if !url.contains("://") {
            return Err(error(url, "no URL; begin it with http:// or https://"));
        }
        let uri: Uri = url.parse().map_err(|_| error(url, "no valid URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(error(url, "no URL for this; begin it with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| error(url, "the URL has no host"))?;
        if authority.as_str().contains('@') {
            return Err(error(url, "credentials in a URL are not sent; pass a header instead"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(error(url, "the URL has no host"));
        }
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let wanted = path(uri.path().trim_end_matches('/'));
        let wanted = match uri.query() {
            Some(query) => format!("{wanted}?{query}"),
            None => wanted,
        };
        let path: PathAndQuery = wanted.parse().map_err(|_| error(url, "no valid path"))?;
        let scheme = if is_tls { Scheme::HTTPS } else { Scheme::HTTP };
        let uri = Uri::builder().scheme(scheme).authority(authority.clone()).path_and_query(path);
        let uri = uri.build().map_err(|_| error(url, "no valid URL"))?;
        Ok(Self { protocol, is_tls, host, port, uri })
    }

    /// How profiles are sent.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    #[cfg(any(feature = "client", test))]
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::OtlpGrpc => {
                let scheme = if self.is_tls { "https" } else { "http" };
                write!(f, "{scheme}://{} (gRPC)", self.uri.authority().map_or("", |it| it.as_str()))
            }
            Protocol::OtlpHttp | Protocol::Pyroscope => self.uri.fmt(f),
        }
    }
}

fn error(url: &str, cause: &'static str) -> DestinationError {
    DestinationError { url: url.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_get_the_paths_of_their_protocols() {
        let http = |url| Destination::otlp_http(url).expect("a URL").to_string();
        assert_eq!(http("http://localhost:4318"), "http://localhost:4318/v1development/profiles");
        assert_eq!(http("http://localhost:4318/"), "http://localhost:4318/v1development/profiles");
        assert_eq!(http("https://x/otlp?a=b"), "https://x/otlp?a=b");
        let below = Destination::otlp_http_below("https://x/otlp/").expect("a URL");
        assert_eq!(below.to_string(), "https://x/otlp/v1development/profiles");
        assert_eq!((below.is_tls(), below.host(), below.port()), (true, "x", 443));
        let pyroscope = Destination::pyroscope("http://[::1]:4040/p").expect("a URL");
        assert_eq!(pyroscope.to_string(), "http://[::1]:4040/p/push.v1.PusherService/Push");
        assert_eq!((pyroscope.host(), pyroscope.port()), ("::1", 4040));
        let grpc = |url, is_insecure| Destination::otlp_grpc(url, is_insecure).expect("a URL");
        assert_eq!(grpc("localhost:4317", true).to_string(), "http://localhost:4317 (gRPC)");
        assert!(grpc("localhost:4317", false).is_tls());
        assert!(!grpc("http://localhost:4317", false).is_tls());
        assert_eq!(grpc("http://localhost:4317/", false).uri().path(), GRPC_PATH);
    }

    #[test]
    fn what_names_no_server_is_refused() {
        for (url, cause) in [
            ("localhost:4318", "begin it with"),
            ("", "begin it with"),
            ("ftp://x", "begin it with"),
            ("http://", "valid"),
            ("http://u:p@x", "header"),
            ("http://x y", "valid"),
        ] {
            let error = Destination::otlp_http(url).expect_err(url).to_string();
            assert!(error.contains(cause), "{error}");
        }
        assert!(Destination::otlp_grpc("http://x/v1development/profiles", false).is_err());
    }
}
