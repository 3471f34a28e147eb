//! Sends by HTTP/1.1, and by HTTP/2 for gRPC.
//!
//! Each profile has a connection of its own: one is sent every few seconds at most, and a server that restarts leaves no stale connection.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::{HeaderMap, HeaderValue, header};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::answer::{Answer, Unreachable};
use crate::destination::{Destination, Protocol};
use crate::headers::Headers;
use crate::profile_body::{ProfileBody, unpack};
use crate::tls::{TlsError, TlsSettings, certificate_cause};
use crate::transport::Transport;

/// How requests are made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpSettings {
    /// How long a request may take, with its answer. The default is 10 s.
    pub timeout: Duration,
    /// Whether bodies are compressed. They are by default.
    pub gzip: bool,
    /// More headers.
    pub headers: Headers,
    /// Certificates.
    pub tls: TlsSettings,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            gzip: true,
            headers: Headers::default(),
            tls: TlsSettings::default(),
        }
    }
}

/// A client of HTTP.
#[derive(Debug)]
pub struct HttpClient {
    destination: Destination,
    settings: HttpSettings,
    tls: Option<Arc<ClientConfig>>,
}

const USER_AGENT: &str = concat!("jitscribe-profile-push/", env!("CARGO_PKG_VERSION"));

/// The longest answer that is read.
const LONGEST_ANSWER: usize = 1 << 20;

impl HttpClient {
    /// A client of this server. Nothing is connected yet.
    ///
    /// # Errors
    /// If certificates are needed and cannot be read.
    pub fn new(destination: Destination, settings: HttpSettings) -> Result<Self, TlsError> {
        let protocol = destination.protocol();
        let tls = match destination.is_tls() {
            true => Some(settings.tls.config(protocol)?),
            false => None,
        };
        Ok(Self { destination, settings, tls })
    }

    fn request(&self, body: &ProfileBody) -> Result<Request<Full<Bytes>>, Unreachable> {
        let is_grpc = self.destination.protocol() == Protocol::OtlpGrpc;
        let mut content = match self.settings.gzip {
            true => body.gzipped().to_vec(),
            false => unpack(body.gzipped())
                .map_err(|error| Unreachable::Unpack { cause: error.to_string() })?,
        };
        let mut headers = self.settings.headers.as_map().clone();
        let mut set = |name: &'static str, value: &'static str| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        match self.destination.protocol() {
            Protocol::OtlpHttp => set("content-type", "application/x-protobuf"),
            Protocol::OtlpGrpc => set("content-type", "application/grpc"),
            Protocol::Pyroscope => set("content-type", "application/proto"),
        }
        if is_grpc {
            content = frame(self.settings.gzip, &content)?;
            set("te", "trailers");
            if self.settings.gzip {
                set("grpc-encoding", "gzip");
            }
            headers.insert("grpc-timeout", grpc_timeout(self.settings.timeout));
        } else if self.settings.gzip {
            set("content-encoding", "gzip");
        }
        if !headers.contains_key(header::USER_AGENT) {
            headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        }
        let uri = self.destination.uri();
        let mut request = Request::new(Full::new(Bytes::from(content)));
        *request.method_mut() = hyper::Method::POST;
        if is_grpc {
            *request.uri_mut() = uri.clone();
        } else {
            // In HTTP/1.1 the host is a header.
            let path = uri.path_and_query().cloned();
            *request.uri_mut() = path.map(hyper::Uri::from).unwrap_or_default();
            let host = uri.authority().map_or("", |authority| authority.as_str());
            if let Ok(host) = HeaderValue::from_str(host) {
                headers.insert(header::HOST, host);
            }
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        *request.headers_mut() = headers;
        Ok(request)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, Unreachable> {
        let (host, port) = (self.destination.host(), self.destination.port());
        let stream = TcpStream::connect((host, port)).await.map_err(|error| {
            Unreachable::Connect { host: host.to_owned(), port, cause: error.to_string() }
        })?;
        // Latency does not matter, and a failure is none.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.speak(stream, request).await };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| {
            Unreachable::Certificate { host: host.to_owned(), cause: error.to_string() }
        })?;
        let connected = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
        let stream = connected.map_err(|error| self.broken(&error))?;
        self.speak(stream, request).await
    }

