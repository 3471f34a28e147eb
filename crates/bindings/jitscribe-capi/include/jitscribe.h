/*
 * jitscribe makes JIT-compiled code visible to perf, gdb, lldb, Valgrind and unwinders.
 *
 *     const jitscribe_scribe *scribe = jitscribe_global();
 *
 *     const jitscribe_str file = JITSCRIBE_STR("fib.lang");
 *     const jitscribe_line lines[] = {{.offset = 0, .line = 3}, {.offset = 17, .line = 4}};
 *     const jitscribe_code code = {
 *         .struct_size = sizeof code,
 *         .bytes = memory, .size = size,
 *         .name = JITSCRIBE_STR("fib"),
 *         .files = &file, .file_count = 1,
 *         .lines = lines, .line_count = 2,
 *         .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER},
 *     };
 *     jitscribe_handle handle;
 *     jitscribe_load(scribe, &code, &handle);
 *     ... the code runs, until it is freed:
 *     jitscribe_unload(scribe, handle);
 *
 * Results. A function that can fail returns a jitscribe_result. If the result is not JITSCRIBE_RESULT_OK, nothing was done,
 * and out-parameters have the value that stands for nothing: 0, NULL, or -1 for a descriptor. Except for those of
 * jitscribe_write_object, all failures are mistakes in the call; a runtime may ignore them. A missing resource (no memory, a
 * full log) is not a failure: the feature is off, and the notice callback reports it once.
 *
 * Ownership. A scribe and an arena live as long as the process. Nothing needs to be closed or freed, except allocations of an
 * arena. A handle is a number. Arguments belong to the caller, are read during the call, and are not kept (except callbacks
 * and their data).
 *
 * Threads. Any thread may call any function at any time, but only one thread at a time may use a handle. Do not call these
 * functions from signal handlers, except those that say so. After a fork, the child may go on as it is: it gets its own log,
 * with the code that was alive.
 *
 * Callbacks. `replay` announces code: it is called with no lock held. `notice` only stores what it gets: locks may be held, so
 * it must not call the library. See jitscribe_replay_fn and jitscribe_notice_fn.
 *
 * Units. Sizes, byte counts and offsets in code are in bytes. Lines and columns count from 1, and are 0 if unknown.
 *
 * Pointers. Pointers are checked for NULL and for misalignment, and counts for being larger than memory. Whether memory is
 * readable up to its count cannot be checked: the caller must guarantee it. Numbers of a later version (flags, kinds) are
 * accepted: unknown ones are ignored, or mean "other".
 *
 * What few runtimes need is in jitscribe/arena.h (memory for code that is an object file), jitscribe/crash.h (crash handlers
 * and crash reporters) and jitscribe/objects.h (all code as one object file). C++: see jitscribe.hpp.
 *
 * This file is generated from the library's source by cbindgen. Do not edit it.
 */


#ifndef JITSCRIBE_H
#define JITSCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header; jitscribe_version() returns that of the library. */
#define JITSCRIBE_VERSION "0.1.0"

/* As the size of a jitscribe_str: the string ends before its first NUL. */
#define JITSCRIBE_NUL_TERMINATED SIZE_MAX

/* A string literal as a jitscribe_str; for data that is initialised before the program starts, as its initialiser. */
#ifdef __cplusplus
#define JITSCRIBE_STR(literal) (jitscribe_str{(literal), sizeof(literal) - 1})
#else
#define JITSCRIBE_STR(literal) ((struct jitscribe_str){(literal), sizeof(literal) - 1})
#endif
#define JITSCRIBE_STR_INIT(literal) {(literal), sizeof(literal) - 1}

/* The parent of a call that was inlined into the code itself, not into an inlined callee. */
#define JITSCRIBE_NO_PARENT UINT32_MAX


