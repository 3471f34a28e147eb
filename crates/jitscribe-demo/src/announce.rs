//! Announcing code: to a jitdump, to a perf map, and to the record of the truth.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jitdump::{
    DebugEntry, Endian, EntryName, IoSink, Load, Move, UnwindOrder, UnwindingInfo, WriteError,
    Writer, WriterConfig,
};
use rustix::process::getpid;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use crate::ast::Position;
use crate::codegen::{Compiled, Tier};
use crate::error::Error;
use crate::memory::Marker;
use crate::truth::{CodeLine, CodeVersion};

/// ELF `e_machine` of the code this crate makes: x86-64.
const MACHINE: u32 = 62;

/// Now, by the clock of `perf record -k mono`, in nanoseconds.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative on this clock.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// A code that was placed, to be announced.
pub(crate) struct Placed<'a> {
    pub(crate) name: &'a str,
    pub(crate) tier: Tier,
    pub(crate) compiled: &'a Compiled,
    pub(crate) address: u64,
}

/// A dump that is being written.
#[derive(Debug)]
struct DumpFile {
    path: PathBuf,
    writer: Writer<IoSink<File>>,
    _marker: Marker,
}

#[derive(Debug)]
struct MapFile {
    path: PathBuf,
    file: BufWriter<File>,
}

/// Tells whoever is to know.
#[derive(Debug)]
pub(crate) struct Announcer {
    dump: Option<DumpFile>,
    map: Option<MapFile>,
    /// The source's path, as the debug information names it.
    source: String,
    frame_pointer: bool,
    next_index: u64,
    versions: Vec<CodeVersion>,
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
    pub(crate) fn new(
        dump_dir: Option<&Path>,
        map_dir: Option<&Path>,
        source: String,
        frame_pointer: bool,
    ) -> Result<Self, Error> {
        let pid = getpid().as_raw_nonzero();
        let dump = dump_dir.map(|dir| DumpFile::new(dir.join(format!("jit-{pid}.dump"))));
        let map = map_dir.map(|dir| {
            let path = dir.join(format!("perf-{pid}.map"));
            Ok::<_, Error>(MapFile { file: BufWriter::new(create(&path)?), path })
        });
        Ok(Self {
            dump: dump.transpose()?,
            map: map.transpose()?,
            source,
            frame_pointer,
            next_index: 0,
            versions: Vec::new(),
        })
    }

    /// Code was loaded; it may run only afterwards. Returns its number in [`Self::versions`].
    pub(crate) fn load(&mut self, placed: &Placed<'_>) -> Result<usize, Error> {
        let index = self.next_index;
        self.next_index += 1;
        let symbol = format!("{}::{}", placed.tier.name(), placed.name);
        if let Some(dump) = &mut self.dump {
            dump.describe(&self.source, placed)?;
        }
        let timestamp = now();
        if let Some(dump) = &mut self.dump {
            dump.load(timestamp, index, &symbol, placed)?;
        }
        let compiled = placed.compiled;
        let version = CodeVersion {
            name: placed.name.to_owned(),
            symbol,
            tier: placed.tier,
            code_index: index,
            address: placed.address,
            size: compiled.bytes.len() as u64,
            unwind_size: compiled.unwind.size() as u64,
            loaded: timestamp,
            died: None,
            moved_from: None,
            frame_pointer: self.frame_pointer,
            file: self.source.clone(),
            lines: lines(placed)
                .map(|(address, at)| CodeLine { address, line: at.line, column: at.column })
                .collect(),
            bytes: compiled.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        self.map(&version)?;
        self.versions.push(version);
        Ok(self.versions.len() - 1)
    }

    /// Code was copied to `address` and runs there from now on. Returns the new version's number.
    pub(crate) fn moved(&mut self, version: usize, address: u64) -> Result<usize, Error> {
        let timestamp = now();
        let old = &mut self.versions[version];
        old.died = Some(timestamp);
        let mut new = old.clone();
        new.address = address;
        new.loaded = timestamp;
        new.died = None;
        new.moved_from = Some(old.address);
        for line in &mut new.lines {
            line.address = line.address - old.address + address;
        }
        if let Some(dump) = &mut self.dump {
            let moved = Move {
                pid: pid(),
                tid: tid(),
                vma: address,
                old_code_addr: old.address,
                new_code_addr: address,
                code_size: new.size,
                code_index: new.code_index,
            };
            dump.writer.move_code(timestamp, &moved).map_err(failed(&dump.path))?;
        }
        self.map(&new)?;
        self.versions.push(new);
        Ok(self.versions.len() - 1)
    }

    /// Code has run for the last time. Neither format can say so; the truth does.
    pub(crate) fn died(&mut self, version: usize) {
        self.versions[version].died = Some(now());
    }

    /// Ends the files.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        if let Some(dump) = &mut self.dump {
            dump.writer.close(now()).map_err(failed(&dump.path))?;
        }
        self.flush()
    }

    /// Lets readers see all that was announced.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.map {
            Some(map) => map.file.flush().map_err(Error::file(&map.path)),
            None => Ok(()),
        }
    }

    pub(crate) fn versions(&self) -> &[CodeVersion] {
        &self.versions
    }

    pub(crate) fn dump_path(&self) -> Option<&Path> {
        self.dump.as_ref().map(|dump| dump.path.as_path())
    }

    pub(crate) fn map_path(&self) -> Option<&Path> {
        self.map.as_ref().map(|map| map.path.as_path())
    }

    fn map(&mut self, version: &CodeVersion) -> Result<(), Error> {
        let Some(map) = &mut self.map else { return Ok(()) };
        let mut line = Vec::new();
        perf_map::push_line(&mut line, version.address, version.size, version.symbol.as_bytes());
        map.file.write_all(&line).map_err(Error::file(&map.path))
    }
}

