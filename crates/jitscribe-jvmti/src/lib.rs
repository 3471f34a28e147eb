//! An agent for Java: what HotSpot compiles, announced to profilers and debuggers.
//!
//! ```text
//! java -agentpath:/usr/lib/jitscribe/libjitscribe_jvmti.so Main
//! jcmd PID JVMTI.agent_load /usr/lib/jitscribe/libjitscribe_jvmti.so
//! jcmd PID JVMTI.agent_load /usr/lib/jitscribe/libjitscribe_jvmti.so stop
//! ```
//!
//! Compiled methods, with source lines, whole chains of inlined calls, the compiler's tier and a description of
//! their frames; stubs and the interpreter; all that was compiled before, where the agent comes late. It goes into the
//! code log of a [`Scribe`](jitscribe::Scribe), and to what else `JITSCRIBE` or the options ask for. `docs/runtimes/java.md`
//! says what to type, and what HotSpot tells and what not.
//!
//! - `jvmti`: the C interface of the JVM
//! - `env`: what the JVM is asked
//! - `events`: what the JVM says
//! - `compile_info`: where the instructions of a compiled method come from, as HotSpot has it
//! - `table`: that as lines and inlined calls
//! - `hotspot`: the compiler's tier and the frame's size, which JVMTI does not tell
//! - `frames`: how a compiled method's frame is unwound; `instructions`: its machine code
//! - `methods`: what is known of methods, asked once
//! - `names`, `options`: how they are called, and what the user wants
//! - `room`: what is known, and memory, that is used for one method after the other
//! - `codes`: what was announced and is there
//! - `agent`: start and stop; `hold`: until who records is done, or gone
//!
//! It is a guest in the JVM: nothing here fails into it, no lock is held while it is asked, and a panic ends in a line on
//! standard error.

mod agent;
mod codes;
mod compile_info;
mod entries;
mod env;
mod events;
mod frames;
mod hold;
mod hotspot;
mod instructions;
mod interpreter;
mod jvmti;
mod methods;
mod names;
mod options;
mod room;
mod table;
