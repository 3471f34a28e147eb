//! What a recording says of itself.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jitscribe_inject::Recording;
use perf_data::feature;
use profile::About;

/// The release of the kernel that the recording was made under; empty if it is not known.
pub fn release(recording: &Recording) -> &[u8] {
    let input = recording.reader();
    input.features().string(feature::OSRELEASE, input.endian()).unwrap_or_default()
}

/// What `recording`, which the user named `path`, says of itself.
pub fn about(path: &Path, recording: &Recording) -> About {
    let input = recording.reader();
    let (features, endian) = (input.features(), input.endian());
    let string = |number| features.string(number, endian).unwrap_or_default().to_vec();
    let by_frequency = input.attrs().list().iter().find(|attr| attr.is_by_frequency());
    let to_utc = features.clock_data(endian).and_then(|clock| {
        i64::try_from(i128::from(clock.wall_clock).checked_sub(clock.time.into())?).ok()
    });
    let mut about = About::default();
    about.recording = path.as_os_str().as_bytes().to_vec();
    about.host = string(feature::HOSTNAME);
    about.machine = string(feature::ARCH);
    about.command = features.command_line(endian).into_iter().map(<[u8]>::to_vec).collect();
    about.to_utc = to_utc;
    about.frequency = by_frequency.map(|attr| attr.sample_period);
    about
}
