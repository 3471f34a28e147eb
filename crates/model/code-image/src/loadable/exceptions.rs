//! `.xdata` and `.pdata`: what Windows' own unwinder reads, on x86-64.
//!
//! A RUNTIME_FUNCTION in `.pdata` names a part of the code and its UNWIND_INFO in `.xdata`. They are sorted by
//! address. Code without one is taken for a leaf function: one that changes neither the stack pointer nor a register
//! that calls preserve.

use fallible::{HashMap, Vec};
use unwind_info::{Error, Unwind, windows};

use super::written::LARGEST;
use crate::cfi::UnwindTables;
use crate::encode::Encoder;
use crate::target::Target;

/// The contents of both sections.
#[derive(Debug, Default)]
pub(super) struct Exceptions {
    /// `.xdata`, which has no addresses.
    pub(super) infos: Vec<u8>,
    /// Begin, end, and position in `infos`.
    functions: Vec<(u32, u32, u32)>,
    /// Frame descriptions that Windows' format cannot express.
    pub(super) inexpressible: u64,
}

impl Exceptions {
    /// Encodes the frame descriptions of a library whose preferred address is `base`.
    pub(super) fn new(unwind: &UnwindTables, base: u64) -> Self {
        let mut new = Self::default();
        // Many functions have the same prologue.
        let mut known = HashMap::<Vec<u8>, u32>::new();
        unwind.each_in_rows(|start, size, rows| {
            #[allow(
                clippy::disallowed_types,
                reason = "the encoder's, which reports refused memory"
            )]
            let mut encoded = std::vec::Vec::new();
            let pieces =
                rows.map(|rows| windows::encode(size.into(), &Unwind::Rows(rows), &mut encoded));
            let pieces = match pieces {
                Ok(Ok(pieces)) => pieces,
                Ok(Err(Error::Memory)) => return fallible::refuse(),
                Ok(Err(_)) | Err(_) => {
                    new.inexpressible = new.inexpressible.saturating_add(1);
                    return;
                }
            };
            let infos = &mut new.infos;
            let at = known.find_or_insert(Vec::from(&encoded[..]), |encoded| {
                let at = infos.len() as u32;
                infos.extend_from_slice(encoded);
                at
            });
            let start = start.saturating_sub(base).min(LARGEST) as u32;
            for piece in pieces {
                let [begin, end] = [piece.begin, piece.end].map(|at| start.saturating_add(at));
                new.functions.push((begin, end, at.saturating_add(piece.info)));
            }
        });
        new
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Encodes `.pdata` for infos at `at`.
    pub(super) fn functions(&self, at: u32, target: Target) -> Encoder {
        let mut out = Encoder::new(target);
        for (begin, end, info) in &self.functions {
            for field in [*begin, *end, at.saturating_add(*info)] {
                out.u32(field);
            }
        }
        out
    }
}
