//! Processes and threads, with their last names.

use code_timeline::AddressSpaceId;
use jitscribe_inject::Recording;
use perf_data::{Comm, Task};
use profile::{Builder, ModuleId, ModuleKind, ProcessId, ThreadId};
use rustc_hash::FxHashMap;

use crate::modules::Modules;

/// The processes and threads of a recording; those that were sampled are in the profile.
#[derive(Debug)]
pub struct Threads {
    /// By address space: which process it is of. An exec begins an address space, but no process.
    of_space: Vec<Incarnation>,
    processes: FxHashMap<Incarnation, ProcessId>,
    threads: FxHashMap<(ProcessId, u32), ThreadId>,
    /// The latest thread with each id, if it was sampled.
    latest: FxHashMap<u32, ThreadId>,
    latest_process: FxHashMap<u32, ProcessId>,
    /// The latest name of each thread.
    names: FxHashMap<u32, Vec<u8>>,
    /// The runtimes of processes.
    runtimes: FxHashMap<Incarnation, Runtime>,
    /// The file of its runtime, by process; `None` if it is not known.
    runtime_ids: FxHashMap<ProcessId, Option<ModuleId>>,
}

/// The file of a runtime: its path, and its build-id if the mapping was recorded with it.
#[derive(Clone, Debug)]
struct Runtime {
    path: Vec<u8>,
    build_id: Option<Vec<u8>>,
}

/// A process id, and how often it was given before.
type Incarnation = (u32, u32);

impl Threads {
    /// The processes of a recording.
    pub fn of(recording: &Recording) -> Self {
        let mut counts: FxHashMap<u32, u32> = FxHashMap::default();
        let of_space = recording.address_spaces().map(|(_, pid, is_forked)| {
            let count = counts.entry(pid).or_insert(0);
            *count = count.saturating_add(is_forked.into());
            (pid, *count)
        });
        let of_space: Vec<Incarnation> = of_space.collect();
        // The last program that a process executed counts.
        let mut runtimes = FxHashMap::default();
        for ((space, ..), incarnation) in recording.address_spaces().zip(&of_space) {
            if let Some(file) = recording.runtime_file(space) {
                let build_id = file.build_id.map(<[u8]>::to_vec);
                runtimes.insert(*incarnation, Runtime { path: file.path.to_vec(), build_id });
            }
        }
        Self {
            of_space,
            runtimes,
            runtime_ids: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            latest: FxHashMap::default(),
            latest_process: FxHashMap::default(),
            names: FxHashMap::default(),
        }
    }

    /// A thread has a new name.
    pub fn name(&mut self, builder: &mut Builder, comm: &Comm<'_>) {
        if let Some(&thread) = self.latest.get(&comm.tid) {
            builder.name_thread(thread, comm.name);
        }
        if comm.pid == comm.tid
            && let Some(&process) = self.latest_process.get(&comm.pid)
        {
            builder.name_process(process, comm.name);
        }
        self.names.insert(comm.tid, comm.name.to_vec());
    }

    /// A thread or process began: it has the name of the thread that began it.
    pub fn begin(&mut self, task: &Task) {
        self.latest.remove(&task.tid);
        if task.pid == task.tid {
            self.latest_process.remove(&task.pid);
        }
        if let Some(name) = self.names.get(&task.parent_tid).cloned() {
            self.names.insert(task.tid, name);
        }
    }

    /// The process of an address space; of one that is not known, by its id.
    pub fn process(
        &mut self,
        builder: &mut Builder,
        space: Option<AddressSpaceId>,
        pid: u32,
    ) -> ProcessId {
        let known = space.and_then(|space| self.of_space.get(space.index()).copied());
        let incarnation = known.unwrap_or((pid, 0));
        if let Some(&process) = self.processes.get(&incarnation) {
            return process;
        }
        let process = builder.process(pid, &self.name_of(pid));
        self.processes.insert(incarnation, process);
        self.latest_process.insert(pid, process);
        process
    }

    /// Adds the files of the runtimes to the profile that may have compiled the code in an image: that of the process in which it is mapped, and that of the
    /// one with the image's number.
    pub fn add_runtimes(
        &mut self,
        builder: &mut Builder,
        process: ProcessId,
        pid: u32,
        modules: &Modules<'_>,
    ) {
        self.add_runtime(builder, process, modules);
        if let Some(owner) = self.with_pid(pid) {
            self.add_runtime(builder, owner, modules);
        }
    }

    /// Adds the file of a process's runtime to the profile, if it is known.
    fn add_runtime(&mut self, builder: &mut Builder, process: ProcessId, modules: &Modules<'_>) {
        if self.runtime_ids.contains_key(&process) {
            return;
        }
        let incarnation = self.processes.iter().find(|(_, id)| **id == process);
        let runtime = incarnation.and_then(|(incarnation, _)| self.runtimes.get(incarnation));
        let id = runtime.map(|Runtime { path, build_id }| {
            let (path, build_id) = modules.identity(path, build_id.as_deref());
            let path = builder.string(&path);
            builder.module(profile::Module { kind: ModuleKind::File, path, build_id })
        });
        self.runtime_ids.insert(process, id);
    }

    /// The file of a process's runtime.
    pub fn runtime(&self, process: ProcessId) -> Option<ModuleId> {
        self.runtime_ids.get(&process).copied().flatten()
    }

    /// The latest process with this id that was sampled.
    pub fn with_pid(&self, pid: u32) -> Option<ProcessId> {
        self.latest_process.get(&pid).copied()
    }

    /// A thread of a process.
    pub fn thread(&mut self, builder: &mut Builder, process: ProcessId, tid: u32) -> ThreadId {
        if let Some(&thread) = self.threads.get(&(process, tid)) {
            return thread;
        }
        let thread = builder.thread(process, tid, &self.name_of(tid));
        self.threads.insert((process, tid), thread);
        self.latest.insert(tid, thread);
        thread
    }

    fn name_of(&self, tid: u32) -> Vec<u8> {
        match self.names.get(&tid) {
            Some(name) => name.clone(),
            // perf has no event for the idle task.
            None if tid == 0 => b"swapper".to_vec(),
            None => format!(":{tid}").into_bytes(),
        }
    }
}
