//! Deadlines for the work of another process.
//!
//! On a busy machine, a process that is able to answer may get no processor time for many seconds. Therefore a deadline does not
//! count wall time. It counts the time in which the waited-for process could have worked: while it runs, and while it sleeps or
//! is stopped. It does not count the time in which
//!
//! - the process is ready to run and waits for a processor ([`Usage`]),
//! - this thread, which waits, got no processor time itself, so that it could not notice an answer.
//!
//! A hostile process can pretend to wait for a processor. So the time that is not counted has a bound, too: [`Limit::wall`].
//!
//! A deadline is a state machine without system calls: the caller passes the [`Clock`] and the [`Usage`].

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::usage::Usage;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The longest time in which the process could have worked.
    pub counted: Duration,
    /// The longest time by the clock on the wall.
    pub wall: Duration,
}

/// How much longer the limit for wall time is than the one for counted time.
const BUSY: u32 = 10;

/// The longest limit for wall time, in seconds, unless the limit for counted time is longer.
const LONGEST: u64 = 600;

impl Limit {
    /// No limit.
    pub const NEVER: Self = Self { counted: Duration::MAX, wall: Duration::MAX };

    /// This much counted time, and ten times as much wall time, but not more than ten minutes.
    pub const fn of(counted: Duration) -> Self {
        let wall = counted.saturating_mul(BUSY);
        let wall = if wall.as_secs() < LONGEST {
            wall
        } else if counted.as_secs() < LONGEST {
            Duration::from_secs(LONGEST)
        } else {
            counted
        };
        Self { counted, wall }
    }

    /// This limit, and some more time of both kinds.
    pub const fn and(self, more: Duration) -> Self {
        Self { counted: self.counted.saturating_add(more), wall: self.wall.saturating_add(more) }
    }
}

/// The time, as this thread sees it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now: Instant,
    /// The processor time of this thread.
    own: Duration,
}

impl Clock {
    /// The time now.
    pub fn now() -> Self {
        let own = clock_gettime(ClockId::ThreadCPUTime);
        let (seconds, rest) = (own.tv_sec.unsigned_abs(), u32::try_from(own.tv_nsec).unwrap_or(0));
        Self { now: Instant::now(), own: Duration::new(seconds, rest) }
    }
}

/// The time between two looks at the process, at most. The time of a look is not known more precisely.
const TICK: Duration = Duration::from_millis(100);

/// The shortest time between two looks.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// How much of a limit is used up.
#[derive(Clone, Copy, Debug)]
struct Spent {
    limit: Limit,
    counted: Duration,
    since: Instant,
}

impl Spent {
    fn new(limit: Limit, now: Instant) -> Self {
        Self { limit, counted: Duration::ZERO, since: now }
    }

    fn left(&self) -> Duration {
        self.limit.counted.saturating_sub(self.counted)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.left().is_zero() || now.saturating_duration_since(self.since) >= self.limit.wall
    }
}

/// A deadline for a process, or for several ones together.
#[derive(Debug)]
pub struct Deadline {
    /// The time since the last progress.
    silent: Spent,
    /// The whole time.
    whole: Spent,
    last: Clock,
    before: Option<Usage>,
    /// Which part of the last interval was not counted, between 0 and 1.
    starved: f64,
}

impl Deadline {
    /// A deadline that begins now. `silence` is the longest time without progress, `whole` the longest time in all.
    pub fn new(silence: Limit, whole: Limit, clock: Clock) -> Self {
        let spent = |limit| Spent::new(limit, clock.now);
        let (silent, whole) = (spent(silence), spent(whole));
        Self { silent, whole, last: clock, before: None, starved: 0.0 }
    }

    /// How long to wait until the next look, if nothing happens before.
    pub fn pause(&self, clock: Clock) -> Duration {
        let passed = clock.now.saturating_duration_since(self.last.now);
        self.tick().saturating_sub(passed).max(SHORTEST_TICK)
    }

    fn tick(&self) -> Duration {
        let shortest = self.silent.limit.counted.min(self.whole.limit.counted);
        (shortest / 4).clamp(SHORTEST_TICK, TICK)
    }

    /// Counts the time since the last look, if it is time for another one. `usage` is what the process has used; `None` if that is
    /// not known, and then only the time that this thread could not run is not counted.
    pub fn look(&mut self, clock: Clock, usage: impl FnOnce() -> Option<Usage>) {
        let Some(passed) = self.passed(clock) else { return };
        let now = usage();
        let starved =
            now.as_ref().map_or(Duration::ZERO, |now| now.starved(self.before.as_ref(), passed));
        self.before = now;
        self.count(clock, passed, starved);
    }

