//! An addon for node: announces the code that V8 compiles to profilers and debuggers, also in a process that already runs.
//!
//! `jitscribe record -p PID --inspect` has a process load it, as JavaScript would do:
//!
//! ```js
//! const module = { exports: {} };
//! process.dlopen(module, '/usr/lib/jitscribe/libjitscribe_node.so');
//! module.exports.start('/tmp/pipe'); // returns undefined, or why it does not announce code
//! module.exports.join();             // in a worker thread: the same, for what the first call started
//! module.exports.isOn();             // whether a recorder needs the code
//! ```
//!
//! V8's flags have no effect on a process that already runs: it creates what writes perf maps, jitdumps and logs with the isolate. But V8's
//! interface for C++ has a function that reports all code of an isolate, what exists and what is compiled later
//! (`Isolate::SetJitCodeEventHandler`). It is exported by node 18 to 26, with the same types. The code goes into the code log of a
//! [`Scribe`](jitscribe::Scribe).
//!
//! - `symbols`: functions that node exports
//! - `napi`: the functions above, by node's interface for addons
//! - `v8`: V8's interface
//! - `agent`: start and stop; `codes`: the codes that are announced and alive
//!
//! It announces until the recorder's pipe is closed (see [`guest::SessionPipe`]), and then has V8 forget it. It is a guest in the process: it holds no
//! lock while it calls V8, and nothing unwinds into V8.

mod agent;
mod codes;
mod napi;
mod symbols;
mod v8;
