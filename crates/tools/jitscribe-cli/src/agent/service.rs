//! The loop that serves clients and keeps the table of processes up to date.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use code_agent::access::Peer;
use code_agent::metrics::Gauges;
use code_agent::protocol::{Ask, Request};
use code_agent::{Limits, Looks, ProcessKey, Processes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{getegid, geteuid};
use rustix::time::ClockId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::args::ServiceArgs;
use super::clients::{Asked, Clients};
use super::discovery::{Discovery, Examined, Found, examine};
use super::files::Files;
use super::images::{self, KeptImages};
use super::look_age::{Change, LONG};
use super::memory_file::MemoryFile;
use super::metrics::{Metrics, of_this_process};
use super::proc_files::Stat;
use crate::foreign::{self, Owner, processor_time};
use crate::process::{nanoseconds, newest_process, processes};
use crate::text::Out;
use crate::{Error, Result, descriptors, note};

/// The shortest time between two looks for new processes.
const INTERVAL: Duration = Duration::from_millis(50);
/// How often all processes are listed although none seems to be new.
const SELDOM: u64 = 5_000_000_000;
/// Looking takes at most one part in this many of a processor's time, unless that would be less often than once a second.
const PART: u32 = 1000;
/// How long a question waits for the files of the processes that it is about, and for images of codes. Those that take longer are in
/// a later answer.
const MOST_WAITED: Duration = Duration::from_millis(200);
/// A process that is asked for and not known is examined, but not more often than this.
const ASKED_AGAIN: u64 = 500_000_000;

/// Examines all processes once, and prints what was found.
pub fn once() -> Result<()> {
    descriptors::raise();
    let mut table = Processes::new(Limits::default());
    let now = now();
    let mut failed = 0;
    let us = std::process::id();
    let pids: Vec<u32> =
        processes().into_iter().filter(|pid| *pid != us && is_user(*pid)).collect();
    let mut files = Files::new(u64::MAX);
    examine(&pids, |Examined { key, found }| match found {
        Some(Found { facts, logs, has_code_memory }) => {
            table.found(key, facts.clone(), logs);
            if has_code_memory {
                files.look_for(key, facts, now);
            }
        }
        None => failed += 1,
    });
    let keys: Vec<ProcessKey> = table.running().collect();
    for key in keys {
        table.update_if_run(key, None, now);
    }
    files.read_all(&mut table);
    let peer = Peer { user: geteuid().as_raw(), sees_all: true };
    let mut out = Out::new();
    let infos = table.list(peer);
    for info in &infos {
        out.json(info)?;
    }
    out.finish()?;
    let codes: u64 = infos.iter().flat_map(|info| &info.sources).map(|source| source.codes).sum();
    note::say(format_args!(
        "{} processes examined, {failed} of them could not be; {} have JIT-compiled code: {codes} codes",
        pids.len(),
        infos.len()
    ));
    Ok(())
}

/// Serves until a signal ends it.
pub fn serve(args: &ServiceArgs) -> Result<()> {
    // Each source of code takes a descriptor; the rest is for clients and for examinations.
    let sources = usize::try_from(descriptors::raise() / 2).unwrap_or(usize::MAX);
    let seconds = |seconds| Duration::try_from_secs_f64(seconds).ok();
    let interval =
        seconds(args.interval).filter(|interval| *interval >= INTERVAL).ok_or_else(|| {
            Error::Usage("--interval takes a number of seconds, at least 0.05".into())
        })?;
    let ended = seconds(args.keep_ended)
        .ok_or_else(|| Error::Usage("--keep-ended takes a number of seconds".into()))?;
    let usual = Limits::default();
    let sources = usual.sources.min(sources);
    let limits = Limits { ended: nanoseconds_of(ended), sources, ..usual };
    let signals = signals().map_err(|error| Error::Refused(format!("signals: {error}")))?;
    let socket = Socket::bind(&args.socket)?;
    let metrics = args.metrics.map(Metrics::listen).transpose()?;
    if let Some(address) = metrics.as_ref().and_then(Metrics::address) {
        note::say(format_args!("metrics: http://{address}/metrics"));
    }
    let privileged = [0, geteuid().as_raw()];
    if let Some(folder) = &args.images {
        images::create(folder, args.run_as)?;
    }
    let helper = drop_privileges(args.run_as)?;
    let mut service = Service::new(args, &privileged, metrics, interval, limits)?;
    if let Some(folder) = &args.images {
        service.keep_images(folder, args.images_limit)?;
    }
    note::say(format_args!(
        "serving {}; ask with: jitscribe agent ask PID ADDRESS --socket {}",
        crate::text::path(&args.socket),
        crate::text::shell_path(&args.socket)
    ));
    loop {
        let wait = service.look();
        let events = service.wait(&socket.listener, &signals, wait);
        if events.is_over {
            break;
        }
        if foreign::helper_pid() != helper {
            return Err(Error::Refused(
                "the helper that opens files of processes has ended, and this process has given its privileges away: start the agent again"
                    .to_owned(),
            ));
        }
        service.take_results();
        if events.has_clients {
            service.accept(&socket.listener);
        }
        service.answer();
        service.exchange_images();
    }
    service.finish_images();
    let gauges = service.table.gauges();
    let counts = service.table.counts;
    note::say(format_args!(
        "ended by a signal: {} processes with {} codes; {} of {} addresses resolved",
        gauges.processes, gauges.codes, counts.addresses_resolved, counts.addresses
    ));
    Ok(())
}

/// Starts the helper that opens what belongs to processes, and gives away the privileges of this process, which reads what it
/// opens. Returns the helper. Without privileges there are none to give away.
fn drop_privileges(run_as: u32) -> Result<Option<u32>> {
    // Any task starts it.
    examine(&[std::process::id()], |_| {});
    let helper = foreign::helper_pid();
    let owner = if geteuid().is_root() {
        Owner { user: run_as, group: run_as }
    } else {
        Owner { user: geteuid().as_raw(), group: getegid().as_raw() }
    };
    owner.take_on().map_err(|error| {
        Error::Refused(format!("the privileges that are not needed cannot be given away: {error}"))
    })?;
    Ok(helper)
}

/// Becomes readable when a signal asks the agent to end.
fn signals() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        pipe::register(signal, theirs.try_clone()?)?;
    }
    Ok(ours)
}

