//! What a format of logs is.

use jitdump::ExtendedCode;

/// A format of logs.
#[derive(Clone, Copy, Debug)]
pub struct LogFormat {
    /// Its name.
    pub name: &'static str,
    /// What the names of such files begin with if `record` has them written.
    pub prefix: &'static str,
    /// The flags of the jitdump's header, which tell the clock of its times.
    pub(super) flags: u64,
    pub(super) recognizes: fn(&[u8]) -> bool,
    pub(super) reader: fn() -> Box<dyn ReadLog>,
}

/// Reads a log that is given in parts.
pub(super) trait ReadLog: std::fmt::Debug + Send {
    /// Takes the next bytes, and gives the codes that they complete.
    fn take(&mut self, bytes: &[u8], give: &mut dyn FnMut(&ExtendedCode<'_>));

    /// Gives what more bytes could complete, as it is. More bytes may be taken afterwards.
    fn finish(&mut self, give: &mut dyn FnMut(&ExtendedCode<'_>));

    /// About how many bytes it holds.
    fn held(&self) -> usize;
}
