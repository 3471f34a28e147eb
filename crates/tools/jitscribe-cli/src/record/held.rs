//! Processes that announce their code over several recordings.

use std::ffi::OsString;

use super::java::Jvms;
use super::logs::Logs;
use super::scope::Scope;
use crate::Result;

/// Running processes that were asked to announce their code, and do so while this exists: JVMs with the agent, and processes whose code log
/// was off.
#[derive(Debug)]
pub struct Held {
    jvms: Jvms,
    _logs: Logs,
    scope: Scope,
    call_graph: Option<String>,
}

impl Held {
    /// Asks the processes that are recorded with this value of `-p` and these options of perf. `call_graph` is as for `record`.
    pub fn of(pid: Option<&str>, options: &[OsString], call_graph: Option<&str>) -> Result<Self> {
        let scope = Scope::of(pid, options)?;
        let jvms = match &scope {
            Scope::Processes(pids) => Jvms::named(pids, true, call_graph),
            _ => Jvms::among(&scope.pids(), call_graph),
        };
        let mut logs = Logs::open(&scope, true);
        logs.forget_before();
        Ok(Self { jvms, _logs: logs, scope, call_graph: call_graph.map(str::to_owned) })
    }

    /// Asks JVMs that were started since, as children of the named processes or anywhere. Returns what there is to say of them.
    pub fn ask_new(&mut self) -> Vec<String> {
        self.jvms.ask_new(&self.scope.with_children(), self.call_graph.as_deref())
    }

    /// Whether stacks have to be copied, as JVMs keep no frame pointers.
    pub fn need_copies(&self) -> bool {
        self.jvms.need_copies()
    }

    /// Whether any of the processes still exists.
    pub fn is_alive(&self) -> bool {
        !self.scope.is_named()
            || self
                .scope
                .pids()
                .iter()
                .any(|pid| std::path::Path::new("/proc").join(pid.to_string()).exists())
    }
}
