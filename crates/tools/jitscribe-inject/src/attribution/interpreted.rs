//! Which methods the interpreted frames of a stack belong to.
//!
//! HotSpot's interpreter is one piece of code for all methods of Java: a return address into it does not tell the method. The
//! frame does: it refers to the method's bytecode. The agent announces each method as code of the kind
//! [`Kind::JavaMethod`] at the address of its bytecode, with the unwind info of interpreted frames. So if the addresses in the
//! interpreter are replaced by the bytecodes' addresses in the sample's copy of the stack, and in its registers, every unwinder
//! walks the same frames as before, and finds the methods' names.
//!
//! An interpreted frame on x86-64, since version 9 (frame_x86.hpp; word 0 is where `rbp` points):
//!
//! | Word | Content |
//! |---|---|
//! | 1 | return address |
//! | 0 | the caller's `rbp` |
//! | -1 | the caller's stack pointer |
//! | -2 | its own stack pointer at its last call; since 22 as an offset; or 0 |
//! | -3 | the method (`Method*`) |
//! | -4 to -6 | the class, the profile, the cache of the constant pool |
//! | -7 | where its variables are; since 21 as an offset |
//! | -8 | the current bytecode; 0 in a native method |

use std::ops::Range;

use code_timeline::{AddressSpaceId, CodeId, ranges};
use jit_code::Kind;
use perf_data::{Attr, Endian, Event, Record, Sample, kind, misc};

use crate::codes::code_table::CodeTable;
use crate::codes::lookup::{LookupCache, Numbers, Occupant, Process};
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::{RecordingIndex, WITHOUT_TIME};

/// perf's numbers of the registers of x86-64.
/// The interpreter's entry has the method in it.
const BX: u32 = 1;
const BP: u32 = 6;
const SP: u32 = 7;
const IP: u32 = 8;
/// The interpreter keeps the current bytecode in it.
const R13: u32 = 21;

/// Words from the current bytecode up to `rbp`, and to other fields.
const TO_BP: usize = 8;
const TO_SENDER: usize = 7;
const TO_LAST: usize = 6;
const TO_METHOD: usize = 5;
const TO_LOCALS: usize = 1;

/// No method has more variables, or a larger stack, than this many words.
const LARGEST: u64 = 1 << 17;

/// How many words an adapter moves a return address at most: a method has up to 255 arguments, of up to two words.
const LARGEST_ADAPTED: usize = 520;

/// Methods with a smaller gap than this between them are one range, so that there are few.
const GAP: u64 = 1 << 20;

/// A field of a sample, to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The instruction pointer.
    Ip,
    /// A register.
    Register,
    /// A word of the stack.
    Stack,
}

/// An address in the interpreter, and the method that it executes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterpretedFrame {
    /// Where the address is.
    pub field: Field,
    /// The address space whose timeline has the method.
    pub owner: AddressSpaceId,
    /// The method.
    pub code: CodeId,
    /// Offset of the address in the event's body.
    offset: usize,
    /// What stands for it: the current bytecode, or what follows it if this is a return address.
    address: u64,
}

/// Finds the interpreted frames of samples.
pub struct InterpretedFrames<'a> {
    table: &'a CodeTable<'a>,
    /// By address space.
    places: Vec<Option<Places>>,
    cache: LookupCache<'a, Numbers>,
    /// Those of the last sample.
    found: Vec<InterpretedFrame>,
    changed: Vec<u8>,
}

/// Where an address space has its interpreter and its methods.
#[derive(Clone, Debug)]
struct Places {
    interpreter: Vec<Range<u64>>,
    methods: Vec<Range<u64>>,
}

/// A method, and where it is being executed.
#[derive(Clone, Copy)]
struct Execution {
    code: CodeId,
    at: u64,
}

/// An interpreted frame that called something.
struct Caller {
    execution: Execution,
    /// The address of its word 0.
    bp: u64,
    /// Its return address, if it was found: the index and the value of the word, and whether the callee has saved `bp` below.
    returned: Option<(usize, u64, bool)>,
}

impl Caller {
    /// Whether a word that is an address in the interpreter is the return address of the call.
    ///
    /// It is the next such address below the frame, as all that is between the two are the frame's own values. But where compiled
    /// code is called, an adapter moves the return address down, and an old copy stays. What HotSpot generates saves `bp` right below
    /// the return address.
    fn returns_by(&mut self, stack: Stack<'_>, index: usize, value: u64) -> bool {
        let has_saved = index.checked_sub(1).and_then(|below| stack.word(below)) == Some(self.bp);
        let is_it = match self.returned {
            None => true,
            Some((_, _, true)) => has_saved,
            Some((before, copy, false)) => {
                has_saved || copy == value && before - index <= LARGEST_ADAPTED
            }
        };
        if is_it {
            self.returned = Some((index, value, has_saved));
        }
        is_it
    }
}

