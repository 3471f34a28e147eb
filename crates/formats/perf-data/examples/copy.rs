//! Copies a recording of any form: `copy IN OUT`, where `-` is standard input or output.
//! A path becomes a file, standard output a pipe.

use std::fs::File;
use std::path::Path;

use perf_data::{Error, Input, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: copy IN OUT".into());
    };
    let mut input = Input::open(Path::new(&from))?;
    let mut writer = if to == "-" {
        Writer::pipe(std::io::stdout().lock(), &input)
    } else {
        Writer::file(File::create(to).map_err(Error::Write)?, &input)?
    };
    while let Some(event) = input.next_event()? {
        writer.write_event(&event)?;
    }
    writer.finish()?;
    if input.end() != perf_data::End::Complete {
        return Err(format!("{:?}", input.end()).into());
    }
    Ok(())
}
