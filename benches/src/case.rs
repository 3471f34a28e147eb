//! One workload, recorded: jitscribe, perf and plain copying side by side on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::grow;
use crate::measure::{self, Cost};

/// The programs that are measured, and where.
#[derive(Debug)]
pub struct Bench {
    /// The `jitscribe` command.
    pub jitscribe: PathBuf,
    /// Another version of it, to compare with.
    pub before: Option<PathBuf>,
    /// This program, which is also the recorded process.
    pub itself: PathBuf,
    /// An empty folder for all that is written.
    pub folder: PathBuf,
    /// A command that takes longer than this is stopped.
    pub limit: Duration,
    /// perf inject is run on no more functions than this.
    pub stock_functions: u32,
}

/// What is recorded.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Functions in the arena.
    pub functions: u32,
    /// How many times all of them are made.
    pub epochs: u32,
    /// Processor time for which they run.
    pub time: Duration,
    /// Options of perf record beside `-k mono`.
    pub options: &'static [&'static str],
}

/// A recording with its dump.
#[derive(Clone, Debug)]
pub struct Case {
    /// The recording.
    pub recording: PathBuf,
    /// The dump, where the recording's marker says.
    pub dump: PathBuf,
}

/// What a way to inject took and left, in the median of its runs.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// What it took.
    pub cost: Cost,
    /// Files made beside the recording.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Size of the new recording in bytes.
    pub recording: u64,
}

/// The ways to inject, set side by side.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// Copying the recording, the dump and the images once.
    pub floor: Cost,
    /// `jitscribe inject`.
    pub ours: Taken,
    /// `perf inject --jit`, where it was run.
    pub stock: Option<Taken>,
    /// The other version of `jitscribe inject`, if there is one.
    pub before: Option<Cost>,
}

/// An output of an inject that is kept for reading.
#[derive(Debug)]
pub struct Injected {
    /// The new recording.
    pub recording: PathBuf,
    /// The `HOME` with perf's build-id cache that belongs to it.
    pub home: PathBuf,
}

