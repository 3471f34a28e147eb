//! Profiles of recordings, and perf's own reading of the same recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use profile::{FunctionKind, Profile, SampleRow};
use profile_recording::{Options, RecordedProfile};

use crate::chains::{self, Chain, Frame};
use crate::perf::Perf;
use crate::sample::{parse_id, parse_time};
use crate::tool::run;

/// The profile of a recording.
pub fn read(data: &Path) -> RecordedProfile<'static> {
    profile_recording::read(data, &Options::default(), &|_| {}).expect("a recording")
}

/// Checks that a profile has the samples that perf has: process, thread, time, event, and weight of each.
pub fn expect_same_samples(data: &Path, profile: &Profile) {
    type Row = (u32, u32, u64, String, u64);
    let mut command = Perf::installed().command();
    command.args(["script", "--ns", "-G", "-F", "pid,tid,time,period,event", "-i"]).arg(data);
    let printed = run(&mut command).stdout;
    let mut perfs: Vec<Row> = printed.lines().filter(|line| !line.is_empty()).map(row).collect();
    let mut ours = profile.samples().iter().map(|sample| {
        let thread = profile.thread(sample.thread);
        let pid = profile.process(thread.process).pid;
        let event = profile.text(profile.event(sample.event).name);
        let event = String::from_utf8_lossy(event).into_owned();
        (pid, thread.tid, sample.time, event, sample.weight)
    });
    let mut ours: Vec<Row> = ours.by_ref().collect();
    perfs.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours.len(), perfs.len(), "samples");
    for (ours, perfs) in ours.iter().zip(&perfs) {
        assert_eq!(ours, perfs, "the profile's sample, and perf's");
    }
}

/// A line of perf: `PID/TID TIME: PERIOD EVENT:`.
fn row(line: &str) -> (u32, u32, u64, String, u64) {
    let read = || {
        let mut words = line.split_whitespace();
        let (pid, tid) = words.next()?.split_once('/')?;
        let time = parse_time(words.next()?.strip_suffix(':')?)?;
        let period = words.next()?.parse().ok()?;
        let event = words.next()?.strip_suffix(':')?.to_owned();
        Some((parse_id(pid)?, parse_id(tid)?, time, event, period))
    };
    read().unwrap_or_else(|| panic!("no sample: {line}"))
}

/// The names of a profile's stacks, and how often each was recorded.
pub fn stacks(profile: &Profile) -> BTreeMap<Vec<Option<String>>, usize> {
    let mut all: BTreeMap<Vec<Option<String>>, usize> = BTreeMap::new();
    for sample in profile.samples().iter() {
        let names = frames(profile, &sample).into_iter().map(|frame| frame.name);
        *all.entry(names.collect()).or_default() += 1;
    }
    all
}

/// What perf 6.1 and the profile say of the same frames.
#[derive(Debug, Default)]
pub struct Compared {
    /// Samples.
    pub samples: usize,
    /// Frames.
    pub frames: usize,
    /// Both have the same name, or none.
    pub same: usize,
    /// perf looks up the address that a call returns to, which is behind the function if the call was its last instruction.
    pub behind_call: usize,
    /// Both have a name of the same function, which has several.
    pub alias: usize,
    /// perf has no frame, not even the sample's own address.
    pub without_stack: usize,
    /// perf leaves out the whole stack, because a frame pointer that is used for something else gave it a return address among the kernel's markers (-4095 to -1).
    pub discarded: usize,
    /// perf has no name. By our names.
    pub gained: BTreeMap<String, usize>,
    /// perf has the name of a function in a program that was just replaced by exec: it keeps mappings until others replace them.
    pub before_exec: usize,
    /// Of copied stacks: perf's ends in the vDSO, which it reads only from its build-id cache.
    pub in_vdso: usize,
    /// Of copied stacks: perf's ends, and ours goes on to the frames above. perf's libunwind gives up where it assumes a wrong stack pointer. By perf's last
    /// frames.
    pub perf_ends: BTreeMap<String, usize>,
    /// Of copied stacks: ours ends, and says why, and perf's goes on.
    pub ours_ends: usize,
    /// Of copied stacks: they differ above a frame in code that replaced other code. perf's libunwind caches by address how a frame is unwound.
    pub replaced: usize,
    /// Of copied stacks: perf lacks the function that V8 interprets, whose handlers of bytecodes have no frame.
    pub interpreted: usize,
    /// Other differences, with their number.
    pub other: BTreeMap<String, usize>,
}

impl Compared {
    /// Compares the stacks of all samples, by thread and time.
    pub fn of(data: &Path, profile: &Profile) -> Self {
        Self::compare(data, profile, |_| true, &|_| None)
    }

    /// The same of the processes with these ids only.
    pub fn of_processes(data: &Path, profile: &Profile, pids: &BTreeSet<u32>) -> Self {
        Self::compare(data, profile, |pid| pids.contains(&pid), &|_| None)
    }

