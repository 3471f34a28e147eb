//! What the events of a jitdump do to the history of its code.

use code_timeline::{AddressSpaceId, Code, HistoryBuilder, MoveId, Processes, SourceBuilder};
use jitdump::{CodeEvent, CodeLoad};

/// Takes the events of one jitdump, in the order of the file, into a history. End it with [`Self::finish`]; otherwise moves have no
/// effect.
#[derive(Debug)]
pub struct DumpEvents<'h, Origin> {
    source: SourceBuilder<'h, Origin>,
    processes: Option<&'h Processes>,
    until: u64,
    keeps_unloaded: bool,
}

impl<'h, Origin: Clone> DumpEvents<'h, Origin> {
    /// Takes all events. A dump alone has no record of forks, so all code is attributed to [one process](AddressSpaceId::ONLY).
    #[must_use]
    pub fn new(history: &'h mut HistoryBuilder<Origin>) -> Self {
        Self { source: history.source(), processes: None, until: u64::MAX, keeps_unloaded: false }
    }

    /// Attributes each event to the process that its record names. Events of other processes have no effect.
    #[must_use]
    pub fn of_processes(self, processes: &'h Processes) -> Self {
        Self { processes: Some(processes), ..self }
    }

    /// Takes only events up to this time.
    #[must_use]
    pub fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }

    /// Leaves code where it was although it was unloaded, until other code is there.
    #[must_use]
    pub fn keeping_unloaded(self) -> Self {
        Self { keeps_unloaded: true, ..self }
    }

    /// Takes an event. `origin` computes what the history keeps of a code; it is not called for a load without effect. Returns
    /// the number of a move.
    pub fn take<'a>(
        &mut self,
        event: CodeEvent<'a>,
        origin: impl FnOnce(CodeLoad<'a>) -> Origin,
    ) -> Option<MoveId> {
        match event {
            // A code of no bytes is at no address.
            CodeEvent::Load(load) if load.timestamp <= self.until && load.size > 0 => {
                let (time, index, died) = (load.timestamp, load.index, load.died());
                let space = self.space(load.pid, time)?;
                let (address, size) = (load.address, load.size);
                let code = Code { address, size, origin: origin(load) };
                let id = self.source.load(space, time, index, code);
                if let Some(died) = died.filter(|&died| died <= self.until && !self.keeps_unloaded)
                {
                    self.source.unload(space, died, id);
                }
                None
            }
            CodeEvent::Move(to) if to.timestamp <= self.until => {
                let space = self.space(to.pid, to.timestamp)?;
                let (old, new) = (to.old_address, to.new_address);
                Some(self.source.moved(space, to.timestamp, to.index, old, new))
            }
            _ => None,
        }
    }

    /// Determines which code each move refers to.
    pub fn finish(self) {
        match self.processes {
            Some(processes) => self.source.finish(processes),
            None => self.source.finish(&Processes::new()),
        }
    }

    fn space(&self, pid: u32, time: u64) -> Option<AddressSpaceId> {
        match self.processes {
            Some(processes) => processes.at(pid, time),
            None => Some(AddressSpaceId::ONLY),
        }
    }
}