    /// The same for the part of the time, between 0 and 1, in which the processes that are waited for could not run.
    pub fn look_at_many(&mut self, clock: Clock, starved: impl FnOnce() -> f64) {
        let Some(passed) = self.passed(clock) else { return };
        self.count(clock, passed, passed.mul_f64(starved().clamp(0.0, 1.0)));
    }

    fn passed(&self, clock: Clock) -> Option<Duration> {
        let passed = clock.now.saturating_duration_since(self.last.now);
        (passed >= self.tick()).then_some(passed)
    }

    fn count(&mut self, clock: Clock, passed: Duration, starved: Duration) {
        // The caller waits for at most a tick. If more time has passed and this thread has not used it, it could not run.
        let own = clock.own.saturating_sub(self.last.own);
        let counted = passed.saturating_sub(starved).min(self.tick().max(own));
        for spent in [&mut self.silent, &mut self.whole] {
            spent.counted = spent.counted.saturating_add(counted);
        }
        self.starved = 1.0 - counted.as_secs_f64() / passed.as_secs_f64();
        self.last = clock;
    }

    /// The process has made progress.
    pub fn progress(&mut self, clock: Clock) {
        self.silent = Spent::new(self.silent.limit, clock.now);
    }

    /// Whether no more is waited for the process.
    pub fn is_over(&self, clock: Clock) -> bool {
        self.silent.is_over(clock.now) || self.whole.is_over(clock.now)
    }

    /// The time that was counted so far.
    pub fn counted(&self) -> Duration {
        self.whole.counted
    }

    /// Which part of the time before the last look was not counted, between 0 and 1.
    pub fn starved(&self) -> f64 {
        self.starved
    }
}

#[cfg(test)]
mod tests {
    use super::super::usage::ThreadUsage;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    /// The interval of looks at a deadline of a second or more.
    const STEP: Duration = TICK;

    fn thread(id: u32, used: Duration, waited: Duration, is_runnable: bool) -> ThreadUsage {
        ThreadUsage { id, used, waited, is_runnable }
    }

    /// A thread that waits, and a process; no real time passes.
    struct Scene {
        clock: Clock,
        deadline: Deadline,
        usage: Usage,
    }

    impl Scene {
        fn new(silence: Duration, whole: Duration) -> Self {
            let clock = Clock { now: Instant::now(), own: Duration::ZERO };
            let deadline = Deadline::new(Limit::of(silence), Limit::of(whole), clock);
            let usage = Usage {
                used: Duration::ZERO,
                threads: vec![thread(1, Duration::ZERO, Duration::ZERO, false)],
            };
            Self { clock, deadline, usage }
        }

        /// Lets time pass, in which the process has a state that `change` makes for each step.
        fn pass(&mut self, time: Duration, mut change: impl FnMut(&mut Usage)) -> bool {
            let end = self.clock.now + time;
            while self.clock.now < end && !self.deadline.is_over(self.clock) {
                self.clock.now += STEP;
                change(&mut self.usage);
                let usage = self.usage.clone();
                self.deadline.look(self.clock, || Some(usage));
            }
            self.deadline.is_over(self.clock)
        }
    }

    fn sleeps(_: &mut Usage) {}

    /// Ready to run all the time; what it has waited for is known only when it has run.
    fn starves(usage: &mut Usage) {
        usage.threads[0].is_runnable = true;
    }

    fn spins(usage: &mut Usage) {
        usage.used += STEP;
        usage.threads[0].used += STEP;
        usage.threads[0].is_runnable = true;
    }