    /// The same of stacks that were copied: perf unwinds them by libunwind. `is_replaced` says of an address in the process whether different codes were
    /// there.
    pub fn of_copied(data: &Path, profile: &Profile, is_replaced: &dyn Fn(u64) -> bool) -> Self {
        Self::compare(data, profile, |_| true, &|address| Some(is_replaced(address)))
    }

    fn compare(
        data: &Path,
        profile: &Profile,
        is_compared: impl Fn(u32) -> bool,
        is_replaced: &dyn Fn(u64) -> Option<bool>,
    ) -> Self {
        let fields = "comm,pid,tid,time,ip,sym,symoff,dso";
        let mut command = Perf::installed().command();
        command.args(["script", "--ns", "--no-inline", "--no-demangle", "--max-stack", "512"]);
        let printed = run(command.args(["-F", fields, "-i"]).arg(data)).stdout;
        let mut by_time: BTreeMap<(u32, u64), Vec<SampleRow>> = BTreeMap::new();
        for sample in profile.samples().iter() {
            let tid = profile.thread(sample.thread).tid;
            by_time.entry((tid, sample.time)).or_default().push(sample);
        }
        let mut compared = Self::default();
        let kernel = kernel_symbols();
        for chain in chains::parse(&printed) {
            let samples = by_time.get_mut(&(chain.tid, chain.time)).expect("the sample");
            assert!(!samples.is_empty(), "one more sample at {}", chain.time);
            let sample = samples.remove(0);
            let thread = profile.thread(sample.thread);
            if is_compared(profile.process(thread.process).pid) {
                compared.add(chain, &frames(profile, &sample), &kernel, is_replaced);
            }
        }
        assert!(by_time.values().all(Vec::is_empty), "samples that perf does not have");
        // The others have no more than one frame.
        let discarded = compared.discarded;
        assert!(
            discarded == 0 || discarded <= Perf::installed().discarded_chains(data),
            "{compared:#?}"
        );
        compared
    }

    fn add(
        &mut self,
        mut chain: Chain,
        ours: &[Named],
        kernel: &BTreeMap<String, u64>,
        is_replaced: &dyn Fn(u64) -> Option<bool>,
    ) {
        self.samples += 1;
        // Where a sample has no stack, perf leaves out its own address as well.
        if chain.frames.is_empty() && ours.len() == 1 {
            self.without_stack += 1;
            return;
        }
        if chain.frames.is_empty() {
            self.discarded += 1;
            return;
        }
        let mut ours: Vec<&Named> = ours.iter().collect();
        if is_replaced(0).is_some() {
            // perf shows a return address of 0 as the last one.
            if chain.frames.last().is_some_and(|last| last.address == u64::MAX) {
                chain.frames.pop();
            }
            let alike = |ours: &[&Named], perfs: &[Frame]| {
                ours.iter().zip(perfs).take_while(|(ours, perfs)| ours.is_at(perfs)).count()
            };
            let alike_before = alike(&ours, &chain.frames);
            // The next frames may be alike by chance: copies of the interpreter's entry are at many places of a page.
            let handler = chain.frames[..alike_before].iter().rposition(is_handler);
            if let Some(above) = handler.map(|handler| handler + 1)
                && let Some(rest) = ours.get(above + 1..)
                && rest.len() == chain.frames.len() - above
                && alike(rest, &chain.frames[above..]) == rest.len()
            {
                ours.remove(above);
                self.interpreted += 1;
            }
            let alike = alike(&ours, &chain.frames);
            let (is_end_of_perfs, is_end) = (alike == chain.frames.len(), alike == ours.len());
            let last = alike.checked_sub(1).and_then(|last| ours.get(last));
            match (is_end_of_perfs, is_end) {
                (true, true) => {}
                _ if last.and_then(|last| is_replaced(last.in_process?)) == Some(true) => {
                    self.replaced += 1;
                }
                (true, false) if chain.frames.last().is_some_and(|it| it.dso == "[vdso]") => {
                    self.in_vdso += 1;
                }
                (true, false) => {
                    let last = chain.frames.last();
                    let last = last.map(|it| format!("{:?} in {}", it.name(), it.dso));
                    *self.perf_ends.entry(last.unwrap_or_default()).or_default() += 1;
                }
                (false, true) => self.ours_ends += 1,
                (false, false) => self.differs(format!("behind {alike} frames: {}", chain.line())),
            }
            chain.frames.truncate(alike);
            ours.truncate(alike);
        }
        let lengths = (chain.frames.len(), ours.len());
        if lengths.0 != lengths.1 {
            let names: Vec<_> = ours.iter().map(|frame| &frame.name).collect();
            self.differs(format!(
                "{} and {} frames: {}, {names:?}",
                lengths.0,
                lengths.1,
                chain.line()
            ));
            return;
        }
        let is_in_exec = chain.passes("bprm_execve") || chain.passes("do_execveat_common.isra.0");
        for (depth, (frame, ours)) in chain.frames.iter().zip(ours).enumerate() {
            self.frames += 1;
            let offset = frame.symbol.as_ref().and_then(|symbol| symbol.offset);
            // Of a caller, we have an address within the call.
            let same_offset = offset.is_some()
                && [ours.offset, ours.offset.map(|offset| offset + 1)].contains(&offset);
            let address = |name: &str| kernel.get(name);
            // A stub that calls a function of its own file has a relocation without a symbol, from which perf makes this name.
            let perfs = frame.name().filter(|name| *name != "@plt");
            match (perfs, &ours.name) {
                (None, None) => self.same += 1,
                // Another machine's kernel: ours says no more than what the mapping does.
                (None, Some(ours)) if ours == "[kernel]" => self.same += 1,
                (Some(name), Some(ours)) if name == ours => self.same += 1,
                (Some(_), _) if depth > 0 && offset == Some(0) => self.behind_call += 1,
                (Some(_), Some(_)) if same_offset => self.alias += 1,
                (Some(name), Some(ours))
                    if address(name).is_some() && address(name) == address(ours) =>
                {
                    self.alias += 1;
                }
                // perf does not know the stubs of each section, and takes them for the end of the function before, which is this one.
                (Some("_fini"), Some(ours)) if ours.ends_with("@plt") => {
                    self.alias += 1;
                }
                (None, Some(ours)) => {
                    *self.gained.entry(format!("{ours} in {}", frame.dso)).or_default() += 1;
                }
                (Some(_), None) if is_in_exec => self.before_exec += 1,
                (name, ours) => {
                    let Frame { dso, .. } = frame;
                    self.differs(format!("{name:?} and {ours:?} in {dso}"));
                }
            }
        }
    }

