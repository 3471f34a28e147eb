//! Work that threads share, and whose results are taken in order.

use std::panic;
use std::sync::mpsc;
use std::thread;

/// How many items go from one thread to another at a time: what a processor's cache holds.
const BATCH: usize = 1024;
/// How many batches one thread may be ahead of the other.
const AHEAD: usize = 4;
/// How many threads share work: taking is for one, which more than these would wait for.
const MOST: usize = 8;

/// Has `other` run in a thread of its own while `this` runs, and returns what both do.
pub fn join<Other: Send, This>(
    other: impl FnOnce() -> Other + Send,
    this: impl FnOnce() -> This,
) -> (Other, This) {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let this = this();
        (other.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)), this)
    })
}

/// Has `give` run in a thread of its own, and `take` what it gives, in order. Returns what `give`
/// does.
pub fn pipeline<Item: Send, Told: Send>(
    give: impl FnOnce(&mut dyn FnMut(Item)) -> Told + Send,
    mut take: impl FnMut(Item),
) -> Told {
    thread::scope(|scope| {
        let (sender, given) = mpsc::sync_channel::<Vec<Item>>(AHEAD);
        let giver = scope.spawn(move || {
            let mut batch = Vec::with_capacity(BATCH);
            let told = give(&mut |item| {
                batch.push(item);
                if batch.len() >= BATCH {
                    let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                    // All is taken, unless taking panics.
                    let _ = sender.send(full);
                }
            });
            let _ = sender.send(batch);
            told
        });
        for batch in given {
            batch.into_iter().for_each(&mut take);
        }
        giver.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// Has `work` make something of each of `items`, on as many threads as there are processors, and
/// `take` what was made, in the order of the items. Stops at the first error.
///
/// Threads take turns: with two, one works on every other item. Each begins with a `worker`, which
/// gets room that was used before and taken from, if there is any. No thread is ahead of what is
/// taken by more than two items, so little is held at a time.
pub fn ordered_map<Item, Made, Error, Worker>(
    items: impl ExactSizeIterator<Item = Item> + Clone + Send,
    worker: impl Fn() -> Worker + Sync,
    mut take: impl FnMut(&mut Made) -> Result<(), Error>,
) -> Result<(), Error>
where
    Item: Send,
    Made: Default + Send,
    Error: Send,
    Worker: FnMut(Item, &mut Made) -> Result<(), Error>,
{
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(items.len()).min(MOST);
    if threads < 2 {
        let (mut work, mut made) = (worker(), Made::default());
        for item in items {
            work(item, &mut made)?;
            take(&mut made)?;
        }
        return Ok(());
    }
    let count = items.len();
    thread::scope(|scope| {
        let begin = |first: usize| {
            let items = items.clone().skip(first).step_by(threads);
            let (give, taken) = mpsc::sync_channel(1);
            let (give_back, used) = mpsc::channel::<Made>();
            let worker = &worker;
            scope.spawn(move || {
                let mut work = worker();
                for item in items {
                    let mut made = used.try_recv().unwrap_or_default();
                    let done = work(item, &mut made);
                    // Nobody takes any more once something failed.
                    if give.send(done.map(|()| made)).is_err() {
                        break;
                    }
                }
            });
            (taken, give_back)
        };
        let threads: Vec<_> = (0..threads).map(begin).collect();
        for (taken, give_back) in threads.iter().cycle().take(count) {
            // A thread that panicked has the scope do so.
            let Ok(made) = taken.recv() else { break };
            let mut made = made?;
            take(&mut made)?;
            // The thread may have ended.
            let _ = give_back.send(made);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(count: u64, bad: u64, refused: u64) -> (Vec<u64>, Result<(), u64>) {
        let mut taken = Vec::new();
        let worker = || {
            |number: u64, made: &mut Vec<u64>| {
                assert!(made.is_empty());
                made.push(number * number);
                if number == bad { Err(number) } else { Ok(()) }
            }
        };
        let numbers: Vec<u64> = (0..count).collect();
        let done = ordered_map(numbers.into_iter(), worker, |made| {
            let made = made.pop().expect("one");
            taken.push(made);
            if made == refused { Err(made) } else { Ok(()) }
        });
        (taken, done)
    }

    #[test]
    fn results_come_in_order() {
        for count in [0, 1, 2, 3, 50] {
            let (taken, done) = squares(count, 99, 1);
            let expected: Vec<u64> = (0..count).map(|number| number * number).collect();
            let refused = count > 1;
            assert_eq!(taken, expected[..if refused { 2 } else { count as usize }]);
            assert_eq!(done, if refused { Err(1) } else { Ok(()) });
        }
        assert_eq!(squares(50, 99, 99).0.len(), 50);
    }

    #[test]
    fn the_first_error_ends_all() {
        let (taken, done) = squares(1000, 7, u64::MAX);
        assert_eq!((taken.len(), done), (7, Err(7)));
    }

    #[test]
    fn what_is_given_is_taken_in_order() {
        for count in [0, 1, BATCH, 10 * BATCH + 7] {
            let mut taken = Vec::new();
            let told = pipeline(
                |give| {
                    (0..count).for_each(give);
                    "done"
                },
                |number| taken.push(number),
            );
            assert_eq!(told, "done");
            assert!(taken.into_iter().eq(0..count));
        }
    }
}
