//! Asks a running agent.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use code_agent::protocol::{
    Address, Answer, Ask, Content, Request, Resolved, ResolvedCode, Unknown, VERSION,
};

use super::args::SOCKET;
use super::patient::Patient;
use crate::text::Out;
use crate::{Error, Result, text};

/// Ask a running agent what is at addresses of a process
#[derive(Debug, clap::Args)]
pub struct AskArgs {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
    /// The addresses, in hexadecimal with 0x or in decimal
    #[arg(value_name = "ADDRESS", required = true, value_parser = number)]
    addresses: Vec<u64>,
    /// When the process started, in clock ticks since boot (field 22 of /proc/PID/stat)
    #[arg(long, value_name = "TICKS")]
    start: Option<u64>,
    /// The time, in nanoseconds of CLOCK_MONOTONIC; without it, now
    #[arg(long, value_name = "NANOSECONDS")]
    time: Option<u64>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// List the processes whose code a running agent knows, as JSON lines
#[derive(Debug, clap::Args)]
pub struct ProcessesArgs {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, clap::Args)]
struct Connection {
    /// The agent's Unix socket
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "not an address: give it as 0x7f00 or in decimal".to_owned())
}

/// Asks what is at addresses.
pub fn ask(args: &AskArgs) -> Result<()> {
    let address = |&address| Address { pid: args.pid, start: args.start, address, time: args.time };
    let asked = Ask::Resolve(args.addresses.iter().map(address).collect());
    let answer = args.connection.request(asked)?;
    let mut out = Out::new();
    if args.json {
        out.json(&answer)?;
        return out.finish();
    }
    let Content::Resolved(all) = answer.content else { return Err(unexpected(&args.connection)) };
    for (address, resolved) in args.addresses.iter().zip(&all) {
        match resolved {
            Resolved::Code(code) => print(&mut out, *address, code)?,
            Resolved::Unknown(why) => {
                let why = match why {
                    Unknown::Process => {
                        "no such process, or no JIT-compiled code in it that you may ask about"
                    }
                    Unknown::Code => "no known code",
                    Unknown::Description => "a code whose description is gone",
                };
                out.line(format_args!("{address:#x}  {why}"))?;
            }
        }
    }
    out.finish()
}

fn print(out: &mut Out, address: u64, code: &ResolvedCode) -> Result<()> {
    for frame in &code.frames {
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        let place = match (frame.file.as_str(), frame.line) {
            ("", _) => String::new(),
            (file, 0) => format!("  {file}"),
            (file, line) => format!("  {file}:{line}"),
        };
        out.line(format_args!("{address:#x}  {}{place}{inlined}", frame.function))?;
    }
    // Of most runtimes, it is the name of the code's own function.
    let own = code.frames.last().map(|frame| frame.function.as_str());
    if !code.symbol.is_empty() && own != Some(&code.symbol) {
        out.line(format_args!("    symbol {}", code.symbol))?;
    }
    let tier = code.tier.as_deref().map(|tier| format!(", tier {tier}")).unwrap_or_default();
    out.line(format_args!(
        "    {} of {} bytes at {:#x}{tier}, generation {}",
        code.kind, code.size, code.address, code.generation
    ))?;
    if let Some(image) = &code.image {
        out.line(format_args!("    image {} has it at {:#x}", image.build_id, image.address))?;
    }
    Ok(())
}

/// Lists the processes.
pub fn processes(args: &ProcessesArgs) -> Result<()> {
    let answer = args.connection.request(Ask::Processes)?;
    let Content::Processes(all) = answer.content else { return Err(unexpected(&args.connection)) };
    let mut out = Out::new();
    for process in &all {
        out.json(process)?;
    }
    out.finish()?;
    crate::note::say(format_args!("{} processes with JIT-compiled code", all.len()));
    Ok(())
}

fn unexpected(connection: &Connection) -> Error {
    let path = text::path(&connection.socket);
    Error::Refused(format!("{path}: an answer to another question; is this an agent?"))
}

/// The most bytes of an answer.
const LARGEST: u64 = 1 << 30;

impl Connection {
    fn request(&self, ask: Ask) -> Result<Answer> {
        let path: &Path = &self.socket;
        let stream = UnixStream::connect(path).map_err(|error| {
            Error::Refused(format!(
                "no agent serves {}: {error}; start one with: jitscribe agent --socket {}",
                text::path(path),
                text::shell_path(path)
            ))
        })?;
        let failed = |error| Error::file(path)(error);
        let mut agent = Patient::new(&stream).map_err(failed)?;
        let request = Request { version: VERSION, id: 1, ask };
        let mut line = serde_json::to_vec(&request).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        agent.write_all(&line).map_err(failed)?;
        let mut answer = Vec::new();
        let mut reader = BufReader::new(std::io::Read::take(agent, LARGEST));
        reader.read_until(b'\n', &mut answer).map_err(failed)?;
        let answer: Answer = serde_json::from_slice(&answer).map_err(Error::format(path))?;
        match answer.content {
            Content::Error(why) => Err(Error::Refused(format!("the agent refuses: {why}"))),
            _ => Ok(answer),
        }
    }
}
