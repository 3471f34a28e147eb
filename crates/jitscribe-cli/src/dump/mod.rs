//! `jitscribe dump`: shows what a JIT wrote, or turns it into something else.

pub mod input;
mod json;
mod listing;
mod live;
mod map;
mod objects;
mod time;
mod told;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use code_image::ObjectFormat;
use jitdump::{Dump, End};

use crate::output::Output;
use crate::{Error, Result, note};
use input::{Format, Input};
use time::Time;

/// Show what a jitdump, a perf map or a running process holds, or convert it
///
/// With -p it is the code that the process made so far, as its runtime announced it through the jitscribe
/// library: nothing has to be prepared, and the process is not stopped. FILE is told to be a jitdump or a perf map by its content. Damage is named on standard error,
/// with its offset, and all that can be read is shown.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jitscribe dump [OPTIONS] FILE\n       jitscribe dump [OPTIONS] -p PID\n       \
                      jitscribe dump [OPTIONS] --core FILE",
    group = ArgGroup::new("output").args(["json", "perf_map", "elf", "pe", "macho", "jitdump", "map_for_perf"]),
    group = ArgGroup::new("input").args(["file", "pid", "core"]).required(true),
    after_help = "EXAMPLES:
  jitscribe dump jit-4711.dump                  one line a code: time, address, size, name
  jitscribe dump /tmp/perf-4711.map             the same of a perf map
  jitscribe dump --json jit-4711.dump | jq -r 'select(.event == \"load\") | .name'
  jitscribe dump --perf-map jit-4711.dump > /tmp/perf-4711.map
  jitscribe dump --elf images jit-4711.dump && objdump -d images/*.elf
  jitscribe dump -p 4711                        what a running process has made
  jitscribe dump -p 4711 --map-for-perf         its perf map, where perf looks for it
  jitscribe dump --core core --jitdump jit.dump what a process had made that is gone",
    after_long_help = "EXAMPLES:
  jitscribe dump jit-4711.dump                  one line a code: time, address, size, name
  jitscribe dump /tmp/perf-4711.map             the same of a perf map
  jitscribe dump --json jit-4711.dump | jq -r 'select(.event == \"load\") | .name'
  jitscribe dump --perf-map jit-4711.dump > /tmp/perf-4711.map
  jitscribe dump --elf images jit-4711.dump && objdump -d images/*.elf
  jitscribe dump -p 4711                        what a running process has made
  jitscribe dump -p 4711 --map-for-perf         its perf map, where perf looks for it
  jitscribe dump --core core --jitdump jit.dump what a process had made that is gone

JSON: one object a line, written as the file is read. `event` says what it is:
  header   of a jitdump: version, endian (little|big), machine (ELF e_machine), pid, time, flags,
           clock (monotonic|realtime|arch), debug_address_bias
  load     offset, time, pid, tid, address, size, index, name, lines, unwind; of code that jitscribe's
           own library announced also kind, tier, died, lean, frame_pointer, ir_lines, inlined
  move     offset, time, pid, tid, old_address, new_address, size, index
  close    time
  left-out number of codes the process had no room for: count, first, last (times)
  entry    of a perf map: offset, line, address, size, name
  error    offset, cause
  end      how the file ended (complete|cut-off|zeros|damaged), offset
`kind` is what the code is to its runtime (function, stub, trampoline ...), `tier` the compiler's,
`died` the time of its end; tier, died and frame_pointer (prologue|throughout) are null where not
known. A `lean` code's bytes are not in the dump. `ir_lines` are those of the bytecode or
intermediate representation. `inlined` is a list of calls: {parent, name, file, line, column,
ranges}; parent is the number in the list of the call it lies in, or null.
`lines` is a list of {address, file, line, column}; column 0 is unknown, line 0 is no line of the
source. `unwind` is null or {eh_frame_size, eh_frame_hdr_size, mapped_size}. Addresses are strings
like \"0x7f0000001000\"; `time` is in nanoseconds, or in ticks where the clock is arch; offsets and
sizes are in bytes. In names and paths U+FFFD stands for what is not UTF-8."
)]
pub struct Args {
    /// The jitdump or perf map; `-` is standard input
    file: Option<PathBuf>,

    /// Take the code log of this running process
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,

    /// Take the code log in this core file
    #[arg(long, value_name = "FILE")]
    core: Option<PathBuf>,

    /// Write a jitdump, with the machine code that is still in the process's memory
    #[arg(long, value_name = "FILE")]
    jitdump: Option<PathBuf>,

    /// Write the perf map of the code that is live to where perf looks for it: /tmp/perf-PID.map, of the
    /// process's own file system and by its own id
    #[arg(long, requires = "pid")]
    map_for_perf: bool,

    /// One JSON object a line, for programs (see --help for the fields)
    #[arg(long)]
    json: bool,

    /// Print a perf map of the code that is live at the end
    ///
    /// A perf map has no time: of several codes that were at one address, the last one has it.
    /// Lines do not overlap; a code that others cover in part has a line for each part left.
    #[arg(long)]
    perf_map: bool,

    /// Write the code that is live at the end as ELF shared objects into DIR, one an arena
    ///
    /// The objects hold text, symbols, source lines and unwind tables, as far as the jitdump has
    /// them. Code that lies less than 16 MiB apart comes into one file, jit-PID-ADDRESS.elf: what
    /// is at 0x1000 in the file was at ADDRESS in the process, and so on byte by byte. dlopen takes
    /// them, and dlsym finds code by its name.
    #[arg(long, value_name = "DIR")]
    elf: Option<PathBuf>,

    /// As --elf, but dynamic-link libraries for Windows, jit-PID-ADDRESS.dll
    #[arg(long, value_name = "DIR")]
    pe: Option<PathBuf>,

    /// As --elf, but dynamic libraries for macOS, jit-PID-ADDRESS.dylib
    #[arg(long, value_name = "DIR")]
    macho: Option<PathBuf>,

    /// With --perf-map, --elf, --pe or --macho: the code that was live at TIME, in seconds as the listing shows
    /// them (ticks for a dump with an arch clock)
    #[arg(long, value_name = "TIME")]
    at: Option<Time>,

    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

impl Args {
    /// Which objects to write, and where.
    fn objects(&self) -> Option<(ObjectFormat, &Path)> {
        let asked = [
            (ObjectFormat::Elf, &self.elf),
            (ObjectFormat::Pe, &self.pe),
            (ObjectFormat::MachO, &self.macho),
        ];
        asked.into_iter().find_map(|(format, folder)| Some((format, folder.as_deref()?)))
    }
}

/// Does what the arguments say.
pub fn run(args: &Args) -> Result<()> {
    if args.at.is_some() && !args.perf_map && !args.map_for_perf && args.objects().is_none() {
        return Err(Error::Refused(
            "--at says when code is to be live: add --perf-map, or --elf, --pe or --macho with DIR"
                .to_owned(),
        ));
    }
    let input = match (&args.file, args.pid, &args.core) {
        (_, Some(pid), _) => told::of_process(pid)?,
        (_, _, Some(core)) => told::of_core(core)?,
        (Some(file), ..) => Input::read(file)?,
        (None, None, None) => {
            return Err(Error::Usage("what is to be dumped? FILE, -p PID or --core FILE".into()));
        }
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    match input.format()? {
        Format::Jitdump => dump_jitdump(args, &input, &mut out)?,
        Format::PerfMap => dump_perf_map(args, &input, &mut out)?,
    }
    out.flush().map_err(Error::Stdout)
}

fn dump_jitdump(args: &Args, input: &Input, out: &mut impl Write) -> Result<()> {
    if let Some(path) = &args.jitdump {
        return write_file(path, path, input.bytes(), args.force);
    }
    let dump = Dump::parse(input.bytes()).map_err(Error::format(input.name()))?;
    if args.json {
        return json::jitdump(&dump, out);
    }
    if !args.perf_map && !args.map_for_perf && args.objects().is_none() {
        return listing::jitdump(&dump, input, out);
    }
    told::warn_of_left_out(&dump, input);
    let until = args.at.map_or(Ok(u64::MAX), |at| at.of(dump.header())).map_err(Error::Refused)?;
    let live = live::Live::at(&dump, until, |error| note::warning(input.told(error)));
    if let Some((format, folder)) = args.objects() {
        objects::write(&dump, &live, format, folder, args.force, input)
    } else if let (true, Some(pid)) = (args.map_for_perf, args.pid) {
        let mut map = Vec::new();
        map::from_jitdump(&live, &mut map)?;
        let place = told::MapPlace::of(pid)?;
        write_file(&place.path(), &place.called, &map, args.force)
    } else {
        map::from_jitdump(&live, out)
    }
}

/// Writes a file of this user alone, through no link, and says so.
fn write_file(path: &Path, called: &Path, bytes: &[u8], force: bool) -> Result<()> {
    let mut output = Output::create_called(path, called, force)?;
    output.file().write_all(bytes).map_err(Error::file(called))?;
    output.finish()?;
    note::say(format_args!("{}: {} bytes", called.display(), bytes.len()));
    Ok(())
}

fn dump_perf_map(args: &Args, input: &Input, out: &mut impl Write) -> Result<()> {
    if args.objects().is_some() || args.jitdump.is_some() {
        return Err(Error::Refused(format!(
            "{}: a perf map has names and addresses but no code, so there is nothing to make an \
             object file or a jitdump of",
            input.name().display()
        )));
    }
    if args.at.is_some() {
        return Err(Error::Refused(format!(
            "{}: a perf map has no times; --at needs a jitdump",
            input.name().display()
        )));
    }
    if args.json {
        json::perf_map(input.bytes(), out)
    } else if args.perf_map {
        map::from_perf_map(input, out)
    } else {
        listing::perf_map(input, out)
    }
}

/// How a dump ended, in words; nothing where all is well.
fn ending(end: Option<End>) -> Option<String> {
    match end? {
        End::Complete { .. } => None,
        End::CutOff { offset, missing: Some(missing) } => Some(format!(
            "at offset {offset:#x}: the last record lacks {missing} bytes: the dump was cut off, \
             or is still being written"
        )),
        End::CutOff { offset, missing: None } => Some(format!(
            "at offset {offset:#x}: the file ends before a record's header does: the dump was cut \
             off, or is still being written"
        )),
        End::Zeros { offset } => Some(format!("at offset {offset:#x}: zeros to the end")),
        End::Damaged { offset } => Some(format!("at offset {offset:#x}: no record to the end")),
    }
}
