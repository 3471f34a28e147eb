//! Reads a jitdump into a history and the bytes of its codes.

use std::ops::ControlFlow;

use code_index::DumpEvents;
use code_timeline::{HistoryBuilder, Processes};
use jitdump::{DumpFile, FLAG_ARCH_TIMESTAMP, OpenError, ReadAt};

use crate::{CodeBytes, Place};

/// How many places of damage are described; the others are only counted.
const DESCRIBED: usize = 10;

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read, or is not a jitdump.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its codes take more memory than there is.
    #[error("the codes of the dump take more memory than there is")]
    Memory,
}

impl CodeBytes {
    /// Reads the first `size` bytes of a jitdump. What is damaged is left out, and [described](Self::damage). Memory is in proportion to the
    /// bytes of the codes.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Memory`].
    pub fn read(file: impl ReadAt, size: u64) -> Result<Self, Error> {
        let mut file = DumpFile::open(file, size)?;
        let quirks = file.quirks().map_err(OpenError::Read)?;
        let has_processor_clock = file.header().flags & FLAG_ARCH_TIMESTAMP != 0;
        let mut history = HistoryBuilder::new();
        let mut events = DumpEvents::new(&mut history);
        let mut content = Vec::new();
        let (mut damage, mut refused, mut damaged) = (Vec::new(), false, 0_u64);
        let outcome = file.for_each_code(quirks, |event| {
            match event {
                Ok(event) => {
                    events.take(event, |load| {
                        let name = append(&mut content, load.name);
                        let bytes = append(&mut content, load.bytes);
                        refused |= name.is_none() || bytes.is_none();
                        let [name, bytes] = [name, bytes].map(Option::unwrap_or_default);
                        Place { name, bytes }
                    });
                    if refused {
                        return ControlFlow::Break(());
                    }
                }
                Err(error) => {
                    damaged += 1;
                    if damage.len() < DESCRIBED {
                        damage.push(error.to_string());
                    }
                }
            }
            ControlFlow::Continue(())
        });
        outcome.map_err(OpenError::Read)?;
        if refused {
            return Err(Error::Memory);
        }
        if damaged > damage.len() as u64 {
            damage.push(format!("and {} more", damaged - damage.len() as u64));
        }
        events.finish();
        let history = history.finish(&Processes::new(), 0);
        Ok(Self { history, content, has_processor_clock, damage })
    }
}

/// Appends bytes, and returns where they are. `None`: the memory was refused.
fn append(content: &mut Vec<u8>, bytes: &[u8]) -> Option<(usize, usize)> {
    content.try_reserve(bytes.len()).ok()?;
    let start = content.len();
    content.extend_from_slice(bytes);
    Some((start, content.len()))
}
