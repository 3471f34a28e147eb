//! The processes whose code is known.

use std::collections::{BTreeMap, BTreeSet};

use code_log::{Budget, Followed, Source};

use crate::access::Peer;
use crate::bodies::Bodies;
use crate::images::Images;
use crate::limits::Limits;
use crate::log::{Candidate, Candidates, Log};
use crate::metrics::{Counts, Gauges};
use crate::process_files::ProcessFiles;
use crate::protocol::{
    Address, Answer, Ask, Content, ProcessInfo, Request, Resolved, ResolvedCode, SourceInfo,
    Unknown,
};
use crate::request_budget::RequestBudget;

/// A process. Its id may be used again later, with another start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// What is known of a process beside its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its user: that of its folder in `/proc`.
    pub owner: u32,
    /// Its id in its own pid namespace.
    pub inner_pid: u32,
    /// The id of its container.
    pub container: Option<String>,
}

/// A code log that was found in a process.
#[derive(Debug)]
pub struct FoundLog<S> {
    /// Device and inode of its file.
    pub identity: (u64, u64),
    /// Where it is read.
    pub source: S,
    /// The time after which its codes do not belong to the process.
    pub until: Option<u64>,
}

/// All processes, and their code.
#[derive(Debug)]
pub struct Processes<S> {
    pub(crate) limits: Limits,
    pub(crate) processes: BTreeMap<ProcessKey, Process<S>>,
    bodies: Bodies,
    next_source: u64,
    pub(crate) codes: u64,
    pub(crate) left_out: u64,
    /// The images of codes that were asked for. None are made at first.
    pub images: Images,
    /// What was done.
    pub counts: Counts,
}

#[derive(Debug)]
pub(crate) struct Process<S> {
    pub(crate) facts: ProcessFacts,
    pub(crate) logs: Vec<((u64, u64), Log<S>)>,
    /// Its perf maps and jitdumps, if it has no log with code.
    pub(crate) files: ProcessFiles,
    /// When it was found to have ended.
    pub(crate) ended: Option<u64>,
    /// The processor time that it had used at the last update.
    used: Option<u64>,
    /// When it was last updated.
    updated: Option<u64>,
    /// Up to when it has used its share of reading. It may be read somewhat ahead of that.
    used_up_to: u64,
}

/// How far ahead of its share a process may be read, in nanoseconds: many small changes are read at once.
const AHEAD: u64 = 500_000_000;

/// What reading something costs beside its bytes, as a number of bytes that can be copied in this time.
const READ: u64 = 4096;

impl<S: Source> Process<S> {
    /// Whether there is code in one of its logs.
    pub(crate) fn has_logged_code(&self) -> bool {
        self.logs.iter().any(|(_, log)| log.codes() > 0)
    }

    fn codes(&self) -> u64 {
        let of_logs: u64 = self.logs.iter().map(|(_, log)| log.codes()).sum();
        of_logs.saturating_add(self.files.codes())
    }
}

