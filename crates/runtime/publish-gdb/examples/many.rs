//! Announces many functions one at a time and prints what it cost. Used for measuring debuggers.
//!
//! `many COUNT [each|scatter|churn|linger|colon|unload]`: functions called `f0`, `f1`, … with four lines each, and unwind info; with `colon`,
//! `many:f0:0` and so on. With `churn`, they are unloaded again, all but the last 100; with `unload`, all
//! at the end, in a scattered order. Then it waits for a line on standard input, if
//! that is a pipe or a terminal.

use std::io::Read;
use std::time::Instant;

use code_image::{Endian, Target};
use publish_gdb::{Code, Gdb, Line, Options};
use unwind_info::{Machine, Unwind};

const SIZE: usize = 64;

#[cfg_attr(test, allow(dead_code))]
fn main() {
    run(std::env::args().skip(1));
}

/// The example, with its arguments.
pub fn run(mut words: impl Iterator<Item = String>) {
    let count: usize = words.next().and_then(|count| count.parse().ok()).unwrap_or(1000);
    let how = words.next().unwrap_or_default();
    let machine = Machine::host().expect("a machine whose frames can be described");
    let number = if machine == Machine::X86_64 { 62 } else { 183 };
    let options = if how == "each" { Options::default().each() } else { Options::default() };
    let gdb = Gdb::create(Target::new(number, Endian::Little), options).expect("memory");

    let memory = vec![0xc3_u8; SIZE * count.max(1)];
    let base = memory.as_ptr().addr() as u64;
    let name = |number: usize| match &*how {
        "colon" => format!("many:f{number}:0"),
        _ => format!("f{number}"),
    };
    let names: Vec<String> = (0..count).map(name).collect();
    let load = |key: usize, place: usize| {
        let start = base + (place * SIZE) as u64;
        let line = |number: u32| {
            Line::new(number * 8, "/src/many.lang", 5 * key as u32 + number).column(1)
        };
        let mut frames = Vec::with_capacity(64);
        unwind_info::absolute(machine, start, SIZE as u64, &Unwind::FRAME_POINTER, &mut frames)
            .expect("a frame pointer can be described");
        let lines = [line(1), line(2), line(3), line(4)];
        let code = Code::at(start, SIZE as u64).named(&names[key]).lines(&lines);
        gdb.load_with_frames(key as u64, &code, &frames);
    };
    let began = Instant::now();
    let mut place = 0;
    for key in 0..count {
        if how == "scatter" {
            // In a scattered order: with a step that is coprime to the count.
            place = (place + 7919) % count;
        } else {
            place = key;
        }
        load(key, place);
        if how == "churn" && key >= 100 {
            gdb.unload((key - 100) as u64, base + ((key - 100) * SIZE) as u64);
        }
    }
    let took = began.elapsed();
    let each = took.as_nanos() / count.max(1) as u128;
    #[allow(clippy::print_stderr)]
    {
        eprintln!("{count} functions in {:.3} s, {each} ns each", took.as_secs_f64());
    }
    if how == "unload" {
        let began = Instant::now();
        for number in 0..count {
            let key = number * 7919 % count;
            gdb.unload(key as u64, base + (key * SIZE) as u64);
        }
        let each = began.elapsed().as_nanos() / count.max(1) as u128;
        #[allow(clippy::print_stderr)]
        {
            eprintln!("unloaded: {each} ns each");
        }
    }
    if ["linger", "churn", "colon"].contains(&&*how) {
        while gdb.is_pending() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    let _ = std::io::stdin().read(&mut [0]);
    drop(memory);
}
