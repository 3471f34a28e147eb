//! PCRE2's regular expressions.
//!
//! PCRE2 keeps no list of its compiled expressions: each belongs to the program, and is somewhere in its memory. It is found by its magic number, and accepted if
//! all of its description agrees: see [`block`].

mod block;
mod class;
mod decoder;
mod items;
mod opcodes;
mod pattern;
mod property;
mod reader;
mod versions;

use std::collections::BTreeMap;
use std::ops::Bound;

use gdb_jit_list::ReadAt;

use crate::code::FoundCode;
use crate::limits;
use crate::registry::{Context, Registry};
pub use block::MAGIC;
use block::{Block, Functions};
pub use versions::{LONGEST, Versions};

/// How many expressions that are known are read again at one poll.
const AGAIN: usize = 256;
/// So many known expressions, or bytes of a new one, cost as much to look at as one structure; as a power of two.
const COST: u32 = 6;
/// What is called behind the pattern, by the kind of match that a function is for.
const KINDS: [&str; 3] = ["", " (partial, soft)", " (partial, hard)"];

/// The regular expressions of a process.
#[derive(Debug, Default)]
pub struct Expressions {
    /// By the address of their blocks.
    known: BTreeMap<u64, Expression>,
    /// Behind which one the next poll begins.
    last: Option<u64>,
}

/// A regular expression.
#[derive(Debug)]
struct Expression {
    block: Block,
    functions: Functions,
    /// The numbers of its codes.
    ids: Vec<u64>,
}

impl Expressions {
    /// Reads the next of the expressions that are known again.
    pub fn poll(&mut self, context: &Context<'_, impl ReadAt + ?Sized>, codes: &mut Registry<'_>) {
        let from = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.known.range((from, Bound::Unbounded)).take(AGAIN).map(|(at, _)| *at);
        let next: Vec<u64> = next.collect();
        // At the end, from the beginning.
        self.last = next.last().copied().filter(|_| next.len() == AGAIN);
        for at in next {
            if context.examine(1) {
                self.read_again(at, context, codes);
            }
        }
    }

    /// Examines what may be a block, from the two words at `at` that may have its magic number. Whether it is a new one.
    pub fn examine(
        &mut self,
        at: u64,
        versions: Versions,
        context: &Context<'_, impl ReadAt + ?Sized>,
        codes: &mut Registry<'_>,
        since: u64,
    ) -> bool {
        block::FORMS.iter().any(|form| {
            let Some(at) = at.checked_sub(form.magic) else { return false };
            !self.known.contains_key(&at)
                && self.known.len() < limits::EXPRESSIONS
                && Block::read(form, at, context.memory, context.mapped)
                    .is_some_and(|block| self.add(at, block, versions, context, codes, since))
        })
    }

    /// Reads an expression again, and removes it if it is another one, or gone.
    fn read_again(
        &mut self,
        at: u64,
        context: &Context<'_, impl ReadAt + ?Sized>,
        codes: &mut Registry<'_>,
    ) {
        let Context { memory, mapped, .. } = context;
        let is_there = self.known.get(&at).is_some_and(|known| {
            known.block.read_again(at, *memory, mapped).is_some_and(|block| {
                block == known.block
                    && Functions::read(&block, *memory, mapped).as_ref() == Some(&known.functions)
            })
        });
        if !is_there {
            let ids = self.known.remove(&at).map(|known| known.ids);
            ids.unwrap_or_default().into_iter().for_each(|id| codes.remove(id));
        }
    }

    /// Adds an expression. Whether it has code.
    fn add(
        &mut self,
        at: u64,
        block: Block,
        versions: Versions,
        context: &Context<'_, impl ReadAt + ?Sized>,
        codes: &mut Registry<'_>,
        since: u64,
    ) -> bool {
        let functions = Functions::read(&block, context.memory, context.mapped);
        let Some(functions) = functions else { return false };
        let cost = u64::try_from(self.known.len()).unwrap_or(u64::MAX).saturating_add(block.size());
        if !context.examine(cost >> COST) {
            return false;
        }
        let held = self.known.iter().filter(|(_, known)| known.functions.overlap(&functions));
        let held: Vec<u64> = held.map(|(at, _)| *at).collect();
        held.into_iter().for_each(|at| self.read_again(at, context, codes));
        let name = block.name(at, versions, context.memory);
        let add = |((address, size), kind): ((u64, u64), &str)| {
            let name = format!("{name}{kind}").into_bytes();
            let code = FoundCode { address, size, name, file: Vec::new(), line: 0, frame: None };
            codes.add(code, since)
        };
        let ids: Vec<u64> = functions
            .codes()
            .zip(KINDS)
            .filter(|((_, size), _)| *size > 0)
            .filter_map(add)
            .collect();
        let is_new = !ids.is_empty();
        if is_new {
            self.known.insert(at, Expression { block, functions, ids });
        }
        is_new
    }
}
