//! The object file with the known code of a profile.

use std::io::Write;
use std::path::{Path, PathBuf};

use code_image::{Endian, PlacedImage, Target};

use crate::known::CodeIndex;
use crate::{Error, Result};
use jitscribe_inject::output::Output;

/// `EM_X86_64`.
const X86_64: u16 = 62;

/// The path of the object file of a profile. It is absolute, because KCachegrind looks the file up by its path.
pub fn path_for(profile: &Path) -> Result<PathBuf> {
    let mut name = profile.as_os_str().to_owned();
    name.push(".so");
    std::path::absolute(PathBuf::from(name)).map_err(Error::file(profile))
}

/// Writes all known code to an object file, at its original addresses and with its bytes where available. Of overwritten code,
/// only the parts that remained at the end are written.
pub fn write(known: &mut CodeIndex, path: &Path, force: bool) -> Result<()> {
    let target = known.target().unwrap_or_else(|| Target::new(X86_64, Endian::Little));
    let mut image = PlacedImage::new(target);
    let all: Vec<_> = known.iter().collect();
    for code in all {
        let name = known.name(&code)?.into_owned();
        let Some(load) = known.load(&code)? else { continue };
        let offset = |address: u64| usize::try_from(address.saturating_sub(code.start)).ok();
        let seen = offset(code.visible.start).zip(offset(code.visible.end));
        let bytes = seen.and_then(|(from, to)| load.bytes.get(from..to.min(load.bytes.len())));
        image.add(code.visible.start, &name, bytes.unwrap_or_default());
    }
    let file = image.finish().map_err(Error::format(path))?;
    let mut output = Output::create(path, force)?;
    output.file().write_all(&file).map_err(Error::file(path))?;
    Ok(output.finish()?)
}
