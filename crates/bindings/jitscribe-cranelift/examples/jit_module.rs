//! A function compiled by `cranelift-jit`, announced, called and freed.
#![allow(unsafe_code, clippy::print_stdout)]

use std::error::Error;

use cranelift_codegen::ir::{AbiParam, InstBuilder, SourceLoc, types};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use jitscribe::Scribe;
use jitscribe_cranelift::{Announcement, Place};

fn main() -> Result<(), Box<dyn Error>> {
    let scribe = Scribe::global();

    let mut flags = settings::builder();
    // Lets profilers walk frame pointers, also through functions that need no frame.
    flags.set("preserve_frame_pointers", "true")?;
    let isa = cranelift_native::builder()?.finish(Flags::new(flags))?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));

    let mut context = module.make_context();
    context.func.signature.params.push(AbiParam::new(types::I64));
    context.func.signature.returns.push(AbiParam::new(types::I64));
    let mut builder_context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.seal_block(block);
    // The front end decides what the numbers refer to. Here they are lines.
    builder.set_srcloc(SourceLoc::new(2));
    let argument = builder.block_params(block)[0];
    let double = builder.ins().iadd(argument, argument);
    builder.set_srcloc(SourceLoc::new(3));
    builder.ins().return_(&[double]);
    builder.finalize(module.target_config());

    let id = module.declare_function("double", Linkage::Export, &context.func.signature)?;
    module.define_function(id, &mut context)?;
    // The context holds the compiled code until it is cleared.
    let announcement = context.compiled_code().map(|compiled| {
        Announcement::of(module.isa(), compiled)
            .named("double")
            .starts_at(Place { file: "double.lang", line: 1, column: 4 })
            .lines(|loc| Some(Place { file: "double.lang", line: loc.bits(), column: 0 }))
    });
    module.clear_context(&mut context);
    module.finalize_definitions()?;

    let code = module.get_finalized_function(id);
    // SAFETY: the module has put the function there, and changes nothing there until it is freed.
    let loaded =
        announcement.map(|announcement| unsafe { announcement.load_finalized(scribe, code) });

    // SAFETY: the function has this signature.
    let double = unsafe { std::mem::transmute::<*const u8, extern "C" fn(i64) -> i64>(code) };
    println!("double(21) = {}", double(21));

    // Announce the unload first, then free the memory.
    drop(loaded);
    // SAFETY: the function is not called any more.
    unsafe { module.free_memory() };
    Ok(())
}
