//! The formats.

use std::io::{self, Write};

use profile::Profile;

use crate::options::Options;
use crate::{chrome, cpuprofile, firefox, folded, otlp, pprof, speedscope};

/// A format that profiles are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For the Firefox Profiler.
    Firefox,
    /// For speedscope.
    Speedscope,
    /// For pprof and what reads its format.
    Pprof,
    /// For flame graphs.
    Folded,
    /// For DevTools and VS Code.
    Cpuprofile,
    /// For OpenTelemetry.
    Otlp,
    /// For readers of Chrome's traces.
    Chrome,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Firefox,
        Self::Speedscope,
        Self::Pprof,
        Self::Folded,
        Self::Cpuprofile,
        Self::Otlp,
        Self::Chrome,
    ];

    /// How the names of its files end: what their readers recognize them by, where there is such a thing.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Firefox => "firefox.json",
            Self::Speedscope => "speedscope.json",
            Self::Pprof => "pb.gz",
            Self::Folded => "folded",
            Self::Cpuprofile => "cpuprofile",
            Self::Otlp => "otlp",
            Self::Chrome => "trace.json",
        }
    }

    /// Whether a file has only one thread.
    #[must_use]
    pub const fn has_one_thread(self) -> bool {
        matches!(self, Self::Cpuprofile)
    }

    /// Whether values of several events can be told apart in it.
    #[must_use]
    pub const fn has_events(self) -> bool {
        matches!(self, Self::Pprof | Self::Otlp)
    }

    /// Writes a profile.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        self,
        profile: &Profile,
        options: &Options,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match self {
            Self::Firefox => firefox::write(profile, options, out),
            Self::Speedscope => speedscope::write(profile, options, out),
            Self::Pprof => pprof::write(profile, options, out),
            Self::Folded => folded::write(profile, options, out),
            Self::Cpuprofile => cpuprofile::write(profile, options, out),
            Self::Otlp => otlp::write(profile, options, out),
            Self::Chrome => chrome::write(profile, options, out),
        }
    }
}
