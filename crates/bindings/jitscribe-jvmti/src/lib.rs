//! A JVMTI agent for Java: announces the code that HotSpot compiles to profilers and debuggers.
//!
//! ```text
//! java -agentpath:/usr/lib/jitscribe/libjitscribe_jvmti.so Main
//! jcmd PID JVMTI.agent_load /usr/lib/jitscribe/libjitscribe_jvmti.so
//! jcmd PID JVMTI.agent_load /usr/lib/jitscribe/libjitscribe_jvmti.so stop
//! ```
//!
//! It announces compiled methods, with source lines, complete chains of inlined calls, the compiler's tier and unwind info;
//! stubs and the interpreter; and, if it is loaded into a running JVM, all code that was compiled before. The code goes into
//! the code log of a [`Scribe`](jitscribe::Scribe), and to the publishers that `JITSCRIBE` or the options turn on.
//! `docs/runtimes/java.md` lists the commands, and what HotSpot reports and what not.
//!
//! - `jvmti`: the C interface of the JVM
//! - `env`: calls to the JVM
//! - `events`: callbacks from the JVM
//! - `compile_info`: the source positions of a compiled method's instructions, as HotSpot passes them
//! - `table`: converts them to lines and inlined calls
//! - `hotspot`: the compiler's tier and the frame size, which JVMTI does not report
//! - `interpreted`: the methods that the interpreter may execute; `interpreter`: the unwind info of their frames
//! - `frames`: the unwind info of a compiled method; `instructions`: its machine code
//! - `methods`: a cache of the properties of methods
//! - `names`, `options`: the names of methods, and the agent's options
//! - `scratch`: caches and buffers that are reused from one method to the next
//! - `codes`: the codes that are announced and alive
//! - `agent`: start and stop, by the user or for a recorder's session
//!
//! The agent is a guest in the JVM: its failures do not affect the JVM, it holds no lock while it calls the JVM, and a panic
//! becomes a line on standard error.

mod agent;
mod codes;
mod compile_info;
mod entries;
mod env;
mod events;
mod frames;
mod hotspot;
mod instructions;
mod interpreted;
mod interpreter;
mod jvmti;
mod methods;
mod names;
mod options;
mod scratch;
mod table;