/// The socket on which the agent listens. Dropping it removes the file.
#[derive(Debug)]
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    fn bind(path: &Path) -> Result<Self> {
        let failed = |error| Error::file(path)(error);
        // An agent that was killed leaves its socket behind.
        let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
        if is_socket {
            if UnixStream::connect(path).is_ok() {
                return Err(Error::Refused(format!(
                    "another agent serves {}; end it, or choose another path with --socket",
                    crate::text::path(path)
                )));
            }
            fs::remove_file(path).map_err(failed)?;
        }
        let listener = match UnixListener::bind(path) {
            Ok(listener) => listener,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Refused(format!(
                    "the folder of {} does not exist; create it, or choose another path with --socket",
                    crate::text::path(path)
                )));
            }
            Err(error) => return Err(failed(error)),
        };
        listener.set_nonblocking(true).map_err(failed)?;
        // All users may connect: who asks is known from the connection.
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned() })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

struct Service {
    table: Processes<MemoryFile>,
    clients: Clients,
    metrics: Option<Metrics>,
    images: Option<KeptImages>,
    discovery: Discovery,
    files: Files,
    known: HashMap<u32, Known>,
    /// Users that may ask about all processes.
    privileged: Vec<u32>,
    interval: u64,
    /// The last process id that was given out, when the processes were last listed.
    newest: Option<u32>,
    listed: Option<u64>,
    updated: u64,
    us: u32,
}

/// What is known of a process.
#[derive(Debug)]
struct Known {
    start: u64,
    name: String,
    looks: Looks,
    /// When it was last examined because it was asked for.
    asked: u64,
    /// Whether an examination has begun whose result is not known.
    is_being_examined: bool,
    /// The processor time it had used when it was last examined.
    used: Option<u64>,
}

/// What happened.
struct Events {
    is_over: bool,
    has_clients: bool,
}

