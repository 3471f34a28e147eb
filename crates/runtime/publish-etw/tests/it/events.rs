//! The events, decoded by what they say about themselves: functions in place of the system's write them down.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use publish_etw::api::{
    CAPTURE_STATE, Callback, DATA, DISABLE, DataDescriptor, ENABLE, EVENT_METADATA,
    EventDescriptor, Functions, Guid, PROVIDER_METADATA, SET_TRAITS,
};
use publish_etw::{Code, Etw, Line, Options};

const HANDLE: i64 = 0x1234_5678_9abc;

/// What the functions were called with.
#[derive(Debug, PartialEq)]
enum Call {
    Register(Guid),
    Traits(Vec<u8>),
    Write { provider: Vec<u8>, event: EventDescriptor, name: String, fields: Vec<(String, Value)> },
    Unregister,
}

#[derive(Debug, PartialEq)]
enum Value {
    Number(u64),
    Text(String),
}

static CALLS: Mutex<Vec<Call>> = Mutex::new(Vec::new());
static CALLBACK: Mutex<Option<Callback>> = Mutex::new(None);
static CONTEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// One test at a time has the functions.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    CALLS.lock().unwrap().clear();
    guard
}

unsafe extern "system" fn register(
    provider: *const Guid,
    callback: Callback,
    context: *const c_void,
    handle: *mut i64,
) -> u32 {
    *CALLBACK.lock().unwrap() = Some(callback);
    CONTEXT.store(context.cast_mut(), SeqCst);
    // SAFETY: as for `EventRegister`.
    unsafe {
        CALLS.lock().unwrap().push(Call::Register(*provider));
        *handle = HANDLE;
    }
    0
}

unsafe extern "system" fn refuse(
    _: *const Guid,
    _: Callback,
    _: *const c_void,
    _: *mut i64,
) -> u32 {
    5
}

unsafe extern "system" fn set_information(
    handle: i64,
    class: i32,
    traits: *const c_void,
    size: u32,
) -> u32 {
    assert_eq!((handle, class), (HANDLE, SET_TRAITS));
    // SAFETY: as for `EventSetInformation`.
    let traits = unsafe { std::slice::from_raw_parts(traits.cast::<u8>(), size as usize) };
    CALLS.lock().unwrap().push(Call::Traits(traits.to_vec()));
    0
}

unsafe extern "system" fn write(
    handle: i64,
    event: *const EventDescriptor,
    count: u32,
    data: *const DataDescriptor,
) -> u32 {
    assert_eq!(handle, HANDLE);
    // SAFETY: as for `EventWriteTransfer`.
    let (event, parts) = unsafe { (*event, std::slice::from_raw_parts(data, count as usize)) };
    let bytes = |part: &DataDescriptor| {
        let start = std::ptr::with_exposed_provenance::<u8>(part.address as usize);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(start, part.size as usize) }.to_vec()
    };
    let kinds: Vec<u32> = parts.iter().map(|part| part.kind).collect();
    assert_eq!(kinds[..2], [PROVIDER_METADATA, EVENT_METADATA]);
    assert!(kinds[2..].iter().all(|kind| *kind == DATA), "{kinds:?}");
    // The system joins the values, which the types of the fields take apart again.
    let values: Vec<u8> = parts[2..].iter().flat_map(bytes).collect();
    let (name, fields) = decode(&bytes(&parts[1]), &values);
    CALLS.lock().unwrap().push(Call::Write { provider: bytes(&parts[0]), event, name, fields });
    0
}

unsafe extern "system" fn unregister(handle: i64) -> u32 {
    assert_eq!(handle, HANDLE);
    CALLS.lock().unwrap().push(Call::Unregister);
    0
}

const FUNCTIONS: Functions = Functions { register, set_information, write, unregister };

/// Reads a text that ends with NUL.
fn take_text<'a>(bytes: &mut &'a [u8]) -> &'a str {
    let end = bytes.iter().position(|byte| *byte == 0).expect("a NUL");
    let (text, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    std::str::from_utf8(text).expect("UTF-8")
}