// The result of a call. Whatever the result is, the program can go on: nothing wrong was announced, and out-parameters have
// the value that stands for nothing unless the result is JITSCRIBE_RESULT_OK.
//
// A log that is off, full or could not be created is not an error: the call succeeds, and the notice callback reports it
// once.
enum jitscribe_result
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Success. Also returned if the announcement was left out because the log is off or full.
    JITSCRIBE_RESULT_OK = 0,
    // A required pointer is NULL.
    JITSCRIBE_RESULT_ERROR_NULL = 1,
    // `struct_size` is not the size of any version of the struct. Set it to `sizeof` the struct.
    JITSCRIBE_RESULT_ERROR_STRUCT_SIZE = 2,
    // An argument is invalid: a count larger than memory, a file index out of range, or a pointer that is not aligned
    // for its type.
    JITSCRIBE_RESULT_ERROR_ARGUMENT = 3,
    // A bug in the library was caught. Please report it.
    JITSCRIBE_RESULT_ERROR_INTERNAL = 4,
    // The handle refers to no live code: it was used after jitscribe_unload, or it is the old number from before
    // jitscribe_moved. Nothing was done. In the child of a fork, also the handle of a code for which the child's log had
    // no space.
    JITSCRIBE_RESULT_ERROR_HANDLE = 5,
    // jitscribe_write_object only: no code is alive, or the log is off. No file was created.
    JITSCRIBE_RESULT_ERROR_NO_CODE = 6,
    // jitscribe_write_object only: the file already exists, or cannot be written. No new file was left behind.
    JITSCRIBE_RESULT_ERROR_FILE = 7,
    // jitscribe_write_object only: the code does not fit into the format, because codes are 2 GiB or more apart, or the
    // format has no number for the machine. No file was left behind.
    JITSCRIBE_RESULT_ERROR_FORMAT = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_result jitscribe_result;
#else
typedef int32_t jitscribe_result;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a code is to its runtime.
enum jitscribe_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // A function of the program that runs.
    JITSCRIBE_KIND_FUNCTION = 0,
    // A piece of code shared by many functions: an inline cache, a call into the runtime.
    JITSCRIBE_KIND_STUB = 1,
    // Code that passes control between two calling conventions.
    JITSCRIBE_KIND_TRAMPOLINE = 2,
    // The code that an interpreter runs for one of its instructions.
    JITSCRIBE_KIND_BYTECODE_HANDLER = 3,
    // Code around a function: the entry from outside, an adapter of arguments.
    JITSCRIBE_KIND_WRAPPER = 4,
    // A compiled regular expression.
    JITSCRIBE_KIND_REGULAR_EXPRESSION = 5,
    // Anything else, including every number that is not in this list.
    JITSCRIBE_KIND_OTHER = 255,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_kind jitscribe_kind;
#else
typedef uint32_t jitscribe_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What is set or not. The library ignores bits that it does not know. The environment has the same as words of JITSCRIBE:
// gdb-on-crash is JITSCRIBE_FLAG_GDB_ON_CRASH.
enum jitscribe_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing is written until `jitscribe ctl -p PID on` requests it. Then `replay` is called.
    JITSCRIBE_FLAG_OFF = 1,
    // The log also contains the code's bytes, so tools show the assembly of code that is long gone. This costs the time to copy
    // the bytes, and the space for them.
    JITSCRIBE_FLAG_BYTES = 2,
    // Each mistake in the description of a code is reported (JITSCRIBE_SUBJECT_DESCRIPTION), not only the first of its kind.
    JITSCRIBE_FLAG_STRICT = 4,
    // Timestamps are counts of the processor's own clock (x86-64's rdtsc) instead of nanoseconds of CLOCK_MONOTONIC: for
    // recordings that are not made with `perf record -k mono`. A notice reports if there is no such clock.
    JITSCRIBE_FLAG_ARCH_CLOCK = 8,
    // A thread applies requests of `jitscribe ctl` at once. Without it, the next announcement or poll applies them. Once a second,
    // the thread also checks whether a debugger is attached, if `gdb` is JITSCRIBE_MODE_AUTO.
    JITSCRIBE_FLAG_CONTROL_THREAD = 16,
    // jitscribe_load returns only when a debugger to which code is shown has been shown the code. Without this flag, in a fast
    // burst, some are shown up to 200 ms later.
    JITSCRIBE_FLAG_GDB_SYNCHRONOUS = 32,
    // Before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process, all code that is alive is shown to
    // debuggers, so that any debugger finds it in the core file. A thread waits for that. jitscribe_open installs signal
    // handlers. A previously installed handler runs first, and the code is shown if that handler sets the signal to SIG_DFL and
    // returns.
    JITSCRIBE_FLAG_GDB_ON_CRASH = 64,
    // Settings from the environment override these: JITSCRIBE is a comma-separated list as `words`, JITSCRIBE_DIR is `dir`,
    // JITSCRIBE_LIMIT is `limit` in bytes, or with K, M, G, and OTEL_SERVICE_NAME is `service_name`. A program that runs set-user-ID
    // ignores these variables.
    JITSCRIBE_FLAG_ENVIRONMENT = 128,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_flag jitscribe_flag;
