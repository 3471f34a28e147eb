//! The images that an agent keeps.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::agent::Agent;

/// The image of a code, as an answer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub build_id: String,
    /// Where the code is in it.
    pub address: u64,
}

impl Image {
    pub fn of(answer: &Value) -> Option<Self> {
        let image =
            answer["code"].as_object().unwrap_or_else(|| panic!("{answer}")).get("image")?;
        let build_id = image["build_id"].as_str().expect("a build-id").to_owned();
        Some(Self { build_id, address: image["address"].as_u64().expect("an address") })
    }

    /// The path of the file in the folder of `--images`.
    pub fn path(&self, folder: &Path) -> PathBuf {
        let (first, rest) = self.build_id.split_at(2);
        folder.join(format!(".build-id/{first}/{rest}.debug"))
    }

    /// The file, which is there when an answer names it.
    pub fn read(&self, folder: &Path) -> Vec<u8> {
        fs::read(self.path(folder)).expect("the image")
    }
}

/// The image of the code at an address, once it is written: an answer waits for that, but not long.
pub fn image(agent: &Agent, pid: u32, address: u64) -> Image {
    loop {
        let answer = code_at(agent, pid, address);
        assert!(answer.get("code").is_some(), "{answer}");
        if let Some(image) = Image::of(&answer) {
            return image;
        }
        std::thread::yield_now();
    }
}

/// The code at an address, once it is known: a process that changes much is read less often.
pub fn code_at(agent: &Agent, pid: u32, address: u64) -> Value {
    loop {
        let answer = agent.code_at(pid, address);
        if answer["unknown"] != "code" {
            return answer;
        }
        std::thread::yield_now();
    }
}
