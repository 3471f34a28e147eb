//! The order of stores in which a context is published and updated, so that no reader gets a mixture.

use process_context::Header;

/// The space for one payload, in bytes. There are two, so that an update leaves the payload alone that readers may be copying.
pub(super) const PAYLOAD_SPACE: usize = 1536;
/// The bytes of the page that are used.
pub(super) const USED: usize = Header::SIZE + 2 * PAYLOAD_SPACE;

/// Where a context is stored.
pub(super) trait Store {
    /// The address of offset 0.
    fn address(&self) -> u64;
    fn byte(&self, at: usize, value: u8);
    fn half(&self, at: usize, value: u32);
    fn word(&self, at: usize, value: u64);
    fn load_word(&self, at: usize) -> u64;
    /// All earlier stores are visible before all later ones.
    fn barrier(&self);
}

/// Publishes the first payload, in memory that is zero. `now` is in nanoseconds of `CLOCK_BOOTTIME`.
pub(super) fn publish(store: &impl Store, payload: &[u8], now: u64) {
    store.word(Header::SIGNATURE_AT, u64::from_ne_bytes(Header::SIGNATURE));
    store.half(Header::VERSION_AT, Header::VERSION);
    update(store, payload, now);
}

/// Replaces the payload.
pub(super) fn update(store: &impl Store, payload: &[u8], now: u64) {
    let slots = [Header::SIZE, Header::SIZE + PAYLOAD_SPACE];
    let [first, second] = slots.map(|slot| store.address().wrapping_add(slot as u64));
    let is_in_first = store.load_word(Header::PAYLOAD_AT) == first;
    let (slot, address) = if is_in_first { (slots[1], second) } else { (slots[0], first) };
    // The other payload is not touched. Of the readers that still copy from this space, all began before the last update, and
    // notice its time.
    for (at, byte) in (slot..).zip(payload.iter().take(PAYLOAD_SPACE)) {
        store.byte(at, *byte);
    }
    let before = withdraw(store);
    store.half(Header::PAYLOAD_SIZE_AT, payload.len().min(PAYLOAD_SPACE) as u32);
    store.word(Header::PAYLOAD_AT, address);
    store.barrier();
    // It differs from all earlier ones, whatever the clock says.
    store.word(Header::PUBLISHED_AT, now.max(before.saturating_add(1)));
}

/// Makes the context invalid until the next update. Returns the time of the last one, or 0.
pub(super) fn withdraw(store: &impl Store) -> u64 {
    let before = store.load_word(Header::PUBLISHED_AT);
    store.word(Header::PUBLISHED_AT, 0);
    store.barrier();
    before
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use process_context::{Memory, Published, ReadError, read};

    use super::{PAYLOAD_SPACE, Store, USED, publish, update, withdraw};

    const BASE: u64 = 0x7000_0000_0000;

    /// Memory of which each state is kept.
    struct Recorded {
        states: RefCell<Vec<Vec<u8>>>,
    }

    impl Recorded {
        fn new() -> Self {
            Self { states: RefCell::new(vec![vec![0; USED]]) }
        }

        fn store(&self, at: usize, bytes: &[u8]) {
            let mut state = self.states.borrow().last().unwrap().clone();
            state[at..at + bytes.len()].copy_from_slice(bytes);
            self.states.borrow_mut().push(state);
        }
    }

    impl Store for Recorded {
        fn address(&self) -> u64 {
            BASE
        }
        fn byte(&self, at: usize, value: u8) {
            self.store(at, &[value]);
        }
        fn half(&self, at: usize, value: u32) {
            self.store(at, &value.to_ne_bytes());
        }
        fn word(&self, at: usize, value: u64) {
            self.store(at, &value.to_ne_bytes());
        }
        fn load_word(&self, at: usize) -> u64 {
            u64::from_ne_bytes(self.states.borrow().last().unwrap()[at..at + 8].try_into().unwrap())
        }
        fn barrier(&self) {}
    }

    /// A reader whose steps take place at the given states, one after the other; those after the last one, at the last state.
    struct Reader<'s> {
        states: &'s [Vec<u8>],
        at: [usize; 4],
        step: RefCell<usize>,
    }

    impl Memory for Reader<'_> {
        fn read_at(&self, address: u64, buffer: &mut [u8]) -> bool {
            let step = self.step.replace_with(|step| *step + 1);
            let state = self.at.get(step).copied().unwrap_or(self.states.len() - 1);
            let from = usize::try_from(address - BASE).unwrap();
            buffer.copy_from_slice(&self.states[state][from..from + buffer.len()]);
            true
        }
    }

    fn payloads() -> [Vec<u8>; 4] {
        [vec![1; 9], vec![2; 5], vec![3; 12], vec![4; 7]]
    }

    /// Whichever states the steps of a reader see, it gets one payload whole.
    #[test]
    fn no_reader_gets_a_mixture() {
        let store = Recorded::new();
        let payloads = payloads();
        let mut published = Vec::new();
        publish(&store, &payloads[0], 10);
        published.push(store.states.borrow().len() - 1);
        for payload in &payloads[1..] {
            // The clock stands still.
            update(&store, payload, 10);
            published.push(store.states.borrow().len() - 1);
        }
        let states = store.states.into_inner();
        let mut seen = [0; 4];
        let count = states.len();
        for first in 0..count {
            for second in first..count {
                for third in second..count {
                    for fourth in third..count {
                        let at = [first, second, third, fourth];
                        let reader = Reader { states: &states, at, step: RefCell::default() };
                        let mut buffer = [0; PAYLOAD_SPACE];
                        match read(&reader, BASE, &mut buffer) {
                            Ok(Published { at: time, payload }) => {
                                let which = payloads.iter().position(|one| one == payload);
                                let which = which.unwrap_or_else(|| panic!("{at:?}: {payload:?}"));
                                assert_eq!(time, 10 + which as u64, "{at:?}");
                                seen[which] += 1;
                                // A first attempt that fails is followed by one at the end.
                                assert!(which == 3 || first >= published[which], "{at:?}");
                            }
                            Err(error) => panic!("{at:?}: {error}"),
                        }
                    }
                }
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    }

    /// A process that is stopped or killed at any state leaves a context that is whole, or that says it is not.
    #[test]
    fn each_state_is_whole_or_busy() {
        let store = Recorded::new();
        let payloads = payloads();
        publish(&store, &payloads[0], 10);
        update(&store, &payloads[1], 20);
        withdraw(&store);
        let states = store.states.into_inner();
        let mut order = Vec::new();
        for state in &states {
            let states = std::slice::from_ref(state);
            let reader = Reader { states, at: [0; 4], step: RefCell::default() };
            let mut buffer = [0; PAYLOAD_SPACE];
            let found =
                read(&reader, BASE, &mut buffer).map(|published| published.payload.to_vec());
            if order.last() != Some(&found) {
                order.push(found);
            }
        }
        let [first, second, ..] = payloads;
        let busy = Err(ReadError::Busy);
        assert_eq!(order, [busy.clone(), Ok(first), busy.clone(), Ok(second), busy]);
    }
}