#else
typedef uint32_t jitscribe_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// When a publisher shows code to its tool. The environment has the same as JITSCRIBE=perf-map=auto, perf-map=on (or perf-map alone)
// and perf-map=off. A number that the library does not know means JITSCRIBE_MODE_AUTO.
enum jitscribe_mode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // When the tool is there, or is requested: see the publisher's field.
    JITSCRIBE_MODE_AUTO = 0,
    // From the beginning. A notice reports if the library has no such publisher.
    JITSCRIBE_MODE_ON = 1,
    // Never: requests of other processes are refused, too.
    JITSCRIBE_MODE_OFF = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_mode jitscribe_mode;
#else
typedef uint32_t jitscribe_mode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a notice is about. Later versions may add more.
enum jitscribe_subject
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // None of the others.
    JITSCRIBE_SUBJECT_OTHER = 0,
    // The code log: there is none, or it is in another kind of memory than requested.
    JITSCRIBE_SUBJECT_LOG = 1,
    // The code log is full: from now on codes are left out, until others are unloaded.
    JITSCRIBE_SUBJECT_FULL = 2,
    // The child of a fork has no log.
    JITSCRIBE_SUBJECT_FORK = 3,
    // The perf map.
    JITSCRIBE_SUBJECT_PERF_MAP = 4,
    // A setting in the environment that is not valid.
    JITSCRIBE_SUBJECT_SETTING = 5,
    // The debug info that is passed to Valgrind.
    JITSCRIBE_SUBJECT_VALGRIND = 6,
    // An arena for code.
    JITSCRIBE_SUBJECT_ARENA = 7,
    // Registration with the unwinders in the process.
    JITSCRIBE_SUBJECT_UNWINDERS = 8,
    // The code that is shown to debuggers.
    JITSCRIBE_SUBJECT_DEBUGGERS = 9,
    // OpenTelemetry's process context.
    JITSCRIBE_SUBJECT_PROCESS_CONTEXT = 10,
    // The code that is reported to VTune.
    JITSCRIBE_SUBJECT_VTUNE = 11,
    // The code that is reported to Windows' profilers.
    JITSCRIBE_SUBJECT_ETW = 12,
    // A part of a code's description that cannot be true, and is not used: unwind info, lines behind the end, or files that are
    // not in the list.
    JITSCRIBE_SUBJECT_DESCRIPTION = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_subject jitscribe_subject;
#else
typedef uint32_t jitscribe_subject;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The form of the unwind info.
enum jitscribe_unwind_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // None. Profilers that walk frame pointers may still get through. Every number that is not in this list means
    // this.
    JITSCRIBE_UNWIND_KIND_NONE = 0,
    // The usual prologue at `prologue`, and a frame pointer from there to the end. x86-64: `push rbp; mov rbp, rsp`.
    // aarch64: `stp x29, x30, [sp, -16]!; mov x29, sp`. Correct at each instruction except in the epilogue. If the code
    // changes other registers that a call must preserve (x86-64: rbx and r12 to r15), say with `rows` where it saves them.
    // Without `rows`, unwinders in the process find what is saved directly behind the prologue, and take the rest to be
    // unchanged; debuggers do not show these registers for its callers.
    JITSCRIBE_UNWIND_KIND_FRAME_POINTER = 1,
    // A frame pointer that is valid at each instruction: for code that runs in a frame which other code has set up.
    JITSCRIBE_UNWIND_KIND_FRAME_POINTER_ALWAYS = 2,
    // `rows`, which are correct at each instruction.
    JITSCRIBE_UNWIND_KIND_ROWS = 3,
    // `eh_frame`.
    JITSCRIBE_UNWIND_KIND_EH_FRAME = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_unwind_kind jitscribe_unwind_kind;
