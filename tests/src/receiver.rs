//! A receiver of profiles made of OpenTelemetry's official stubs, in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::tool::{cache, crate_dir, run, tool};

fn python() -> Command {
    let python = cache().join("otlp-1.45.2/bin/python3");
    assert!(python.exists(), "{} is not there: run scripts/setup.sh live", python.display());
    tool(python)
}

fn script(name: &str) -> PathBuf {
    crate_dir().join("src/receiver").join(name)
}

/// A receiver on this machine; it ends when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    child: Child,
    folder: PathBuf,
    scheme: &'static str,
    /// The port of HTTP.
    pub http_port: u64,
    /// The port of gRPC.
    pub grpc_port: u64,
}

impl Receiver {
    /// One that keeps what it accepts in `folder`. `receiver.py` describes the settings.
    pub fn start(folder: &Path, settings: &Value) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let mut command = python();
        command.arg(script("receiver.py")).arg(folder).arg(settings.to_string());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let ports: Value = serde_json::from_str(&line).expect("ports");
        let port = |name: &str| ports[name].as_u64().expect("a port");
        let scheme = if settings["tls"].is_null() { "http" } else { "https" };
        let (http_port, grpc_port) = (port("http"), port("grpc"));
        Self { child, folder: folder.to_owned(), scheme, http_port, grpc_port }
    }

    /// One that treats its first requests like this.
    pub fn with_faults(folder: &Path, faults: &[Value]) -> Self {
        Self::start(folder, &json!({ "faults": faults }))
    }

    /// Its URL for HTTP.
    pub fn http(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.http_port)
    }

    /// Its URL for gRPC.
    pub fn grpc(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.grpc_port)
    }

    /// What it accepted, in order.
    pub fn files(&self) -> Vec<PathBuf> {
        files(&self.folder)
    }

    /// The headers of requests whose content was read, in order.
    pub fn headers(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join("headers")).expect("headers");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// What receivers accepted into a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "otlp" || it == "pyroscope"));
    files.sort();
    files
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the official stubs read in files: IDs, stacks and resources of each.
pub fn read(files: &[PathBuf]) -> Vec<Value> {
    let mut command = python();
    command.arg(script("read.py")).args(files);
    serde_json::from_str(&run(&mut command).stdout).expect("JSON")
}
