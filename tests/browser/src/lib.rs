//! Chromium, driven by tests through the protocol of its developer tools, over pipes: no driver, no port, no other packages.
//!
//! A test reads what a page shows by [`Page::eval`], clicks and types as a user does, and at the end sees in [`Page::finish`] whether the page
//! requested anything, opened a dialog or threw an exception.
#![forbid(unsafe_code)]

mod connection;
mod page;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use connection::Connection;
pub use page::{CTRL, Page, Seen};

/// A running browser. It ends when this is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    connection: Connection,
    _profile: TempDir,
}

/// The descriptors of the protocol are 3 and 4. The browser's own services would make requests to the network: the options switch them off.
const START: &str = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
    --hide-scrollbars --force-color-profile=srgb --user-data-dir=\"$1\" --remote-debugging-pipe \
    3<&0 4>&1 </dev/null >/dev/null 2>&1";

impl Browser {
    /// Starts Debian's Chromium.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", START, "sh"]).arg(profile.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let (to, from) = (child.stdin.take().expect("a pipe"), child.stdout.take());
        let connection = Connection::new(to, from.expect("a pipe"));
        Self { child, connection, _profile: profile }
    }

    /// Opens a file in a page of this size. `fragment` is empty, or begins with `#`.
    pub fn open(&mut self, file: &Path, fragment: &str, size: (u32, u32)) -> Page<'_> {
        let created =
            self.connection.call(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let target = created["targetId"].clone();
        let options = json!({"targetId": target, "flatten": true});
        let attached = self.connection.call(None, "Target.attachToTarget", &options);
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        let mut page = Page::new(&mut self.connection, session);
        page.set_size(size);
        page.navigate(&format!("file://{}{fragment}", file.display()));
        page
    }

    /// The browser's name and version.
    pub fn version(&mut self) -> String {
        let version = self.connection.call(None, "Browser.getVersion", &Value::Null);
        version["product"].as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.connection.close();
        // It may have ended already.
        let _ended = self.child.wait();
    }
}