#else
typedef uint32_t jitscribe_unwind_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Bits of jitscribe_unwind.flags.
enum jitscribe_unwind_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // aarch64, frame pointers: the saved return address is signed, with `paciasp`.
    JITSCRIBE_UNWIND_FLAG_SIGNED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_unwind_flag jitscribe_unwind_flag;
#else
typedef uint32_t jitscribe_unwind_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Bits of jitscribe_row.flags.
enum jitscribe_row_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint16_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // aarch64: the return address is signed, with the CFA as modifier (`paciasp`).
    JITSCRIBE_ROW_FLAG_SIGNED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_row_flag jitscribe_row_flag;
#else
typedef uint16_t jitscribe_row_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Receives announcements of code. It lives as long as the process, is never freed, and may be used from any thread.
typedef struct jitscribe_scribe jitscribe_scribe;

// A string that is read only during the call it is passed to. It should be UTF-8. Other bytes are kept in names and
// paths, and replaced in names of tiers: no text can make an announcement fail. All zeros is the empty string.
typedef struct jitscribe_str {
    // Its first byte. NULL: the empty string.
    const char *data;
    // Its size in bytes, or JITSCRIBE_NUL_TERMINATED: it ends before its first NUL.
    size_t size;
} jitscribe_str;

// Announces all code that is alive with jitscribe_load, each with a new handle. It is called when the log is turned on from
// outside, on whichever thread announces, polls or waits for requests at that time, with no lock held.
//
// It must return: no exception, no longjmp.
typedef void (*jitscribe_replay_fn)(void *data, const struct jitscribe_scribe *scribe);

// Receives a notice: a feature is not available, and is off from now on. The program is not affected. Each notice is reported
// once, on the thread that met the problem. `subject` is a jitscribe_subject. `text` is one line of English that ends with a
// NUL, and is invalid after the function returns.
//
// The thread may hold locks of the library: the function must not call it, nor wait for another thread. If code is announced in
// a signal handler, this function may be called there, and must then be async-signal-safe.
//
// It must return: no exception, no longjmp.
typedef void (*jitscribe_notice_fn)(void *data, uint32_t subject, const char *text);

// Settings of a scribe. Set struct_size, set everything else to zero, and then set what you need.
//
// Later versions have more fields at the end. A library that does not know them ignores them, and a newer library takes fields
// that an older program does not have as zero.
typedef struct jitscribe_settings {
    // sizeof(jitscribe_settings)
    size_t struct_size;
    // Bits of jitscribe_flag. 0: a log in memory, without the code's bytes.
    uint32_t flags;
    // A jitscribe_mode. The perf map /tmp/perf-PID.map is kept up to date. AUTO: when `jitscribe ctl` requests it.
    uint32_t perf_map;
    // A jitscribe_mode. The log is a file, jit-PID.dump in `dir`, as `perf inject --jit` and samply expect it. AUTO: as OFF, the log
    // is in memory.
    uint32_t jitdump;
    // A jitscribe_mode. Code is shown to gdb, lldb and other users of GDB's JIT interface. AUTO: if a debugger is attached at the
    // beginning, if the control thread finds one later, or when `jitscribe ctl` requests it.
    uint32_t gdb;
    // A jitscribe_mode. Code is registered with the unwinders in the process before its announcement returns, and until it is
    // unloaded: exceptions pass through it, and backtraces do not end at it. It must be announced with its unwind info. Code that
    // the log does not accept (because it is full, or off) is not registered. Code in an arena needs no registration. AUTO: as OFF.
    uint32_t unwinders;
    // A jitscribe_mode. Code is shown to the Valgrind that runs the process, by object files in `dir`. AUTO: under Valgrind.
    uint32_t valgrind;
    // A jitscribe_mode. Code is reported to VTune, or another tool that sets INTEL_JIT_PROFILER64 to the path of its collector, which
    // is loaded into the process. AUTO: where the variable is set. A program that runs set-user-ID never loads it.
    uint32_t vtune;
    // A jitscribe_mode. OpenTelemetry's process context (OTEP 4719) says to profilers and other readers outside where the log is. A
    // process has one context at most: if another part of it, such as an SDK, publishes one, ours is not published, or withdrawn.
    // Such a program adds what jitscribe_code_context returns to its own context. AUTO: as OFF.
    uint32_t process_context;
    // Maximum size of the log in bytes. 0: 64 MiB, or 4 GiB if it is a file.
    uint64_t limit;
    // The directory for the dump, the object files for Valgrind, and the files of arenas: only this user may be able to write to
    // it, and for arenas its file system must allow files to be executed. Empty: the directory `jitscribe` in XDG_RUNTIME_DIR, or in
    // ~/.cache.
    struct jitscribe_str dir;
    // The directory of the perf map. Empty: /tmp, the only one in which perf looks.
    struct jitscribe_str perf_map_dir;
    // The name of the module in which VTune shows the code. Empty: `jit`.
    struct jitscribe_str vtune_module;
    // The `service.name` of the process context, without which readers know no service.
    struct jitscribe_str service_name;
    // Settings as words of the environment's JITSCRIBE, for a runtime that has an option for them: a comma-separated list of the
    // flags, and of publishers with their mode, such as "bytes,gdb=off". They override the fields.
    struct jitscribe_str words;
    // NULL: nothing is announced again when the log is turned on from outside.
    jitscribe_replay_fn replay;
    // Passed to `replay`. It must live as long as the process, and be usable from any thread.
    void *replay_data;
    // NULL: notices are discarded.
    jitscribe_notice_fn notice;
    // Like `replay_data`.
    void *notice_data;
} jitscribe_settings;

