//! Counts, as Prometheus reads them.

use std::fmt::Write as _;

use crate::images::Images;

/// What the agent has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Updates of sources.
    pub updates: u64,
    /// Updates that failed.
    pub failed_updates: u64,
    /// Bytes that were read of sources.
    pub bytes_read: u64,
    /// Chunks of code logs that were read.
    pub chunks_read: u64,
    /// Codes that were found.
    pub codes_added: u64,
    /// Addresses that were asked for.
    pub addresses: u64,
    /// Addresses at which a code was found.
    pub addresses_resolved: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that were refused.
    pub refused_requests: u64,
    /// Processes that were examined for sources.
    pub examined: u64,
    /// Processes that could not be examined, or did not respond.
    pub failed_examinations: u64,
    /// Times that files of a process were read.
    pub file_readings: u64,
    /// Times that they could not be read, or the process's file system did not respond.
    pub failed_file_readings: u64,
}

/// What the agent holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Processes whose code is known.
    pub processes: u64,
    /// Those of them that have ended.
    pub ended_processes: u64,
    /// Codes of all processes.
    pub codes: u64,
    /// Bytes that the lists of codes take.
    pub code_bytes: u64,
    /// Bytes that codes of perf maps and jitdumps take, with their names and lines.
    pub file_bytes: u64,
    /// Codes of perf maps and jitdumps for which there was no space.
    pub codes_left_out: u64,
    /// Descriptions of codes that are kept.
    pub descriptions: u64,
    /// Processes that are left out because of a limit.
    pub left_out: u64,
    /// How many seconds ago a process was last examined, if some are to be. Who examines them sets it.
    pub look_age: u64,
}

fn put(out: &mut String, kind: &str, name: &str, help: &str, value: u64) {
    let name = format!("jitscribe_agent_{name}");
    // Writing into a String cannot fail.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
}

/// What was done with images, in the text format of Prometheus.
#[must_use]
pub fn image_text(images: &Images) -> String {
    let mut out = String::new();
    let mut put = |kind, name, help, value| put(&mut out, kind, name, help, value);
    let (counts, (number, bytes)) = (images.counts(), images.size());
    put("gauge", "images", "Images in the folder, and those that wait to be written.", number);
    put("gauge", "image_bytes", "Bytes of these images, in whole blocks of 4 KiB.", bytes);
    put("counter", "images_written_total", "Images written.", counts.written);
    put("counter", "images_removed_total", "Images removed by the limit.", counts.removed);
    put("counter", "failed_images_total", "Images not written or not removed.", counts.failed);
    let help = "Images not made: too large, or while none could be written.";
    put("counter", "left_out_images_total", help, counts.left_out);
    out
}

/// The counts in the text format of Prometheus.
#[must_use]
pub fn text(counts: &Counts, gauges: &Gauges) -> String {
    let mut out = String::new();
    let mut put = |kind: &str, name: &str, help: &str, value: u64| {
        put(&mut out, kind, name, help, value);
    };
    let c = "counter";
    put(c, "updates_total", "Updates of sources of code.", counts.updates);
    put(c, "failed_updates_total", "Updates that failed.", counts.failed_updates);
    put(c, "read_bytes_total", "Bytes read of sources of code.", counts.bytes_read);
    put(c, "read_chunks_total", "Chunks of code logs read.", counts.chunks_read);
    put(c, "codes_total", "Codes found.", counts.codes_added);
    put(c, "addresses_total", "Addresses asked for.", counts.addresses);
    put(c, "resolved_addresses_total", "Addresses with a known code.", counts.addresses_resolved);
    put(c, "requests_total", "Requests answered.", counts.requests);
    put(c, "refused_requests_total", "Requests refused.", counts.refused_requests);
    put(c, "examinations_total", "Processes examined for sources of code.", counts.examined);
    let help = "Processes that could not be examined.";
    put(c, "failed_examinations_total", help, counts.failed_examinations);
    let help = "Times that perf maps and jitdumps of a process were read.";
    put(c, "file_readings_total", help, counts.file_readings);
    let help = "Times that perf maps and jitdumps of a process could not be read.";
    put(c, "failed_file_readings_total", help, counts.failed_file_readings);
    let g = "gauge";
    put(g, "processes", "Processes whose code is known.", gauges.processes);
    put(g, "ended_processes", "Those of them that have ended.", gauges.ended_processes);
    put(g, "codes", "Codes of all processes.", gauges.codes);
    put(g, "code_bytes", "Bytes that the lists of codes take.", gauges.code_bytes);
    let help = "Bytes that codes of perf maps and jitdumps take, with their names and lines.";
    put(g, "file_bytes", help, gauges.file_bytes);
    let help = "Codes of perf maps and jitdumps left out because of a limit.";
    put(g, "left_out_codes", help, gauges.codes_left_out);
    put(g, "descriptions", "Descriptions of codes that are kept.", gauges.descriptions);
    put(g, "left_out_processes", "Processes left out because of a limit.", gauges.left_out);
    let help = "Seconds since a process was last examined, if some are to be.";
    put(g, "look_age_seconds", help, gauges.look_age);
    out
}
