//! Prints how long a report of a million samples takes to write, to open and to select in.
//!
//! `cargo run --release -p jitscribe-profile-report --example page_times`

use std::error::Error;
use std::fs;
use std::time::Instant;

use profile::{
    Builder, Code, CodeId, CodeSource, Frame, Function, FunctionKind, Listing, Profile, SampleRow,
    Source, StackId,
};
use test_browser::Browser;

/// How often each selection is made.
const ROUNDS: u32 = 20;

struct Nothing;

impl CodeSource for Nothing {
    fn listing(&mut self, _: CodeId) -> Option<Listing> {
        None
    }

    fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        None
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        None
    }
}

/// 1,000,000 samples, 200,000 stacks, 20,000 functions, 16 threads.
fn profile() -> Profile {
    let mut random = 1_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % limit
    };
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"made");
    let threads: Vec<_> = (1..=16).map(|tid| builder.thread(process, tid, b"made")).collect();
    let tiers = ["baseline", "maglev", "turbofan"].map(|tier| builder.string(tier.as_bytes()));
    let frames: Vec<_> = (0..20_000)
        .map(|number| {
            let name = format!("module_{}::function_{number}::call", number % 97);
            let name = builder.string(name.as_bytes());
            let kind =
                [FunctionKind::Jitted, FunctionKind::Native, FunctionKind::Kernel][number % 3];
            let function = builder.function(Function::new(name, kind));
            let mut frame = Frame::new(function);
            if kind == FunctionKind::Jitted {
                let mut code = Code::new(function, 256);
                code.tier = tiers[number % 7 % 3];
                code.process = Some(process);
                frame.code = Some(builder.code(code));
            }
            builder.frame(frame)
        })
        .collect();
    let mut stacks: Vec<StackId> = Vec::new();
    while stacks.len() < 200_000 {
        // Some calls are much more frequent than others.
        let parent = match stacks.len() {
            0 => None,
            many => Some(stacks[below(many).min(below(many))]),
        };
        let frame = frames[below(frames.len())];
        let stack = builder.stack(parent, frame);
        if stack.index() == stacks.len() {
            stacks.push(stack);
        }
    }
    let mut time = 0;
    for _ in 0..1_000_000 {
        time += 1_000 + below(100_000) as u64;
        let (thread, stack) = (threads[below(16)], stacks[below(stacks.len())]);
        let weight = 900_000 + below(200_000) as u64;
        builder.sample(SampleRow { time, thread, event, weight, stack });
    }
    builder.finish()
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let profile = profile();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("report.html");
    let start = Instant::now();
    let mut html = Vec::new();
    profile_report::write(&profile, &mut Nothing, &Default::default(), &mut html)?;
    let writing = start.elapsed();
    println!("written: {:.1} MB in {} ms", html.len() as f64 / 1e6, writing.as_millis());
    fs::write(&file, html)?;
    let mut browser = Browser::start();
    println!("{}", browser.version());
    let mut page = browser.open(&file, "", (1600, 1000));
    let drawn = page.eval("jitscribe.drawn").as_f64().unwrap_or_default();
    let processor = 1e3 * page.processor_time();
    println!("from opening to drawn: {drawn:.0} ms ({processor:.0} ms of processor)");
    for view in ["flame", "functions", "tree"] {
        page.eval(&format!("jitscribe.session.update({{view: '{view}'}})"));
        page.settle();
        for (what, change) in [
            ("a third of the time", "span: [n / 40 * end, (n / 40 + 0.33) * end]"),
            ("one thread of it", "threads: new Set([n % 16])"),
            ("callers or callees", "inverted: n % 2 == 1"),
            ("a search", "query: '_' + n"),
        ] {
            let before = page.processor_time();
            let took = page.eval(&format!(
                "(() => {{ const {{end}} = jitscribe.session.profile; const start = performance.now();
                   for (let n = 0; n < {ROUNDS}; n++) jitscribe.session.update({{{change}}});
                   return performance.now() - start; }})()"
            ));
            let rounds = f64::from(ROUNDS);
            let took = took.as_f64().unwrap_or_default() / rounds;
            let processor = 1e3 * (page.processor_time() - before) / rounds;
            println!("{view}, {what}: {took:.1} ms ({processor:.1} ms of processor)");
        }
        page.eval(
            "jitscribe.session.update({span: null, threads: null, query: '', inverted: false})",
        );
    }
    let zoom = page.eval("(() => { const start = performance.now(); jitscribe.timeline.redraw(); return performance.now() - start; })()");
    println!("timeline of all: {:.1} ms", zoom.as_f64().unwrap_or_default());
    Ok(())
}
