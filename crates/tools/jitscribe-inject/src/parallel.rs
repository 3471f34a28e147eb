//! Work on several threads, with results in order.

use std::panic;
use std::sync::mpsc;
use std::thread;

/// Number of items that one thread passes to another at a time; they fit into a processor's cache.
const BATCH: usize = 1024;
/// Maximum number of batches that one thread may be ahead of the other.
const AHEAD: usize = 4;
/// Maximum number of threads: a single thread takes the results, and more threads would wait for it.
const MOST: usize = 8;

/// Runs `other` on another thread while `this` runs, and returns both results.
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

/// Runs `give` on another thread, and `take` for each item that it gives, in order. Returns the result of `give`.
pub fn pipeline<Item: Send, Output: Send>(
    give: impl FnOnce(&mut dyn FnMut(Item)) -> Output + Send,
    mut take: impl FnMut(Item),
) -> Output {
    thread::scope(|scope| {
        let (sender, given) = mpsc::sync_channel::<Vec<Item>>(AHEAD);
        let giver = scope.spawn(move || {
            let mut batch = Vec::with_capacity(BATCH);
            let told = give(&mut |item| {
                batch.push(item);
                if batch.len() >= BATCH {
                    let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                    // Everything is taken, unless `take` panics.
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

/// Calls `work` for each of `items`, on as many threads as there are processors, and `take` for each result, in the
/// order of the items. Stops at the first error.
///
/// Items are assigned to threads in turn: with two threads, each gets every other item. Each thread begins with a
/// `worker`, which gets results that were taken before, to reuse their memory. No thread is more than two items ahead
/// of `take`, so few results exist at a time.
pub fn ordered_map<Item, Output, Error, Worker>(
    items: impl ExactSizeIterator<Item = Item> + Clone + Send,
    worker: impl Fn() -> Worker + Sync,
    mut take: impl FnMut(&mut Output) -> Result<(), Error>,
) -> Result<(), Error>
where
    Item: Send,
    Output: Default + Send,
    Error: Send,
    Worker: FnMut(Item, &mut Output) -> Result<(), Error>,
{
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(items.len()).min(MOST);
    if threads < 2 {
        let (mut work, mut output) = (worker(), Output::default());
        for item in items {
            work(item, &mut output)?;
            take(&mut output)?;
        }
        return Ok(());
    }
    let count = items.len();
    thread::scope(|scope| {
        let begin = |first: usize| {
            let items = items.clone().skip(first).step_by(threads);
            let (give, taken) = mpsc::sync_channel(1);
            let (reuse, used) = mpsc::channel::<Output>();
            let worker = &worker;
            scope.spawn(move || {
                let mut work = worker();
                for item in items {
                    let mut output = used.try_recv().unwrap_or_default();
                    let done = work(item, &mut output);
                    // After an error, no more results are taken.
                    if give.send(done.map(|()| output)).is_err() {
                        break;
                    }
                }
            });
            (taken, reuse)
        };
        let threads: Vec<_> = (0..threads).map(begin).collect();
        for (taken, reuse) in threads.iter().cycle().take(count) {
            // If a thread panicked, the scope panics, too.
            let Ok(output) = taken.recv() else { break };
            let mut output = output?;
            take(&mut output)?;
            // The thread may have ended.
            let _ = reuse.send(output);
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
            |number: u64, output: &mut Vec<u64>| {
                assert!(output.is_empty());
                output.push(number * number);
                if number == bad { Err(number) } else { Ok(()) }
            }
        };
        let numbers: Vec<u64> = (0..count).collect();
        let done = ordered_map(numbers.into_iter(), worker, |output| {
            let output = output.pop().expect("one");
            taken.push(output);
            if output == refused { Err(output) } else { Ok(()) }
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
    fn items_are_taken_in_order() {
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