impl<S: Source> Processes<S> {
    /// No processes.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            processes: BTreeMap::new(),
            bodies: Bodies::new(limits.bodies),
            next_source: 0,
            codes: 0,
            left_out: 0,
            images: Images::default(),
            counts: Counts::default(),
        }
    }

    /// Sets the logs of a process to those that were found in it now. What was read of those that were known is kept.
    pub fn found(&mut self, key: ProcessKey, facts: ProcessFacts, logs: Vec<FoundLog<S>>) {
        let is_known = self.processes.contains_key(&key);
        if logs.is_empty() && !is_known {
            return;
        }
        if !is_known && self.processes.len() >= self.limits.processes {
            self.left_out += 1;
            return;
        }
        let mut space = self.space_for(facts.owner);
        let mut next_source = self.next_source;
        let mut left_out = 0;
        let process = self.entry(key, facts);
        // A log that is gone was replaced by another program, or is now known to be no log of this process.
        process.logs.retain(|(identity, log)| {
            logs.iter().any(|found| found.identity == *identity && log.is_until(found.until))
        });
        for FoundLog { identity, source, until } in logs {
            if process.logs.iter().all(|(known, _)| *known != identity) {
                let Some(left) = space.checked_sub(1) else {
                    left_out = 1;
                    break;
                };
                space = left;
                next_source += 1;
                process.logs.push((identity, Log::new(source, until, next_source)));
                process.used = None;
            }
        }
        self.next_source = next_source;
        self.left_out += left_out;
        self.count();
    }

    /// The entry of a process, with what is known of it now.
    pub(crate) fn entry(&mut self, key: ProcessKey, facts: ProcessFacts) -> &mut Process<S> {
        let process = self.processes.entry(key).or_insert_with(|| Process {
            facts: facts.clone(),
            logs: Vec::new(),
            files: ProcessFiles::default(),
            ended: None,
            used: None,
            updated: None,
            used_up_to: 0,
        });
        process.facts = facts;
        process
    }

    /// How many more sources a user's processes may have.
    fn space_for(&self, user: u32) -> usize {
        let sources = |process: &Process<S>| process.logs.len();
        let all: usize = self.processes.values().map(sources).sum();
        let of_user = self.processes.values().filter(|process| process.facts.owner == user);
        let of_user: usize = of_user.map(sources).sum();
        let share = if user == 0 { self.limits.sources } else { self.limits.sources / 4 };
        self.limits.sources.saturating_sub(all).min(share.saturating_sub(of_user))
    }

    /// Notes that a process has ended. It can be asked for a while longer.
    pub fn ended(&mut self, key: ProcessKey, now: u64) {
        // What it announced last is read, whether or not it is its turn.
        if let Some(process) = self.processes.get_mut(&key) {
            process.used_up_to = 0;
        }
        self.update(key, now);
        if let Some(process) = self.processes.get_mut(&key) {
            process.ended.get_or_insert(now);
        }
    }

    /// Forgets processes that ended long ago, and the first of them that ended if there are too many.
    pub fn forget_ended(&mut self, now: u64) {
        let limits = self.limits;
        let is_old = |ended: u64| now.saturating_sub(ended) >= limits.ended;
        self.processes.retain(|_, process| !process.ended.is_some_and(is_old));
        let mut ended: Vec<_> = self
            .processes
            .iter()
            .filter_map(|(key, process)| Some((process.ended?, *key)))
            .collect();
        ended.sort_unstable();
        let excess = ended.len().saturating_sub(limits.ended_processes);
        for (_, key) in ended.iter().take(excess) {
            self.processes.remove(key);
        }
        self.count();
    }

    fn count(&mut self) {
        self.codes = self.processes.values().map(Process::codes).sum();
    }

    /// The running processes whose code is known.
    pub fn running(&self) -> impl Iterator<Item = ProcessKey> {
        let running = self.processes.iter().filter(|(_, process)| process.ended.is_none());
        running.map(|(key, _)| *key)
    }

    /// Updates a process that has used this much processor time, unless it has not run since the last update: then nothing can
    /// have changed.
    pub fn update_if_run(&mut self, key: ProcessKey, used: Option<u64>, now: u64) {
        let Some(process) = self.processes.get_mut(&key) else { return };
        if used.is_some() && process.used == used && process.updated.is_some() {
            return;
        }
        if self.update(key, now)
            && let Some(process) = self.processes.get_mut(&key)
        {
            // Read before the update: what was written since has taken more.
            process.used = used;
        }
    }

    /// Reads what has changed in a process. `false` if its turn has not come.
    fn update(&mut self, key: ProcessKey, now: u64) -> bool {
        let Some(process) = self.processes.get_mut(&key) else { return false };
        if process.ended.is_some() || now.saturating_add(AHEAD) < process.used_up_to {
            return false;
        }
        process.updated = Some(now);
        let (mut bytes, mut reads) = (0, 0_u64);
        let mut of_process = process.codes();
        let mut is_complete = true;
        for (_, log) in &mut process.logs {
            let before = log.codes();
            let more = self.limits.codes_of_process.saturating_sub(of_process);
            let more = more.min(self.limits.codes.saturating_sub(self.codes));
            let budget = Budget {
                held: self.limits.bytes_of_update,
                read: self.limits.bytes_of_update.saturating_sub(bytes).max(1),
                codes: before.saturating_add(more),
            };
            self.counts.updates += 1;
            match log.update(budget) {
                Ok(update) => {
                    bytes += update.bytes_read;
                    reads += update.reads;
                    self.counts.bytes_read += update.bytes_read;
                    self.counts.chunks_read += update.chunks_read;
                    self.counts.codes_added += update.added;
                    is_complete &= !update.is_cut && update.torn == 0;
                }
                Err(_) => self.counts.failed_updates += 1,
            }
            let after = log.codes();
            of_process = of_process.saturating_sub(before).saturating_add(after);
            self.codes = self.codes.saturating_sub(before).saturating_add(after);
        }
        // What takes long is done seldom, so that no process takes the time of others.
        let cost = reads.saturating_mul(READ).saturating_add(bytes);
        let pause = cost.saturating_mul(1_000_000_000) / self.limits.bytes_per_second.max(1);
        process.used_up_to = process.used_up_to.max(now).saturating_add(pause);
        is_complete
    }

    /// Answers a request. `None` if images of codes in the answer are about to be written, and it `may_wait` for them: an answer
    /// names no image that is not there.
    pub fn answer(
        &mut self,
        peer: Peer,
        request: &Request,
        may_wait: bool,
        now: u64,
    ) -> Option<Answer> {
        let content = match &request.ask {
            Ask::Resolve(addresses) => {
                self.images.begin_answer();
                let resolved = self.resolve(peer, addresses, now);
                if may_wait && self.images.is_awaited() {
                    return None;
                }
                self.counts.addresses += addresses.len() as u64;
                let is_code = |resolved: &&Resolved| matches!(resolved, Resolved::Code(_));
                self.counts.addresses_resolved += resolved.iter().filter(is_code).count() as u64;
                Content::Resolved(resolved)
            }
            Ask::Processes => Content::Processes(self.list(peer)),
        };
        self.counts.requests += 1;
        Some(Answer::new(request.id, content))
    }

    /// The processes among these addresses that are not known, but that the peer may be meant to know: they are examined next.
    pub fn unknown<'a>(&'a self, addresses: &'a [Address]) -> impl Iterator<Item = u32> + 'a {
        let mut last = None;
        let pids = addresses.iter().map(|address| address.pid);
        pids.filter(move |pid| {
            last.replace(*pid) != Some(*pid) && self.key_of(*pid, None).is_none()
        })
    }

    /// The running processes that the peer asks about with these addresses, and may ask about.
    pub fn asked(&self, peer: Peer, addresses: &[Address]) -> impl Iterator<Item = ProcessKey> {
        let keys: BTreeSet<ProcessKey> = addresses
            .iter()
            .filter_map(|address| self.key_of(address.pid, address.start))
            .filter(|key| {
                let process = self.processes.get(key);
                process.is_some_and(|it| it.ended.is_none() && peer.may_see(it.facts.owner))
            })
            .collect();
        keys.into_iter()
    }

    fn key_of(&self, pid: u32, start: Option<u64>) -> Option<ProcessKey> {
        if let Some(start) = start {
            let key = ProcessKey { pid, start };
            return self.processes.contains_key(&key).then_some(key);
        }
        // The last one that had this id.
        let all = ProcessKey { pid, start: 0 }..=ProcessKey { pid, start: u64::MAX };
        self.processes.range(all).next_back().map(|(key, _)| *key)
    }

    /// What is at these addresses, in their order.
    pub fn resolve(&mut self, peer: Peer, addresses: &[Address], now: u64) -> Vec<Resolved> {
        let mut resolved = vec![Resolved::Unknown(Unknown::Process); addresses.len()];
        let mut by_process: BTreeMap<ProcessKey, Vec<usize>> = BTreeMap::new();
        for (number, address) in addresses.iter().enumerate() {
            let Some(key) = self.key_of(address.pid, address.start) else { continue };
            let owner = self.processes.get(&key).map(|process| process.facts.owner);
            // A peer does not learn whether there is such a process.
            if owner.is_some_and(|owner| peer.may_see(owner)) {
                by_process.entry(key).or_default().push(number);
            }
        }
        let mut budget = RequestBudget::new();
        for (key, mut numbers) in by_process {
            // What was announced before the question is in the answer.
            self.update(key, now);
            let asked = |number: &usize| {
                let address = addresses.get(*number);
                address.map_or((0, 0), |address| (address.address, address.time.unwrap_or(now)))
            };
            numbers.sort_by_key(asked);
            let sorted: Vec<(u64, u64)> = numbers.iter().map(asked).collect();
            let answers = self.resolve_in(peer, key, &sorted, &mut budget);
            for (number, answer) in numbers.into_iter().zip(answers) {
                if let Some(resolved) = resolved.get_mut(number) {
                    *resolved = answer;
                }
            }
        }
        resolved
    }

    /// What is at addresses of a process, which are sorted, each with a time.
    fn resolve_in(
        &mut self,
        peer: Peer,
        key: ProcessKey,
        sorted: &[(u64, u64)],
        budget: &mut RequestBudget,
    ) -> Vec<Resolved> {
        let mut resolved = vec![Resolved::Unknown(Unknown::Code); sorted.len()];
        let Some(process) = self.processes.get(&key) else { return resolved };
        if !process.has_logged_code() {
            let mut own = budget.take_for_process(budget.work / 8);
            let resolved = process.files.resolve(sorted, &mut own);
            budget.give_back(&own);
            return resolved;
        }
        let mut found = vec![Candidates::default(); sorted.len()];
        for (index, (_, log)) in process.logs.iter().enumerate() {
            if !log.find(index, sorted, &mut found, &mut budget.work) {
                return resolved;
            }
        }
        let mut own = budget.take_for_process(0);
        // Those that were loaded and not unloaded; and of code that was first sampled before its announcement was written, the
        // first at the address.
        let mut answers: Vec<(usize, Candidate, u64)> = Vec::new();
        for (number, (candidates, (_, time))) in found.iter().zip(sorted).enumerate() {
            let Some(candidate) = candidates.last.or(candidates.next) else { continue };
            let Some((_, log)) = process.logs.get(candidate.log) else { continue };
            let Some(died) = log.died(&candidate.code) else {
                if let Some(resolved) = resolved.get_mut(number) {
                    *resolved = Resolved::Unknown(Unknown::Description);
                }
                continue;
            };
            let is_alive = died == 0 || (!log.has_other_clock() && *time < died);
            if is_alive {
                answers.push((number, candidate, died));
            }
        }
        let mut images = self.images.of_process(process.facts.owner, peer);
        for (index, (_, log)) in process.logs.iter().enumerate() {
            let mine: Vec<_> = answers.iter().filter(|(_, found, _)| found.log == index).collect();
            let mut codes: Vec<Followed> = mine.iter().map(|(_, found, _)| found.code).collect();
            codes.sort_unstable_by_key(Followed::at);
            codes.dedup_by_key(|code| code.at());
            let bodies =
                log.bodies(&codes, self.limits.bytes_of_code, &mut self.bodies, &mut images);
            for (number, candidate, died) in mine {
                let code = candidate.code;
                let (Some(resolved), Some((address, _))) =
                    (resolved.get_mut(*number), sorted.get(*number))
                else {
                    continue;
                };
                let at = codes.binary_search_by_key(&code.at(), Followed::at);
                let body = at.ok().and_then(|at| bodies.get(at)?.clone());
                let framed = body.and_then(|body| Some((own.names(&body, *address)?, body)));
                *resolved = framed.map_or(Resolved::Unknown(Unknown::Description), |it| {
                    let ((frames, symbol), body) = it;
                    Resolved::Code(Box::new(ResolvedCode {
                        frames,
                        symbol,
                        address: code.address,
                        size: body.size,
                        loaded: Some(code.loaded),
                        unloaded: Some(*died).filter(|died| *died != 0),
                        kind: body.kind.to_owned(),
                        tier: body.tier.clone(),
                        generation: body.generation,
                        image: images.place(body.image),
                    }))
                });
            }
        }
        budget.give_back(&own);
        resolved
    }

    /// The processes that a peer may ask about.
    #[must_use]
    pub fn list(&self, peer: Peer) -> Vec<ProcessInfo> {
        let seen = self.processes.iter().filter(|(_, process)| peer.may_see(process.facts.owner));
        let infos = seen.map(|(key, process)| ProcessInfo {
            pid: key.pid,
            start: key.start,
            inner_pid: process.facts.inner_pid,
            user: process.facts.owner,
            container: process.facts.container.clone(),
            sources: process
                .logs
                .iter()
                .map(|(_, log)| SourceInfo { kind: "code-log".to_owned(), codes: log.codes() })
                .chain(process.files.sources())
                .collect(),
            ended: process.ended.is_some(),
        });
        infos.collect()
    }

    /// What is held now.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let logs = self.processes.values().flat_map(|process| &process.logs);
        Gauges {
            look_age: 0,
            processes: self.processes.len() as u64,
            ended_processes: self.processes.values().filter(|it| it.ended.is_some()).count() as u64,
            codes: self.codes,
            code_bytes: logs.map(|(_, log)| log.memory()).sum(),
            file_bytes: self.processes.values().map(|it| it.files.memory()).sum(),
            codes_left_out: self.processes.values().map(|it| it.files.left_out()).sum(),
            descriptions: self.bodies.len() as u64,
            left_out: self.left_out,
        }
    }
}
