//! The part of the JVM's C interface that is used here: jni.h, jvmti.h and jvmticmlr.h of the JDK.
//!
//! The function tables have gaps; a test compares the offsets with the headers.

use std::ffi::{c_char, c_int, c_void};

/// The result of a function; 0 is success.
pub(crate) type Error = c_int;

/// `jmethodID`: a method's id, valid as long as its class is loaded. Only the JVM can dereference it. It is never
/// reused for another method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct MethodId(pub(crate) usize);

/// `jclass`: a local reference.
pub(crate) type Class = *mut c_void;

pub(crate) const JNI_VERSION_1_6: c_int = 0x0001_0006;
pub(crate) const JVMTI_VERSION_1_2: c_int = 0x3001_0200;
pub(crate) const OK: c_int = 0;
pub(crate) const ERR: c_int = -1;

/// `JavaVM`.
#[repr(C)]
pub(crate) struct Vm {
    pub(crate) functions: *const VmFunctions,
}

/// `JNIInvokeInterface_`.
#[repr(C)]
pub(crate) struct VmFunctions {
    _reserved: [*const (); 5],
    pub(crate) detach_current_thread: unsafe extern "C" fn(*mut Vm) -> c_int,
    pub(crate) get_env: unsafe extern "C" fn(*mut Vm, *mut *mut c_void, c_int) -> c_int,
    pub(crate) attach_current_thread_as_daemon:
        unsafe extern "C" fn(*mut Vm, *mut *mut c_void, *mut c_void) -> c_int,
}

/// `JNIEnv`.
#[repr(C)]
pub(crate) struct Jni {
    pub(crate) functions: *const JniFunctions,
}

/// `JNINativeInterface_`, its beginning.
#[repr(C)]
pub(crate) struct JniFunctions {
    _before: [*const (); 23],
    pub(crate) delete_local_ref: unsafe extern "C" fn(*mut Jni, *mut c_void),
}

/// `jvmtiEnv`.
#[repr(C)]
pub(crate) struct Env {
    pub(crate) functions: *const Functions,
}

/// `jvmtiInterface_1_`. Functions are numbered from 1.
#[repr(C)]
pub(crate) struct Functions {
    _1: [*const (); 1],
    pub(crate) set_event_notification_mode: unsafe extern "C" fn(
        *mut Env,
        mode: c_int,
        event: c_int,
        thread: *mut c_void,
        ...
    ) -> Error,
    _3: [*const (); 44],
    pub(crate) deallocate: unsafe extern "C" fn(*mut Env, *mut u8) -> Error,
    pub(crate) get_class_signature:
        unsafe extern "C" fn(*mut Env, Class, *mut *mut c_char, *mut *mut c_char) -> Error,
    _49: [*const (); 1],
    pub(crate) get_source_file_name:
        unsafe extern "C" fn(*mut Env, Class, *mut *mut c_char) -> Error,
    _51: [*const (); 13],
    pub(crate) get_method_name: unsafe extern "C" fn(
        *mut Env,
        MethodId,
        *mut *mut c_char,
        *mut *mut c_char,
        *mut *mut c_char,
    ) -> Error,
    pub(crate) get_method_declaring_class:
        unsafe extern "C" fn(*mut Env, MethodId, *mut Class) -> Error,
    _66: [*const (); 4],
    pub(crate) get_line_number_table:
        unsafe extern "C" fn(*mut Env, MethodId, *mut c_int, *mut *mut LineNumber) -> Error,
    _71: [*const (); 51],
    pub(crate) set_event_callbacks:
        unsafe extern "C" fn(*mut Env, *const Callbacks, c_int) -> Error,
    pub(crate) generate_events: unsafe extern "C" fn(*mut Env, event: c_int) -> Error,
    _124: [*const (); 18],
    pub(crate) add_capabilities: unsafe extern "C" fn(*mut Env, *const Capabilities) -> Error,
}

/// `jvmtiCapabilities`: a bit set, beginning with the least significant bit.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Capabilities(pub(crate) [u32; 4]);

impl Capabilities {
    /// The bit numbers.
    pub(crate) const GET_SOURCE_FILE_NAME: u32 = 11;
    pub(crate) const GET_LINE_NUMBERS: u32 = 12;
    pub(crate) const GENERATE_COMPILED_METHOD_LOAD_EVENTS: u32 = 27;

    /// The set of these bits, all of which are in the first word.
    pub(crate) fn of(bits: &[u32]) -> Self {
        Self([bits.iter().fold(0, |word, bit| word | 1 << bit), 0, 0, 0])
    }
}

/// `jvmtiLineNumberEntry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LineNumber {
    /// Index of the bytecode.
    pub(crate) start: i64,
    pub(crate) line: c_int,
}

