//! Large files as memcheck, massif and DHAT write them of a process with jitted code: every third frame is in it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Whose file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// memcheck's log as text.
    Memcheck,
    /// memcheck's log as XML.
    MemcheckXml,
    /// massif's tree of callers.
    Massif,
    /// DHAT's table of frames.
    Dhat,
}

impl Tool {
    /// What a table calls it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck, text",
            Self::MemcheckXml => "memcheck, XML",
            Self::Massif => "massif",
            Self::Dhat => "DHAT",
        }
    }

    /// The verb that names jitted code in it.
    #[must_use]
    pub fn verb(self) -> &'static str {
        match self {
            Self::Memcheck | Self::MemcheckXml => "memcheck",
            Self::Massif => "massif",
            Self::Dhat => "dhat",
        }
    }
}

/// Where a process has code that valgrind does not know.
#[derive(Debug)]
pub struct Codes {
    /// The process.
    pub pid: u32,
    addresses: Vec<u64>,
}

impl Codes {
    /// From a profile of callgrind's that has it.
    ///
    /// # Errors
    /// When that cannot be read, or has none.
    pub fn of(profile: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(profile)?;
        let pid = text.lines().find_map(|line| line.strip_prefix("pid: ")?.parse().ok());
        let names = text.lines().filter_map(|line| line.strip_prefix("cfn=")?.split_once(") 0x"));
        let mut addresses: Vec<u64> =
            names.filter_map(|(_, digits)| u64::from_str_radix(digits, 16).ok()).collect();
        // What is above is no object of the system's.
        addresses.retain(|&address| address >= 0x60_0000_0000);
        match pid.filter(|_| !addresses.is_empty()) {
            Some(pid) => Ok(Self { pid, addresses }),
            None => Err(io::Error::other("the profile has no jitted code")),
        }
    }

    /// An address for the frame with this number: in jitted code or not.
    fn frame(&self, number: usize) -> (u64, bool) {
        let code = self.addresses[number / 3 % self.addresses.len()];
        match number % 3 {
            0 => (code + 9 + number as u64 % 16, true),
            _ => (0x48_0000 + number as u64 % 4096 * 16, false),
        }
    }
}

/// Frames of a stack.
const DEPTH: usize = 12;

/// Writes a file of about `bytes`.
///
/// # Errors
/// When it cannot be written.
pub fn make(tool: Tool, codes: &Codes, path: &Path, bytes: u64) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let (begin, end) = match tool {
        Tool::Memcheck => (format!("=={}== Memcheck, a memory error detector\n", codes.pid), ""),
        Tool::MemcheckXml => (
            format!(
                "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>4</protocolversion>\n\
                 <protocoltool>memcheck</protocoltool>\n\n<pid>{}</pid>\n<ppid>1</ppid>\n<tool>memcheck</tool>\n\n",
                codes.pid
            ),
            "</valgrindoutput>\n",
        ),
        Tool::Massif => ("desc: (none)\ncmd: app\ntime_unit: i\n".to_owned(), ""),
        Tool::Dhat => (
            format!(
                "{{\"dhatFileVersion\":2\n,\"mode\":\"heap\",\"verb\":\"Allocated\"\n,\"bklt\":true,\"bkacc\":true\n\
                 ,\"tu\":\"instrs\",\"Mtu\":\"Minstr\"\n,\"tuth\":500\n,\"cmd\":\"app\"\n,\"pid\":{}\n,\"te\":9\n,\"tg\":9\n\
                 ,\"pps\":\n [",
                codes.pid
            ),
            "\n ]\n}\n",
        ),
    };
    out.write_all(begin.as_bytes())?;
    let mut text = String::new();
    let (mut written, mut number) = (0, 0);
    // Of DHAT's, half are stacks and half is the table.
    let stacks = if tool == Tool::Dhat { bytes / 2 } else { bytes };
    while written < stacks {
        text.clear();
        stack(tool, codes, number, &mut text);
        out.write_all(text.as_bytes())?;
        written += text.len() as u64;
        number += 1;
    }
    if tool == Tool::Dhat {
        out.write_all(b"\n ]\n,\"ftbl\":\n [\"[root]\"")?;
        let mut frame = 0;
        while written < bytes {
            text.clear();
            text.push_str("\n ,\"");
            line(codes, frame, &mut text);
            text.push('"');
            out.write_all(text.as_bytes())?;
            written += text.len() as u64;
            frame += 1;
        }
    }
    out.write_all(end.as_bytes())?;
    out.flush()
}

/// `0x4A40044: ???`, or a frame that valgrind knew.
fn line(codes: &Codes, frame: usize, text: &mut String) {
    match codes.frame(frame) {
        (address, true) => *text += &format!("0x{address:X}: ???"),
        (address, false) => {
            *text +=
                &format!("0x{address:X}: function_{frame} (file_{}.c:{})", frame % 64, frame % 999);
        }
    }
}

fn stack(tool: Tool, codes: &Codes, number: usize, text: &mut String) {
    let pid = codes.pid;
    let frames = number * DEPTH..(number + 1) * DEPTH;
    match tool {
        Tool::Memcheck => {
            *text += &format!("=={pid}== Invalid read of size 8\n");
            for frame in frames {
                let begin = if frame % DEPTH == 0 { "at" } else { "by" };
                *text += &format!("=={pid}==    {begin} ");
                line(codes, frame, text);
                text.push('\n');
            }
            *text += &format!("=={pid}== \n");
        }
        Tool::MemcheckXml => {
            *text += &format!(
                "<error>\n  <unique>{number:#x}</unique>\n  <tid>1</tid>\n  <kind>InvalidRead</kind>\n  \
                 <what>Invalid read of size 8</what>\n  <stack>\n"
            );
            for frame in frames {
                let (address, jitted) = codes.frame(frame);
                *text += &format!("    <frame>\n      <ip>0x{address:X}</ip>\n");
                if !jitted {
                    *text += &format!(
                        "      <obj>/usr/bin/app</obj>\n      <fn>function_{frame}</fn>\n      \
                         <dir>/srv/app</dir>\n      <file>file.c</file>\n      <line>{}</line>\n",
                        frame % 999
                    );
                }
                *text += "    </frame>\n";
            }
            *text += "  </stack>\n</error>\n\n";
        }
        Tool::Massif => {
            *text += &format!(
                "#-----------\nsnapshot={number}\n#-----------\ntime={number}\nmem_heap_B=4096\n\
                 mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n\
                 n1: 4096 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
            );
            for frame in frames {
                let depth = frame % DEPTH + 1;
                let below = usize::from(depth < DEPTH);
                *text += &format!("{:depth$}n{below}: 4096 ", "");
                line(codes, frame, text);
                text.push('\n');
            }
        }
        Tool::Dhat => {
            text.push_str(if number == 0 { "{" } else { "\n ,{" });
            *text += "\"tb\":96,\"tbk\":1,\"tl\":500\n  ,\"mb\":96,\"mbk\":1,\"gb\":0,\"gbk\":0,\"eb\":0,\"ebk\":0\n  \
                      ,\"rb\":0,\"wb\":0\n  ,\"fs\":[";
            let all: Vec<String> = frames.map(|frame| (frame % 9999 + 1).to_string()).collect();
            *text += &all.join(",");
            *text += "]\n  }";
        }
    }
}