/// By the rules of TraceLoggingProvider.h: a name and fields, and the values of these.
fn decode(metadata: &[u8], values: &[u8]) -> (String, Vec<(String, Value)>) {
    let size = u16::from_le_bytes(metadata[..2].try_into().unwrap());
    assert_eq!(usize::from(size), metadata.len());
    assert_eq!(metadata[2], 0, "no tags");
    let (mut about, mut values) = (&metadata[3..], values);
    let name = take_text(&mut about).to_owned();
    let mut fields = Vec::new();
    while !about.is_empty() {
        let field = take_text(&mut about).to_owned();
        let (kind, rest) = about.split_first().expect("a type");
        about = rest;
        let mut number = |size: usize| {
            let (value, rest) = values.split_at(size);
            values = rest;
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(value);
            u64::from_le_bytes(bytes)
        };
        let value = match kind {
            1 => {
                let units = std::iter::from_fn(|| Some(number(2) as u16).filter(|unit| *unit != 0));
                Value::Text(String::from_utf16(&units.collect::<Vec<u16>>()).expect("UTF-16"))
            }
            6 => Value::Number(number(2)),
            8 | 0x14 => Value::Number(number(4)),
            0x0a | 0x15 => Value::Number(number(8)),
            other => panic!("type {other} of {field}"),
        };
        fields.push((field, value));
    }
    assert!(values.is_empty(), "{values:?} is of no field");
    (name, fields)
}

/// The system's call.
fn control(code: u32, level: u8, any: u64, all: u64) {
    let callback = CALLBACK.lock().unwrap().expect("a callback");
    let context = CONTEXT.load(SeqCst);
    // SAFETY: both are those that were registered.
    unsafe { callback(std::ptr::null(), code, level, any, all, std::ptr::null(), context) };
}

fn take_calls() -> Vec<Call> {
    std::mem::take(&mut *CALLS.lock().unwrap())
}

fn create(options: Options) -> Etw {
    // SAFETY: they take what the system's take.
    unsafe { Etw::with_functions(FUNCTIONS, options) }.expect("registered")
}

const PROVIDER: Guid = Guid {
    data1: 0x57277741,
    data2: 0x3638,
    data3: 0x4A4B,
    data4: [0xBD, 0xBA, 0x0A, 0xC6, 0xE4, 0x5D, 0xA5, 0x6C],
};

fn event(id: u16) -> EventDescriptor {
    EventDescriptor { id, version: 0, channel: 11, level: 4, opcode: 1, task: 0, keyword: 1 }
}

fn source(id: u64, path: &str) -> Call {
    let fields = [
        ("SourceID", Value::Number(id)),
        ("ScriptContextID", Value::Number(0)),
        ("SourceFlags", Value::Number(0)),
        ("Url", Value::Text(path.to_owned())),
    ];
    written(41, "SourceLoad", fields.into())
}

fn method(address: u64, size: u64, name: &str, source: u64, line: u64, column: u64) -> Call {
    let fields = [
        ("ScriptContextID", 0),
        ("MethodStartAddress", address),
        ("MethodSize", size),
        ("MethodID", 0),
        ("MethodFlags", 0),
        ("MethodAddressRangeID", 0),
        ("SourceID", source),
        ("Line", line),
        ("Column", column),
    ];
    let mut fields: Vec<_> =
        fields.into_iter().map(|(name, value)| (name, Value::Number(value))).collect();
    fields.push(("MethodName", Value::Text(name.to_owned())));
    written(9, "MethodLoad", fields)
}

fn written(id: u16, name: &str, fields: Vec<(&str, Value)>) -> Call {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Call::Write {
        provider: b"\x08\0V8.js\0".to_vec(),
        event: event(id),
        name: name.to_owned(),
        fields,
    }
}

/// FNV-1a of `a`: "FNV test suite".
const A: u64 = 0xaf63_dc4c_8601_ec8c;