// A source position. It applies from `offset` to the next line's offset, or to the end of the code.
typedef struct jitscribe_line {
    // In bytes from the code's first byte. Lines must ascend.
    uint32_t offset;
    // From 1; 0 for code that has no source line.
    uint32_t line;
    // From 1; 0 if unknown.
    uint32_t column;
    // Index into the code's `files`; 0 if there is only one file.
    uint32_t file;
} jitscribe_line;

// Part of a code, in bytes from the code's first byte.
typedef struct jitscribe_range {
    // Offset of its first byte.
    uint32_t start;
    // Offset behind its last byte.
    uint32_t end;
} jitscribe_range;

// A call whose callee was inlined: compiled into the code in place of the call.
typedef struct jitscribe_inlined {
    // Name of the callee.
    struct jitscribe_str name;
    // The call into whose callee this one was inlined: an index into the same array, less than this call's own
    // index. JITSCRIBE_NO_PARENT: it was inlined into the code itself.
    uint32_t parent;
    // File of the call: an index into the code's `files`. The lines of the callee itself are in the code's line
    // table.
    uint32_t file;
    // Line of the call, from 1; 0 if unknown.
    uint32_t line;
    // Column of the call, from 1; 0 if unknown.
    uint32_t column;
    // The parts of the code that belong to the callee.
    const struct jitscribe_range *ranges;
    // Number of `ranges`.
    size_t range_count;
} jitscribe_inlined;

// Where the caller's value of a register is saved.
typedef struct jitscribe_saved {
    // Offset from the CFA in bytes: a multiple of 8, usually negative.
    int32_t offset;
    // The register's DWARF number.
    uint16_t reg;
    // Reserved: set to 0.
    uint16_t reserved;
} jitscribe_saved;

// The state of the frame from `offset` to the next row's offset.
//
// The CFA is DWARF's canonical frame address: the value of the stack pointer before the call (on x86-64, before the
// call pushed its return address). Registers have the DWARF numbers that the machine's ABI defines: x86-64 rbx 3,
// rbp 6, rsp 7, r12 to r15 12 to 15; aarch64 x0 to x30 0 to 30, sp 31.
typedef struct jitscribe_row {
    // Offset in the code of the first instruction for which the row is valid. The row after an instruction that
    // changes the frame begins at the next instruction.
    uint32_t offset;
    // Number of bytes to add to `cfa_register` to get the CFA.
    int32_t cfa_offset;
    // The register from which the CFA is computed.
    uint16_t cfa_register;
    // Bits of jitscribe_row_flag.
    uint16_t flags;
    // Number of `saved`.
    uint32_t saved_count;
    // The registers whose values for the caller are in memory, in any order. The return address may be left out if
    // it is where the call put it.
    const struct jitscribe_saved *saved;
} jitscribe_row;

