//! Callbacks from the JVM.
#![allow(unsafe_code, reason = "the JVM calls with pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

use jitscribe::{Code, Kind, Unwind};

use crate::agent::{Agent, Config, in_callback, is_replaying};
use crate::compile_info::CompileInfo;
use crate::env::text;
use crate::hotspot::Nmethod;
use crate::jvmti::{AddressLocation, Callbacks, Class, Env, Jni, MethodId};
use crate::methods::{METHOD_HANDLE, Methods};
use crate::scratch::Scratch;
use crate::{frames, instructions, interpreter, names};

/// The events that the agent handles.
pub(crate) static CALLBACKS: Callbacks = Callbacks {
    _50: [null(); 1],
    vm_death,
    _52: [null(); 4],
    class_prepare,
    _57: [null(); 11],
    compiled_method_load,
    compiled_method_unload,
    dynamic_code_generated,
};

// SAFETY: function pointers, and nulls; nothing writes to it.
unsafe impl Sync for Callbacks {}

/// Stops panics: nothing may unwind into the JVM. A panic costs one code its announcement.
fn guarded(then: impl FnOnce(&'static Agent)) {
    let _ = catch_unwind(AssertUnwindSafe(|| in_callback(then)));
}

unsafe extern "C" fn vm_death(_env: *mut Env, _jni: *mut Jni) {
    guarded(Agent::announce_interpreted);
}

unsafe extern "C" fn class_prepare(
    _env: *mut Env,
    _jni: *mut Jni,
    _thread: *mut c_void,
    _class: Class,
) {
    guarded(|agent| agent.interpreted.request());
}

unsafe extern "C" fn compiled_method_load(
    _env: *mut Env,
    method: MethodId,
    code_size: c_int,
    code: *const c_void,
    map_length: c_int,
    map: *const AddressLocation,
    compile_info: *const c_void,
) {
    guarded(|agent| {
        if !agent.scribe.is_on() {
            return;
        }
        // SAFETY: as the JVM passes them, used only during this call.
        let info = unsafe { CompileInfo::new(compile_info, map, map_length) };
        let (address, size) =
            (code.expose_provenance() as u64, u32::try_from(code_size).unwrap_or(0));
        agent.scratch.with(|scratch| {
            // SAFETY: the code of a compiled method, which stays there during this call.
            unsafe { instructions::copy(address, size, &mut scratch.bytes) };
            announce_compiled(agent, method, address, scratch, info);
        });
    });
}

fn announce_compiled(
    agent: &'static Agent,
    id: MethodId,
    address: u64,
    Scratch { bytes, methods: cache, table }: &mut Scratch,
    info: CompileInfo<'_>,
) {
    let size = bytes.len() as u32;
    // In this order: methods that are queried after `forget` use the settings that are current by
    // then.
    agent.methods.begin(cache);
    let config = agent.config();
    let (vm, env, style) = (agent.vm, agent.env, &config.style);
    let method = agent.methods.compiled(cache, vm, env, style, id);
    table.clear();
    if !config.no_lines || !config.no_inlined {
        info.each_place(id, |end, frames| {
            let end = end.saturating_sub(address).min(u64::from(size)) as u32;
            table.add(end, frames, cache, |cache, id| Methods::inlined(cache, vm, env, style, id));
        });
        table.finish(size);
    }
    let method = cache.method(method);
    let lines = if config.no_lines { Vec::new() } else { table.lines(cache) };
    let inlined = if config.no_inlined { Vec::new() } else { table.inlined(cache) };
    let nmethod =
        agent.hotspot.code_heaps.as_ref().and_then(|heaps| heaps.nmethod(address as usize));
    let rows = nmethod.as_ref().and_then(|nmethod| frames::rows(bytes, nmethod));
    let intrinsic = method.is_intrinsic.then(|| intrinsic(agent, &config, address));
    let mut announced = Code::new(bytes).runs_at(address).named(&method.name);
    if let Some(name) = &intrinsic {
        announced = announced.named(name).kind(Kind::Trampoline);
    }
    announced = announced.lines(&lines).inlined(&inlined);
    announced = announced.tier(nmethod.as_ref().map_or("", Nmethod::tier));
    if let Some(rows) = &rows {
        announced = announced.unwind(Unwind::Rows(rows));
    }
    agent.codes.load(address, Some(id), is_replaying(), || agent.scribe.load(&announced));
}

/// The name of the intrinsic whose code begins there. JVMTI would return the name of another one.
fn intrinsic(agent: &Agent, config: &Config, address: u64) -> String {
    let heaps = agent.hotspot.code_heaps.as_ref();
    let method = heaps.and_then(|heaps| heaps.permanent_method(address as usize));
    match method {
        Some((method, descriptor)) => {
            config.style.format.name(METHOD_HANDLE, &names::text(method), &names::text(descriptor))
        }
        None => "MethodHandle intrinsic".to_owned(),
    }
}

unsafe extern "C" fn compiled_method_unload(_env: *mut Env, method: MethodId, code: *const c_void) {
    guarded(|agent| {
        // The old code of a method whose class was redefined has another id than when it was
        // announced.
        let is_same = |there| agent.env.have_same_name(agent.vm, method, there);
        agent.codes.unload(code.addr() as u64, method, is_same);
    });
}

unsafe extern "C" fn dynamic_code_generated(
    _env: *mut Env,
    name: *const c_char,
    code: *const c_void,
    length: c_int,
) {
    guarded(|agent| {
        if !agent.scribe.is_on() {
            return;
        }
        let (address, size) = (code.expose_provenance() as u64, u32::try_from(length).unwrap_or(0));
        // SAFETY: the JVM's string, used only during this call, and code that it generated.
        let name = names::text(unsafe { text(name) });
        let mut bytes = Vec::new();
        // SAFETY: as above.
        unsafe { instructions::copy(address, size, &mut bytes) };
        let mut announced = Code::new(&bytes).runs_at(address).named(&name).kind(kind(&name));
        let interpreter = (name == "Interpreter").then(|| interpreter::eh_frame(size)).flatten();
        if let Some(eh_frame) = &interpreter {
            announced = announced.unwind(Unwind::EhFrame(eh_frame));
        } else if name == "Interpreter" {
            announced = announced.unwind(Unwind::FramePointerAlways { signed: false });
        } else if name == "call_stub" {
            announced = announced.frame_pointer();
        }
        agent.codes.load(address, None, is_replaying(), || agent.scribe.load(&announced));
    });
}

/// The kind of HotSpot's own code, by its name.
fn kind(name: &str) -> Kind {
    if name == "Interpreter" {
        Kind::BytecodeHandler
    } else if name.contains("adapter") {
        Kind::Trampoline
    } else {
        Kind::Stub
    }
}
