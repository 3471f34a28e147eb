//! The perf that is installed, in a home folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::chains::{self, Chain};
use crate::sample::{self, FIELDS, Sample};
use crate::tool::{cache, path_behind, run, tool};

/// The images of a folder, as the option `--dsos` takes them.
pub fn image_names(images: &Path) -> String {
    let images = images.read_dir().expect("a folder with images");
    let name = |image: std::fs::DirEntry| image.file_name().into_string().expect("a UTF-8 name");
    images.map(|image| name(image.expect("an image"))).collect::<Vec<_>>().join(",")
}

/// One installed perf. Its build-id cache is its own and goes with it.
#[derive(Debug)]
pub struct Perf {
    program: PathBuf,
    home: TempDir,
}

impl Perf {
    /// The machine's perf: 6.1 on Debian 12.
    pub fn installed() -> Self {
        Self::at("perf".into())
    }

    /// Debian 13's perf 6.12, which `scripts/trixie.sh` unpacks.
    pub fn newer() -> Self {
        Self::at(cache().join("trixie/run/perf"))
    }

    fn at(program: PathBuf) -> Self {
        let home = TempDir::with_prefix("jitscribe-home-").expect("a temporary folder");
        // perf inject puts five files a function into its cache, and reads a second injection's objects from
        // the first's: without a cache the objects are read from where they lie.
        std::fs::write(home.path().join(".perfconfig"), "[buildid]\n\tdir = /dev/null\n")
            .expect("perf's configuration");
        Self { program, home }
    }

    /// `perf …` with nothing of the user's in its surroundings.
    pub fn command(&self) -> Command {
        let mut command = tool(&self.program);
        command.env("HOME", self.home.path()).env_remove("DEBUGINFOD_URLS");
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    /// The folder that perf takes for the user's home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Every sample of a recording with its own address, in the order of time.
    pub fn samples(&self, data: &Path) -> Vec<Sample> {
        self.samples_with(data, FIELDS)
    }

    /// The same with source positions: slow where objects are many.
    pub fn samples_with_lines(&self, data: &Path) -> Vec<Sample> {
        self.samples_with(data, &format!("{FIELDS},srcline"))
    }

    /// The samples in the images of a folder, with source positions. perf asks addr2line about no other file: this is the line that the documentation gives.
    /// `tools` is searched for addr2line first.
    pub fn samples_in_images(&self, data: &Path, images: &Path, tools: &Path) -> Vec<Sample> {
        let mut command = self.command();
        command.args(["script", "--ns", "-G", "--dsos", &image_names(images), "-F"]);
        command.arg(format!("{FIELDS},srcline")).arg("-i").arg(data);
        sample::parse(&run(command.env("PATH", path_behind(tools))).stdout)
    }

    fn samples_with(&self, data: &Path, fields: &str) -> Vec<Sample> {
        let mut command = self.command();
        command.args(["script", "--ns", "-G", "-F", fields, "-i"]).arg(data);
        sample::parse(&run(&mut command).stdout)
    }

    /// Every sample's call chain.
    pub fn chains(&self, data: &Path) -> Vec<Chain> {
        let mut command = self.command();
        command
            .args(["script", "--ns", "--no-inline", "--max-stack", "512", "-F", FIELDS, "-i"])
            .arg(data);
        chains::parse(&run(&mut command).stdout)
    }

    /// How many call chains perf leaves out because it takes an address in them for an unknown marker: see `add_callchain_ip` in its
    /// `util/machine.c`.
    pub fn discarded_chains(&self, data: &Path) -> usize {
        let mut command = self.command();
        let output = run(command.args(["script", "-v", "-F", "ip", "-i"]).arg(data));
        output.stderr.lines().filter(|line| line.starts_with("invalid callchain context")).count()
    }

    /// `perf inject --jit`, which writes its objects next to the dump.
    pub fn inject(&self, data: &Path, out: &Path) {
        run(self.command().args(["inject", "--jit", "-i"]).arg(data).arg("-o").arg(out));
    }
}