/// The copy of a stack.
#[derive(Clone, Copy)]
struct Stack<'s> {
    pointer: u64,
    bytes: &'s [u8],
}

impl Stack<'_> {
    fn word(&self, index: usize) -> Option<u64> {
        let bytes = self.bytes.get(index.checked_mul(8)?..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }

    fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// The index of the word at an address.
    fn index(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.pointer).filter(|offset| offset.is_multiple_of(8))?;
        usize::try_from(offset / 8).ok()
    }

    /// Whether what is around the word with the current bytecode looks like an interpreted frame.
    fn is_frame(&self, bytecode: usize) -> bool {
        let word = |distance: usize| self.word(bytecode.checked_add(distance)?);
        let Some(bp) = self.pointer.checked_add(8 * (bytecode + TO_BP) as u64) else {
            return false;
        };
        let near = |address: u64, from: u64| {
            address.is_multiple_of(8)
                && (from..=from.saturating_add(8 * LARGEST)).contains(&address)
        };
        word(TO_SENDER).is_some_and(|sender| near(sender, bp.saturating_add(16)))
            && word(TO_METHOD).is_some_and(|method| method != 0 && method.is_multiple_of(8))
            && word(TO_LOCALS).is_some_and(|locals| near(locals, bp) || locals < LARGEST)
            && word(TO_LAST).is_some_and(|last| {
                let below = bp.saturating_sub(8 * LARGEST);
                last == 0 || near(last, below) || last > (LARGEST as i64).wrapping_neg() as u64
            })
    }
}

/// Whether there are any interpreted methods.
pub fn are_in(table: &CodeTable<'_>) -> bool {
    let mut timelines = table.history.timelines();
    timelines.any(|(_, timeline)| {
        timeline.pieces().iter().any(|piece| table.kind(piece.code) == Kind::JavaMethod)
    })
}

impl Places {
    fn of(table: &CodeTable<'_>, timeline: &code_timeline::Timeline) -> Option<Self> {
        let of_kind = |kind| {
            let pieces = timeline.pieces().iter();
            pieces
                .filter(move |piece| table.kind(piece.code) == kind)
                .map(|piece| piece.range.clone())
        };
        let methods = ranges::merge(of_kind(Kind::JavaMethod), |gap| gap.end - gap.start < GAP);
        let interpreter = ranges::merge(of_kind(Kind::BytecodeHandler), |_| false);
        (!methods.is_empty()).then_some(Self { interpreter, methods })
    }
}

