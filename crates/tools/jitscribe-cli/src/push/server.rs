//! Which server a profile is sent to, and how: by the options, and the variables of OTLP.

use std::fs;
use std::time::Duration;

use profile_push::{Destination, Environment, Headers, HttpSettings, Protocol};

use super::args::{Args, CompressionArg, ProtocolArg};
use crate::{Error, Result};

/// A server.
#[derive(Debug)]
pub struct Server {
    /// Where it is.
    pub destination: Destination,
    /// How requests are made.
    pub settings: HttpSettings,
    /// What is said of each resource, beside what the recording says.
    pub resource: Vec<(String, String)>,
}

fn usage(error: impl ToString) -> Error {
    Error::Usage(error.to_string())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Server {
    /// Which server the options name.
    pub fn of(args: &Args) -> Result<Self> {
        let (destination, mut settings) = match &args.pyroscope {
            // The variables are those of exporters of OTLP.
            Some(url) => (Destination::pyroscope(url).map_err(usage)?, HttpSettings::default()),
            None => {
                let mut environment = Environment::read(variable).map_err(usage)?;
                match args.protocol {
                    Some(ProtocolArg::Http) => environment.protocol = Protocol::OtlpHttp,
                    Some(ProtocolArg::Grpc) => environment.protocol = Protocol::OtlpGrpc,
                    None => {}
                }
                let url = args.otlp.as_ref().and_then(Option::as_deref);
                (environment.destination(url).map_err(usage)?, environment.settings)
            }
        };
        for header in &args.headers {
            add_header(&mut settings.headers, header)?;
        }
        if let Some(timeout) = args.timeout {
            settings.timeout = Duration::from_secs_f64(timeout);
        }
        match args.compression {
            Some(CompressionArg::Gzip) => settings.gzip = true,
            Some(CompressionArg::None) => settings.gzip = false,
            None => {}
        }
        if args.ca.is_some() {
            settings.tls.authorities.clone_from(&args.ca);
        }
        if let (Some(certificate), Some(key)) = (&args.client_cert, &args.client_key) {
            settings.tls.identity = Some((certificate.clone(), key.clone()));
        }
        Ok(Self { destination, settings, resource: resource(args)? })
    }

    /// The labels of a series for Pyroscope.
    pub fn labels(&self, process: &str) -> Vec<(String, String)> {
        let mut labels: Vec<_> =
            self.resource.iter().map(|(key, value)| (label_name(key), value.clone())).collect();
        if !labels.iter().any(|(name, _)| name == "service_name") {
            labels.push(("service_name".into(), process.to_owned()));
        }
        labels
    }
}

/// Labels have letters, digits and `_` in their names.
fn label_name(key: &str) -> String {
    key.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// Adds `NAME=VALUE`, `NAME: VALUE`, or `NAME=@FILE`.
fn add_header(headers: &mut Headers, header: &str) -> Result<()> {
    let (name, value) = header
        .split_once(['=', ':'])
        .ok_or_else(|| Error::Usage("--header needs NAME=VALUE".into()))?;
    match value.strip_prefix('@') {
        Some(path) => {
            let value = fs::read(path).map_err(Error::file(path))?;
            headers.set(name, &value).map_err(usage)
        }
        None => headers.set(name, value.as_bytes()).map_err(usage),
    }
}

/// `OTEL_RESOURCE_ATTRIBUTES`, and the name of the service.
fn resource(args: &Args) -> Result<Vec<(String, String)>> {
    let mut resource = Vec::new();
    let listed = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for pair in listed.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let attribute = profile_push::decode_pair(pair).ok_or_else(|| {
            Error::Usage(format!("OTEL_RESOURCE_ATTRIBUTES: {pair:?} has no `=`"))
        })?;
        resource.push(attribute);
    }
    let service = args.service.clone().or_else(|| variable("OTEL_SERVICE_NAME"));
    if let Some(service) = service.filter(|name| !name.is_empty()) {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".into(), service));
    }
    Ok(resource)
}
