//! What callgrind wrote, read for obviousness and not for speed, apart from the crate that is tested with it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool::{ToolOutput, run, tool};

/// A profile: costs by function, calls by caller and callee. Costs are lists, an entry an event.
///
/// Functions are named as in the file: with `'2` where a call was recursive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The events' names.
    pub events: Vec<String>,
    /// The process.
    pub pid: u32,
    /// The sum of all self costs according to the file; of several parts together.
    pub totals: Vec<u64>,
    /// Self cost by function.
    pub own: BTreeMap<Function, Vec<u64>>,
    /// Calls by caller and callee.
    pub calls: BTreeMap<(Function, Function), Call>,
    /// Jumps by function, as far as they are told: how often they were taken, and how often conditional ones were
    /// come to.
    pub jumps: BTreeMap<Function, [u64; 2]>,
    /// Self cost by instruction and line: `(function, address, file, line)`.
    pub places: BTreeMap<(Function, u64, String, u64), Vec<u64>>,
}

/// A function as readers of profiles distinguish it: by name, object, and file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The object, with its whole path.
    pub object: String,
    /// The source file, as written in the profile.
    pub file: String,
}

/// What went from one function to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// How often.
    pub count: u64,
    /// The inclusive cost.
    pub inclusive: Vec<u64>,
}

/// Runs `command` under callgrind with instructions and jumps, and returns the path of the profile.
pub fn callgrind(dir: &Path, options: &[&str], command: &Command) -> (PathBuf, ToolOutput) {
    let (mut new, printed) = callgrind_files(dir, options, command);
    assert_eq!(new.len(), 1, "one profile: {new:?}\n{}", printed.stderr);
    (new.remove(0), printed)
}

/// The same, where there may be several profiles: one a thread, or one a part. They come in the order of their names.
pub fn callgrind_files(
    dir: &Path,
    options: &[&str],
    command: &Command,
) -> (Vec<PathBuf>, ToolOutput) {
    let before = profiles(dir);
    let mut valgrind = tool("valgrind");
    valgrind.args(["--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes"]);
    valgrind.arg(format!("--callgrind-out-file={}/callgrind.out.%p", dir.display()));
    valgrind.args(options).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => valgrind.env(name, value),
            None => valgrind.env_remove(name),
        };
    }
    valgrind.current_dir(command.get_current_dir().unwrap_or(dir));
    let printed = run(&mut valgrind);
    let mut new = profiles(dir);
    new.retain(|path| !before.contains(path));
    new.sort();
    (new, printed)
}

fn profiles(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the folder of the profiles");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_one = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("callgrind.out"))
    };
    paths.filter(is_one).collect()
}

impl Profile {
    /// Reads a profile.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let mut reading = Reading::default();
        for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            reading
                .line(line)
                .unwrap_or_else(|| panic!("{}:{}: {line}", path.display(), number + 1));
        }
        reading.profile
    }

    /// Self costs and calls without files and objects, and with recursive calls counted among the others.
    pub fn by_name(&self) -> ByName {
        let mut by_name = ByName::default();
        for (function, costs) in &self.own {
            add(by_name.own.entry(plain(&function.name)).or_default(), costs);
        }
        for ((caller, callee), call) in &self.calls {
            let key = (plain(&caller.name), plain(&callee.name));
            let sum = by_name.calls.entry(key).or_default();
            sum.count += call.count;
            add(&mut sum.inclusive, &call.inclusive);
        }
        for (function, counts) in &self.jumps {
            let sums = by_name.jumps.entry(plain(&function.name)).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        by_name
    }

    /// The sum of all self costs.
    pub fn sum(&self) -> Vec<u64> {
        let mut sum = Vec::new();
        self.own.values().for_each(|costs| add(&mut sum, costs));
        sum
    }
}

/// A profile by the functions' plain names alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByName {
    /// Self cost by function.
    pub own: BTreeMap<String, Vec<u64>>,
    /// Calls by caller and callee.
    pub calls: BTreeMap<(String, String), Call>,
    /// Jumps by function: taken, and come to.
    pub jumps: BTreeMap<String, [u64; 2]>,
}

impl ByName {
    /// Only what `named` knows: the functions, and the calls at whose one end it knows a function.
    #[must_use]
    pub fn of(mut self, named: impl Fn(&str) -> bool) -> Self {
        self.own.retain(|name, _| named(name));
        self.jumps.retain(|name, _| named(name));
        self.calls.retain(|(caller, callee), _| named(caller) || named(callee));
        self
    }

    /// How `other` differs: a line a difference. Inclusive costs are compared of all calls but those that
    /// `except` has.
    pub fn differences(&self, other: &Self, except: &[(&str, &str)]) -> String {
        let mut report = String::new();
        let names =
            self.own.keys().chain(other.own.keys().filter(|name| !self.own.contains_key(*name)));
        for name in names {
            let (here, there) = (self.own.get(name), other.own.get(name));
            if here != there {
                _ = writeln!(report, "self {name}: {here:?} and {there:?}");
            }
        }
        let calls = self
            .calls
            .keys()
            .chain(other.calls.keys().filter(|call| !self.calls.contains_key(*call)));
        for call in calls {
            let (here, there) = (self.calls.get(call), other.calls.get(call));
            let (caller, callee) = call;
            let count = |call: Option<&Call>| call.map_or(0, |call| call.count);
            let inclusive = |call: Option<&Call>| call.map(|call| call.inclusive.clone());
            if count(here) != count(there) {
                _ = writeln!(
                    report,
                    "calls {caller} -> {callee}: {} and {}",
                    count(here),
                    count(there)
                );
            }
            if !except.contains(&(caller, callee)) && inclusive(here) != inclusive(there) {
                _ = writeln!(
                    report,
                    "inclusive {caller} -> {callee}: {:?} and {:?}",
                    inclusive(here),
                    inclusive(there)
                );
            }
        }
        report
    }
}