// How to find the caller's frame from within a code. All zeros: no unwind info.
typedef struct jitscribe_unwind {
    // A jitscribe_unwind_kind.
    uint32_t kind;
    // FRAME_POINTER: offset of the prologue's first instruction in the code: 0, or 4 behind an `endbr64`, `bti` or
    // `paciasp`.
    uint32_t prologue;
    // Bits of jitscribe_unwind_flag.
    uint32_t flags;
    // Reserved: set to 0.
    uint32_t reserved;
    // FRAME_POINTER: NULL, or one row: from its `offset` on, which is behind the prologue, the registers in its `saved` are
    // saved, too. Its other fields are not used.
    //
    // ROWS: ascending by offset. Before the first row, the frame is as the call left it (x86-64: CFA = rsp + 8;
    // aarch64: CFA = sp), so an empty table describes a leaf function without a frame.
    const struct jitscribe_row *rows;
    // Number of `rows`.
    size_t row_count;
    // EH_FRAME: the content of an .eh_frame section with one CIE and one FDE for the whole code. Pointers in it are
    // relative to the end of the code, rounded up to a multiple of 8.
    const uint8_t *eh_frame;
    // Its size in bytes.
    size_t eh_frame_size;
} jitscribe_unwind;

// One contiguous piece of machine code, and what is known about it. Set struct_size and the place (`address` or
// `bytes`, and `size`), set everything else to zero, and then set what you know.
//
// Everything that it points to is read during the call only, belongs to the caller, and must not be written to
// during the call. A pointer with a count of 0 is not dereferenced.
//
// Later versions have more fields at the end. A library that does not know them ignores them, and a newer library
// takes fields that an older program does not have as zero. The structs that it points to never change.
typedef struct jitscribe_code {
    // sizeof(jitscribe_code)
    size_t struct_size;
    // Where the code runs, in this process. 0: at `bytes`.
    uint64_t address;
    // Its size in bytes.
    uint64_t size;
    // Its `size` bytes, readable. NULL: the code is announced without bytes, and tools read them from the process
    // while it lives.
    const void *bytes;
    // Its name, as tools should show it. Control characters are replaced by spaces.
    struct jitscribe_str name;
    // Name of the compiler's tier: "baseline", "optimised". May be empty.
    struct jitscribe_str tier;
    // A jitscribe_kind.
    uint32_t kind;
    // Reserved: set to 0.
    uint32_t flags;
    // Paths of the source files, as a debugger should open them. Lines and inlined calls refer to them by index.
    const struct jitscribe_str *files;
    // Number of `files`. If it is 0, the index 0 means no file.
    size_t file_count;
    // The source lines.
    const struct jitscribe_line *lines;
    // Number of `lines`.
    size_t line_count;
    // A second line table: lines of the bytecode or intermediate representation from which the code was compiled, in
    // a listing that the runtime wrote.
    const struct jitscribe_line *ir_lines;
    // Number of `ir_lines`.
    size_t ir_line_count;
    // The inlined calls.
    const struct jitscribe_inlined *inlined;
    // Number of `inlined`.
    size_t inlined_count;
    // How to unwind through it.
    struct jitscribe_unwind unwind;
    // An object file that the runtime made of the code, with DWARF that has more than can be said here: arguments, variables,
    // types. Its sections have the addresses at which the code runs. Debuggers get a copy in place of what is announced, if code
    // is shown to them during the call; a debugger that comes later gets what is announced. NULL: none.
    const void *symfile;
    // Its size in bytes.
    size_t symfile_size;
} jitscribe_code;

// The handle of an announced code, for announcing its move or unload. It is a plain number, to be kept with what the
// runtime knows about the code. Dropping it costs nothing: the code then counts as alive. 0 if nothing was written; 0 may
// be passed like any other handle.
//
// Only one thread at a time may use a handle.
typedef uint64_t jitscribe_handle;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a scribe with the given settings.
//
// A feature that is not available is turned off, and the notice callback reports it once. This is not an error.
//
// @param settings  NULL: a log in memory. Read during the call only.
// @param scribe    out: the scribe, which lives as long as the process.
jitscribe_result jitscribe_open(const struct jitscribe_settings *settings,
                                const struct jitscribe_scribe **scribe);

