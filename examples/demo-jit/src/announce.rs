//! Announcing code through the library, and the record of the truth.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jitscribe::{Code, LoadedCode, Mode, Notice, Scribe, Unwind};
use jitscribe_cranelift::{Call, Place};
use rustix::process::getpid;
use rustix::time::{ClockId, clock_gettime};

use crate::ast::{FunctionId, Position, Program};
use crate::codegen::{Compiled, Row, Tier};
use crate::error::Error;
use crate::frame::FrameRow;
use crate::options::Options;
use crate::truth::{CodeLine, CodeVersion, InlinedInto};

/// Now, by the clock of `perf record -k mono` and of the library, in nanoseconds.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative on this clock.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// A code that was placed, to be announced.
pub(crate) struct Placed<'a> {
    pub(crate) program: &'a Program,
    pub(crate) id: FunctionId,
    pub(crate) tier: Tier,
    pub(crate) compiled: &'a Compiled,
    /// Where it runs.
    pub(crate) address: u64,
    /// It, there.
    pub(crate) code: &'a [u8],
}

/// Tells whoever is to know.
#[derive(Debug)]
pub(crate) struct Announcer {
    scribe: Scribe,
    /// The source's path, as the debug information names it.
    source: String,
    ir_dir: Option<PathBuf>,
    map: Option<PathBuf>,
    frame_pointer: bool,
    versions: Vec<CodeVersion>,
    /// By version: the library's handle, while the code lives.
    alive: Vec<Option<LoadedCode>>,
}

/// Makes a file that was not there, for this user alone, through no link.
pub(crate) fn create(path: &Path) -> Result<File, Error> {
    // O_EXCL, which `create_new` asks for, does not follow a link at the end of the path either;
    // O_NOFOLLOW says it once more.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(Error::file(path))
}

impl Announcer {
    pub(crate) fn new(options: &Options, source: String) -> Result<Self, Error> {
        let Options { dump_dir, perf_map_dir, log, .. } = options;
        let pid = getpid().as_raw_nonzero();
        let map = perf_map_dir.as_ref().map(|dir| dir.join(format!("perf-{pid}.map")));
        let scribe = if *log || dump_dir.is_some() || map.is_some() {
            // The library goes on without what it cannot have. Who asked for a file here wants to know.
            let notices = Arc::new(Mutex::new(Vec::new()));
            let notes = Arc::clone(&notices);
            let note = move |notice: &Notice| {
                notes.lock().unwrap_or_else(PoisonError::into_inner).push(notice.to_string());
            };
            let mut builder = Scribe::builder().notice(note);
            if *log {
                builder = builder.environment();
            }
            if let Some(dir) = dump_dir {
                builder = builder.jitdump(Mode::On).dir(dir.clone());
            }
            if let Some(dir) = perf_map_dir {
                builder = builder.perf_map(Mode::On).perf_map_dir(dir);
            }
            let scribe = builder.build();
            let dump = dump_dir.as_ref().map(|dir| dir.join(format!("jit-{pid}.dump")));
            let missing = dump.filter(|_| scribe.dump_path().is_none());
            let missing = missing.or_else(|| map.clone().filter(|map| !map.exists()));
            if let Some(path) = missing {
                let notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
                let cause = io::Error::other(notices.join("; "));
                return Err(Error::File { path, cause });
            }
            scribe
        } else {
            Scribe::off()
        };
        Ok(Self {
            scribe,
            source,
            ir_dir: options.ir_dir.clone(),
            map,
            frame_pointer: options.frame_pointers,
            versions: Vec::new(),
            alive: Vec::new(),
        })
    }

