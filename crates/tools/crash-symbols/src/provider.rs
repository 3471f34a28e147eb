//! The symbol provider.

use std::path::PathBuf;

use async_trait::async_trait;
use crash_stream::{CrashStream, Error};
use minidump::Module;
use minidump_unwind::{
    FileError, FileKind, FillSymbolError, FrameSymbolizer, FrameWalker, SymbolProvider,
};

use crate::codes::KnownCodes;
use crate::frame::leave;

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
        frame.set_function(&code.name, code.range.start, 0);
        let mut functions = code.functions_at(address).into_iter();
        if let Some((file, line)) = functions.next().and_then(|own| own.place) {
            let base = code.line_at(address).map_or(code.range.start, |line| line.address);
            frame.set_source_file(file, line, base);
        }
        for inlined in functions {
            let (file, line) = inlined.place.unzip();
            frame.add_inline_frame(inlined.name, file, line);
        }
        Ok(())
    }

    async fn walk_frame(
        &self,
        _module: &(dyn Module + Sync),
        walker: &mut (dyn FrameWalker + Send),
    ) -> Option<()> {
        let code = self.codes.at(walker.get_instruction())?;
        leave(&code.frames, self.codes.machine?, walker)
    }

    async fn get_file_path(
        &self,
        _module: &(dyn Module + Sync),
        _kind: FileKind,
    ) -> Result<PathBuf, FileError> {
        Err(FileError::NotFound)
    }
}
