//! Threads of the Firefox Profiler: samples, and a marker for each compilation.

use std::io;

use profile::{Code, Profile};
use rustc_hash::FxHashMap;

use crate::firefox::time::milliseconds;
use crate::json::Object;
use crate::options::short;
use crate::timeline::ThreadSamples;

/// The name and the type of markers.
pub const MARKER: &str = "JitCode";

/// A thread that is to be written.
#[derive(Debug)]
pub struct Thread<'p> {
    /// The profile.
    pub profile: &'p Profile,
    /// The samples of the thread.
    pub samples: &'p ThreadSamples,
    /// What its process is known by.
    pub pid: &'p str,
    /// When the profile begins.
    pub start: u64,
    /// The number of [`MARKER`] among the strings.
    pub name: Option<u32>,
    /// The compilations that are written with it.
    pub markers: &'p [(u64, &'p Code)],
}

/// What each process is known by. Process ids are used again; the Firefox Profiler takes any string.
pub fn process_ids(profile: &Profile) -> Vec<String> {
    let mut uses: FxHashMap<u32, u32> = FxHashMap::default();
    let spelled = profile.processes().iter().map(|process| {
        let earlier = uses.entry(process.pid).or_default();
        let spelled = match *earlier {
            0 => process.pid.to_string(),
            earlier => format!("{}.{earlier}", process.pid),
        };
        *earlier = earlier.saturating_add(1);
        spelled
    });
    spelled.collect()
}

/// Describes the fields of markers.
pub fn write_marker_schema(schema: &mut Object<'_>) -> io::Result<()> {
    schema.field("name", MARKER)?;
    schema.field("tooltipLabel", "Compiled {marker.data.function}")?;
    schema.field(
        "tableLabel",
        "{marker.data.function} {marker.data.tier} #{marker.data.generation}",
    )?;
    schema.field("chartLabel", "{marker.data.function} {marker.data.tier}")?;
    schema.list("display", ["marker-chart", "marker-table", "timeline-overview"])?;
    let fields = [
        ("function", "Function", "string"),
        ("tier", "Tier", "string"),
        ("generation", "Generation", "integer"),
        ("size", "Machine code", "bytes"),
        ("lifetime", "Replaced after", "duration"),
    ];
    schema.objects("fields", fields, |field, (key, label, format)| {
        field.field("key", key)?;
        field.field("label", label)?;
        field.field("format", format)
    })
}

impl Thread<'_> {
    /// Writes the fields of the thread.
    pub fn write(&self, object: &mut Object<'_>) -> io::Result<()> {
        let profile = self.profile;
        let row = profile.thread(self.samples.thread);
        let process = profile.process(row.process);
        object.field("processType", "default")?;
        object.field("processName", short(profile.text(process.name)))?;
        object.field("processStartupTime", 0)?;
        object.field("processShutdownTime", ())?;
        object.field("registerTime", 0)?;
        object.field("unregisterTime", ())?;
        object.list("pausedRanges", [(); 0])?;
        object.field("name", short(profile.text(row.name)))?;
        object.field("isMainThread", row.tid == process.pid)?;
        object.field("pid", self.pid)?;
        object.field("tid", row.tid)?;
        object.object("samples", |table| {
            let samples = || self.samples.samples.iter();
            table.field("length", samples().len())?;
            table.list("stack", samples().map(|(_, stack)| stack.0))?;
            table.list("time", samples().map(|&(time, _)| self.since_start(time)))?;
            table.field("weight", ())?;
            table.field("weightType", "samples")
        })?;
        object.object("markers", |table| self.write_markers(table))
    }

    /// What was before the first sample is shown at its time: it may be hours before, if a running process was recorded.
    fn since_start(&self, time: u64) -> f64 {
        milliseconds(time.saturating_sub(self.start))
    }

    fn write_markers(&self, table: &mut Object<'_>) -> io::Result<()> {
        let all = || self.markers.iter();
        table.field("length", all().len())?;
        table.list("name", all().map(|_| self.name))?;
        table.list("startTime", all().map(|(loaded, _)| self.since_start(*loaded)))?;
        table.list("endTime", all().map(|_| ()))?;
        // All are instants: thousands of overlapping spans could not be drawn.
        table.list("phase", all().map(|_| 0))?;
        table.list("category", all().map(|_| 1))?;
        table.objects("data", all(), |data, (loaded, code)| {
            data.field("type", MARKER)?;
            data.field("function", short(self.profile.function_name(code.function)))?;
            data.field("tier", short(self.profile.text(code.tier)))?;
            data.field("generation", code.generation)?;
            data.field("size", code.size)?;
            match code.gone {
                Some(gone) => data.field("lifetime", milliseconds(gone.saturating_sub(*loaded))),
                None => Ok(()),
            }
        })
    }
}
