//! Certificates.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, ClientConfig, RootCertStore};

use crate::destination::Protocol;

/// Whose certificates are believed, and which one is shown.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TlsSettings {
    /// A file in PEM with the certificates of authorities; the system's if there is none.
    pub authorities: Option<PathBuf>,
    /// Files in PEM with the own certificate and its key, for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is no PEM.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// The system has no certificates of authorities.
    #[error(
        "the system has no certificates of authorities: install the package ca-certificates, or name a file"
    )]
    NoAuthorities,
    /// The key does not fit the certificate, or is of an unknown kind.
    #[error("the own certificate cannot be used: {0}")]
    Identity(rustls::Error),
    /// The library refuses to work.
    #[error("TLS: {0}")]
    Library(rustls::Error),
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let error = |cause: String| TlsError::File { path: path.to_owned(), cause };
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|cause| error(cause.to_string()))?.collect();
    let all = all.map_err(|cause| error(cause.to_string()))?;
    if all.is_empty() { Err(error("no certificate in it".into())) } else { Ok(all) }
}

impl TlsSettings {
    pub(crate) fn config(&self, protocol: Protocol) -> Result<Arc<ClientConfig>, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|cause| TlsError::File {
                        path: path.clone(),
                        cause: cause.to_string(),
                    })?;
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    return Err(TlsError::NoAuthorities);
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|cause| TlsError::File {
                    path: key.clone(),
                    cause: cause.to_string(),
                })?;
                builder.with_client_auth_cert(chain, key).map_err(TlsError::Identity)?
            }
        };
        config.alpn_protocols = match protocol {
            Protocol::OtlpGrpc => vec![b"h2".to_vec()],
            Protocol::OtlpHttp | Protocol::Pyroscope => vec![b"http/1.1".to_vec()],
        };
        Ok(Arc::new(config))
    }
}

/// What is wrong with certificates, if an error says so: of the server's, or in its opinion of ours.
pub(crate) fn certificate_cause(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(inner) = inner
            && let Some(cause) = certificate_cause(inner)
        {
            return Some(cause);
        }
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return is_of_certificates(error).then(|| error.to_string());
        }
        next = error.source();
    }
    None
}

fn is_of_certificates(error: &rustls::Error) -> bool {
    use AlertDescription as Alert;
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => true,
        rustls::Error::AlertReceived(alert) => matches!(
            alert,
            Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::CertificateRequired
                | Alert::UnknownCA
                | Alert::AccessDenied
                | Alert::HandshakeFailure
        ),
        _ => false,
    }
}
