//! Announces code that Cranelift compiled.
//!
//! Cranelift knows of its code what tools want to know: which source location each instruction came
//! from, and how the frame is made. [`Announcement`] takes it from there, says it in the terms of
//! [`jitscribe`], and announces it with one call:
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
//! // … copied to where it is to run:
//! let memory: &[u8] = compiled.code_buffer();
//! let code = Announcement::of(isa.as_ref(), compiled)
//!     .named("answer")
//!     .tier("optimised")
//!     // What the front end's source locations stand for.
//!     .lines(|loc| Some(Place { file: "answer.lang", line: loc.bits(), column: 0 }))
//!     .load(scribe, memory);
//! // … the code runs, until it is freed:
//! drop(code);
//! ```
//!
//! With `cranelift-jit`, make the announcement between `define_function` and `clear_context`, as
//! long as the context has the compiled code, and give it out when the module has put the function
//! in its place: [`Announcement::load_finalized`]. The example `jit_module` shows it.
//!
//! # What is said
//!
//! * **Lines** ([`Announcement::lines`]) by the front end's own mapping of `SourceLoc`.
//!   When it optimises, Cranelift keeps the locations of instructions with effects only (calls,
//!   branches, memory): arithmetic then belongs to the line before it.
//! * **Inlined calls** ([`Announcement::inlined`]): the front end says which call a source location
//!   lies in; their places in the code are found here.
//! * **A second line table** into a listing of the CLIF, which [`Listing`] prints
//!   ([`Announcement::ir_listing`]), or into any other ([`Announcement::ir_lines`]).
//! * **Frames**, on x86-64 and aarch64, without being asked. What Cranelift tells of a frame ends
//!   with the prologue; here the end of each epilogue is told of as well, so that a stack which was
//!   taken at the very last instruction of a function does not lack the caller.

mod announcement;
mod finalized;
mod frame;
mod listing;
mod place;

pub use announcement::Announcement;
pub use listing::Listing;
pub use place::{Call, Place};