/// `jvmtiEventMode` and `jvmtiEvent`.
pub(crate) const ENABLE: c_int = 1;
pub(crate) const DISABLE: c_int = 0;
pub(crate) const EVENT_VM_DEATH: c_int = 51;
pub(crate) const EVENT_CLASS_PREPARE: c_int = 56;
pub(crate) const EVENT_COMPILED_METHOD_LOAD: c_int = 68;
pub(crate) const EVENT_COMPILED_METHOD_UNLOAD: c_int = 69;
pub(crate) const EVENT_DYNAMIC_CODE_GENERATED: c_int = 70;

/// `jvmtiEventCallbacks`, up to the last one that is used: the JVM gets its size. Events are numbered from 50.
#[repr(C)]
pub(crate) struct Callbacks {
    pub(crate) _50: [*const (); 1],
    pub(crate) vm_death: unsafe extern "C" fn(*mut Env, *mut Jni),
    pub(crate) _52: [*const (); 4],
    pub(crate) class_prepare:
        unsafe extern "C" fn(*mut Env, *mut Jni, thread: *mut c_void, class: Class),
    pub(crate) _57: [*const (); 11],
    pub(crate) compiled_method_load: unsafe extern "C" fn(
        *mut Env,
        MethodId,
        code_size: c_int,
        code: *const c_void,
        map_length: c_int,
        map: *const AddressLocation,
        compile_info: *const c_void,
    ),
    pub(crate) compiled_method_unload:
        unsafe extern "C" fn(*mut Env, MethodId, code: *const c_void),
    pub(crate) dynamic_code_generated:
        unsafe extern "C" fn(*mut Env, name: *const c_char, code: *const c_void, length: c_int),
}

/// `jvmtiAddrLocationMap`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AddressLocation {
    pub(crate) address: *const c_void,
    /// Index of the bytecode in the compiled method itself, whatever was inlined there.
    pub(crate) location: i64,
}

/// `jvmtiCompiledMethodLoadRecordHeader`.
#[repr(C)]
pub(crate) struct RecordHeader {
    pub(crate) kind: c_int,
    pub(crate) major: c_int,
    pub(crate) minor: c_int,
    pub(crate) next: *const RecordHeader,
}

/// The kind of a [`InlineRecord`].
pub(crate) const INLINE_INFO: c_int = 2;

/// `jvmtiCompiledMethodLoadInlineRecord`.
#[repr(C)]
pub(crate) struct InlineRecord {
    pub(crate) header: RecordHeader,
    pub(crate) count: c_int,
    pub(crate) places: *const PcStackInfo,
}

/// `PCStackInfo`.
#[repr(C)]
pub(crate) struct PcStackInfo {
    pub(crate) pc: *const c_void,
    pub(crate) count: c_int,
    /// Innermost first.
    pub(crate) methods: *const MethodId,
    pub(crate) bcis: *const c_int,
}

/// Needs a JDK, which the second tier of the tests has.
#[cfg(test)]
mod live {
    use std::mem::{offset_of, size_of};
    use std::process::Command;

    use super::*;

    /// The headers of a JDK; `scripts/setup.sh` installs them.
    fn headers() -> std::path::PathBuf {
        let jdks = std::fs::read_dir("/usr/lib/jvm").expect("no JDK: run scripts/setup.sh live");
        let mut includes = jdks.flatten().map(|jdk| jdk.path().join("include"));
        includes
            .find(|path| path.join("jvmti.h").exists())
            .expect("no jvmti.h: run scripts/setup.sh live")
    }