    async fn speak<Stream>(
        &self,
        stream: Stream,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Unreachable>
    where
        Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = TokioIo::new(stream);
        let broken = |error: hyper::Error| self.broken(&error);
        if self.destination.protocol() == Protocol::OtlpGrpc {
            let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
            let (mut sender, connection) = handshake.await.map_err(broken)?;
            run(connection);
            self.receive(sender.send_request(request).await.map_err(broken)?).await
        } else {
            let handshake = hyper::client::conn::http1::handshake(stream);
            let (mut sender, connection) = handshake.await.map_err(broken)?;
            run(connection);
            self.receive(sender.send_request(request).await.map_err(broken)?).await
        }
    }

    async fn receive(&self, response: Response<Incoming>) -> Result<Answer, Unreachable> {
        let (head, mut body) = response.into_parts();
        let mut answer = Answer { status: head.status.as_u16(), ..Answer::default() };
        take_headers(&mut answer, &head.headers);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            if let Some(trailers) = frame.trailers_ref() {
                take_headers(&mut answer, trailers);
            }
            if let Ok(data) = frame.into_data() {
                let space = LONGEST_ANSWER.saturating_sub(answer.content.len());
                answer.content.extend(data.get(..space.min(data.len())).unwrap_or_default());
                if data.len() > space {
                    break;
                }
            }
        }
        Ok(answer)
    }

    fn broken(&self, error: &(dyn StdError + 'static)) -> Unreachable {
        if let Some(cause) = certificate_cause(error) {
            return Unreachable::Certificate { host: self.destination.host().to_owned(), cause };
        }
        let mut cause = error.to_string();
        let mut next = error.source();
        while let Some(source) = next {
            let text = source.to_string();
            if !cause.contains(&text) {
                cause = format!("{cause}: {text}");
            }
            next = source.source();
        }
        Unreachable::Broken { cause }
    }
}

/// Drives a connection. It ends with the runtime; its errors are those of the request.
fn run(connection: impl Future + Send + 'static) {
    tokio::spawn(async move {
        connection.await;
    });
}

fn take_headers(answer: &mut Answer, headers: &HeaderMap) {
    for (name, value) in headers {
        answer.headers.push((name.as_str().to_owned(), value.as_bytes().to_vec()));
    }
}

/// A message of gRPC: whether it is compressed, its length, its content.
fn frame(is_compressed: bool, content: &[u8]) -> Result<Vec<u8>, Unreachable> {
    let length = u32::try_from(content.len())
        .map_err(|_| Unreachable::Unpack { cause: "longer than 4 GiB".into() })?;
    let mut framed = Vec::with_capacity(content.len().saturating_add(5));
    framed.push(u8::from(is_compressed));
    framed.extend(length.to_be_bytes());
    framed.extend_from_slice(content);
    Ok(framed)
}

/// At most eight digits, and a unit.
fn grpc_timeout(timeout: Duration) -> HeaderValue {
    let milliseconds = timeout.as_millis();
    let text = match milliseconds {
        0..=99_999_999 => format!("{milliseconds}m"),
        _ => format!("{}S", timeout.as_secs().min(99_999_999)),
    };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("10S"))
}

impl Transport for HttpClient {
    fn protocol(&self) -> Protocol {
        self.destination.protocol()
    }

    fn send(&mut self, body: &ProfileBody) -> Result<Answer, Unreachable> {
        let request = self.request(body)?;
        let broken = |error: std::io::Error| Unreachable::Broken { cause: error.to_string() };
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().build().map_err(broken)?;
        let timeout = self.settings.timeout;
        let answer =
            runtime.block_on(async { tokio::time::timeout(timeout, self.exchange(request)).await });
        // A name that is being looked up has no deadline of its own.
        runtime.shutdown_background();
        answer.unwrap_or(Err(Unreachable::Timeout { limit: timeout }))
    }
}
