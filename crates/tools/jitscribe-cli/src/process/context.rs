//! What OpenTelemetry's process context of a process says about its code logs.

use std::os::fd::OwnedFd;

use process_context::{Context, LARGEST_PAYLOAD, Memory, read};
use serde::{Deserialize, Serialize};

use super::source::read_all;

/// What the process context of a process says about its code logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListedLogs {
    /// The process has no context.
    #[default]
    NoContext,
    /// The addresses of the logs in it, which may be none.
    Addresses(Vec<u64>),
    /// Why it cannot be read.
    Unreadable(String),
}

struct ProcessMemory<'f>(&'f OwnedFd);

impl Memory for ProcessMemory<'_> {
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> bool {
        read_all(self.0, address, buffer).is_ok_and(|count| count == buffer.len())
    }
}

impl ListedLogs {
    /// Reads the context at one of the addresses. Readers take the first mapping that is one; there should not be more.
    pub fn read(memory: Option<&OwnedFd>, contexts: &[u64]) -> Self {
        let Some(first) = contexts.first() else { return Self::NoContext };
        let Some(memory) = memory.map(ProcessMemory) else {
            return Self::Unreadable("the memory of the process cannot be read".to_owned());
        };
        let mut buffer = vec![0; LARGEST_PAYLOAD];
        let addresses = read(&memory, *first, &mut buffer)
            .map_err(|error| error.to_string())
            .and_then(|published| {
                let logs = Context::new(published.payload).code_logs();
                logs.map(|log| Ok(log.map_err(|error| error.to_string())?.address)).collect()
            });
        match addresses {
            Ok(addresses) => Self::Addresses(addresses),
            Err(error) => Self::Unreadable(format!("at {first:#x}: {error}")),
        }
    }
}
