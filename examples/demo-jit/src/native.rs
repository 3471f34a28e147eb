//! The border between generated and native code: the table of pointers, the calls in, and the
//! builtins that are called out of it.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;

use crate::ast::FunctionId;
use crate::memory::Memory;

/// The table's entries: the host's state, what a function that is not loaded leads to, the
/// builtins, then the program's functions in the order of the text.
const TABLE_STATE: usize = 0;
pub(crate) const TABLE_PRINT: usize = 1;
pub(crate) const TABLE_APPLY: usize = 2;
pub(crate) const TABLE_FUNCTIONS: usize = 3;

/// What a program printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Printed {
    /// The first values, up to [`Printed::KEPT`].
    pub first: Vec<i64>,
    /// How many values there were.
    pub count: u64,
}

impl Printed {
    /// How many values are kept.
    pub const KEPT: usize = 1024;

    pub(crate) fn push(&mut self, value: i64) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(value);
        }
    }
}

/// What the builtins work on.
#[derive(Debug)]
struct State {
    printed: RefCell<Printed>,
    functions: usize,
    /// Whether a function was called that is not loaded.
    strayed: Cell<bool>,
}

/// Generated code receives this as its first argument.
type TablePointer = *const Cell<*const ()>;
/// A function of the language with one parameter.
type Unary = unsafe extern "C" fn(TablePointer, i64) -> i64;

/// The table of pointers that generated code calls through.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Box<[Cell<*const ()>]>,
    state: Rc<State>,
}

impl Table {
    pub(crate) fn new(functions: usize) -> Self {
        let state =
            Rc::new(State { printed: RefCell::default(), functions, strayed: Cell::new(false) });
        let entries = vec![Cell::new(unloaded as *const ()); TABLE_FUNCTIONS + functions];
        entries[TABLE_STATE].set(Rc::as_ptr(&state).cast());
        entries[TABLE_PRINT].set(print as *const ());
        entries[TABLE_APPLY].set(apply as *const ());
        Self { entries: entries.into(), state }
    }

    /// Lets calls of the function reach the code at `offset` in the memory.
    ///
    /// # Safety
    /// From there on, the memory holds the function's code, made by `codegen` for this table's
    /// program, for as long as the entry stands.
    pub(crate) unsafe fn set(&mut self, id: FunctionId, memory: &Memory, offset: usize) {
        let code: *const u8 = &memory.bytes()[offset];
        self.entries[TABLE_FUNCTIONS + id.0].set(code.cast());
    }

    /// Lets calls of the function reach code that lies elsewhere.
    ///
    /// # Safety
    /// It is the function's code, made by `codegen` for this table's program, for as long as the entry
    /// stands.
    pub(crate) unsafe fn set_elsewhere(&mut self, id: FunctionId, code: *const ()) {
        self.entries[TABLE_FUNCTIONS + id.0].set(code);
    }

    /// Lets calls of the function go astray, which [`Table::take_strayed`] tells.
    pub(crate) fn clear(&mut self, id: FunctionId) {
        self.entries[TABLE_FUNCTIONS + id.0].set(unloaded as *const ());
    }

    /// Calls a function; `None` if it or one that it called was not loaded.
    ///
    /// The function must have one parameter; the borrow of the memory keeps it from changing.
    /// A recursion without end runs into the stack's guard page.
    pub(crate) fn call(&self, _memory: &Memory, id: FunctionId, argument: i64) -> Option<i64> {
        let code = self.entries[TABLE_FUNCTIONS + id.0].get();
        // SAFETY: The entry is `unloaded`, which ignores what it is given, or by the promise of
        // `set` the code of a function of the language: it follows the C convention, takes the
        // table and 64-bit numbers, and returns one. Code is changed only under `&mut Memory`,
        // which `_memory` excludes, and entries only under `&mut self`.
        let value =
            unsafe { mem::transmute::<*const (), Unary>(code)(self.entries.as_ptr(), argument) };
        (!self.state.strayed.take()).then_some(value)
    }

    /// What was printed since the last time.
    pub(crate) fn take_printed(&self) -> Printed {
        self.state.printed.take()
    }
}

/// The state behind the table.
///
/// # Safety
/// `table` is what generated code was given: the entries of a `Table` that lives for longer than
/// the call.
unsafe fn state<'a>(table: TablePointer) -> &'a State {
    // SAFETY: By the caller's promise the entries are there, and the entry for the state, set once
    // by `Table::new`, points to a counted `State` that is dropped with the table.
    unsafe { &*(*table.add(TABLE_STATE)).get().cast() }
}

/// Where calls of functions go that are not loaded. It takes fewer arguments than it may be given:
/// in the C convention they stay unread in their registers.
unsafe extern "C" fn unloaded(table: TablePointer) -> i64 {
    // SAFETY: Called by `Table::call` and by generated code only, which pass the table.
    unsafe { state(table) }.strayed.set(true);
    0
}

/// The builtin `print`.
unsafe extern "C" fn print(table: TablePointer, value: i64) -> i64 {
    // SAFETY: Called by generated code only, which passes the table.
    unsafe { state(table) }.printed.borrow_mut().push(value);
    value
}

/// The builtin `apply`: calls back.
///
/// It keeps a frame pointer, whatever the compiler was told about Rust's functions: without, a
/// stack that is walked by frame pointers would miss the caller.
#[unsafe(naked)]
unsafe extern "C" fn apply(table: TablePointer, callee: i64, argument: i64) -> i64 {
    // Between the calls, table and argument lie on the stack, which is aligned at both calls.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rdi",
        "push rdx",
        "call {code_of}",
        "pop rsi",
        "pop rdi",
        "call rax",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        code_of = sym code_of,
    )
}

/// The code that `apply` is to call, which takes the table and one number as [`Unary`] does: the
/// parser lets no other function through.
unsafe extern "C" fn code_of(table: TablePointer, callee: i64) -> *const () {
    // SAFETY: Called by `apply` only, which generated code calls with the table.
    let functions = unsafe { state(table) }.functions;
    match usize::try_from(callee) {
        // SAFETY: The table has an entry for every function, and `callee` is one.
        Ok(callee) if callee < functions => unsafe { &*table.add(TABLE_FUNCTIONS + callee) }.get(),
        _ => unloaded as *const (),
    }
}
