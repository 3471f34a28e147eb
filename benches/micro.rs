//! The parts of an inject, each by itself. `cargo bench -p benches`

use std::io::Cursor;
use std::ops::Range;

use benches::shape::{ARENA, Function};
use code_image::{Endian, ImageWriter, Target, VisibleCode};
use code_timeline::{CodeId, Timeline, TimelineBuilder};
use divan::Bencher;
use divan::counter::ItemsCount;
use jitdump::{CodeEvent, CodeLoad, DebugEntry, Dump, EntryName, Load, Writer, WriterConfig};
use jitscribe::{Code, Line};

const SIZES: [u32; 2] = [1_000, 100_000];

fn main() {
    divan::main();
}

/// A dump of `functions` functions in memory.
fn dump(functions: u32) -> Vec<u8> {
    let config = WriterConfig {
        endian: jitdump::Endian::Little,
        machine: 62,
        pid: 1,
        timestamp: 1,
        flags: 0,
    };
    let mut writer = Writer::new(Vec::new(), &config).unwrap();
    let mut address = ARENA;
    for number in 0..functions {
        let function = Function::new(number, 0);
        let time = 1_000_000 + u64::from(number);
        let lines = (0..).zip(function.line_offsets).map(|(line, offset)| DebugEntry {
            addr: address + offset,
            line: function.line + line,
            discrim: 0,
            name: EntryName::Path(function.file.as_bytes()),
        });
        writer.debug_info(time, address, lines).unwrap();
        let load = Load {
            pid: 1,
            tid: 1,
            vma: address,
            code_addr: address,
            code_index: number.into(),
            name: function.name.as_bytes(),
            code: &function.code,
            padding: &[],
            missing: 0,
        };
        writer.load(time, &load).unwrap();
        address += function.stride();
    }
    writer.into_sink()
}

fn loads(dump: &[u8]) -> Vec<CodeLoad<'_>> {
    let codes = Dump::parse(dump).unwrap().codes();
    codes
        .filter_map(|event| match event.unwrap() {
            CodeEvent::Load(load) => Some(load),
            _ => None,
        })
        .collect()
}

fn range(load: &CodeLoad<'_>) -> Range<u64> {
    load.address..load.end()
}

fn timeline(loads: &[CodeLoad<'_>]) -> Timeline {
    let mut builder = TimelineBuilder::new();
    for (number, load) in (0..).zip(loads) {
        builder.load(load.timestamp, range(load), CodeId(number));
    }
    builder.finish()
}

/// Reading a dump: codes and all of their lines.
#[divan::bench(args = SIZES)]
fn parse(bencher: Bencher<'_, '_>, functions: u32) {
    let dump = dump(functions);
    bencher
        .counter(ItemsCount::new(functions))
        .bench(|| loads(&dump).iter().map(|load| load.lines().count()).sum::<usize>());
}

/// Building the timeline of code that was made once.
#[divan::bench(args = SIZES)]
fn build_timeline(bencher: Bencher<'_, '_>, functions: u32) {
    let dump = dump(functions);
    let loads = loads(&dump);
    bencher.counter(ItemsCount::new(functions)).bench(|| timeline(&loads));
}

/// Asking who was at an address: all functions in scattered order.
#[divan::bench(args = SIZES)]
fn query(bencher: Bencher<'_, '_>, functions: u32) {
    let dump = dump(functions);
    let loads = loads(&dump);
    let timeline = timeline(&loads);
    bencher.counter(ItemsCount::new(functions)).bench(|| {
        let scattered = (0..loads.len()).map(|number| &loads[number * 7919 % loads.len()]);
        scattered.filter(|load| timeline.at(load.address + 5, u64::MAX - 1).is_some()).count()
    });
}

/// Writing an image with symbols and lines, into memory.
#[divan::bench(args = SIZES)]
fn write_image(bencher: Bencher<'_, '_>, functions: u32) {
    let dump = dump(functions);
    let loads = loads(&dump);
    let span = loads[0].address..loads[loads.len() - 1].end();
    bencher.counter(ItemsCount::new(functions)).bench(|| {
        let target = Target::new(62, Endian::Little);
        let file = Cursor::new(Vec::new());
        let mut writer = ImageWriter::new(file, target, span.clone()).unwrap();
        let mut lines = Vec::new();
        for load in &loads {
            lines.clear();
            lines.extend(load.lines().map(|line| {
                let offset = (line.address - load.address) as u32;
                Line::new_bytes(offset, line.file, line.line).column(line.column)
            }));
            let code = Code::new(load.bytes).runs_at(load.address).named_bytes(load.name);
            writer.add(&VisibleCode::whole(code.lines(&lines))).unwrap();
        }
        writer.finish(|_| None).unwrap()
    });
}
