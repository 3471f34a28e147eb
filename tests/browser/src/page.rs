//! A page that is open.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::connection::Connection;

/// A page that is open.
#[derive(Debug)]
pub struct Page<'b> {
    connection: &'b mut Connection,
    session: String,
}

/// What a page did by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The addresses that it requested, after the file itself.
    pub requests: Vec<String>,
    /// The texts of dialogs that it opened.
    pub dialogs: Vec<String>,
    /// The exceptions of its scripts, and what violated its content security policy.
    pub errors: Vec<String>,
}

/// Ctrl, for [`Page::click`].
pub const CTRL: u32 = 2;

impl<'b> Page<'b> {
    pub(crate) fn new(connection: &'b mut Connection, session: String) -> Self {
        connection.forget_events();
        let mut page = Self { connection, session };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            page.call(&format!("{domain}.enable"), &Value::Null);
        }
        page
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.connection.call(Some(&self.session), method, params)
    }

    /// Opens an address, and waits until the page says that it is ready (`<html data-ready>`).
    pub fn navigate(&mut self, url: &str) {
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        self.eval(
            "new Promise((done) => { const look = () => document.documentElement?.dataset.ready ? done() : setTimeout(look, 5); look(); })",
        );
    }

    /// The size of the window.
    pub fn set_size(&mut self, (width, height): (u32, u32)) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        self.settle();
    }

    /// Whether the system prefers dark colours, and whether the page is seen as printed.
    pub fn set_media(&mut self, is_dark: bool, is_print: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let media = if is_print { "print" } else { "" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
        self.settle();
    }

    /// The value of an expression, or of the promise that it is.
    ///
    /// # Panics
    /// If it throws an exception.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &params);
        let exception = &answer["exceptionDetails"];
        assert!(exception.is_null(), "{expression}: {exception}");
        answer["result"]["value"].take()
    }

    /// The processor time of the page's process so far, in seconds.
    pub fn processor_time(&mut self) -> f64 {
        self.call("Performance.enable", &Value::Null);
        let answer = self.call("Performance.getMetrics", &Value::Null);
        let metrics = answer["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
        let time = metrics.iter().find(|metric| metric["name"] == "ProcessTime");
        time.and_then(|metric| metric["value"].as_f64()).unwrap_or_default()
    }

    /// Waits until the page has drawn what it was asked for.
    pub fn settle(&mut self) {
        // Two frames: observers of sizes run between them.
        self.eval("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))), 0))");
    }

    /// Waits until there is an element that the selector finds: code is read when it is first shown.
    pub fn wait_for(&mut self, selector: &str) {
        let selector = json!(selector);
        self.eval(&format!(
            "new Promise((done) => {{ const look = () => document.querySelector({selector}) ? done() : setTimeout(look, 5); look(); }})"
        ));
    }

    /// The text of the first element that the selector finds.
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({})?.innerText", json!(selector)));
        found.as_str().unwrap_or_else(|| panic!("no {selector}")).to_owned()
    }

    /// The middle of the first element that the selector finds.
    pub fn middle(&mut self, selector: &str) -> (f64, f64) {
        let place = self.eval(&format!(
            "(() => {{ const element = document.querySelector({}); element?.scrollIntoView({{block: 'nearest'}});
               const r = element?.getBoundingClientRect(); return r && [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        let at =
            |place_at: usize| place[place_at].as_f64().unwrap_or_else(|| panic!("no {selector}"));
        (at(0), at(1))
    }

    /// Clicks an element.
    pub fn click(&mut self, selector: &str) {
        let at = self.middle(selector);
        self.click_at(at, 0);
    }

    /// Clicks a place, with keys held down.
    pub fn click_at(&mut self, at: (f64, f64), modifiers: u32) {
        self.mouse("mouseMoved", at, modifiers);
        self.mouse("mousePressed", at, modifiers);
        self.mouse("mouseReleased", at, modifiers);
        self.settle();
    }

    /// Moves the pointer to a place.
    pub fn hover(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, 0);
        self.settle();
    }

    /// Presses at one place, and releases at another one.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from, 0);
        self.mouse("mousePressed", from, 0);
        let half = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        self.mouse("mouseMoved", half, 0);
        self.mouse("mouseMoved", to, 0);
        self.settle();
        self.mouse("mouseReleased", to, 0);
        self.settle();
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), modifiers: u32) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let params = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1, "modifiers": modifiers});
        self.call("Input.dispatchMouseEvent", &params);
    }

    /// Presses a key: a character, or a name as `Escape`.
    pub fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        // The browser itself looks at the code alone.
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let params = json!({"type": down, "key": key, "text": text, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", &params);
        self.call("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key}));
        self.settle();
    }

    /// Types a text.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
        self.settle();
    }

    /// Writes what the page looks like to a PNG file.
    pub fn screenshot(&mut self, file: &Path) {
        let answer = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        let data = answer["data"].as_str().expect("an image");
        fs::write(file, from_base64(data)).expect("written");
    }

    /// The page as a PDF file, as it is printed. Returns its size in bytes.
    pub fn print(&mut self) -> usize {
        let answer = self.call("Page.printToPDF", &json!({"printBackground": true}));
        from_base64(answer["data"].as_str().expect("a document")).len()
    }

    /// What the page did by itself until now.
    pub fn finish(mut self) -> Seen {
        self.settle();
        let mut seen = Seen::default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for event in self.connection.events() {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" if params["type"] != "Document" => {
                    seen.requests.push(text(&params["request"]["url"]));
                }
                "Page.javascriptDialogOpening" => seen.dialogs.push(text(&params["message"])),
                "Runtime.exceptionThrown" => {
                    seen.errors.push(params["exceptionDetails"].to_string());
                }
                "Log.entryAdded" if params["entry"]["level"] == "error" => {
                    seen.errors.push(text(&params["entry"]["text"]));
                }
                _ => {}
            }
        }
        seen
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let number = four.iter().fold(0_u32, |all, &byte| all << 6 | u32::from(digit(byte)));
        let number = number << (6 * (4 - four.len()));
        bytes.extend(&number.to_be_bytes()[1..four.len()]);
    }
    bytes
}