impl Service {
    fn new(
        args: &ServiceArgs,
        users: &[u32],
        metrics: Option<Metrics>,
        interval: Duration,
        limits: Limits,
    ) -> Result<Self> {
        let privileged = [users, &args.allow_user].concat();
        Ok(Self {
            table: Processes::new(limits),
            clients: Clients::default(),
            metrics,
            images: None,
            discovery: Discovery::start()?,
            files: Files::new(nanoseconds_of(interval)),
            known: HashMap::new(),
            privileged,
            interval: nanoseconds_of(interval),
            newest: None,
            listed: None,
            updated: 0,
            us: std::process::id(),
        })
    }

    fn keep_images(&mut self, folder: &Path, mebibytes: u64) -> Result<()> {
        let (kept, images) = images::open(folder, mebibytes)?;
        self.table.images = images;
        self.images = Some(kept);
        Ok(())
    }

    fn exchange_images(&mut self) {
        if let Some(kept) = &mut self.images {
            kept.exchange(&mut self.table.images, now());
        }
    }

    fn finish_images(&mut self) {
        if let Some(kept) = self.images.take() {
            kept.finish(&mut self.table.images, now());
        }
    }

    /// Looks for new processes, has those examined whose turn it is, and reads what has changed. Returns how long to wait.
    fn look(&mut self) -> Duration {
        let begun = std::time::Instant::now();
        let now = now();
        // Read before the processes are listed: those that start in between are found by the next look.
        let newest = newest_process();
        let is_time = self.listed.is_none_or(|listed| now.saturating_sub(listed) >= SELDOM);
        if newest.is_none() || newest != self.newest || is_time {
            self.list(now, is_time);
            self.listed = Some(now);
        }
        self.newest = newest;
        self.begin_examinations(now);
        self.warn_of_silence(now);
        if now.saturating_sub(self.updated) >= self.interval {
            self.updated = now;
            let running: Vec<ProcessKey> = self.table.running().collect();
            for key in running {
                self.table.update_if_run(key, processor_time(key.pid), now);
            }
            self.table.forget_ended(now);
        }
        self.files.begin(&mut self.table, now);
        INTERVAL.max(begun.elapsed().saturating_mul(PART)).min(Duration::from_secs(1))
    }

    /// `check` is whether to look also for ids that were used again.
    fn list(&mut self, now: u64, check: bool) {
        let running = processes();
        let mut before = std::mem::take(&mut self.known);
        for pid in running {
            let known = before.remove(&pid);
            let stat = match &known {
                Some(_) if !check => None,
                _ => match Stat::read(pid) {
                    Some(stat) => Some(stat),
                    // It has just ended.
                    None => {
                        self.end(pid, known.as_ref(), now);
                        continue;
                    }
                },
            };
            let known = match (known, stat) {
                (Some(known), None) => known,
                (Some(mut known), Some(stat)) if stat.start == known.start => {
                    if stat.name != known.name {
                        // It runs another program now.
                        known.name = stat.name;
                        known.looks = Looks::new(now);
                    }
                    known
                }
                (known, Some(stat)) => {
                    self.end(pid, known.as_ref(), now);
                    let is_left_out = stat.is_kernel || pid == self.us;
                    let looks = Looks::new(if is_left_out { u64::MAX } else { now });
                    Known {
                        start: stat.start,
                        name: stat.name,
                        looks,
                        asked: 0,
                        is_being_examined: false,
                        used: None,
                    }
                }
                (None, None) => continue,
            };
            self.known.insert(pid, known);
        }
        for (pid, known) in before {
            self.end(pid, Some(&known), now);
        }
    }

    fn end(&mut self, pid: u32, known: Option<&Known>, now: u64) {
        if let Some(known) = known {
            let key = ProcessKey { pid, start: known.start };
            self.files.forget(key);
            self.table.ended(key, now);
        }
    }

    fn begin_examinations(&mut self, now: u64) {
        let mut due = Vec::new();
        for (pid, known) in &mut self.known {
            if known.looks.next() > now || known.is_being_examined {
                continue;
            }
            // One that has not run since has no new log.
            let used = processor_time(*pid);
            if used.is_some() && used == known.used {
                known.looks.looked(now);
                continue;
            }
            known.used = used;
            known.is_being_examined = true;
            due.push(*pid);
        }
        self.discovery.examine(due);
    }