/// A function's name without the level of its recursion, and without the parameters of a C++ name.
pub fn plain(name: &str) -> String {
    let (head, level) = name.rsplit_once('\'').unwrap_or((name, ""));
    let is_level = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
    if is_level { head } else { name }.to_owned()
}

fn add(sum: &mut Vec<u64>, costs: &[u64]) {
    sum.resize(sum.len().max(costs.len()), 0);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
}

#[derive(Default)]
struct Reading {
    profile: Profile,
    /// By the kind of name and its number.
    names: HashMap<(&'static str, u64), String>,
    positions: Vec<String>,
    /// Where the line before was, a number a column.
    last: Vec<u64>,
    object: String,
    /// The file of the function.
    file: String,
    /// The file of the line: another one where code was inlined.
    line_file: String,
    name: String,
    called_object: Option<String>,
    called_file: Option<String>,
    called: String,
    /// The count of a call whose costs stand on the next line.
    calls: Option<u64>,
    /// A jump whose place stands on the next line: how often it was taken, and come to if it is conditional.
    jump: Option<[u64; 2]>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Option<()> {
        if line.is_empty() || line.starts_with('#') {
            return Some(());
        }
        if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            return self.costs(line);
        }
        if let Some((key, rest)) = line.split_once(": ").filter(|(key, _)| !key.contains('=')) {
            match key {
                "events" => {
                    self.profile.events = rest.split_whitespace().map(str::to_owned).collect()
                }
                "positions" => {
                    self.positions = rest.split_whitespace().map(str::to_owned).collect();
                    self.last = vec![0; self.positions.len()];
                }
                "pid" => self.profile.pid = rest.trim().parse().ok()?,
                "totals" => {
                    let totals: Option<Vec<u64>> =
                        rest.split_whitespace().map(|number| number.parse().ok()).collect();
                    add(&mut self.profile.totals, &totals?);
                }
                _ => {}
            }
            return Some(());
        }
        let Some((key, rest)) = line.split_once('=') else {
            // `desc:` and the like may have nothing behind them.
            return line.ends_with(':').then_some(());
        };
        match key {
            "ob" => self.object = self.named("ob", rest)?,
            "fl" => {
                self.file = self.named("fl", rest)?;
                self.line_file.clone_from(&self.file);
            }
            "fi" | "fe" => self.line_file = self.named("fl", rest)?,
            "fn" => {
                self.name = self.named("fn", rest)?;
                self.line_file.clone_from(&self.file);
            }
            "cob" => self.called_object = Some(self.named("ob", rest)?),
            "cfi" | "cfl" => self.called_file = Some(self.named("fl", rest)?),
            "cfn" => self.called = self.named("fn", rest)?,
            "jfi" => _ = self.named("fl", rest)?,
            "jfn" => _ = self.named("fn", rest)?,
            "calls" => self.calls = Some(rest.split_whitespace().next()?.parse().ok()?),
            "jump" => self.jump = Some([rest.split_whitespace().next()?.parse().ok()?, 0]),
            "jcnd" => {
                let (taken, executed) = rest.split_whitespace().next()?.split_once('/')?;
                self.jump = Some([taken.parse().ok()?, executed.parse().ok()?]);
            }
            _ => return None,
        }
        Some(())
    }

    fn named(&mut self, kind: &'static str, written: &str) -> Option<String> {
        let Some((number, name)) = written.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            return Some(written.to_owned());
        };
        // Some names begin like numbers do: (below main).
        let Ok(number) = number.parse() else { return Some(written.to_owned()) };
        let key = (kind, number);
        let name = name.trim_start();
        if !name.is_empty() {
            self.names.insert(key, name.to_owned());
        }
        self.names.get(&key).cloned()
    }

    fn costs(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        for last in &mut self.last {
            let word = words.next()?;
            *last = match word.as_bytes()[0] {
                b'*' => *last,
                b'+' => last.wrapping_add(word[1..].parse().ok()?),
                b'-' => last.wrapping_sub(word[1..].parse().ok()?),
                _ => match word.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok()?,
                    None => word.parse().ok()?,
                },
            };
        }
        let function = Function {
            name: self.name.clone(),
            object: self.object.clone(),
            file: self.file.clone(),
        };
        if let Some(counts) = self.jump.take() {
            let sums = self.profile.jumps.entry(function).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            return words.next().is_none().then_some(());
        }
        let costs: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let mut costs = costs?;
        costs.resize(self.profile.events.len(), 0);
        if let Some(count) = self.calls.take() {
            let callee = Function {
                name: std::mem::take(&mut self.called),
                object: self.called_object.take().unwrap_or_else(|| self.object.clone()),
                file: self.called_file.take().unwrap_or_else(|| self.line_file.clone()),
            };
            let call = self.profile.calls.entry((function, callee)).or_default();
            call.count += count;
            add(&mut call.inclusive, &costs);
        } else {
            add(self.profile.own.entry(function.clone()).or_default(), &costs);
            let column = |name: &str| {
                let place = self.positions.iter().position(|position| position == name);
                place.map_or(0, |place| self.last[place])
            };
            let place = (function, column("instr"), self.line_file.clone(), column("line"));
            add(self.profile.places.entry(place).or_default(), &costs);
        }
        Some(())
    }
}
