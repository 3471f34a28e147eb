//! Announces code that Cranelift compiled.
//!
//! Cranelift provides most of what tools need to know about its code: the source location of each
//! instruction, and the layout of the frame. [`Announcement`] converts both to the types of
//! [`jitscribe`], and announces the code with one call:
//!
//! ```
//! # use cranelift_codegen::{Context, control::ControlPlane, ir::*, isa::CallConv, settings};
//! # use cranelift_codegen::cursor::{Cursor, FuncCursor};
//! use jitscribe_cranelift::{Announcement, Place};
//! # use jitscribe::Scribe;
//!
//! # let mut function = Function::new();
//! # function.signature = Signature::new(CallConv::SystemV);
//! # let block = function.dfg.make_block();
//! # let mut cursor = FuncCursor::new(&mut function);
//! # cursor.insert_block(block);
//! # cursor.set_srcloc(SourceLoc::new(3));
//! # cursor.ins().return_(&[]);
//! # let flags = settings::Flags::new(settings::builder());
//! # let isa = cranelift_native::builder().unwrap().finish(flags).unwrap();
//! # let scribe = Scribe::builder().build();
//! # let mut context = Context::for_function(function);
//! let compiled = context.compile(isa.as_ref(), &mut ControlPlane::default()).unwrap();
//! // … copied to where it will run:
//! let memory: &[u8] = compiled.code_buffer();
//! let code = Announcement::of(isa.as_ref(), compiled)
//!     .named("answer")
//!     .tier("optimised")
//!     // What the front end's source locations refer to.
//!     .lines(|loc| Some(Place { file: "answer.lang", line: loc.bits(), column: 0 }))
//!     .load(scribe, memory);
//! // … the code runs, until it is freed:
//! drop(code);
//! ```
//!
//! With `cranelift-jit`, create the announcement between `define_function` and `clear_context`,
//! while the context holds the compiled code. Load it when the module has put the function into
//! place: [`Announcement::load_finalized`]. See the example `jit_module`.
//!
//! # What is announced
//!
//! * **Lines** ([`Announcement::lines`]), through the front end's own mapping of `SourceLoc`. When Cranelift optimises, it
//!   keeps the locations only of instructions with side effects (calls, branches, memory accesses). Arithmetic then belongs to
//!   the line before it.
//! * **Inlined calls** ([`Announcement::inlined`]): the front end maps source locations to calls; this crate finds their ranges
//!   in the code.
//! * **A second line table** into a listing of the CLIF, which [`Listing`] prints ([`Announcement::ir_listing`]), or into any
//!   other listing ([`Announcement::ir_lines`]).
//! * **Frames**, on x86-64 and aarch64, automatically. Cranelift's own unwind info ends with the prologue. This crate also
//!   describes the end of each epilogue, so that a stack sampled at the very last instruction of a function does not miss the
//!   caller.

mod announcement;
mod finalized;
mod frame;
mod listing;
mod place;

pub use announcement::Announcement;
pub use listing::Listing;
pub use place::{Call, Place};
