//! The registers of a frame.

/// Numbers of registers in DWARF (figure 3.36 of the System V ABI for x86-64).
pub mod register {
    /// The frame pointer.
    pub const RBP: u16 = 6;
    /// The stack pointer.
    pub const RSP: u16 = 7;
    /// The return address, and the instruction pointer.
    pub const RIP: u16 = 16;
}

pub(crate) const COUNT: usize = 17;

/// The DWARF number of each register, in perf's order: ax, bx, cx, dx, si, di, bp, sp, ip, flags, six segments, r8 to r15.
const FROM_PERF: [Option<u16>; 24] = {
    let mut numbers = [None; 24];
    let first = [0, 3, 2, 1, 4, 5, register::RBP, register::RSP, register::RIP];
    let mut at = 0;
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "computed by the compiler"
    )]
    while at < 24 {
        if at < first.len() {
            numbers[at] = Some(first[at]);
        } else if at >= 16 {
            numbers[at] = Some(at as u16 - 8);
        }
        at += 1;
    }
    numbers
};

/// The values of registers, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers([Option<u64>; COUNT]);

impl Registers {
    /// The registers of a sample: the bits of `mask` (`sample_regs_user`) are perf's numbers of those in `values`, ascending.
    pub fn from_perf(mask: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let mut registers = Self::default();
        let mut values = values.into_iter();
        for number in (0..u64::BITS)
            .filter(|number| mask.checked_shr(*number).is_some_and(|bits| bits & 1 != 0))
        {
            let Some(value) = values.next() else { break };
            let dwarf = FROM_PERF.get(number as usize).copied().flatten();
            if let Some(dwarf) = dwarf {
                registers.set(dwarf, Some(value));
            }
        }
        registers
    }

    /// The value of a register.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    /// Sets the value of a register, if it is one that is followed.
    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(usize::from(number)) {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_a_sample_have_their_numbers_in_dwarf() {
        // What perf record --call-graph dwarf sets: all but the segments ds, es, fs and gs.
        let mask = 0xff_0fff;
        let values: Vec<u64> = (0..u64::from(u64::count_ones(mask))).map(|at| 100 + at).collect();
        let registers = Registers::from_perf(mask, values);
        let ax_bx_cx_dx = [0, 3, 2, 1].map(|number| registers.get(number));
        assert_eq!(ax_bx_cx_dx, [Some(100), Some(101), Some(102), Some(103)]);
        let pointers = [register::RBP, register::RSP, register::RIP];
        assert_eq!(pointers.map(|number| registers.get(number)), [Some(106), Some(107), Some(108)]);
        // Behind flags, cs and ss.
        assert_eq!([8, 15].map(|number| registers.get(number)), [Some(112), Some(119)]);
        assert_eq!(registers.get(17), None);
        assert_eq!(Registers::from_perf(u64::MAX, [1]).get(0), Some(1));
        assert_eq!(Registers::from_perf(u64::MAX, [1]).get(3), None);
    }
}