impl<'a> InterpretedFrames<'a> {
    /// `None` if there are no interpreted methods.
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        table: &'a CodeTable<'a>,
    ) -> Option<Self> {
        let mut places: Vec<Option<Places>> = Vec::new();
        for (space, timeline) in table.history.timelines() {
            let of_space = Places::of(table, timeline);
            if of_space.is_some() {
                places.resize(places.len().max(space.index() + 1), None);
                places[space.index()] = of_space;
            }
        }
        let cache = LookupCache::new(index, spaces, table, &|_| false);
        let (found, changed) = (Vec::new(), Vec::new());
        (!places.is_empty()).then_some(Self { table, places, cache, found, changed })
    }

    /// The interpreted frames of a sample whose methods are known.
    pub fn find(&mut self, event: &Event<'_>, sample: &Sample<'_>) -> &[InterpretedFrame] {
        self.found.clear();
        self.search(event, sample);
        &self.found
    }

    /// A sample's event with the methods in place of the interpreter; `None` if nothing is to be changed, or if it is another
    /// event.
    pub fn rewrite(&mut self, event: &Event<'_>) -> Option<&[u8]> {
        if event.kind() != kind::SAMPLE {
            return None;
        }
        let Ok(Record::Sample(sample)) = event.record() else { return None };
        if self.find(event, &sample).is_empty() {
            return None;
        }
        self.changed.clear();
        self.changed.extend_from_slice(event.bytes());
        let header = event.bytes().len() - event.body().len();
        for frame in &self.found {
            let field = self.changed.get_mut(header + frame.offset..)?.first_chunk_mut()?;
            *field = frame.address.to_le_bytes();
        }
        Some(&self.changed)
    }

    fn search(&mut self, event: &Event<'_>, sample: &Sample<'_>) -> Option<()> {
        if event.endian() != Endian::Little {
            return None;
        }
        let attr = event.attr()?;
        let pointer = register(attr, sample, SP)?.1;
        let time = sample.id.time.unwrap_or(WITHOUT_TIME);
        let process = self.cache.process(sample.id.pid?, time)?;
        let owner = process.owner()?;
        // Taken out while `self` is used, and put back.
        let places = self.places.get_mut(owner.index())?.take()?;
        let stack = Stack { pointer, bytes: sample.user_stack };
        let top = self.top(&process, &places, time, attr, sample, stack);
        let found = top.into_iter().flat_map(|(execution, registers)| {
            let is_in_user = event.misc() & misc::CPU_MODE_MASK == misc::USER;
            let in_interpreter = |ip: &u64| is_in_user && ranges::contain(&places.interpreter, *ip);
            let ip = sample.ip.filter(in_interpreter).map(|_| (Field::Ip, sample.offsets.ip));
            let places = [ip, Some((Field::Register, registers))].into_iter().flatten();
            places.map(move |(field, offset)| (field, offset, execution))
        });
        self.found.extend(found.map(|(field, offset, Execution { code, at })| InterpretedFrame {
            field,
            owner,
            code,
            offset,
            address: at,
        }));
        // From the outermost frame inwards.
        let mut caller: Option<Caller> = None;
        for index in (0..stack.len()).rev() {
            let value = stack.word(index).unwrap_or(0);
            if ranges::contain(&places.interpreter, value) {
                if let Some(caller) = &mut caller
                    && caller.returns_by(stack, index, value)
                {
                    let Execution { code, at } = caller.execution;
                    self.found.push(InterpretedFrame {
                        field: Field::Stack,
                        owner,
                        code,
                        offset: sample.offsets.user_stack + 8 * index,
                        address: at + 1,
                    });
                }
            } else if ranges::contain(&places.methods, value) {
                for bytecode in [Some(index), index.checked_sub(TO_METHOD)].into_iter().flatten() {
                    if let Some(execution) = self.frame(&process, &places, time, stack, bytecode) {
                        let bp = stack.pointer + 8 * (bytecode + TO_BP) as u64;
                        caller = Some(Caller { execution, bp, returned: None });
                        break;
                    }
                }
            }
        }
        if let Some(place) = self.places.get_mut(owner.index()) {
            *place = Some(places);
        }
        Some(())
    }

    /// What the innermost frame executes if it is an interpreted one, and the offset of its instruction pointer among the
    /// registers.
    fn top(
        &mut self,
        process: &Process<'_>,
        places: &Places,
        time: u64,
        attr: &Attr,
        sample: &Sample<'_>,
        stack: Stack<'_>,
    ) -> Option<(Execution, usize)> {
        let (offset, ip) = register(attr, sample, IP)?;
        if !ranges::contain(&places.interpreter, ip) {
            return None;
        }
        let value = |number| register(attr, sample, number).map(|(_, value)| value);
        let bp = stack.index(value(BP)?)?;
        let execution = match bp.checked_sub(TO_BP) {
            Some(bytecode) => {
                let Execution { code, at } = self.frame(process, places, time, stack, bytecode)?;
                // The frame has it as of the last call.
                let range = self.table.history.code(code).range();
                let at = value(R13).filter(|now| range.contains(now)).unwrap_or(at);
                Execution { code, at }
            }
            // The frame is not complete. The registers have the bytecode, which is the first one, and the method.
            None => [value(R13)?, value(BX)?].into_iter().find_map(|at| {
                let first = self.method(process, places, time, at)?;
                (self.table.history.code(first.code).address == at).then_some(first)
            })?,
        };
        Some((execution, offset))
    }

    /// What a frame executes, if there is an interpreted one whose current bytecode is in this word.
    fn frame(
        &mut self,
        process: &Process<'_>,
        places: &Places,
        time: u64,
        stack: Stack<'_>,
        bytecode: usize,
    ) -> Option<Execution> {
        let at = stack.word(bytecode)?;
        if !stack.is_frame(bytecode) {
            return None;
        }
        // A native method has none, and is announced by itself.
        let at = if at == 0 { stack.word(bytecode.checked_add(TO_METHOD)?)? } else { at };
        self.method(process, places, time, at)
    }

    /// The execution of the method whose bytecode, or description, is at an address.
    fn method(
        &mut self,
        process: &Process<'_>,
        places: &Places,
        time: u64,
        at: u64,
    ) -> Option<Execution> {
        if !ranges::contain(&places.methods, at) {
            return None;
        }
        let code = match self.cache.at(process, at, time, &mut Numbers).occupant {
            Occupant::Code { mark, .. } => mark,
            // Classes are found some time after they were loaded.
            Occupant::Nothing { late, .. } => late?,
        };
        (self.table.kind(code) == Kind::JavaMethod).then_some(Execution { code, at })
    }
}