// The scribe that is configured by the environment; see JITSCRIBE_FLAG_ENVIRONMENT. Without any such setting, it writes a
// log in memory. The first call creates it; later calls in the process return the same pointer.
//
// @return the scribe, which lives as long as the process. Never NULL.
const struct jitscribe_scribe *jitscribe_global(void);

// Whether announcements are written. If not, a runtime can skip preparing them. The call costs a nanosecond or two.
//
// @return false for NULL, too.
bool jitscribe_is_on(const struct jitscribe_scribe *scribe);

// Announces a code load: new code, or code that replaces what was at its address. Call it before the code runs.
//
// In the common case it makes no system call and waits for no other thread. Tables of up to 32 lines, 4 files and 8
// inlined calls are passed on without an allocation.
//
// @param scribe  from jitscribe_open or jitscribe_global.
// @param code    read during the call only.
// @param handle  out: the handle for announcing a move or an unload of the code; 0 if nothing was written. NULL: the code
//                lives as long as the process.
jitscribe_result jitscribe_load(const struct jitscribe_scribe *scribe,
                                const struct jitscribe_code *code,
                                jitscribe_handle *handle);

// Announces that code has moved to `bytes`; everything else about it is unchanged. Call it before the code runs there.
//
// @param handle  in and out: the code's handle. The call changes its value.
// @param bytes   where the code runs now; its bytes are read during the call.
// @param size    its size in bytes, the same as before.
jitscribe_result jitscribe_moved(const struct jitscribe_scribe *scribe,
                                 jitscribe_handle *handle,
                                 const void *bytes,
                                 size_t size);

// jitscribe_moved for code that was announced without bytes, or whose bytes are not where it runs.
//
// @param handle   in and out: the code's handle. The call changes its value.
// @param address  where the code runs now.
jitscribe_result jitscribe_moved_to_address(const struct jitscribe_scribe *scribe,
                                            jitscribe_handle *handle,
                                            uint64_t address);

// Announces a code unload. Call it before the code's memory is used for something else.
//
// @param handle  the code's handle, which is invalid afterwards: using it again gives JITSCRIBE_RESULT_ERROR_HANDLE. 0 does
//                nothing.
jitscribe_result jitscribe_unload(const struct jitscribe_scribe *scribe,
                                  jitscribe_handle handle);

// Applies a pending request of `jitscribe ctl`, if there is one. Announcements do so too; a runtime that announces
// nothing for a long time may call this now and then. Without a pending request it costs a nanosecond or two.
jitscribe_result jitscribe_poll(const struct jitscribe_scribe *scribe);

// The file descriptor of the log, which is a file in memory or the dump. It belongs to the library: do not close it.
//
// @param fd  out: the descriptor. -1 if there is none, or if the process has closed it, as the number may be another file's.
jitscribe_result jitscribe_log_fd(const struct jitscribe_scribe *scribe,
                                  int *fd);

// The path of the dump that is being written, if the log is a file.
//
// @param buffer  the buffer for the path and a NUL; not written to if they do not fit. NULL if `size` is 0.
// @param size    the size of the buffer in bytes, including the NUL.
// @param length  out: the length of the path in bytes, without the NUL; 0 if there is no dump.
jitscribe_result jitscribe_dump_path(const struct jitscribe_scribe *scribe,
                                     char *buffer,
                                     size_t size,
                                     size_t *length);

// Where the code logs of this process are, for a program that publishes OpenTelemetry's process context (OTEP 4719) itself: entries
// of the field `attributes` of the protobuf message ProcessContext. Append them to the encoded message, and update the context
// when another scribe was made, and in the child of a fork when it has announced a code.
//
// @param buffer  the buffer for the entries; not written to if they do not fit. NULL if `size` is 0.
// @param size    the size of the buffer in bytes. 1024 are always enough.
// @param length  out: the length of the entries in bytes; 0 if there is no log.
jitscribe_result jitscribe_code_context(void *buffer,
                                        size_t size,
                                        size_t *length);

// The version of the library that is loaded: "0.1.0".
const char *jitscribe_version(void);

// The name of a result, as in this header. It need not be freed.
//
// @param result  any number.
const char *jitscribe_result_name(int32_t result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JITSCRIBE_H */
