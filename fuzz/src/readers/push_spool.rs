//! Files of a spool of profiles: any names with any content.

use std::fs;

use profile_push::{BodyKind, Content, ProfileBody, Spool};

/// Names and contents take turns, a line each.
pub fn run(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lines = input.split(|byte| *byte == b'\n');
    while let (Some(name), Some(content)) = (lines.next(), lines.next()) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if !name.contains(['/', '\0']) && !matches!(name, "" | "." | "..") && name.len() < 200 {
            // Names of two cases may be one file.
            let _ = fs::write(folder.path().join(name), content);
        }
    }
    let spool = Spool::open(folder.path(), BodyKind::Otlp, 64 << 10).expect("a spool");
    let body = ProfileBody::otlp(input);
    let is_added = spool.add(&body).is_ok_and(|added| !added.was_there);
    let mut is_found = false;
    while let Some(spooled) = spool.oldest().expect("a folder") {
        if let Content::Whole(read) = spool.read(&spooled).expect("a file") {
            is_found |= read == body;
            spool.remove(&spooled).expect("removed");
        }
    }
    assert!(is_found || !is_added);
    assert!(spool.usage().expect("a folder").waiting == 0);
}
