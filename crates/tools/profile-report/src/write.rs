//! The file.

use std::io::{self, Write};

use miniz_oxide::deflate::compress_to_vec_zlib;
use profile::{CodeSource, Profile};

use crate::difference::{self, Difference, DifferenceSummary};
use crate::options::Options;
use crate::summary::Summary;
use crate::{base64, code, tables};

/// The first line of each report, by which a file is known to be one.
pub const BEGINNING: &str = "<!DOCTYPE html><!-- jitscribe report -->\n";

/// Higher levels take a multiple of the time for files that are hardly smaller.
const LEVEL: u8 = 4;

const STYLE: &str = include_str!("../page/page.css");

/// A page that shows data.
struct Page {
    /// Its title, until its script has read the data.
    title: &'static str,
    body: &'static str,
    script: &'static str,
}

const REPORT: Page = Page {
    title: "jitscribe report",
    body: include_str!("../page/page.html"),
    script: include_str!("../page/built.js"),
};

const DIFFERENCE: Page = Page {
    title: "jitscribe diff",
    body: include_str!("../page/difference.html"),
    script: include_str!("../page/built_difference.js"),
};

/// Writes a report.
///
/// # Errors
/// What `out` answers.
pub fn write(
    profile: &Profile,
    source: &mut dyn CodeSource,
    options: &Options,
    out: &mut impl Write,
) -> io::Result<Summary> {
    let mut summary = Summary { samples: profile.samples().len(), ..Summary::default() };
    let mut out = Counted { out, bytes: 0 };
    REPORT.begin(&mut out)?;
    element("profile", &tables::bytes(profile, &options.unnamed), &mut out)?;
    element("code", &code::bytes(profile, source, options, &mut summary), &mut out)?;
    REPORT.end(&mut out)?;
    summary.bytes = out.bytes;
    Ok(summary)
}

/// Writes how two profiles differ: a flame graph of both, and a table of functions.
///
/// # Errors
/// What `out` answers.
pub fn write_difference(
    difference: &Difference<'_>,
    out: &mut impl Write,
) -> io::Result<DifferenceSummary> {
    let mut summary = DifferenceSummary::default();
    let mut out = Counted { out, bytes: 0 };
    DIFFERENCE.begin(&mut out)?;
    element("difference", &difference::bytes(difference, &mut summary), &mut out)?;
    DIFFERENCE.end(&mut out)?;
    summary.bytes = out.bytes;
    Ok(summary)
}

impl Page {
    /// All up to the data.
    fn begin(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { title, body, .. } = self;
        out.write_all(BEGINNING.as_bytes())?;
        write!(
            out,
            "<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style></head>\n<body>\n{body}"
        )
    }

    /// All behind the data.
    fn end(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "<script>\n{}</script>\n</body></html>\n", self.script)
    }
}

fn element(name: &str, data: &[u8], out: &mut impl Write) -> io::Result<()> {
    write!(out, "<script type=\"application/octet-stream\" id=\"{name}-data\">")?;
    base64::write(&compress_to_vec_zlib(data, LEVEL), out)?;
    writeln!(out, "</script>")
}

struct Counted<'w, W> {
    out: &'w mut W,
    bytes: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