#[test]
fn nothing_is_written_until_a_recording_wants_it() {
    let _alone = alone();
    let etw = create(Options::new());
    assert_eq!(take_calls(), [Call::Register(PROVIDER), Call::Traits(b"\x08\0V8.js\0".to_vec())]);
    let code = Code::at(0x1000, 16).named("one");
    etw.load(&code);
    // Of too low a level, of another keyword, and with a keyword that the events do not have.
    for (level, any, all) in [(3, 0, 0), (4, 2, 0), (4, 1, 3)] {
        control(ENABLE, level, any, all);
        assert!(!etw.is_enabled());
        etw.load(&code);
    }
    assert_eq!(take_calls(), []);
    for (level, any, all) in [(4, 1, 0), (5, 0, 0), (0, u64::MAX, 1)] {
        control(ENABLE, level, any, all);
        assert!(etw.is_enabled());
        etw.load(&code);
        assert_eq!(take_calls(), [method(0x1000, 16, "one", 0, 0, 0)]);
        control(DISABLE, 0, 0, 0);
        etw.load(&code);
        assert_eq!(take_calls(), []);
    }
    drop(etw);
    assert_eq!(take_calls(), [Call::Unregister]);
}

#[test]
fn a_source_is_written_once_for_each_recording() {
    let _alone = alone();
    let etw = create(Options::new());
    control(ENABLE, 4, 1, 0);
    take_calls();
    let lines = [Line::new(0, "a", 3).column(9), Line::new(4, "b", 7)];
    let code = Code::at(0x7fff_1234_5678, 0x20).named("fünf \u{1f980}").lines(&lines);
    etw.load(&code);
    etw.load(&code.runs_at(0x2000));
    let name = "fünf \u{1f980}";
    assert_eq!(
        take_calls(),
        [
            source(A, "a"),
            method(0x7fff_1234_5678, 0x20, name, A, 3, 9),
            method(0x2000, 0x20, name, A, 3, 9)
        ]
    );
    // Another recording.
    control(ENABLE, 4, 1, 0);
    etw.load(&code);
    assert_eq!(take_calls(), [source(A, "a"), method(0x7fff_1234_5678, 0x20, name, A, 3, 9)]);
}

#[test]
fn what_is_alive_is_reported_when_a_recording_begins() {
    let _alone = alone();
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    let etw = create(Options::new().when_enabled(move |etw| {
        *counted.lock().unwrap() += 1;
        let mut code = Code::at(0x3000, 1);
        code.name = b"\xff";
        etw.load(&code);
    }));
    take_calls();
    // Asked for by nobody who records.
    control(CAPTURE_STATE, 4, 1, 0);
    assert_eq!(take_calls(), []);
    control(ENABLE, 4, 1, 0);
    control(CAPTURE_STATE, 4, 1, 0);
    let one = || method(0x3000, 1, "\u{fffd}", 0, 0, 0);
    assert_eq!(take_calls(), [one(), one()]);
    assert_eq!(*count.lock().unwrap(), 2);
    etw.give_up();
    assert!(etw.take_refusal() && !etw.take_refusal());
    etw.load(&Code::at(0x3000, 1));
    assert_eq!(take_calls(), []);
}

/// A panic of the runtime's own function stays out of the system.
#[test]
fn a_panic_does_not_reach_the_system() {
    let _alone = alone();
    let etw = create(Options::new().when_enabled(|_| std::panic::resume_unwind(Box::new(1))));
    control(ENABLE, 4, 1, 0);
    assert!(etw.is_enabled());
}

#[test]
fn a_provider_that_is_refused_is_an_error() {
    let functions = Functions { register: refuse, ..FUNCTIONS };
    // SAFETY: as above.
    let refused = unsafe { Etw::with_functions(functions, Options::new()) };
    assert_eq!(refused.err(), Some(publish_etw::Error::NotRegistered(5)));
}

/// The system's functions take what they are given. Wine has them, but no recordings.
#[test]
fn the_system_registers_the_provider() {
    let made = Etw::create(Options::new());
    if cfg!(windows) {
        let etw = made.expect("registered");
        etw.load(&Code::at(0x1000, 16).named("one"));
    } else {
        assert_eq!(made.err(), Some(publish_etw::Error::NotWindows));
    }
}
