//! Prints the functions of a recording with the most samples, or with `--stacks` the stack of each sample.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::PathBuf;

use profile::{Profile, Totals};
use profile_recording::Options;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let all = paths.len();
    paths.retain(|path| path.as_os_str() != "--stacks");
    let [path] = paths.as_slice() else { return Err("usage: top [--stacks] FILE".into()) };
    let recorded = profile_recording::read(path, &Options::default(), &|_| {})?;
    for warning in &recorded.warnings {
        println!("{warning}");
    }
    let profile = &recorded.profile;
    if paths.len() < all {
        print_stacks(profile);
        return Ok(());
    }
    for missing in &profile.missing {
        let path = profile.text(missing.path).escape_ascii();
        println!("{} samples in {path}: {}", missing.samples, missing.cause);
    }
    let totals = Totals::all(profile);
    println!(
        "{} samples, {} stacks, {} frames, {} functions, {} codes",
        profile.samples().len(),
        profile.stacks().len(),
        profile.frames().len(),
        profile.functions().len(),
        profile.codes().len()
    );
    for (function, count) in totals.functions(profile).into_iter().take(30) {
        let row = profile.function(function);
        let (name, file) = (profile.function_name(function), profile.text(row.file));
        println!(
            "{:8} {:8} {:8} {} {}:{}",
            count.own,
            count.total,
            row.kind.name(),
            name.escape_ascii(),
            file.escape_ascii(),
            row.line
        );
    }
    Ok(())
}

fn print_stacks(profile: &Profile) {
    for sample in profile.samples().iter() {
        let thread = profile.thread(sample.thread);
        println!("{} {}", profile.text(thread.name).escape_ascii(), sample.time);
        for frame in profile.frames_of(sample.stack) {
            let name = profile.function_name(frame.function).escape_ascii();
            println!("\t{:x} {name} {} {}", frame.address, frame.depth, frame.line);
        }
    }
}
