//! The symbol provider.

use std::borrow::Cow;
use std::path::PathBuf;

use async_trait::async_trait;
use code_index::Frame;
use crash_stream::{CrashStream, Error};
use minidump::Module;
use minidump_unwind::{
    FileError, FileKind, FillSymbolError, FrameSymbolizer, FrameWalker, SymbolProvider,
};

use crate::codes::KnownCodes;
use crate::frame::leave;
use crate::registers::Machine;

/// Names and unwinds the JIT-compiled code in a minidump. For all other code, it has no answer: use it in a
/// [`MultiSymbolProvider`](minidump_unwind::MultiSymbolProvider), in front of the others.
#[derive(Debug)]
pub struct CodeSymbols {
    codes: KnownCodes,
}

impl CodeSymbols {
    /// The codes that the minidump's stream describes; `None` if there is no such stream.
    ///
    /// # Errors
    /// If this is not a minidump, or if it or the stream is damaged.
    pub fn find(minidump: &[u8]) -> Result<Option<Self>, Error> {
        Ok(CrashStream::find(minidump)?.as_ref().map(Self::new))
    }

    /// The codes of a stream.
    #[must_use]
    pub fn new(stream: &CrashStream<'_>) -> Self {
        Self { codes: KnownCodes::new(stream.dump) }
    }

    /// Number of codes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[async_trait]
impl SymbolProvider for CodeSymbols {
    async fn fill_symbol(
        &self,
        _module: &(dyn Module + Sync),
        frame: &mut (dyn FrameSymbolizer + Send),
    ) -> Result<(), FillSymbolError> {
        let address = frame.get_instruction();
        let code = self.codes.at(address).ok_or(FillSymbolError {})?;
        let lines = code.description.lines();
        // The outermost function first, which is the code's own.
        let mut functions: Vec<Frame<'_>> = lines.at(address).collect();
        functions.reverse();
        let mut functions = functions.into_iter();
        if let Some(own) = functions.next() {
            frame.set_function(&text(own.function), code.start, 0);
            if let Some((file, line)) = place(&own) {
                frame.set_source_file(&file, line, lines.line_start(address).unwrap_or(code.start));
            }
        }
        for inlined in functions {
            let (file, line) = place(&inlined).unzip();
            frame.add_inline_frame(&text(inlined.function), file.as_deref(), line);
        }
        Ok(())
    }

    async fn walk_frame(
        &self,
        _module: &(dyn Module + Sync),
        walker: &mut (dyn FrameWalker + Send),
    ) -> Option<()> {
        let code = self.codes.at(walker.get_instruction())?;
        let machine = u16::try_from(code.description.machine()?).ok()?;
        leave(&code.description.frames(), Machine::from_elf(machine)?, walker)
    }

    async fn get_file_path(
        &self,
        _module: &(dyn Module + Sync),
        _kind: FileKind,
    ) -> Result<PathBuf, FileError> {
        Err(FileError::NotFound)
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// File and line of a function, if they are known.
fn place<'f>(function: &Frame<'f>) -> Option<(Cow<'f, str>, u32)> {
    let is_known = !function.file.is_empty() && function.line != 0;
    is_known.then(|| (text(function.file), function.line))
}
