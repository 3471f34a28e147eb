//! Announces code that really runs, and checks what another process reads in the log.
#![allow(unsafe_code, clippy::single_range_in_vec_init)]

use std::fs::File;
use std::mem::transmute;

use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, SourceLoc, types};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::{Kind, Scribe};
use jitscribe_cranelift::{Announcement, Call, Listing, Place};

const FILE: &str = "/src/sum.lang";

/// The line and the call of each source location.
const PLACES: [(u32, Option<u32>); 6] =
    [(2, None), (3, None), (11, Some(0)), (21, Some(1)), (12, Some(0)), (4, None)];

/// The function calls `square`, whose code contains a call of `times`. No code is left of `never`.
const CALLS: [Call<'static>; 3] = [
    Call { name: "square", parent: None, place: place(3, 5) },
    Call { name: "times", parent: Some(0), place: place(11, 9) },
    Call { name: "never", parent: Some(1), place: place(22, 1) },
];

const fn place(line: u32, column: u32) -> Place<'static> {
    Place { file: FILE, line, column }
}

fn lines(loc: SourceLoc) -> Option<Place<'static>> {
    PLACES.get(loc.bits() as usize).map(|(line, _)| place(*line, 0))
}

fn call(loc: SourceLoc) -> Option<u32> {
    PLACES.get(loc.bits() as usize)?.1
}

fn module() -> JITModule {
    let mut flags = settings::builder();
    flags.set("preserve_frame_pointers", "true").unwrap();
    let isa = cranelift_native::builder().unwrap().finish(Flags::new(flags)).unwrap();
    JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()))
}

