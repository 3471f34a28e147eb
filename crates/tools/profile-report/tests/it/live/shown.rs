//! Pages in Chromium, as tests open and ask them.

use std::fs;
use std::path::{Path, PathBuf};

use profile::{CodeSource, Profile};
use profile_report::Summary;
use serde::de::DeserializeOwned;
use serde_json::json;
use tempfile::TempDir;
use test_browser::{Browser, Page};

/// A page in a folder of its own.
pub struct File {
    _folder: TempDir,
    path: PathBuf,
}

impl File {
    pub fn new(html: Vec<u8>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.html");
        fs::write(&path, html).expect("written");
        Self { _folder: folder, path }
    }

    /// The report of a profile.
    pub fn report(profile: &Profile, code: &mut dyn CodeSource) -> (Self, Summary) {
        let mut html = Vec::new();
        let summary = profile_report::write(profile, code, &Default::default(), &mut html);
        let summary = summary.expect("written");
        assert_eq!(summary.bytes, html.len() as u64);
        (Self::new(html), summary)
    }

    pub fn open<'b>(&self, browser: &'b mut Browser, fragment: &str, size: (u32, u32)) -> Page<'b> {
        let mut page = browser.open(&self.path, fragment, size);
        assert_eq!(page.eval("document.documentElement.dataset.ready"), "true", "{fragment}");
        page
    }
}

/// What a script finds in a page.
pub fn find<T: DeserializeOwned>(page: &mut Page<'_>, script: &str) -> T {
    let found = page.eval(script);
    serde_json::from_value(found.clone()).unwrap_or_else(|error| panic!("{error}: {found}"))
}

/// The texts of the elements that a selector finds.
pub fn texts(page: &mut Page<'_>, selector: &str) -> Vec<String> {
    find(
        page,
        &format!("[...document.querySelectorAll({})].map((it) => it.innerText)", json!(selector)),
    )
}

/// No name was executed, or became an element: a page has one script, its own.
#[track_caller]
pub fn expect_nothing_executed(page: &mut Page<'_>) {
    let seen = "[window.executed, ...['img', 'iframe', 'script:not([type])'].map((it) => document.querySelectorAll(it).length)]";
    assert_eq!(page.eval(seen), json!([null, 0, 0, 1]));
}

/// Keeps a screenshot in the folder `JITSCRIBE_SCREENSHOTS`, if that is set.
pub fn picture(page: &mut Page<'_>, name: &str) {
    if let Some(folder) = std::env::var_os("JITSCRIBE_SCREENSHOTS") {
        page.screenshot(&Path::new(&folder).join(format!("{name}.png")));
    }
}
