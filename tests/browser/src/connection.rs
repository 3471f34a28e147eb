//! Messages to and from the browser: JSON, each ended by a NUL.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

use serde_json::{Value, json};

#[derive(Debug)]
pub struct Connection {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last: u64,
    /// Events that came while an answer was waited for.
    events: Vec<Value>,
}

impl Connection {
    pub fn new(to: ChildStdin, from: ChildStdout) -> Self {
        Self { to, from: BufReader::new(from), last: 0, events: Vec::new() }
    }

    /// Calls a method, and waits for what it returns.
    pub fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let id = self.send(session, method, params);
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.keep(message);
        }
    }

    /// The events so far.
    pub fn events(&self) -> &[Value] {
        &self.events
    }

    pub fn forget_events(&mut self) {
        self.events.clear();
    }

    pub fn close(&mut self) {
        let message = json!({"id": 0, "method": "Browser.close"});
        // It may have ended already.
        let _sent = write!(self.to, "{message}\0");
    }

    fn send(&mut self, session: Option<&str>, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method});
        if !params.is_null() {
            message["params"] = params.clone();
        }
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        write!(self.to, "{message}\0").expect("a running browser");
        self.last
    }

    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("a running browser");
        assert_eq!(
            bytes.pop(),
            Some(0),
            "the browser ended. Is chromium installed (scripts/setup.sh)?"
        );
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn keep(&mut self, event: Value) {
        // A page with an open dialog would answer no more.
        if event["method"] == "Page.javascriptDialogOpening" {
            let session = event["sessionId"].as_str().map(str::to_owned);
            self.send(session.as_deref(), "Page.handleJavaScriptDialog", &json!({"accept": false}));
        }
        if !event["method"].is_null() {
            self.events.push(event);
        }
    }
}
