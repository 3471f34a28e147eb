//! Runs the function `main` of an LLVM module for some seconds: `inkwell-jit FILE.ll SECONDS`.
//!
//! For jitscribe: `announce_code_of`, which `listener.cpp` defines, and `build.rs`, which compiles it.

use std::error::Error;
use std::time::{Duration, Instant};

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
// The listener calls its functions.
use jitscribe_capi as _;

type EngineRef = *mut inkwell::llvm_sys::execution_engine::LLVMOpaqueExecutionEngine;

unsafe extern "C" {
    fn announce_code_of(engine: EngineRef);
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("usage: inkwell-jit FILE.ll SECONDS")?;
    let seconds: f64 = words.next().ok_or("how many seconds?")?.parse()?;

    let context = Context::create();
    let buffer = MemoryBuffer::create_from_file(file.as_ref())?;
    let module = context.create_module_from_ir(buffer)?;
    let engine = module.create_jit_execution_engine(OptimizationLevel::Default)?;
    // SAFETY: the engine lives, and compiles nothing before a function is asked for.
    unsafe { announce_code_of(engine.as_mut_ptr()) };

    // SAFETY: the module's function has this type.
    let function = unsafe { engine.get_function::<unsafe extern "C" fn() -> i32>("main")? };
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        // SAFETY: it takes nothing, and the engine lives.
        unsafe { function.call() };
    }
    Ok(())
}
