//! Copies a recording, with each of its samples COUNT times: makes large recordings of few distinct stacks.

use std::fs::File;
use std::path::Path;

use perf_data::{Error, Input, Writer, kind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, count] = arguments.as_slice() else {
        return Err("usage: repeat INPUT OUTPUT COUNT".into());
    };
    let count: u32 = count.parse()?;
    let mut input = Input::open(Path::new(input))?;
    let file = File::create(output).map_err(Error::Write)?;
    let mut writer = Writer::file(file, &input)?;
    while let Some(event) = input.next_event()? {
        let times = if event.kind() == kind::SAMPLE { count } else { 1 };
        for _ in 0..times {
            writer.write_event(&event)?;
        }
    }
    writer.finish()?;
    Ok(())
}
