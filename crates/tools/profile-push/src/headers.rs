//! Headers that the user adds to requests.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Headers that are sent with each profile: credentials, tenants. Their values are never printed.
#[derive(Clone, Debug, Default)]
pub struct Headers(HeaderMap);

/// Why a header cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {name:?}: {cause}")]
pub struct HeaderError {
    name: String,
    cause: &'static str,
}

/// A key and a value of OpenTelemetry's lists: `key=value`, with `%XX` for special characters.
#[must_use]
pub fn decode_pair(pair: &str) -> Option<(String, String)> {
    let (key, value) = pair.split_once('=')?;
    let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8_lossy();
    Some((key.trim().to_owned(), value.into_owned()))
}

/// What the protocols set themselves.
const RESERVED: [&str; 9] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Headers {
    /// Sets a header, in place of another value.
    ///
    /// # Errors
    /// If the name or the value cannot be in a header, or the protocol sets it itself.
    pub fn set(&mut self, name: &str, value: &[u8]) -> Result<(), HeaderError> {
        let error = |cause| HeaderError { name: name.to_owned(), cause };
        let parsed = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| error("no valid name of a header"))?;
        if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("grpc-") {
            return Err(error("the protocol sets this header itself"));
        }
        let mut value = HeaderValue::from_bytes(value.trim_ascii())
            .map_err(|_| error("the value has characters that a header cannot have"))?;
        value.set_sensitive(true);
        self.0.insert(parsed, value);
        Ok(())
    }

    /// Sets headers as OTLP's variables have them: `name=value,name=value`, with `%XX` for special characters.
    ///
    /// # Errors
    /// As [`set`](Self::set), and if there is no `=`.
    pub fn set_list(&mut self, list: &str) -> Result<(), HeaderError> {
        for pair in list.split(',').filter(|pair| !pair.trim().is_empty()) {
            let Some((name, value)) = decode_pair(pair) else {
                // It may be a part of a secret.
                return Err(HeaderError { name: String::new(), cause: "no `=` behind a name" });
            };
            self.set(&name, value.as_bytes())?;
        }
        Ok(())
    }

    #[cfg(any(feature = "client", test))]
    pub(crate) fn as_map(&self) -> &HeaderMap {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_and_their_values_hidden() {
        let mut headers = Headers::default();
        headers.set("Authorization", b" Bearer secret\n").expect("a header");
        headers.set_list("api-key=a%2Cb, x-tenant = 7,,").expect("headers");
        headers.set_list("x-tenant=8").expect("headers");
        let value = |name: &str| headers.as_map().get(name).map(HeaderValue::as_bytes);
        assert_eq!(value("authorization"), Some(&b"Bearer secret"[..]));
        assert_eq!(value("api-key"), Some(&b"a,b"[..]));
        assert_eq!(value("x-tenant"), Some(&b"8"[..]));
        assert!(!format!("{headers:?}").contains("secret"), "{headers:?}");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let mut headers = Headers::default();
        for (name, value) in
            [("a b", "x"), ("", "x"), ("x", "a\nb"), ("Content-Type", "x"), ("grpc-timeout", "1S")]
        {
            assert!(headers.set(name, value.as_bytes()).is_err(), "{name}");
        }
        let error = headers.set_list("secret").expect_err("no =").to_string();
        assert!(!error.contains("secret"), "{error}");
        assert!(headers.set_list("a=x%0Ay").is_err());
    }
}