/// The offset and the value of a user register, if the sample has it.
fn register(attr: &Attr, sample: &Sample<'_>, number: u32) -> Option<(usize, u64)> {
    let bit = 1_u64 << number;
    if attr.sample_regs_user & bit == 0 {
        return None;
    }
    let index = (attr.sample_regs_user & (bit - 1)).count_ones() as usize;
    let value = sample.user_registers.clone().nth(index)?;
    Some((sample.offsets.user_registers + 8 * index, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTER: u64 = 0x7000_0000;
    const INTERPRETER: u64 = 0x5000;

    /// The address of a word.
    fn at(index: usize) -> u64 {
        POINTER + 8 * index as u64
    }

    /// A stack with one interpreted frame, whose word 0 is this one. Version 17 has addresses where 22 has offsets.
    fn with_frame(bp: usize, has_offsets: bool) -> Vec<u64> {
        let mut words = vec![0; bp + 6];
        words[bp + 1] = INTERPRETER;
        words[bp] = at(bp + 5);
        words[bp - 1] = at(bp + 2);
        words[bp - 2] = if has_offsets { (-10_i64).cast_unsigned() } else { at(bp - 10) };
        words[bp - 3] = 0x8_0010_0040;
        words[bp - 7] = if has_offsets { 2 } else { at(bp + 2) };
        words[bp - 8] = 0x8_0010_1234;
        words
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn is_frame(words: &[u64], bytecode: usize) -> bool {
        Stack { pointer: POINTER, bytes: &bytes(words) }.is_frame(bytecode)
    }

    #[test]
    fn frames_of_all_versions_are_found() {
        for has_offsets in [false, true] {
            let words = with_frame(20, has_offsets);
            let found: Vec<usize> = (0..30).filter(|&index| is_frame(&words, index)).collect();
            assert_eq!(found, [12], "{has_offsets}");
            // The end of the copy cuts it.
            assert!(is_frame(&words[..20], 12) && !is_frame(&words[..19], 12));
        }
    }

    #[test]
    fn words_that_do_not_fit_are_no_frame() {
        for (word, value) in [
            (19, 0),
            (19, at(21)),
            (19, at(22) + 1),
            (19, at(22) + 9 * LARGEST),
            (18, 1),
            (18, at(21) - 9 * LARGEST),
            (17, 0),
            (17, 0x8_0010_0041),
            (13, at(10)),
            (13, u64::MAX),
        ] {
            let mut words = with_frame(20, false);
            words[word] = value;
            assert!(!is_frame(&words, 12), "word {word}: {value:#x}");
        }
        assert!(!is_frame(&[], 0) && !is_frame(&[u64::MAX; 40], 12) && !is_frame(&[0; 40], 12));
        let all = bytes(&[at(3); 40]);
        assert!(!Stack { pointer: u64::MAX - 7, bytes: &all }.is_frame(12));
    }

    /// The indices of those words of the value `INTERPRETER` that are taken for the return address of a call of the frame whose
    /// word 0 is `bp`.
    fn returns(words: &[u64], bp: usize) -> Vec<usize> {
        let bytes = bytes(words);
        let stack = Stack { pointer: POINTER, bytes: &bytes };
        let execution = Execution { code: CodeId(0), at: 0 };
        let mut caller = Caller { execution, bp: at(bp), returned: None };
        let below = (0..bp).rev().filter(|&index| words[index] == INTERPRETER);
        below.filter(|&index| caller.returns_by(stack, index, words[index])).collect()
    }

    #[test]
    fn a_call_returns_by_the_next_address_or_its_copy() {
        let mut words = vec![7; 600];
        // The interpreter called the JVM. What is further down belongs to other frames.
        words[590] = INTERPRETER;
        words[2] = INTERPRETER;
        assert_eq!(returns(&words, 599), [590]);
        // Compiled code was called: an adapter moved the address, and the callee saved `rbp`.
        words[570] = INTERPRETER;
        words[569] = at(599);
        words[560] = INTERPRETER;
        assert_eq!(returns(&words, 599), [590, 570]);
        // The callee has not saved it yet.
        words[569] = 7;
        words[560] = 7;
        assert_eq!(returns(&words, 599), [590, 570]);
        // The callee is an interpreted method that is not known, and has called something.
        words[589] = at(599);
        assert_eq!(returns(&words, 599), [590]);
    }
}