    fn differs(&mut self, how: String) {
        *self.other.entry(how).or_default() += 1;
    }

    /// At least so many samples were compared, and nothing differs but what is explained.
    #[track_caller]
    pub fn expect_equal(&self, samples: usize) {
        assert!(self.samples >= samples && self.frames >= self.samples, "{self:#?}");
        assert!(self.other.is_empty(), "{self:#?}");
        let gained: usize = self.gained.values().sum();
        assert!(self.behind_call * 20 <= self.frames && gained * 20 <= self.frames, "{self:#?}");
        assert!(self.before_exec * 100 <= self.frames, "{self:#?}");
    }

    /// The same of copied stacks: nothing differs but what is explained, and of that few.
    #[track_caller]
    pub fn expect_equal_copies(&self, samples: usize) {
        self.expect_equal(samples);
        assert!(self.in_vdso * 10 <= self.samples, "{self:#?}");
        assert!(self.interpreted * 2 <= self.samples, "{self:#?}");
        let few = |count: usize| count <= self.samples / 50 + 2;
        assert!(
            few(self.perf_ends.values().sum()) && few(self.ours_ends) && few(self.replaced),
            "{self:#?}"
        );
    }
}

/// Whether it is a handler of V8's bytecodes.
fn is_handler(frame: &Frame) -> bool {
    let name = frame.name().unwrap_or_default();
    name.starts_with("Builtins_") && name.ends_with("Handler")
}

/// A frame as perf prints it.
struct Named {
    name: Option<String>,
    /// The distance from the beginning of its code.
    offset: Option<u64>,
    /// In the file, or in the process if it is in none.
    address: u64,
    /// In the process, of jitted code.
    in_process: Option<u64>,
}

impl Named {
    /// Whether perf's frame is at the same place of a page: perf prints addresses in files, which lie in memory at whole pages. Of callers, perf has the
    /// address within the call for copied stacks only.
    fn is_at(&self, perfs: &Frame) -> bool {
        let place = |address: u64| address & 0xfff;
        [self.address, self.address.wrapping_add(1)]
            .iter()
            .any(|ours| place(*ours) == place(perfs.address))
    }
}

/// The frames as perf prints them, innermost first: with the symbols of codes, without inlined calls.
fn frames(profile: &Profile, sample: &SampleRow) -> Vec<Named> {
    let mut frames = Vec::new();
    for frame in profile.frames_of(sample.stack).filter(|frame| frame.depth == 0) {
        let function = profile.function(frame.function);
        let code = frame.code.map(|code| profile.code(code));
        let name = match (code, function.kind) {
            (_, FunctionKind::End) => continue,
            (_, FunctionKind::Unknown) => None,
            (Some(code), _) => Some(code.symbol),
            (None, _) => Some(function.name),
        };
        let name = name.map(|name| String::from_utf8_lossy(profile.text(name)).into_owned());
        let offset = code.map(|code| frame.address - code.module_address);
        let jitted = code.filter(|code| code.process.is_some());
        let in_process = jitted.zip(offset).map(|(code, offset)| code.address + offset);
        frames.push(Named { name, offset, address: frame.address, in_process });
    }
    frames
}

/// The addresses of the kernel's functions.
fn kernel_symbols() -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string("/proc/kallsyms").expect("the kernel's symbols");
    let symbols = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((words.nth(1)?.to_owned(), address))
    });
    symbols.collect()
}
