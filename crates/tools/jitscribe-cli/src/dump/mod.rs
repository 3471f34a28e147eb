//! `jitscribe dump`: shows or converts the code that a JIT wrote down.

mod ending;
pub mod input;
mod json;
mod listing;
pub mod live;
mod map;
mod objects;
mod process;
mod time;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use code_image::ObjectFormat;
use jitdump::Dump;

use crate::files::{FoundSource, Kind};
use crate::text::Out;
use crate::{Error, Result, note, text};
use input::{Format, Input};
use jitscribe_inject::output::Output;
use time::Time;

/// Show or convert the code in a jitdump, a perf map, a running process or a core file
///
/// With -p, shows the code that the runtime of the process has announced so far through the jitscribe library, or has registered with
/// GDB's JIT interface, as numba, JAX and LLVM's lli do. This needs no preparation and does not stop the process. Whether FILE is a jitdump or a perf map is recognized by its content. Damage is
/// reported on standard error with its offset, and everything readable is shown.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jitscribe dump [OPTIONS] FILE\n       jitscribe dump [OPTIONS] -p PID\n       \
                      jitscribe dump [OPTIONS] --core FILE",
    group = ArgGroup::new("output").args(["json", "perf_map", "elf", "pe", "macho", "jitdump", "map_for_perf"]),
    group = ArgGroup::new("input").args(["file", "pid", "core"]).required(true),
    after_help = "EXAMPLES:
  jitscribe dump jit-4711.dump                  one line per code: time, address, size, name
  jitscribe dump /tmp/perf-4711.map             the same for a perf map
  jitscribe dump --json jit-4711.dump | jq -r 'select(.event == \"load\") | .name'
  jitscribe dump --perf-map jit-4711.dump > /tmp/perf-4711.map
  jitscribe dump --elf images jit-4711.dump && objdump -d images/*.elf
  jitscribe dump -p 4711                        the code of a running process
  jitscribe dump -p 4711 --map-for-perf         write its perf map where perf looks for it
  jitscribe dump --core core --jitdump jit.dump the code of a process that dumped core
  jitscribe dump --core core --from-perf-map perf-7.map
                                                the same, by a perf map that was moved",
    after_long_help = "EXAMPLES:
  jitscribe dump jit-4711.dump                  one line per code: time, address, size, name
  jitscribe dump /tmp/perf-4711.map             the same for a perf map
  jitscribe dump --json jit-4711.dump | jq -r 'select(.event == \"load\") | .name'
  jitscribe dump --perf-map jit-4711.dump > /tmp/perf-4711.map
  jitscribe dump --elf images jit-4711.dump && objdump -d images/*.elf
  jitscribe dump -p 4711                        the code of a running process
  jitscribe dump -p 4711 --map-for-perf         write its perf map where perf looks for it
  jitscribe dump --core core --jitdump jit.dump the code of a process that dumped core
  jitscribe dump --core core --from-perf-map perf-7.map
                                                the same, by a perf map that was moved

JSON: one object per line, written as the file is read. `event` is the kind of object:
  header   of a jitdump: version, endian (little|big), machine (ELF e_machine), pid, time, flags,
           clock (monotonic|realtime|arch), debug_address_bias
  load     offset, time, pid, tid, address, size, index, name, lines, unwind; for code announced
           through the jitscribe library also kind, tier, died, lean, frame_pointer, ir_lines, inlined
  move     offset, time, pid, tid, old_address, new_address, size, index
  close    time
  left-out codes that are missing because the log was full: count, first, last (times)
  entry    of a perf map: offset, line, address, size, name
  error    offset, cause
  end      how the file ended (complete|cut-off|zeros|damaged), offset
`kind` is the role of the code in its runtime (function, stub, trampoline ...), `tier` the compiler
tier, `died` the time when the code was freed; tier, died and frame_pointer (prologue|throughout) are
null if unknown. The bytes of a `lean` code are not in the dump. `ir_lines` are lines of the bytecode
or intermediate representation. `inlined` is a list of inlined calls: {parent, name, file, line,
column, ranges}; parent is the list index of the enclosing call, or null.
`lines` is a list of {address, file, line, column}; column 0 means unknown, line 0 means no source
line. `unwind` is null or {eh_frame_size, eh_frame_hdr_size, mapped_size}. Addresses are strings
like \"0x7f0000001000\"; `time` is in nanoseconds, or in ticks if the clock is arch; offsets and
sizes are in bytes. In names and paths, U+FFFD replaces invalid UTF-8."
)]
pub struct Args {
    /// The jitdump or perf map; `-` is standard input
    file: Option<PathBuf>,

    /// Read the code log of this running process
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,

    /// Read the code log in this core file; if it has none, the jitdump that its process had mapped, or else /tmp/perf-PID.map
    #[arg(long, value_name = "FILE")]
    core: Option<PathBuf>,

    /// With --core: read this jitdump, which the process wrote, instead of searching for what describes its code
    #[arg(long, value_name = "FILE", requires = "core", conflicts_with_all = ["file", "pid"])]
    from_jitdump: Option<PathBuf>,

    /// With --core: read this perf map, which the process wrote; with --from-jitdump too, only if the jitdump has no code
    #[arg(long, value_name = "FILE", requires = "core", conflicts_with_all = ["file", "pid"])]
    from_perf_map: Option<PathBuf>,

    /// Write a jitdump, including the machine code that is still in the process's memory
    #[arg(long, value_name = "FILE")]
    jitdump: Option<PathBuf>,

    /// Also write inlined calls as samply reads them; perf inject warns once for each such record
    #[arg(long, requires = "jitdump")]
    source_positions: bool,

    /// Write a perf map of the live code where perf looks for it: /tmp/perf-PID.map in the process's own
    /// file system, with the process's own pid
    #[arg(long, requires = "pid")]
    map_for_perf: bool,

    /// Print one JSON object per line (see --help for the fields)
    #[arg(long)]
    json: bool,

    /// Print a perf map of the code that is live at the end
    ///
    /// A perf map has no timestamps: of several codes that were at one address, it lists the last one.
    /// Lines do not overlap; code that is partly overwritten has one line for each remaining part.
    #[arg(long)]
    perf_map: bool,

    /// Write the code that is live at the end as ELF shared objects into DIR, one per arena
    ///
    /// The objects contain code, symbols, source lines and unwind tables, as far as the jitdump has
    /// them. Code that is less than 16 MiB apart goes into one file, jit-PID-ADDRESS.elf: offset
    /// 0x1000 in the file corresponds to ADDRESS in the process, and so on byte by byte. dlopen loads
    /// these files, and dlsym finds code by its name.
    #[arg(long, value_name = "DIR")]
    elf: Option<PathBuf>,

    /// Like --elf, but write dynamic-link libraries for Windows, jit-PID-ADDRESS.dll
    #[arg(long, value_name = "DIR")]
    pe: Option<PathBuf>,

    /// Like --elf, but write dynamic libraries for macOS, jit-PID-ADDRESS.dylib
    #[arg(long, value_name = "DIR")]
    macho: Option<PathBuf>,

    /// With --perf-map, --elf, --pe or --macho: write the code that was live at TIME, in seconds as the listing
    /// shows them (ticks for a dump with an arch clock)
    #[arg(long, value_name = "TIME")]
    at: Option<Time>,

    /// Replace existing files
    #[arg(short, long)]
    force: bool,
}

impl Args {
    /// The files that the user named for a core file, those that say more first.
    fn named(&self) -> Vec<FoundSource> {
        let files = [(Kind::Jitdump, &self.from_jitdump), (Kind::PerfMap, &self.from_perf_map)];
        let named = files.into_iter().filter_map(|(kind, path)| Some((kind, path.clone()?)));
        named.map(|(kind, path)| FoundSource::named(kind, path)).collect()
    }

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

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.at.is_some() && !args.perf_map && !args.map_for_perf && args.objects().is_none() {
        return Err(Error::Refused(
            "--at needs an output that shows live code: add --perf-map, or --elf, --pe or --macho with DIR"
                .to_owned(),
        ));
    }
    let input = match (&args.file, args.pid, &args.core) {
        (_, Some(pid), _) => process::of_process(pid)?,
        (_, _, Some(core)) => process::of_core(core, &args.named())?,
        (Some(file), ..) => Input::read(file)?.translated(),
        (None, None, None) => {
            return Err(Error::Usage("nothing to dump. Pass FILE, -p PID or --core FILE".into()));
        }
    };
    let mut out = Out::new();
    match input.format()? {
        Format::Jitdump => dump_jitdump(args, &input, &mut out)?,
        Format::PerfMap => dump_perf_map(args, &input, &mut out)?,
    }
    out.finish()
}

fn dump_jitdump(args: &Args, input: &Input, out: &mut Out) -> Result<()> {
    let parsed = || Dump::parse(input.bytes()).map_err(Error::format(input.name()));
    if let Some(path) = &args.jitdump {
        return if args.source_positions {
            let copy = jitdump::with_source_positions(&parsed()?);
            write_file(path, &copy.map_err(Error::format(input.name()))?, args.force)
        } else {
            write_file(path, input.bytes(), args.force)
        };
    }
    let dump = parsed()?;
    if args.json {
        return json::jitdump(&dump, out);
    }
    if !args.perf_map && !args.map_for_perf && args.objects().is_none() {
        return listing::jitdump(&dump, input, out);
    }
    process::warn_of_left_out(&dump, input);
    let until = args.at.map_or(Ok(u64::MAX), |at| at.of(dump.header())).map_err(Error::Refused)?;
    let live = live::Live::at(&dump, until, |error| note::warning(input.message(error)));
    if let Some((format, folder)) = args.objects() {
        objects::write(&dump, &live, format, folder, args.force, input)
    } else if let (true, Some(pid)) = (args.map_for_perf, args.pid) {
        let mut map = Vec::new();
        map::from_jitdump(&live, &mut map)?;
        process::write_map(pid, &map, args.force)
    } else {
        map::from_jitdump(&live, out)
    }
}

/// Writes a file that only this user can access, without following links, and reports it.
fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    let mut output = Output::create(path, force)?;
    output.file().write_all(bytes).map_err(Error::file(path))?;
    output.finish()?;
    note::say(format_args!("{}: {} bytes", text::path(path), bytes.len()));
    Ok(())
}

fn dump_perf_map(args: &Args, input: &Input, out: &mut Out) -> Result<()> {
    if args.objects().is_some() || args.jitdump.is_some() {
        return Err(Error::Refused(format!(
            "{}: a perf map has names and addresses but no code bytes, so it cannot be converted to \
             object files or a jitdump",
            text::path(input.name())
        )));
    }
    if args.at.is_some() {
        return Err(Error::Refused(format!(
            "{}: a perf map has no timestamps; --at needs a jitdump",
            text::path(input.name())
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
