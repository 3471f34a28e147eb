//! A receiver that is away for an hour, by a simulated clock: what is promised holds for any windows, limits and restarts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use profile_push::{
    BodyId, BodyKind, Delivery, Event, Next, ProfileBody, Spool, Unreachable, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

/// A body that gzip cannot make shorter.
fn body(number: u64, length: usize) -> ProfileBody {
    let mut content = vec![0; length];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut content);
    ProfileBody::otlp(&content)
}

/// The profiles that are pushed, and the faults that happen while they are sent.
#[derive(Clone, Debug)]
struct Plan {
    /// The length of each window's profile; windows are pushed at equal distances.
    lengths: Vec<usize>,
    /// From which window on the receiver is away, for an hour.
    away_at: usize,
    /// How many windows are pushed in this hour.
    windows_an_hour: u32,
    /// How much may wait.
    limit: u64,
    on_disk: bool,
    /// The process that sends is started again before these windows.
    restarts: Vec<usize>,
    /// Every so many requests that arrive, the answer is lost.
    lost_answers: Option<u64>,
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        vec(1_usize..40_000, 12..40),
        0_usize..8,
        4_u32..40,
        40_000_u64..400_000,
        any::<bool>(),
        vec(0_usize..40, 0..3),
        proptest::option::of(2_u64..5),
    )
        .prop_map(
            |(lengths, away_at, windows_an_hour, limit, on_disk, restarts, lost_answers)| Plan {
                lengths,
                away_at,
                windows_an_hour,
                // The longest one fits.
                limit: limit.next_multiple_of(4096) + 4096,
                on_disk,
                restarts: if on_disk { restarts } else { Vec::new() },
                lost_answers,
            },
        )
}

/// What should wait: profiles with the space that they take, the oldest first.
#[derive(Default)]
struct Model {
    waiting: VecDeque<(BodyId, u64)>,
    dropped: u64,
}

impl Model {
    fn push(&mut self, id: BodyId, space: u64, limit: u64) -> u64 {
        let mut dropped = 0;
        while self.used() + space > limit {
            self.waiting.pop_front();
            dropped += 1;
        }
        self.waiting.push_back((id, space));
        self.dropped += dropped;
        dropped
    }

    fn used(&self) -> u64 {
        self.waiting.iter().map(|(_, space)| space).sum()
    }
}

fn files_of(folder: &TempDir) -> u64 {
    let entries = std::fs::read_dir(folder.path()).expect("a folder");
    let sizes = entries.map(|it| it.expect("an entry").metadata().expect("a file").len());
    sizes.sum()
}