    fn warn_of_silence(&self, now: u64) {
        let seconds = LONG / 1_000_000_000;
        match self.discovery.age.change(now) {
            Some(Change::Silent) => note::warning(format_args!(
                "no process was examined for {seconds} s, so that new processes are not known: the helper (process {}) does not \
                 respond or gets no processor time; give the agent more of it (in its unit for systemd: CPUWeight)",
                foreign::helper_pid().unwrap_or(0)
            )),
            Some(Change::Over) => note::say("processes are examined again"),
            None => {}
        }
    }

    fn take_results(&mut self) {
        let now = now();
        self.files.take(&mut self.table, now);
        for Examined { key, found } in self.discovery.results() {
            let Some(known) = self.known.get_mut(&key.pid).filter(|known| known.start == key.start)
            else {
                continue;
            };
            known.is_being_examined = false;
            known.looks.looked(now);
            self.table.counts.examined += 1;
            match found {
                Some(Found { facts, logs, has_code_memory }) => {
                    self.table.found(key, facts.clone(), logs);
                    self.table.update_if_run(key, processor_time(key.pid), now);
                    if has_code_memory && self.table.wants_files(key) {
                        self.files.look_for(key, facts, now);
                    } else {
                        self.files.forget(key);
                        self.table.forget_files(key);
                    }
                }
                None => self.table.counts.failed_examinations += 1,
            }
        }
    }

    fn wait(&self, listener: &UnixListener, signals: &UnixStream, wait: Duration) -> Events {
        let mut polled = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(&self.discovery.bell, PollFlags::IN),
        ];
        let clients = self.clients.events();
        polled.extend(clients.map(|(client, flags)| PollFd::from_borrowed_fd(client, flags)));
        let metrics = self.metrics.iter().flat_map(Metrics::events);
        polled.extend(metrics.map(|(one, flags)| PollFd::from_borrowed_fd(one, flags)));
        polled.extend(self.files.events().map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)));
        let is_awaited = self.clients.is_deferred() || self.files.is_busy();
        let wait = if is_awaited { wait.min(INTERVAL) } else { wait };
        let wait = Timespec::try_from(wait).unwrap_or_default();
        let _ = poll(&mut polled, Some(&wait));
        let is_ready = |at: usize| polled.get(at).is_some_and(|it| !it.revents().is_empty());
        Events { is_over: is_ready(0), has_clients: is_ready(1) }
    }

    fn accept(&mut self, listener: &UnixListener) {
        let privileged = &self.privileged;
        let refused = self.clients.accept(listener, |user| privileged.contains(&user));
        self.table.counts.refused_requests += refused;
    }

    fn answer(&mut self) {
        let Self { clients, metrics, images, table, known, files, discovery, .. } = self;
        if let Some(metrics) = metrics {
            metrics.serve(|| {
                let age = discovery.age.age(now()) / 1_000_000_000;
                let gauges = Gauges { look_age: age, ..table.gauges() };
                let mut text = code_agent::metrics::text(&table.counts, &gauges);
                if images.is_some() {
                    text += &code_agent::metrics::image_text(&table.images);
                }
                text + &of_this_process()
            });
        }
        clients.serve(|Asked { peer, waited }, line| {
            let now = now();
            let line = match Request::parse(line) {
                Ok(request) => {
                    if let Ask::Resolve(addresses) = &request.ask {
                        for pid in table.unknown(addresses) {
                            if let Some(known) = known.get_mut(&pid)
                                && now.saturating_sub(known.asked) >= ASKED_AGAIN
                            {
                                known.asked = now;
                                known.used = None;
                                known.looks.hurry(now);
                            }
                        }
                        let since = now.saturating_sub(nanoseconds_of(waited));
                        if waited < MOST_WAITED
                            && !files.are_current(table.asked(peer, addresses), since, now)
                        {
                            return None;
                        }
                    }
                    table.answer(peer, &request, waited < MOST_WAITED, now)?.line()
                }
                Err(refused) => {
                    table.counts.refused_requests += 1;
                    refused.line()
                }
            };
            Some(line)
        });
    }
}

/// Whether a process is one of the user's, and no thread of the kernel.
fn is_user(pid: u32) -> bool {
    Stat::read(pid).is_some_and(|stat| !stat.is_kernel)
}

fn nanoseconds_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}
