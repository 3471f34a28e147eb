//! A client of node's inspector: evaluates JavaScript in a process.
//!
//! An inspector speaks HTTP, by which its targets are listed, and Chrome's DevTools protocol in WebSocket frames. The process may not be node, and may answer
//! anything: each connection has a deadline and a limit ([`connection`]), no redirect is followed, and of the answers only the id of a target, a string and
//! the text of an error are used.

mod connection;
mod http;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use serde_json::{Value, json};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use crate::record::agent::{Failure, Wait, plain};
use connection::{Connection, failure};
use http::no_answer;

/// The longest message that is received.
const LONGEST_MESSAGE: usize = 64 << 10;

/// What RFC 6455 requires of the head. The key keeps caches from answering; there is none here.
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: aml0c2NyaWJlIHJlY29yZA==\r\n";

/// A connection to the main thread of a process.
#[derive(Debug)]
pub struct Inspector<'w> {
    socket: WebSocket<Connection<'w>>,
    /// The number of the last request.
    last: u64,
}

impl<'w> Inspector<'w> {
    /// Connects to the inspector that listens there.
    pub fn connect(address: SocketAddr, wait: &'w Wait<'w>) -> Result<Self, Failure> {
        let id = target(&mut Connection::to(address, wait)?)?;
        let mut connection = Connection::to(address, wait)?;
        if http::get(&mut connection, &format!("/{id}"), UPGRADE)?.status != 101 {
            return Err(no_answer());
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(4 << 10)
            .write_buffer_size(0)
            .max_message_size(Some(LONGEST_MESSAGE))
            .max_frame_size(Some(LONGEST_MESSAGE));
        let socket = WebSocket::from_raw_socket(connection, Role::Client, Some(config));
        Ok(Self { socket, last: 0 })
    }

    /// Evaluates an expression, in which `require` is known. Returns its value if it is a string, and `None` if it has none.
    pub fn evaluate(&mut self, expression: &str) -> Result<Option<String>, Failure> {
        self.last += 1;
        let parameters =
            json!({ "expression": expression, "includeCommandLineAPI": true, "silent": true });
        let request =
            json!({ "id": self.last, "method": "Runtime.evaluate", "params": parameters });
        self.socket.send(Message::text(request.to_string())).map_err(cause)?;
        loop {
            let message = match self.socket.read().map_err(cause)? {
                Message::Text(text) => text,
                Message::Close(_) => return Err(closed()),
                _ => continue,
            };
            let answer: Value = serde_json::from_str(&message).map_err(|_| no_answer())?;
            // Others are events.
            if answer.get("id").and_then(Value::as_u64) == Some(self.last) {
                return value(&answer);
            }
        }
    }

    /// Has the process close its inspector, if that was opened without a connection. The answer may be lost with the connection.
    pub fn close_it(&mut self) -> Result<(), Failure> {
        match self.evaluate("require('inspector').close()") {
            Err(failure @ (Failure::NotAnswering | Failure::Stopped)) => Err(failure),
            _ => Ok(()),
        }
    }
}

/// The id of the only target of an inspector.
fn target(connection: &mut Connection<'_>) -> Result<String, Failure> {
    let head = http::get(connection, "/json/list", "")?;
    if head.status != 200 {
        return Err(no_answer());
    }
    let body = http::body(connection, head)?;
    let targets: Value = serde_json::from_slice(&body).map_err(|_| no_answer())?;
    let id = targets.get(0).and_then(|target| target.get("id")?.as_str());
    let is_id = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    id.filter(is_id).map(str::to_owned).ok_or_else(no_answer)
}

/// The value in an answer.
fn value(answer: &Value) -> Result<Option<String>, Failure> {
    let refused = |text: Option<&Value>| {
        let text = text.and_then(Value::as_str).unwrap_or("it failed");
        Err(Failure::Refused(first_line(text)))
    };
    if let Some(error) = answer.get("error") {
        return refused(error.get("message"));
    }
    let result = answer.get("result").ok_or_else(no_answer)?;
    if let Some(thrown) = result.get("exceptionDetails") {
        let exception = thrown.get("exception").and_then(|exception| exception.get("description"));
        return refused(exception.or_else(|| thrown.get("text")));
    }
    let value = result.get("result").and_then(|value| value.get("value")?.as_str());
    Ok(value.map(first_line))
}

/// The first line of a text of the process.
fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default())
}

fn closed() -> Failure {
    Failure::Refused("it closed the connection".into())
}

/// The cause of an error of the protocol.
fn cause(error: tungstenite::Error) -> Failure {
    match error {
        tungstenite::Error::Io(error) => failure(error),
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => closed(),
        tungstenite::Error::Capacity(_) => Failure::Refused(format!(
            "it sends a message of more than {} KiB",
            LONGEST_MESSAGE >> 10
        )),
        _ => no_answer(),
    }
}
