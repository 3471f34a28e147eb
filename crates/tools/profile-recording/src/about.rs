//! What a recording says of itself.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jitscribe_inject::Recording;
use perf_data::{Endian, Input, feature};
use profile::About;

/// The release of the kernel.
const RELEASE: u8 = 4;
/// The machine's name, as `uname -m` says.
const ARCH: u8 = 6;
/// Words of a command behind this many are left out.
const MOST_WORDS: usize = 1 << 12;

/// Reads numbers and strings of feature sections.
struct Fields<'i> {
    rest: &'i [u8],
    endian: Endian,
}

impl<'i> Fields<'i> {
    fn of(input: &'i Input, number: u8) -> Self {
        let rest = input.features().get(number).unwrap_or_default();
        Self { rest, endian: input.endian() }
    }

    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(match self.endian {
            Endian::Little => u32::from_le_bytes(*bytes),
            Endian::Big => u32::from_be_bytes(*bytes),
        })
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(match self.endian {
            Endian::Little => u64::from_le_bytes(*bytes),
            Endian::Big => u64::from_be_bytes(*bytes),
        })
    }

    /// A length, and so many bytes with a NUL.
    fn string(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.u32()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text.split(|&byte| byte == 0).next().unwrap_or_default().to_vec())
    }
}

/// The release of the kernel that the recording was made under; empty if it is not known.
pub fn release(recording: &Recording) -> Vec<u8> {
    Fields::of(recording.reader(), RELEASE).string().unwrap_or_default()
}

/// What `recording`, which the user named `path`, says of itself.
pub fn about(path: &Path, recording: &Recording) -> About {
    let input = recording.reader();
    let string = |number| Fields::of(input, number).string().unwrap_or_default();
    let mut words = Fields::of(input, feature::CMDLINE);
    let count = words.u32().unwrap_or(0);
    let command = (0..count).map_while(|_| words.string()).take(MOST_WORDS).collect();
    let mut clock = Fields::of(input, feature::CLOCK_DATA);
    let mut to_utc = || {
        let (_version, _clock) = (clock.u32()?, clock.u32()?);
        let (utc, recorded) = (clock.u64()?, clock.u64()?);
        i64::try_from(i128::from(utc).checked_sub(i128::from(recorded))?).ok()
    };
    let by_frequency = input.attrs().list().iter().find(|attr| attr.is_by_frequency());
    let mut about = About::default();
    about.recording = path.as_os_str().as_bytes().to_vec();
    about.host = string(feature::HOSTNAME);
    about.machine = string(ARCH);
    about.command = command;
    about.to_utc = to_utc();
    about.frequency = by_frequency.map(|attr| attr.sample_period);
    about
}
