//! What the process context says about code logs, for its publisher.

use process_context::CodeLog;

use super::shared::CONTEXT;
use super::table::MOST_LOGS;

/// Where the code logs of this process are: what its OpenTelemetry process context ([OTEP 4719]) says about them.
///
/// A process has at most one context. A program that publishes one itself, by an SDK for example, adds these attributes to it, and
/// updates it when a scribe was made since. In the child of a fork, the logs are there once the child has announced a code. Without
/// such an SDK, [`Builder::process_context`](crate::Builder::process_context) publishes a context.
///
/// ```
/// use jitscribe::{CodeContext, Scribe};
///
/// let scribe = Scribe::global();
/// let mut payload = vec![]; // … the encoded `ProcessContext` of the SDK, to which the entries are appended:
/// let mut entries = [0; CodeContext::MOST_BYTES];
/// if let Some(size) = CodeContext::of_process().encode_attributes(&mut entries) {
///     payload.extend_from_slice(&entries[..size]);
/// }
/// ```
///
/// [OTEP 4719]: https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4719-process-ctx.md
#[derive(Clone, Copy, Debug)]
pub struct CodeContext {
    logs: [CodeLog; MOST_LOGS],
    count: usize,
}

impl CodeContext {
    /// The most bytes that [`Self::encode_attributes`] writes.
    pub const MOST_BYTES: usize = 1024;

    /// The logs that scribes of this copy of the library have made so far.
    #[must_use]
    pub fn of_process() -> Self {
        let mut logs = [CodeLog::default(); MOST_LOGS];
        let count = CONTEXT.logs(&mut logs);
        Self { logs, count }
    }

    /// The logs.
    #[must_use]
    pub fn logs(&self) -> &[CodeLog] {
        self.logs.get(..self.count).unwrap_or_default()
    }

    /// Encodes the attributes as entries of the field `attributes` of the protobuf message `ProcessContext`. They may be appended
    /// to a message that is already encoded. Returns the size in bytes; `None` if `out` is too small.
    pub fn encode_attributes(&self, out: &mut [u8]) -> Option<usize> {
        process_context::encode_attributes(self.logs(), out)
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeContext, CodeLog, MOST_LOGS};

    #[test]
    fn the_longest_entries_fit() {
        let log = CodeLog { address: u64::MAX, size: u64::MAX, version: u32::MAX };
        let context = CodeContext { logs: [log; MOST_LOGS], count: MOST_LOGS };
        let mut entries = [0; CodeContext::MOST_BYTES];
        let size = context.encode_attributes(&mut entries).unwrap();
        let found = process_context::Context::new(&entries[..size]).code_logs();
        assert!(found.eq([Ok(log); MOST_LOGS]));
    }
}