/// A function of one argument, with an instruction at each of [`PLACES`] and one without a location.
fn build(module: &JITModule, function: &mut Function) {
    function.signature.params.push(AbiParam::new(types::I64));
    function.signature.returns.push(AbiParam::new(types::I64));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(function, &mut context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.seal_block(block);
    let mut value = builder.block_params(block)[0];
    for number in 0..PLACES.len() as u32 - 1 {
        builder.set_srcloc(SourceLoc::new(number));
        let next = builder.ins().iadd_imm_s(value, 1000 + i64::from(number));
        value = builder.ins().imul(next, value);
    }
    builder.set_srcloc(SourceLoc::default());
    value = builder.ins().bxor_imm_u(value, 5);
    builder.set_srcloc(SourceLoc::new(PLACES.len() as u32 - 1));
    builder.ins().return_(&[value]);
    builder.finalize(module.target_config());
}

fn expected(argument: i64) -> i64 {
    let step = |value: i64, number: i64| (value + 1000 + number).wrapping_mul(value);
    (0..PLACES.len() as i64 - 1).fold(argument, step) ^ 5
}

fn run(module: &JITModule, id: FuncId) {
    let code = module.get_finalized_function(id);
    // SAFETY: The function has this signature.
    let function = unsafe { transmute::<*const u8, extern "C" fn(i64) -> i64>(code) };
    assert_eq!(function(3), expected(3));
}

/// Reads the only code as another process does.
fn read<R>(scribe: Scribe, look: impl FnOnce(&CodeLoad<'_>) -> R) -> R {
    let fd = scribe.log_fd().unwrap().try_clone_to_owned().unwrap();
    let snapshot = code_log::snapshot(&File::from(fd)).unwrap();
    let dump = Dump::parse(&snapshot.bytes).unwrap();
    let codes: Vec<_> = dump
        .codes()
        .filter_map(|event| match event.unwrap() {
            CodeEvent::Load(code) => Some(code),
            _ => None,
        })
        .collect();
    let [code] = &codes[..] else { panic!("{codes:?}") };
    look(code)
}

#[test]
fn a_function_of_cranelift_jit() {
    let scribe = Scribe::builder().bytes().build();
    let mut module = module();
    let mut context = module.make_context();
    build(&module, &mut context.func);
    let listing = Listing::number(&mut context.func);
    let id = module.declare_function("sum", Linkage::Export, &context.func.signature).unwrap();
    module.define_function(id, &mut context).unwrap();
    let compiled = context.compiled_code().unwrap();
    let size = compiled.code_info().total_size;
    let ranges: Vec<_> = compiled.buffer.get_srclocs_sorted().to_vec();
    let announcement = Announcement::listed(module.isa(), compiled, &listing)
        .named("sum")
        .kind(Kind::Wrapper)
        .tier("swift")
        .starts_at(place(1, 4))
        .lines(lines)
        .ir_listing("/src/sum.clif", 0)
        .inlined(&CALLS, call);
    assert_eq!(announcement.size(), size);
    module.clear_context(&mut context);
    module.finalize_definitions().unwrap();
    let address = module.get_finalized_function(id);
    // SAFETY: the module has put the function there.
    let loaded = unsafe { announcement.load_finalized(scribe, address) };
    run(&module, id);

    // The offsets at which each place begins, from Cranelift's own table.
    let base = address.addr() as u64;
    let offset = |range: &cranelift_codegen::MachSrcLoc<cranelift_codegen::Final>| {
        base + u64::from(range.start)
    };
    let mut starts: Vec<(u64, SourceLoc)> = Vec::new();
    for range in &ranges {
        let source = listing.source(range.loc);
        if !source.is_default() && starts.last().is_none_or(|(_, last)| *last != source) {
            starts.push((offset(range), source));
        }
    }
    let places: Vec<u32> = starts.iter().map(|(_, source)| source.bits()).collect();
    assert_eq!(places, [0, 1, 2, 3, 4, 5], "nothing moves these instructions past one another");

    read(scribe, |code| {
        assert_eq!((code.address, code.size, code.name), (base, size.into(), &b"sum"[..]));
        assert_eq!((code.kind(), code.tier()), (Kind::Wrapper, Some(&b"swift"[..])));
        // SAFETY: as above; nothing writes there.
        let there = unsafe { std::slice::from_raw_parts(address, size as usize) };
        assert_eq!(code.bytes, there);
        assert_eq!(code.died(), None);
        assert!(code.unwind().is_some());

        let told: Vec<_> = code.lines().map(|at| (at.address, at.line, at.column)).collect();
        let mut expected = vec![(base, 1, 4)];
        expected.extend(starts.iter().map(|(at, loc)| (*at, lines(*loc).unwrap().line, 0)));
        assert_eq!(told, expected);
        assert!(code.lines().all(|at| at.file == FILE.as_bytes()));

        let calls: Vec<_> = code.inlined().collect();
        let [square, times] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!((square.name, square.parent, square.line), (&b"square"[..], None, 3));
        assert_eq!((times.name, times.parent, times.line), (&b"times"[..], Some(0), 11));
        assert!(square.ranges.clone().eq([starts[2].0..starts[5].0]));
        assert!(times.ranges.clone().eq([starts[3].0..starts[4].0]));

        // Each line of the listing belongs to an instruction that was compiled to code.
        let text: Vec<&str> = listing.text().lines().collect();
        let told: Vec<_> = code.ir_lines().map(|at| text[at.line as usize - 1]).collect();
        assert!(code.ir_lines().all(|at| at.file == b"/src/sum.clif"));
        let mut wanted = ["iadd", "imul"].repeat(5);
        wanted.extend(["bxor", "return"]);
        let mut told = told.into_iter();
        for wanted in wanted {
            assert!(told.any(|line| line.contains(wanted)), "no {wanted}:\n{}", listing.text());
        }
    });
    drop(loaded);
    read(scribe, |code| assert!(code.died().is_some()));
}

#[test]
fn the_least_that_can_be_said() {
    let scribe = Scribe::builder().build();
    let mut module = module();
    let mut context = module.make_context();
    build(&module, &mut context.func);
    let id = module.declare_function("sum", Linkage::Export, &context.func.signature).unwrap();
    module.define_function(id, &mut context).unwrap();
    let announcement =
        Announcement::of(module.isa(), context.compiled_code().unwrap()).named("sum").lines(lines);
    module.clear_context(&mut context);
    module.finalize_definitions().unwrap();
    let address = module.get_finalized_function(id).addr() as u64;
    let _loaded = announcement.load_at(scribe, address);
    read(scribe, |code| {
        assert!(code.is_without_bytes());
        assert_eq!(code.address, address);
        // The prologue belongs to the first line that there is.
        let first = code.lines().next().unwrap();
        assert_eq!((first.address, first.line), (address, 2));
        assert_eq!((code.inlined().count(), code.ir_lines().count()), (0, 0));
    });
}

#[test]
fn a_listing_gives_back_what_it_replaced() {
    let module = module();
    let mut function = Function::new();
    build(&module, &mut function);
    let insts = |function: &Function| -> Vec<_> {
        let blocks = function.layout.blocks();
        let insts = blocks.flat_map(|block| function.layout.block_insts(block));
        insts.map(|inst| function.srcloc(inst)).collect()
    };
    let before = insts(&function);
    let listing = Listing::number(&mut function);
    let after = insts(&function);
    let restored: Vec<_> = after.iter().map(|loc| listing.source(*loc)).collect();
    assert_eq!(restored, before);
    let lines: Vec<_> = after.iter().map(|loc| listing.line(*loc).unwrap()).collect();
    assert!(lines.is_sorted_by(|a, b| a < b), "each has a line of its own");
    assert_eq!(listing.source(SourceLoc::default()), SourceLoc::default());
    assert_eq!(listing.line(SourceLoc::new(77_777)), None);
}