    /// Code was loaded; it may run only afterwards. Returns its number in [`Self::versions`].
    pub(crate) fn load(&mut self, placed: &Placed<'_>) -> Result<usize, Error> {
        let Placed { program, id, tier, compiled, address, code } = *placed;
        let name = &program.function(id).name;
        let symbol = format!("{}::{name}", tier.name());
        let listing = match &self.ir_dir {
            Some(dir) => Some(write_listing(dir, &symbol, compiled.listing.text())?),
            None => None,
        };
        let at = |position: Position| Place {
            file: &self.source,
            line: position.line,
            column: position.column,
        };
        let announcing = now();
        if self.scribe.is_on() {
            let calls: Vec<Call<'_>> = compiled
                .calls
                .iter()
                .map(|call| Call {
                    name: &program.function(call.callee).name,
                    parent: call.parent,
                    place: at(call.position),
                })
                .collect();
            let mut announcement = compiled
                .announcement
                .clone()
                .named(&symbol)
                .tier(tier.name())
                .starts_at(at(program.function(id).position))
                .lines(|loc| Some(at(compiled.place(loc)?.position)))
                .inlined(&calls, |loc| compiled.place(loc)?.call);
            if let Some(listing) = &listing {
                announcement = announcement.ir_listing(listing, 0);
            }
            // The frame was changed behind Cranelift's back: its own rows tell of another one.
            let rows: Vec<_> = compiled.frame.iter().map(FrameRow::borrow).collect();
            let loaded = announcement.with(Code::new(code).runs_at(address), |code| {
                self.scribe.load(&code.unwind(Unwind::Rows(&rows)))
            });
            self.alive.push(Some(loaded));
        } else {
            self.alive.push(None);
        }
        self.versions.push(CodeVersion {
            name: name.clone(),
            symbol,
            tier,
            address,
            size: compiled.bytes.len() as u64,
            unwind_size: compiled.unwind.size() as u64,
            announcing,
            loaded: now(),
            died: None,
            moved_from: None,
            frame_pointer: self.frame_pointer,
            file: self.source.clone(),
            lines: compiled.rows.iter().map(|row| line(placed, row)).collect(),
            bytes: compiled.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        });
        Ok(self.versions.len() - 1)
    }

    /// Code was copied to where `memory` begins and runs there from now on. Returns the new version's number.
    pub(crate) fn moved(&mut self, version: usize, address: u64, memory: &[u8]) -> usize {
        let announcing = now();
        let old = &mut self.versions[version];
        old.died = Some(announcing);
        let mut new = old.clone();
        new.address = address;
        new.announcing = announcing;
        new.died = None;
        new.moved_from = Some(old.address);
        for line in &mut new.lines {
            line.address = line.address - old.address + address;
        }
        let mut loaded = self.alive[version].take();
        if let Some(loaded) = &mut loaded {
            loaded.moved_to(&memory[..new.size as usize]);
        }
        new.loaded = now();
        self.versions.push(new);
        self.alive.push(loaded);
        self.versions.len() - 1
    }

    /// Code has run for the last time.
    pub(crate) fn died(&mut self, version: usize) {
        self.versions[version].died = Some(now());
        self.alive[version] = None;
    }

    pub(crate) fn versions(&self) -> &[CodeVersion] {
        &self.versions
    }

    pub(crate) fn dump_path(&self) -> Option<PathBuf> {
        self.scribe.dump_path()
    }

    pub(crate) fn map_path(&self) -> Option<&Path> {
        self.map.as_deref()
    }
}

impl Drop for Announcer {
    /// What lives at the end of a run lives to the end of the process, for all that tools care.
    fn drop(&mut self) {
        self.alive.drain(..).flatten().for_each(LoadedCode::leak);
    }
}

/// A row as the truth has it.
fn line(placed: &Placed<'_>, row: &Row) -> CodeLine {
    let Placed { program, compiled, address, .. } = *placed;
    let calls = &compiled.calls;
    let mut around = row.place.call;
    let inlined = std::iter::from_fn(|| {
        let call = calls[around? as usize];
        around = call.parent;
        Some(InlinedInto {
            callee: program.function(call.callee).name.clone(),
            line: call.position.line,
            column: call.position.column,
        })
    });
    CodeLine {
        address: address + u64::from(row.offset),
        line: row.place.position.line,
        column: row.place.position.column,
        inlined: inlined.collect(),
    }
}

/// Writes a listing and returns its absolute path. One of the same content may be there.
fn write_listing(dir: &Path, symbol: &str, text: &str) -> Result<String, Error> {
    let path = dir.join(format!("{}.clif", symbol.replace("::", "-")));
    let path = write_text(&path, text)?;
    Ok(path.display().to_string())
}

/// Writes a file and returns its absolute path. One of the same content may be there.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<PathBuf, Error> {
    let path = std::path::absolute(path).map_err(Error::file(path))?;
    if std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(path);
    }
    create(&path)?.write_all(text.as_bytes()).map_err(Error::file(&path))?;
    Ok(path)
}
