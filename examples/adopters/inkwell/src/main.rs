//! Runs the function `main` of an LLVM module for some seconds of processor time: `inkwell-jit FILE.ll SECONDS`.
//!
//! For jitscribe: `announce_code_of`, which `listener.cpp` defines, and `build.rs`, which compiles it.

use std::error::Error;
use std::ffi::c_long;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
// The listener calls its functions.
use jitscribe_capi as _;

type EngineRef = *mut inkwell::llvm_sys::execution_engine::LLVMOpaqueExecutionEngine;

unsafe extern "C" {
    fn announce_code_of(engine: EngineRef);
    /// Of C: microseconds of processor time. On a busy machine, real time would be too few samples.
    safe fn clock() -> c_long;
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("usage: inkwell-jit FILE.ll SECONDS")?;
    let seconds: c_long = words.next().ok_or("how many seconds?")?.parse()?;

    let context = Context::create();
    let buffer = MemoryBuffer::create_from_file(file.as_ref())?;
    let module = context.create_module_from_ir(buffer)?;
    let engine = module.create_jit_execution_engine(OptimizationLevel::Default)?;
    // SAFETY: the engine lives, and compiles nothing before a function is asked for.
    unsafe { announce_code_of(engine.as_mut_ptr()) };

    // SAFETY: the module's function has this type.
    let function = unsafe { engine.get_function::<unsafe extern "C" fn() -> i32>("main")? };
    let end = clock() + seconds * 1_000_000;
    while clock() < end {
        // SAFETY: it takes nothing, and the engine lives.
        unsafe { function.call() };
    }
    Ok(())
}