impl Bench {
    /// Records `workload` into a folder called `name`.
    ///
    /// # Errors
    /// When perf or the recorded process fails.
    pub fn record(&self, name: &str, workload: &Workload) -> io::Result<Case> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        let recording = folder.join("perf.data");
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-k", "mono", "-o"]).arg(&recording);
        command.args(workload.options).arg("--").arg(&self.itself).arg("jit").arg(&folder);
        command.args([workload.functions.to_string(), workload.epochs.to_string()]);
        command.arg(workload.time.as_millis().to_string());
        measure::run(&mut command, self.limit, &self.folder.join("record.log"))?;
        Ok(Case { recording, dump: dump_in(&folder)? })
    }

    /// A recording like that of `case`, of about `bytes`.
    ///
    /// # Errors
    /// As [`grow::grow`].
    pub fn grow(&self, case: &Case, bytes: u64) -> io::Result<Case> {
        let recording = case.recording.with_file_name(format!("{bytes}.data"));
        grow::grow(&case.recording, &recording, bytes)
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Case { recording, dump: case.dump.clone() })
    }

    /// Runs each way `runs` times, perf's `stock_runs` times, by turns.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn compare(&self, case: &Case, runs: usize, stock_runs: usize) -> io::Result<Compared> {
        let kept = self.folder.join("kept");
        let images = self.inject(case, &kept)?;
        let mut copies = Vec::new();
        let mut ours = Vec::new();
        let mut stock = Vec::new();
        let mut before = Vec::new();
        for run in 0..runs {
            copies.push(self.copy(case, &kept.join("out.data.jit"))?);
            let folder = self.folder.join("ours");
            ours.push(self.inject(case, &folder)?.cost);
            fs::remove_dir_all(&folder)?;
            if let Some(program) = &self.before {
                before.push(self.inject_with(program, case, &folder)?.cost);
                fs::remove_dir_all(&folder)?;
            }
            if run < stock_runs {
                let folder = self.folder.join("stock");
                stock.push(self.inject_by_perf(case, &folder)?);
                self.clean_up_after_perf(case, &folder)?;
            }
        }
        fs::remove_dir_all(&kept)?;
        let stock = stock.last().map(|last| {
            let costs: Vec<Cost> = stock.iter().map(|taken| taken.cost).collect();
            Taken { cost: measure::median(&costs), ..*last }
        });
        let ours = Taken { cost: measure::median(&ours), ..images };
        let before = self.before.is_some().then(|| measure::median(&before));
        Ok(Compared { floor: measure::median(&copies), ours, stock, before })
    }

    /// Runs `jitscribe inject` into `folder`: `out.data` and `out.data.jit/`.
    ///
    /// # Errors
    /// When it fails.
    pub fn inject(&self, case: &Case, folder: &Path) -> io::Result<Taken> {
        self.inject_with(&self.jitscribe, case, folder)
    }

    /// [`Self::inject`] by any version of the command.
    fn inject_with(&self, program: &Path, case: &Case, folder: &Path) -> io::Result<Taken> {
        fs::create_dir_all(folder)?;
        let output = folder.join("out.data");
        let mut command = Command::new(program);
        command.arg("inject").arg("-i").arg(&case.recording).arg("-o").arg(&output);
        let cost = self.run(&mut command, folder)?;
        let (files, bytes) = measure::files(&folder.join("out.data.jit"))?;
        Ok(Taken { cost, files, bytes, recording: fs::metadata(output)?.len() })
    }

    /// Runs `perf inject --jit` into `folder`, with a `HOME` of its own there. Its object files go
    /// beside the dump.
    ///
    /// # Errors
    /// When it fails.
    pub fn inject_by_perf(&self, case: &Case, folder: &Path) -> io::Result<Taken> {
        let home = folder.join("home");
        fs::create_dir_all(&home)?;
        let output = folder.join("out.data");
        let mut command = Command::new("perf");
        command.env("HOME", &home).args(["inject", "--jit", "-i"]).arg(&case.recording);
        command.arg("-o").arg(&output);
        let cost = self.run(&mut command, folder)?;
        let (mut files, mut bytes) = measure::files(&home)?;
        for object in perf_objects(case)? {
            files += 1;
            bytes += fs::metadata(object)?.len();
        }
        let recording = fs::metadata(&output).map_or(0, |output| output.len());
        Ok(Taken { cost, files, bytes, recording })
    }

    /// Removes what [`inject_by_perf`](Self::inject_by_perf) left.
    ///
    /// # Errors
    /// When that cannot be removed.
    pub fn clean_up_after_perf(&self, case: &Case, folder: &Path) -> io::Result<()> {
        perf_objects(case)?.into_iter().try_for_each(fs::remove_file)?;
        fs::remove_dir_all(folder)
    }

    fn copy(&self, case: &Case, images: &Path) -> io::Result<Cost> {
        let folder = self.folder.join("copy");
        fs::create_dir_all(&folder)?;
        let mut command = Command::new("cp");
        command.arg("-r").arg(&case.recording).arg(&case.dump).arg(images).arg(&folder);
        let cost = self.run(&mut command, &self.folder)?;
        fs::remove_dir_all(folder)?;
        Ok(cost)
    }

    /// Runs a perf command that reads a recording, `runs` times for each of them by turns.
    ///
    /// # Errors
    /// When one fails.
    pub fn read(
        &self,
        arguments: &[&str],
        recordings: &[Injected],
        runs: usize,
    ) -> io::Result<Vec<Cost>> {
        let mut costs = vec![Vec::new(); recordings.len()];
        for _ in 0..runs {
            for (recording, costs) in recordings.iter().zip(&mut costs) {
                let stopped_before = costs.last().is_some_and(|cost: &Cost| cost.stopped);
                if stopped_before {
                    continue;
                }
                let mut command = Command::new("perf");
                command.env("HOME", &recording.home).args(arguments);
                command.arg("-i").arg(&recording.recording);
                costs.push(self.run(&mut command, &self.folder)?);
            }
        }
        Ok(costs.iter().map(|runs| measure::median(runs)).collect())
    }

    /// Runs this program under callgrind, with as much jitted code as makes an eighth of the profile, and says where the
    /// profile and the dump are.
    ///
    /// # Errors
    /// When valgrind or the process fails.
    pub fn profile(&self, name: &str) -> io::Result<Case> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        let recording = folder.join("callgrind.out");
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--dump-instr=yes", "--dump-line=yes"]);
        command.args(["--collect-jumps=yes", "--smc-check=all-non-file"]);
        command.arg(format!("--callgrind-out-file={}", recording.display()));
        command.arg(&self.itself).arg("jit").arg(&folder).args(["120", "1", "200"]);
        measure::run(&mut command, self.limit, &self.folder.join("record.log"))?;
        Ok(Case { recording, dump: dump_in(&folder)? })
    }

    /// Names jitted code in `file` by the verb `verb`, `runs` times, and gives the median of each figure.
    ///
    /// # Errors
    /// When it fails.
    pub fn name(
        &self,
        verb: &str,
        file: &Path,
        runs: usize,
        options: impl Fn(&mut Command),
    ) -> io::Result<Cost> {
        let output = self.folder.join("named.out");
        let mut costs = Vec::new();
        for _ in 0..runs {
            let mut command = Command::new(&self.jitscribe);
            command.args([verb, "--force", "-o"]).arg(&output).arg(file);
            options(&mut command);
            costs.push(self.run(&mut command, &self.folder)?);
            fs::remove_file(&output)?;
        }
        Ok(measure::median(&costs))
    }

    /// Runs `callgrind_annotate` on a profile.
    ///
    /// # Errors
    /// When it fails.
    pub fn annotate(&self, profile: &Path) -> io::Result<Cost> {
        self.run(Command::new("callgrind_annotate").arg(profile), &self.folder)
    }

    fn run(&self, command: &mut Command, folder: &Path) -> io::Result<Cost> {
        measure::run(command, self.limit, &folder.join("stderr.log"))
    }
}

/// The dump that the recorded process left in its folder.
fn dump_in(folder: &Path) -> io::Result<PathBuf> {
    fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "dump"))
        .ok_or_else(|| io::Error::other("the recorded process left no dump"))
}

/// The object files that perf made beside the dump.
fn perf_objects(case: &Case) -> io::Result<Vec<PathBuf>> {
    let folder = case.dump.parent().unwrap_or(Path::new("."));
    let made = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_object = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"jitted-"))
    };
    Ok(made.filter(is_object).collect())
}