impl DumpFile {
    fn new(path: PathBuf) -> Result<Self, Error> {
        let file = create(&path)?;
        // The page that the marker maps need not be in the file yet, as nobody reads it there.
        let marker = Marker::new(&file)?;
        let config = WriterConfig {
            endian: Endian::NATIVE,
            machine: MACHINE,
            pid: pid(),
            timestamp: now(),
            flags: 0,
        };
        let writer = Writer::new(IoSink(file), &config).map_err(failed(&path))?;
        Ok(Self { path, writer, _marker: marker })
    }

    /// Writes DEBUG_INFO and UNWINDING_INFO, which belong to the LOAD that follows.
    fn describe(&mut self, source: &str, placed: &Placed<'_>) -> Result<(), Error> {
        let Placed { compiled, address, .. } = *placed;
        let entries = lines(placed).map(|(addr, at)| DebugEntry {
            addr,
            line: at.line,
            // What the format calls a discriminator, its writers and readers take for the column.
            discrim: at.column,
            name: EntryName::Path(source.as_bytes()),
        });
        let unwinding = UnwindingInfo {
            eh_frame: &compiled.unwind.eh_frame,
            eh_frame_hdr: &compiled.unwind.eh_frame_hdr,
            mapped_size: compiled.unwind.size() as u64,
            order: UnwindOrder::FrameFirst,
            padding: &[],
        };
        self.writer
            .debug_info(now(), address, entries)
            .and_then(|()| self.writer.unwinding_info(now(), &unwinding))
            .map_err(failed(&self.path))
    }

    fn load(
        &mut self,
        timestamp: u64,
        code_index: u64,
        symbol: &str,
        placed: &Placed<'_>,
    ) -> Result<(), Error> {
        let load = Load {
            pid: pid(),
            tid: tid(),
            vma: placed.address,
            code_addr: placed.address,
            code_index,
            name: symbol.as_bytes(),
            code: &placed.compiled.bytes,
            padding: &[],
        };
        self.writer.load(timestamp, &load).map_err(failed(&self.path))
    }
}

fn lines<'a>(placed: &Placed<'a>) -> impl Iterator<Item = (u64, Position)> + use<'a> {
    let address = placed.address;
    placed.compiled.rows.iter().map(move |row| (address + u64::from(row.offset), row.position))
}

fn pid() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

fn tid() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

fn failed(path: &Path) -> impl FnOnce(WriteError<io::Error>) -> Error {
    move |error| {
        let cause = match error {
            WriteError::Sink(cause) => cause,
            other => io::Error::new(io::ErrorKind::InvalidInput, other),
        };
        Error::File { path: path.to_owned(), cause }
    }
}