    #[test]
    fn all_is_where_the_headers_have_it() {
        let mut places: Vec<(&str, usize)> = Vec::new();
        macro_rules! place {
            ($($ours:ident.$field:ident = $theirs:literal),* $(,)?) => {
                $(places.push((concat!("offsetof(", $theirs, ")"), offset_of!($ours, $field)));)*
            };
        }
        place! {
            VmFunctions.detach_current_thread = "struct JNIInvokeInterface_, DetachCurrentThread",
            VmFunctions.get_env = "struct JNIInvokeInterface_, GetEnv",
            VmFunctions.attach_current_thread_as_daemon = "struct JNIInvokeInterface_, AttachCurrentThreadAsDaemon",
            JniFunctions.delete_local_ref = "struct JNINativeInterface_, DeleteLocalRef",
            Functions.set_event_notification_mode = "struct jvmtiInterface_1_, SetEventNotificationMode",
            Functions.deallocate = "struct jvmtiInterface_1_, Deallocate",
            Functions.get_class_signature = "struct jvmtiInterface_1_, GetClassSignature",
            Functions.get_source_file_name = "struct jvmtiInterface_1_, GetSourceFileName",
            Functions.get_method_name = "struct jvmtiInterface_1_, GetMethodName",
            Functions.get_method_declaring_class = "struct jvmtiInterface_1_, GetMethodDeclaringClass",
            Functions.get_line_number_table = "struct jvmtiInterface_1_, GetLineNumberTable",
            Functions.set_event_callbacks = "struct jvmtiInterface_1_, SetEventCallbacks",
            Functions.generate_events = "struct jvmtiInterface_1_, GenerateEvents",
            Functions.add_capabilities = "struct jvmtiInterface_1_, AddCapabilities",
            Callbacks.vm_death = "jvmtiEventCallbacks, VMDeath",
            Callbacks.class_prepare = "jvmtiEventCallbacks, ClassPrepare",
            Callbacks.compiled_method_load = "jvmtiEventCallbacks, CompiledMethodLoad",
            Callbacks.compiled_method_unload = "jvmtiEventCallbacks, CompiledMethodUnload",
            Callbacks.dynamic_code_generated = "jvmtiEventCallbacks, DynamicCodeGenerated",
            LineNumber.line = "jvmtiLineNumberEntry, line_number",
            AddressLocation.location = "jvmtiAddrLocationMap, location",
            RecordHeader.next = "jvmtiCompiledMethodLoadRecordHeader, next",
            InlineRecord.count = "jvmtiCompiledMethodLoadInlineRecord, numpcs",
            InlineRecord.places = "jvmtiCompiledMethodLoadInlineRecord, pcinfo",
            PcStackInfo.count = "PCStackInfo, numstackframes",
            PcStackInfo.methods = "PCStackInfo, methods",
            PcStackInfo.bcis = "PCStackInfo, bcis",
        }
        places.push(("sizeof(jvmtiCapabilities)", size_of::<Capabilities>()));
        places.push(("sizeof(jvmtiLineNumberEntry)", size_of::<LineNumber>()));
        places.push(("sizeof(jvmtiAddrLocationMap)", size_of::<AddressLocation>()));
        places.push(("sizeof(PCStackInfo)", size_of::<PcStackInfo>()));
        for (constant, value) in [
            ("JNI_VERSION_1_6", JNI_VERSION_1_6),
            ("JVMTI_VERSION_1_2", JVMTI_VERSION_1_2),
            ("JVMTI_ENABLE", ENABLE),
            ("JVMTI_DISABLE", DISABLE),
            ("JVMTI_EVENT_VM_DEATH", EVENT_VM_DEATH),
            ("JVMTI_EVENT_CLASS_PREPARE", EVENT_CLASS_PREPARE),
            ("JVMTI_EVENT_COMPILED_METHOD_LOAD", EVENT_COMPILED_METHOD_LOAD),
            ("JVMTI_EVENT_COMPILED_METHOD_UNLOAD", EVENT_COMPILED_METHOD_UNLOAD),
            ("JVMTI_EVENT_DYNAMIC_CODE_GENERATED", EVENT_DYNAMIC_CODE_GENERATED),
            ("JVMTI_CMLR_INLINE_INFO", INLINE_INFO),
        ] {
            places.push((constant, value as usize));
        }
        let mut source =
            String::from("#include <stddef.h>\n#include <jvmti.h>\n#include <jvmticmlr.h>\n");
        for (what, value) in &places {
            source.push_str(&format!("_Static_assert({what} == {value}, \"{what}\");\n"));
        }
        // A bit field has no address.
        source
            .push_str("#include <stdio.h>\n#include <string.h>\nint main(void) { unsigned word;\n");
        for field in
            ["get_source_file_name", "get_line_numbers", "generate_compiled_method_load_events"]
        {
            source.push_str(&format!(
                "{{ jvmtiCapabilities some = {{ .can_{field} = 1 }}; memcpy(&word, &some, 4); \
                 printf(\"%d \", __builtin_ctz(word)); }}\n"
            ));
        }
        source.push_str("}\n");
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (file, program) = (dir.path().join("places.c"), dir.path().join("places"));
        std::fs::write(&file, source).expect("written");
        let include = headers();
        let mut cc = Command::new("cc");
        cc.arg("-I").arg(&include).arg("-I").arg(include.join("linux")).arg(&file);
        let done = cc.arg("-o").arg(&program).output().expect("cc: run scripts/setup.sh test");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let bits = Command::new(program).output().expect("it runs").stdout;
        let ours = [
            Capabilities::GET_SOURCE_FILE_NAME,
            Capabilities::GET_LINE_NUMBERS,
            Capabilities::GENERATE_COMPILED_METHOD_LOAD_EVENTS,
        ];
        assert_eq!(
            String::from_utf8_lossy(&bits).split_whitespace().collect::<Vec<_>>(),
            ours.map(|bit| bit.to_string())
        );
    }
}
