//! What is said of a jitdump or perf map that is there, but cannot be used: why, and what to do.

use std::path::Path;

use jitscribe_inject::files::Kind;
use jitscribe_inject::{Unusable, UnusableFile};

use crate::text::{self, shell_path};

/// One line about the file.
pub fn line(file: &UnusableFile) -> String {
    let format = match file.kind {
        Kind::Jitdump => "jitdump",
        Kind::PerfMap => "perf map",
    };
    let (why, remedy) = why(file);
    let path = text::path(&file.path);
    format!("{path}: the {format} of this process cannot be used: {why}. {remedy}")
}

/// Why it cannot be used, and what to do.
fn why(file: &UnusableFile) -> (String, String) {
    let UnusableFile { pid, kind, path, .. } = file;
    let option = kind.option();
    let shown = shell_path(path);
    let elsewhere = format!("If it is elsewhere now: {option} {pid}=FILE");
    match &file.why {
        Unusable::Missing => ("it is not there any more".into(), elsewhere),
        Unusable::Empty => {
            let folder = shell_path(path.parent().unwrap_or(Path::new("/")));
            let why = "it is empty: the process was killed before it wrote its buffer, or the file system was full";
            let remedy = format!(
                "Record again, let the program end by itself, and see `df {folder}` for free space"
            );
            (why.into(), remedy)
        }
        Unusable::Denied { cause } => {
            let remedy = format!(
                "Run this as the file's owner or as root, or have it do: chmod a+r {shown}"
            );
            (format!("you may not read it ({})", text::said(cause)), remedy)
        }
        Unusable::Unreadable { cause } => (text::said(cause).to_string(), elsewhere),
        Unusable::OtherFormat => {
            let why = match kind {
                Kind::Jitdump => "it does not begin as a jitdump does",
                Kind::PerfMap => "no line of it is one of a perf map (START SIZE NAME)",
            };
            let remedy = "Another program has overwritten it, or its file system was full: delete it, and record again";
            (why.into(), remedy.into())
        }
        Unusable::NoCode => {
            let why = "it has no code: the process compiled nothing, or was killed before it wrote its buffer";
            (why.into(), "Record again, and let the program end by itself".into())
        }
        Unusable::Untrusted { user } => {
            let why = format!(
                "it belongs to user {user}, as whom the process is not known to run, and any user can create a file there"
            );
            let remedy = format!(
                "If it is the right one: {option} {pid}={shown}; if not, delete it, and record again"
            );
            (why, remedy)
        }
        _ => ("unknown cause".into(), elsewhere),
    }
}
