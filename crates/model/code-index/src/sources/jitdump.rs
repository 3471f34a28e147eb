//! Jitdumps.

use jitdump::{Dump, Error, Header, Quirks};

use crate::description::Description;
use crate::events::DumpEvents;
use crate::format::{Format, Options, Read, Source};
use crate::found::{Found, Place};

/// Jitdumps.
pub const JITDUMP: Format = Format {
    name: "jitdump",
    recognizes: |content| Header::parse(content).is_ok(),
    read,
    describe,
};

fn read(content: &[u8], options: &Options<'_>) -> Result<Read, Error> {
    let dump = Dump::parse(content)?;
    let quirks = Quirks::detect(&dump);
    let mut read = Read { quirks: Some(quirks), ..Read::default() };
    let mut events = DumpEvents::new(&mut read.history);
    if let Some(processes) = options.processes {
        events = events.of_processes(processes);
    }
    if options.keeps_unloaded {
        events = events.keeping_unloaded();
    }
    for event in dump.codes_with(quirks) {
        match event {
            Ok(event) => {
                events.take(event, |load| Place::Records(load.place()));
            }
            Err(_) => read.damaged = read.damaged.saturating_add(1),
        }
    }
    events.finish();
    Ok(read)
}

fn describe<'d>(source: &Source, found: &Found, content: &'d [u8]) -> Option<Description<'d>> {
    let (Place::Records(place), Some(quirks)) = (&found.place, source.quirks) else { return None };
    let dump = Dump::parse(content).ok()?;
    let load = dump.code_at(place, &quirks)?;
    // The content may be another one by now.
    (load.size == found.size).then(|| Description::of_load(load, found.start, &dump, quirks))
}