    #[test]
    fn a_process_that_sleeps_or_is_stopped_is_given_up_after_the_counted_time() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        assert!(!scene.pass(SECOND * 4, sleeps));
        assert!(scene.pass(SECOND, sleeps));
    }

    #[test]
    fn a_process_that_uses_a_processor_without_progress_is_given_up() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        assert!(!scene.pass(SECOND * 4, spins));
        assert!(scene.pass(SECOND, spins));
    }

    #[test]
    fn a_process_without_processor_time_is_waited_for_up_to_the_wall_time() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        assert!(!scene.pass(SECOND * 49, starves));
        assert_eq!(scene.deadline.counted(), Duration::ZERO);
        assert!(scene.pass(SECOND, starves));
    }

    #[test]
    fn time_on_the_run_queue_is_not_counted_and_time_on_a_processor_is() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        // It runs for a tenth of the time.
        let mut step = 0;
        let mut shares = |usage: &mut Usage| {
            step += 1;
            let thread = &mut usage.threads[0];
            if step % 10 == 0 {
                thread.used += STEP;
                thread.waited += STEP * 9;
                usage.used += STEP;
            }
            thread.is_runnable = true;
        };
        assert!(!scene.pass(SECOND * 45, &mut shares));
        let counted = scene.deadline.counted();
        assert!(counted > SECOND * 4 && counted < SECOND * 5, "{counted:?}");
    }

    #[test]
    fn a_wait_between_two_sleeps_is_not_counted() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        // It sleeps whenever it is looked at, and has waited for half of the time.
        let halves = |usage: &mut Usage| usage.threads[0].waited += STEP / 2;
        assert!(!scene.pass(SECOND * 9, halves));
        assert!(scene.pass(SECOND * 2, halves));
    }

    #[test]
    fn many_threads_that_spin_do_not_hide_that_their_process_gets_a_processor() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        // A hundred threads share one processor.
        scene.usage.threads =
            (0..100).map(|id| thread(id, Duration::ZERO, Duration::ZERO, true)).collect();
        let crowd = |usage: &mut Usage| {
            usage.used += STEP;
            for thread in &mut usage.threads {
                thread.used += STEP / 100;
                thread.waited += STEP - STEP / 100;
            }
        };
        assert!(!scene.pass(SECOND * 4, crowd));
        assert!(scene.pass(SECOND, crowd));
    }

    #[test]
    fn one_thread_without_processor_time_is_enough_to_wait_for_its_process() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        scene.usage.threads.push(thread(2, Duration::ZERO, Duration::ZERO, true));
        assert!(!scene.pass(SECOND * 49, sleeps));
    }

    #[test]
    fn progress_begins_the_silence_again_but_not_the_whole_time() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        for _ in 0..7 {
            assert!(!scene.pass(SECOND * 4, sleeps));
            scene.deadline.progress(scene.clock);
        }
        assert!(scene.pass(SECOND * 2, sleeps));
        // The same without processor time.
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        for _ in 0..7 {
            assert!(!scene.pass(SECOND * 40, starves));
            scene.deadline.progress(scene.clock);
        }
        assert!(scene.pass(SECOND * 20, starves));
    }

    #[test]
    fn time_in_which_the_waiting_thread_could_not_run_is_not_counted() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        // It wanted to wait for a tick each time.
        for _ in 0..20 {
            scene.clock.now += SECOND * 2;
            scene.deadline.look(scene.clock, || None);
        }
        assert_eq!(scene.deadline.counted(), STEP * 20);
        // What it has done itself is counted.
        scene.clock.now += SECOND * 4;
        scene.clock.own += SECOND * 3;
        scene.deadline.look(scene.clock, || None);
        assert_eq!(scene.deadline.counted(), STEP * 20 + SECOND * 3);
        assert!(scene.deadline.is_over(scene.clock));
    }

    #[test]
    fn without_a_usage_all_time_in_which_the_waiting_thread_ran_is_counted() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 30);
        for _ in 0..50 {
            assert!(!scene.deadline.is_over(scene.clock));
            scene.clock.now += STEP;
            scene.deadline.look(scene.clock, || None);
        }
        assert!(scene.deadline.is_over(scene.clock));
    }

    #[test]
    fn looks_that_come_too_early_cost_nothing_and_lose_no_time() {
        let mut scene = Scene::new(SECOND, SECOND);
        for _ in 0..99 {
            scene.clock.now += STEP / 10;
            let is_early = scene.deadline.pause(scene.clock) > SHORTEST_TICK;
            scene.deadline.look(scene.clock, || {
                assert!(!is_early);
                None
            });
            assert!(!scene.deadline.is_over(scene.clock));
        }
        scene.clock.now += STEP / 10;
        scene.deadline.look(scene.clock, || None);
        assert!(scene.deadline.is_over(scene.clock));
    }

    #[test]
    fn a_deadline_for_many_counts_the_part_of_the_time_in_which_they_could_run() {
        let mut scene = Scene::new(SECOND * 5, SECOND * 5);
        for _ in 0..50 {
            scene.clock.now += STEP;
            scene.deadline.look_at_many(scene.clock, || 0.75);
        }
        let counted = scene.deadline.counted();
        assert!(counted > SECOND && counted < SECOND * 3 / 2, "{counted:?}");
        assert!((scene.deadline.starved() - 0.75).abs() < 1e-3);
    }

    #[test]
    fn limits_of_wall_time() {
        let wall = |seconds| Limit::of(Duration::from_secs(seconds)).wall.as_secs();
        assert_eq!([1, 10, 59, 60, 120, 599].map(wall), [10, 100, 590, 600, 600, 600]);
        assert_eq!([600, 601].map(wall), [600, 601]);
        assert_eq!(Limit::of(Duration::MAX), Limit::NEVER);
    }
}
