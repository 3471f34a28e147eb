//! A run: the program is compiled, announced and called, step by step.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::announce::{self, Announcer};
use crate::ast::FunctionId;
use crate::error::Error;
use crate::frame::FrameKind;
use crate::library::Library;
use crate::options::{Called, Options, Pace, Phase, Report};
use crate::parser;
use crate::plan::{self, Step};
use crate::tiers::Engine;
use crate::truth;

/// Into so many parts a timed phase is cut, in each of which every function has its turn.
const ROUNDS: u32 = 4;
/// Enough for the demo program at every tier.
const ARENA_BASE: usize = 1 << 18;
/// More than a generated function takes.
const ARENA_EACH: usize = 1 << 10;

/// Compiles a program, announces its code, and calls it.
///
/// # Errors
/// When a file cannot be made (it exists already, for instance), memory cannot be had, the shared object
/// to be run has other code, or the machine is not x86-64.
pub fn run(options: &Options) -> Result<Report, Error> {
    let (file, text) = match options.many {
        None => ("demo.scribe", plan::DEMO.to_owned()),
        Some(count) => ("many.scribe", plan::many_source(count)),
    };
    let program = parser::parse(&text)?;
    let steps = match options.many {
        None => plan::demo(&program),
        Some(_) => plan::many(&program),
    };
    if let Some(dir) = &options.ir_dir {
        fs::create_dir_all(dir).map_err(Error::file(dir))?;
    }
    let source = match &options.source_dir {
        Some(dir) => Some(write_source(dir, file, &text)?),
        None => None,
    };
    let source_name = source.as_deref().unwrap_or(Path::new(file)).display().to_string();
    let announcer = Announcer::new(options, source_name)?;
    let frames = if options.frame_pointers { FrameKind::Pointer } else { FrameKind::None };
    let arena = ARENA_BASE + options.many.unwrap_or(0) as usize * ARENA_EACH;
    let library = options.library.as_deref().map(Library::open).transpose()?;
    let mut engine = Engine::new(&program, frames, options.memory, arena, announcer, library)?;

    let mut start_when = options.start_when.as_deref();
    let mut phases = Vec::new();
    for step in &steps {
        match step {
            Step::Load(functions, tiers) => engine.load(functions, tiers)?,
            Step::Replace(function, tier) => engine.replace(*function, *tier)?,
            Step::Relocate(function) => engine.relocate(*function)?,
            Step::Free(function) => engine.free(*function)?,
            Step::Run(name, calls) => {
                if let Some(file) = start_when.take() {
                    wait_for(file);
                }
                let calls = phase(&engine, calls, options.pace)?;
                phases.push(Phase { name, calls });
            }
        }
    }
    if let Some(path) = &options.truth {
        truth::write(path, engine.versions())?;
    }
    if let Some(file) = &options.end_when {
        wait_for(file);
    }
    let versions = engine.versions().to_vec();
    let moves = versions.iter().filter(|version| version.moved_from.is_some()).count();
    Ok(Report {
        phases,
        printed: engine.take_printed(),
        loads: versions.len() - moves,
        moves,
        versions,
        dump: engine.announcer().dump_path(),
        perf_map: engine.announcer().map_path().map(Path::to_owned),
        source,
    })
}

/// Waits until a file exists.
fn wait_for(file: &Path) {
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Writes the source and returns its absolute path.
fn write_source(dir: &Path, file: &str, text: &str) -> Result<PathBuf, Error> {
    let dir = fs::canonicalize(dir).map_err(Error::file(dir))?;
    announce::write_text(&dir.join(file), text)
}

/// Calls the functions in turn, each so often or so long.
fn phase(
    engine: &Engine<'_>,
    calls: &[(FunctionId, i64)],
    pace: Pace,
) -> Result<Vec<Called>, Error> {
    let rounds = if matches!(pace, Pace::Time(_)) { ROUNDS } else { 1 };
    let share = u32::try_from(calls.len()).unwrap_or(u32::MAX).saturating_mul(rounds).max(1);
    let mut called: Vec<Option<Called>> = vec![None; calls.len()];
    for _ in 0..rounds {
        for ((id, argument), called) in calls.iter().zip(&mut called) {
            let (value, count) = match pace {
                Pace::Time(length) => repeat_for(engine, *id, *argument, length / share)?,
                Pace::Calls(count) => repeat(engine, *id, *argument, |done| done < count.into())?,
            };
            match called {
                Some(before) if before.value != value => return Err(engine.inconstant(*id)),
                Some(before) => before.count += count,
                None => {
                    let function = engine.name(*id).to_owned();
                    *called = Some(Called { function, argument: *argument, value, count });
                }
            }
        }
    }
    Ok(called.into_iter().flatten().collect())
}

fn repeat_for(
    engine: &Engine<'_>,
    id: FunctionId,
    argument: i64,
    length: Duration,
) -> Result<(i64, u64), Error> {
    let start = Instant::now();
    repeat(engine, id, argument, |_| start.elapsed() < length)
}

/// Calls a function at least once and as long as `more` of the count says; every call must return
/// the same.
fn repeat(
    engine: &Engine<'_>,
    id: FunctionId,
    argument: i64,
    more: impl Fn(u64) -> bool,
) -> Result<(i64, u64), Error> {
    let value = engine.call(id, argument)?;
    let mut count = 1;
    while more(count) {
        if engine.call(id, argument)? != value {
            return Err(engine.inconstant(id));
        }
        count += 1;
    }
    Ok((value, count))
}
