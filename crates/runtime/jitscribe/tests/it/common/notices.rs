//! The notices of a scribe.

use std::sync::{Arc, Mutex};

use jitscribe::{Builder, Subject};

/// Notices, in the order in which they came.
pub type Heard = Arc<Mutex<Vec<(Subject, String)>>>;

pub fn listening(builder: Builder) -> (Builder, Heard) {
    let heard = Heard::default();
    let listener = heard.clone();
    let builder = builder.notice(move |notice| {
        listener.lock().unwrap().push((notice.subject(), notice.to_string()));
    });
    (builder, heard)
}