/// Carries the plan out, and returns how many profiles were dropped.
fn simulate(plan: &Plan) -> u64 {
    let folder = TempDir::with_prefix("jitscribe-hour-").expect("a folder");
    let open = || match plan.on_disk {
        true => {
            let spool = Spool::open(folder.path(), BodyKind::Otlp, plan.limit).expect("a spool");
            Delivery::with_spool(spool, plan.limit)
        }
        false => Delivery::in_memory(plan.limit),
    };
    let begin = Instant::now();
    let distance = HOUR / plan.windows_an_hour;
    let pushed_at = |window: usize| begin + distance * u32::try_from(window).expect("few");
    let (away, back) = (pushed_at(plan.away_at), pushed_at(plan.away_at) + HOUR);
    let mut delivery = open();
    let mut model = Model::default();
    let (mut now, mut window) = (begin, 0);
    let (mut vain, mut lost, mut requests) = (0_u32, 0_u64, 0_u64);
    let (mut received, mut delivered) = (Vec::new(), Vec::new());
    let mut first_after_return = None;
    loop {
        while window < plan.lengths.len() && pushed_at(window) <= now {
            if plan.restarts.contains(&window) {
                drop(delivery);
                delivery = open();
            }
            let body = body(window as u64, plan.lengths[window]);
            let size = body.gzipped().len() as u64;
            let space = if plan.on_disk { size.next_multiple_of(4096) } else { size };
            let pushed = delivery.push(&body).expect("space");
            assert!(!pushed.was_there && pushed.not_spooled.is_none());
            // What is dropped is said, and nothing is dropped that has space.
            assert_eq!(pushed.dropped, model.push(body.id(), space, plan.limit));
            let usage = delivery.usage();
            assert_eq!((usage.waiting, usage.bytes), (model.waiting.len() as u64, model.used()));
            assert!(usage.bytes <= plan.limit && files_of(&folder) <= plan.limit);
            window += 1;
        }
        let next_push = (window < plan.lengths.len()).then(|| pushed_at(window));
        let mut events = Vec::new();
        match delivery.next(now, &mut events) {
            Next::Send(body) => {
                let id = body.id();
                assert_eq!(Some(id), model.waiting.front().map(|(id, _)| *id), "the oldest first");
                let verdict = if (away..back).contains(&now) {
                    vain += 1;
                    let (host, cause) = ("host".to_owned(), "nobody listens".to_owned());
                    Unreachable::Connect { host, port: 4318, cause }.into()
                } else {
                    requests += 1;
                    received.push(id);
                    if now >= back {
                        first_after_return.get_or_insert(now);
                    }
                    if plan.lost_answers.is_some_and(|every| requests.is_multiple_of(every)) {
                        lost += 1;
                        Unreachable::Broken { cause: "cut".into() }.into()
                    } else {
                        model.waiting.pop_front();
                        Verdict::Delivered(None)
                    }
                };
                delivery.answered(verdict, now, &mut events);
            }
            Next::Wait(until) => {
                assert!(until > now && until - now <= SECOND * 60, "{:?}", until - now);
                now = next_push.map_or(until, |push| push.min(until));
            }
            Next::Nothing => match next_push {
                Some(push) => now = push,
                None => break,
            },
            other => panic!("{other:?}"),
        }
        for event in events {
            match event {
                Event::Delivered { id, .. } => delivered.push(id),
                Event::Postponed { until, .. } => assert!(until > now),
                other => panic!("{other:?}"),
            }
        }
        assert!(vain + u32::try_from(requests).expect("few") < 10_000, "it does not end");
    }
    // All that was not dropped was delivered, in order, and once.
    assert!(model.waiting.is_empty());
    assert_eq!(delivered.len() as u64 + model.dropped, plan.lengths.len() as u64);
    let mut order = delivered.iter();
    let windows = (0..).zip(&plan.lengths).map(|(number, length)| body(number, *length).id());
    let in_order: Vec<_> = windows
        .filter(|id| order.as_slice().first() == Some(id) && order.next().is_some())
        .collect();
    assert_eq!(in_order, delivered);
    // Twice arrives only what has lost its answer.
    assert_eq!(received.len(), delivered.len() + usize::try_from(lost).expect("few"));
    received.dedup();
    received.retain(|id| delivered.contains(id));
    assert_eq!(received, delivered);
    // Waits double from a second to a minute, and at least half of each is waited.
    let runs = u32::try_from(plan.restarts.len()).expect("few") + 1;
    assert!(vain <= 7 * runs + 120 + 1, "{vain} attempts in an hour");
    // The receiver is not kept waiting, either: something was pushed just when it went away.
    let first = first_after_return.expect("a request");
    assert!(first - back <= SECOND * 60, "{:?} after it is back", first - back);
    model.dropped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_receiver_may_be_away_for_an_hour(plan in plan()) {
        simulate(&plan);
    }
}

/// What fills an hour and fits is not lost at all.
#[test]
fn what_fits_is_not_lost() {
    for on_disk in [true, false] {
        let plan = Plan {
            lengths: vec![4000; 60],
            away_at: 0,
            windows_an_hour: 60,
            limit: 61 * 4096,
            on_disk,
            restarts: if on_disk { vec![30] } else { Vec::new() },
            lost_answers: None,
        };
        assert_eq!(simulate(&plan), 0, "on disk: {on_disk}");
    }
}
