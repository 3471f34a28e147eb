/*
 * jitscribe: a JIT says once what code it made, and every tool (perf, gdb, valgrind...) knows it.
 *
 *     const jitscribe_scribe *scribe;
 *     jitscribe_open_from_env(&scribe);
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
 * Results. A function that can fail returns a jitscribe_result. If it is not JITSCRIBE_RESULT_OK, nothing was done and
 * no out-parameter was written. All failures are mistakes in the call, but for
 * those of jitscribe_write_object; a runtime may ignore them. What cannot be had (no memory, a full log) is no failure: it is
 * off, and said once by the notice callback.
 *
 * Ownership. A scribe and an arena live as long as the process; there is nothing to close or to free, but for rooms of an
 * arena. A handle is a number.
 * What is passed in belongs to the caller, is read during the call, and not kept (but for callbacks
 * and their data).
 *
 * Threads. All functions may be called from any thread at any time, but a handle only by one thread at a time. No lock is
 * held while a callback runs. Not from signal handlers. After a fork the child may go on as it
 * is: it gets a log of its own, with what was alive.
 *
 * Units. Sizes, counts of bytes and offsets in code are in bytes; lines and columns count from 1, and are 0 if unknown.
 *
 * Pointers. NULL is looked for everywhere, and so is what is misaligned or larger than memory. That memory is readable as far
 * as its count says cannot be looked for: it is what the caller promises. Numbers of a later version
 * (flags, kinds) are not refused: they mean nothing, or "other".
 *
 * C++: see jitscribe.hpp.
 *
 * This file is made from the library's source by cbindgen. Do not edit it.
 */


#ifndef JITSCRIBE_H
#define JITSCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header; jitscribe_version() tells that of the library. */
#define JITSCRIBE_VERSION "0.1.0"

/* The size of a jitscribe_str that ends before its first NUL. */
#define JITSCRIBE_NUL_TERMINATED SIZE_MAX

/* A string literal as an initialiser of a jitscribe_str. */
#define JITSCRIBE_STR(literal) {(literal), sizeof(literal) - 1}

/* The parent of a call that was inlined into the code itself. */
#define JITSCRIBE_NO_PARENT UINT32_MAX


// What became of a call. Whatever it is, the program can go on: nothing was announced that is
// wrong, and no out-parameter was written unless it is JITSCRIBE_RESULT_OK.
//
// That a log is off, full or could not be had is no error: the call succeeds, and the notice callback
// hears of it once.
enum jitscribe_result
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Done, or left out since the log is off or full.
    JITSCRIBE_RESULT_OK = 0,
    // A pointer that must point to something is NULL.
    JITSCRIBE_RESULT_ERROR_NULL = 1,
    // `struct_size` is not the size of any version of the struct. Set it to `sizeof` the struct.
    JITSCRIBE_RESULT_ERROR_STRUCT_SIZE = 2,
    // A number makes no sense: a count larger than memory, the index of a file, a pointer that is
    // not aligned for its type.
    JITSCRIBE_RESULT_ERROR_ARGUMENT = 3,
    // A fault of the library was caught. Please report it.
    JITSCRIBE_RESULT_ERROR_INTERNAL = 4,
    // The handle is of no code that is alive: it was used after jitscribe_unload, or it is the number that it was before
    // jitscribe_moved. Nothing was done. In a fork's child it is also that of a code for which its log had no room.
    JITSCRIBE_RESULT_ERROR_HANDLE = 5,
    // Of jitscribe_write_object: no code is alive, or the log is off. No file was made.
    JITSCRIBE_RESULT_ERROR_NO_CODE = 6,
    // Of jitscribe_write_object: the file is there already, or cannot be written. None was left that was not there.
    JITSCRIBE_RESULT_ERROR_FILE = 7,
    // Of jitscribe_write_object: the code does not fit into the format, as codes lie 2 GiB apart or more, or the format
    // has no number for the machine. No file was left.
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
    // A piece shared by many functions: an inline cache, a call into the runtime.
    JITSCRIBE_KIND_STUB = 1,
    // Code that passes control on between two calling conventions.
    JITSCRIBE_KIND_TRAMPOLINE = 2,
    // What an interpreter runs for one of its instructions.
    JITSCRIBE_KIND_BYTECODE_HANDLER = 3,
    // Code around a function: the entry from outside, an adapter of arguments.
    JITSCRIBE_KIND_WRAPPER = 4,
    // A compiled regular expression.
    JITSCRIBE_KIND_REGULAR_EXPRESSION = 5,
    // Anything else; so is every number that is not in this list.
    JITSCRIBE_KIND_OTHER = 255,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_kind jitscribe_kind;
#else
typedef uint32_t jitscribe_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a scribe does. Bits that a library does not know are ignored.
enum jitscribe_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing is written until someone asks for it by `jitscribe ctl -p PID on`. Then `replay` is
    // called.
    JITSCRIBE_FLAG_OFF = 1,
    // The log gets the code's bytes too: tools show the assembly of code that is long gone. It costs
    // what copying them costs, and the room they take.
    JITSCRIBE_FLAG_BYTES = 2,
    // /tmp/perf-PID.map is kept true too.
    JITSCRIBE_FLAG_PERF_MAP = 4,
    // The log is a file, jit-PID.dump in `dump_dir`, as `perf inject --jit` wants it.
    JITSCRIBE_FLAG_DUMP = 8,
    // A thread waits for `jitscribe ctl`, which else is heard with the next announcement or poll.
    JITSCRIBE_FLAG_WATCH = 16,
    // What the environment says is added: JITSCRIBE, a list with commas of log, off, bytes, arch-clock,
    // perf-map, jitdump, gdb, gdb-each, gdb-on-crash, no-gdb, unwinders, no-unwinders; JITSCRIBE_DIR, where to write a dump;
    // JITSCRIBE_LIMIT, in bytes or with K, M, G. A program that runs set-user-id takes nothing from there.
    JITSCRIBE_FLAG_ENVIRONMENT = 32,
    // Unwinders in the process learn of code before its announcement is done, until it is unloaded: then exceptions pass
    // through it, and backtraces do not end at it. It must be announced with its unwind info. What the log does not take
    // (it is full, or off) they do not learn. Code in an arena needs no asking.
    JITSCRIBE_FLAG_UNWINDERS = 64,
    // Before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process, debuggers are shown all code that
    // is alive: any of them knows it in the core file. A thread waits for that. Signal handlers are installed by jitscribe_open;
    // one that was there is called first, and all is shown when it has set the signal to its default and returns.
    JITSCRIBE_FLAG_SHOW_ON_CRASH = 128,
    // Times are counts of the processor's own clock (x86-64's rdtsc) instead of nanoseconds of CLOCK_MONOTONIC: for recordings
    // that are not made with `perf record -k mono`. Where there is no such clock, a notice says so.
    JITSCRIBE_FLAG_ARCH_CLOCK = 256,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_flag jitscribe_flag;
#else
typedef uint32_t jitscribe_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an arena does. Bits that a library does not know are ignored.
enum jitscribe_arena_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Every fork of this process ends in an exec: code that was made before it may still be changed and freed after it.
    // Without this, such code is both processes' for ever.
    JITSCRIBE_ARENA_FLAG_FORKS_ONLY_TO_EXEC = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_arena_flag jitscribe_arena_flag;
#else
typedef uint32_t jitscribe_arena_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a notice is about. There may be more in later versions.
enum jitscribe_subject
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Something that is none of the others.
    JITSCRIBE_SUBJECT_OTHER = 0,
    // The code log: there is none, or it lies in another kind of memory than asked for.
    JITSCRIBE_SUBJECT_LOG = 1,
    // The code log is full: from now on codes are left out, until others die.
    JITSCRIBE_SUBJECT_FULL = 2,
    // The child of a fork has no log.
    JITSCRIBE_SUBJECT_FORK = 3,
    // The perf map.
    JITSCRIBE_SUBJECT_PERF_MAP = 4,
    // A setting in the environment that means nothing.
    JITSCRIBE_SUBJECT_SETTING = 5,
    // What valgrind is shown.
    JITSCRIBE_SUBJECT_VALGRIND = 6,
    // An arena for code.
    JITSCRIBE_SUBJECT_ARENA = 7,
    // What unwinders in the process know.
    JITSCRIBE_SUBJECT_UNWINDERS = 8,
    // What debuggers are shown.
    JITSCRIBE_SUBJECT_DEBUGGERS = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_subject jitscribe_subject;
#else
typedef uint32_t jitscribe_subject;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// In which way it is told.
enum jitscribe_unwind_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Not at all. Profilers that walk frame pointers may still come through. So is every number that is
    // not in this list.
    JITSCRIBE_UNWIND_KIND_NONE = 0,
    // The usual prologue at `prologue`, and a frame pointer from there to the end. x86-64: `push rbp; mov
    // rbp, rsp`. aarch64: `stp x29, x30, [sp, -16]!; mov x29, sp`. Right at each instruction but for the
    // epilogue.
    JITSCRIBE_UNWIND_KIND_FRAME_POINTER = 1,
    // A frame pointer that holds at each instruction: for code that runs in a frame which other code has
    // set up.
    JITSCRIBE_UNWIND_KIND_FRAME_POINTER_ALWAYS = 2,
    // By `rows`, which is right at each instruction.
    JITSCRIBE_UNWIND_KIND_ROWS = 3,
    // By `eh_frame`.
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
    // aarch64, frame pointers: what is saved as return address is signed, by a `paciasp`.
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

// A format of object files.
enum jitscribe_object_format
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // An ELF shared object: dlopen takes it.
    JITSCRIBE_OBJECT_FORMAT_ELF = 0,
    // A dynamic-link library for Windows: LoadLibrary takes it.
    JITSCRIBE_OBJECT_FORMAT_PE = 1,
    // A dynamic library for macOS, without a signature.
    JITSCRIBE_OBJECT_FORMAT_MACH_O = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_object_format jitscribe_object_format;
#else
typedef uint32_t jitscribe_object_format;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Memory for code that is a growing object file. It lives as long as the process, and is never freed; use it from any
// thread.
typedef struct jitscribe_arena jitscribe_arena;

// Room for code, from jitscribe_arena_allocate to jitscribe_room_free. One thread at a time may use it.
typedef struct jitscribe_room jitscribe_room;

// Takes announcements of code. It lives as long as the process, and is never freed; use it from any
// thread.
typedef struct jitscribe_scribe jitscribe_scribe;

// A string that is only read during the call it is passed to. UTF-8 is expected; other bytes are replaced, so that
// nothing that a program can be called breaks its announcement. All zeros is the empty string.
typedef struct jitscribe_str {
    // Its first byte. NULL: the empty string.
    const char *data;
    // Its size in bytes, or JITSCRIBE_NUL_TERMINATED: it ends before its first NUL.
    size_t size;
} jitscribe_str;

// Announces all code that is alive by jitscribe_load, each with a new handle. Called when the log is turned on from
// outside, from whatever thread announces, polls or watches at that time, with no lock held.
//
// It must return: no exception, no longjmp.
typedef void (*jitscribe_replay_fn)(void *data, const struct jitscribe_scribe *scribe);

// Takes a notice: something could not be had, and is off from now on; the program is not affected. Each is said once,
// from whatever thread met it. `subject` is a jitscribe_subject; `text` is one line of English that ends with a NUL,
// and is gone when the function returns.
//
// It must return: no exception, no longjmp.
typedef void (*jitscribe_notice_fn)(void *data, uint32_t subject, const char *text);

// Settings of a scribe. Set all to zero but struct_size, and then what you want.
//
// Later versions have more fields at the end; a library that does not know them ignores them, and takes those that
// an older program does not have for zero.
typedef struct jitscribe_settings {
    // sizeof(jitscribe_settings)
    size_t struct_size;
    // Bits of jitscribe_flag. 0: a log in memory, without the code's bytes.
    uint32_t flags;
    // 0.
    uint32_t reserved;
    // How many bytes the log may take. 0: 64 MiB, or 4 GiB if it is a file.
    uint64_t limit;
    // For JITSCRIBE_FLAG_DUMP: a directory to which only this user can write. Empty: a folder `jitscribe`
    // in XDG_RUNTIME_DIR, or in the home's .cache.
    struct jitscribe_str dump_dir;
    // NULL: nothing is announced again when the log is turned on from outside.
    jitscribe_replay_fn replay;
    // Passed to `replay`. It must be there as long as the process, and bear use from any thread.
    void *replay_data;
    // NULL: notices go nowhere.
    jitscribe_notice_fn notice;
    // As `replay_data`.
    void *notice_data;
} jitscribe_settings;

// From `offset` on, up to the next line or the code's end, code comes from this place.
typedef struct jitscribe_line {
    // In bytes from the code's first byte. Lines must ascend.
    uint32_t offset;
    // From 1; 0 for code that comes from no line.
    uint32_t line;
    // From 1; 0 if unknown.
    uint32_t column;
    // Which of the code's `files`: an index, 0 if there is but one.
    uint32_t file;
} jitscribe_line;

// Part of a code, in bytes from the code's first byte.
typedef struct jitscribe_range {
    // Its first byte.
    uint32_t start;
    // The first byte behind it.
    uint32_t end;
} jitscribe_range;

// A call whose callee was compiled into the code in place of the call.
typedef struct jitscribe_inlined {
    // Name of the callee.
    struct jitscribe_str name;
    // Index, in the same array and less than this one's own, of the call into whose callee this one was
    // inlined; JITSCRIBE_NO_PARENT: into the code itself.
    uint32_t parent;
    // File of the call: an index into the code's `files`. The lines of the callee are those of the code's
    // line table.
    uint32_t file;
    // Line of the call, from 1; 0 if unknown.
    uint32_t line;
    // Column of the call, from 1; 0 if unknown.
    uint32_t column;
    // Where in the code the callee lies.
    const struct jitscribe_range *ranges;
    // How many they are.
    size_t range_count;
} jitscribe_inlined;

// Where the caller's value of a register was saved.
typedef struct jitscribe_saved {
    // Distance of the place from the CFA in bytes: a multiple of 8, below 0 as a rule.
    int32_t offset;
    // The register's number in DWARF.
    uint16_t reg;
    // 0.
    uint16_t reserved;
} jitscribe_saved;

// The state of the frame from an offset on, up to the next row.
//
// CFA is the canonical frame address of DWARF: the value of the stack pointer before the call, for x86-64 before the
// call pushed its return address. Registers have the numbers that the machine's ABI gives them in DWARF: x86-64
// rbx 3, rbp 6, rsp 7, r12 to r15 12 to 15; aarch64 x0 to x30 0 to 30, sp 31.
typedef struct jitscribe_row {
    // Offset in the code of the first instruction for which the row holds. An instruction that
    // changes the frame has changed it where the next one begins.
    uint32_t offset;
    // What is added to `cfa_reg` to get the CFA, in bytes.
    int32_t cfa_offset;
    // The register that the CFA is computed from.
    uint16_t cfa_reg;
    // Bits of jitscribe_row_flag.
    uint16_t flags;
    // How many `saved` are.
    uint32_t saved_count;
    // The registers whose values for the caller are in memory, in any order. The return address need not
    // be told where the call has put it.
    const struct jitscribe_saved *saved;
} jitscribe_row;

// How to find the caller's frame from within a code. All zeros: not told.
typedef struct jitscribe_unwind {
    // A jitscribe_unwind_kind.
    uint32_t kind;
    // FRAME_POINTER: offset of the prologue's first instruction in the code. 0, or 4 behind an `endbr64`,
    // `bti` or `paciasp`.
    uint32_t prologue;
    // Bits of jitscribe_unwind_flag.
    uint32_t flags;
    // 0.
    uint32_t reserved;
    // ROWS: ascending by their offsets. Before the first row holds what a call leaves (x86-64: CFA = rsp + 8;
    // aarch64: CFA = sp), so that no rows at all describe a leaf without a frame.
    const struct jitscribe_row *rows;
    // How many they are.
    size_t row_count;
    // EH_FRAME: the content of an .eh_frame section with one CIE and one FDE for the whole code. Pointers in it are
    // relative to the place behind the code, its end rounded up to a multiple of 8.
    const uint8_t *eh_frame;
    // Its size in bytes.
    size_t eh_frame_size;
} jitscribe_unwind;

// One contiguous piece of machine code, and what is known of it. Set all to zero but struct_size and place, and then
// what you know.
//
// All that it points to is read during the call only, belongs to the caller, and must not be
// written to by others meanwhile. A pointer with a count of 0 is not followed.
//
// Later versions have more fields at the end; a library that does not know them ignores them, and takes those that
// an older program does not have for zero. The structs that it points to never change.
typedef struct jitscribe_code {
    // sizeof(jitscribe_code)
    size_t struct_size;
    // Where the code runs, in this process. 0: where `bytes` lies.
    uint64_t address;
    // Its size in bytes.
    uint64_t size;
    // Its `size` bytes, where they can be read. NULL: only the place is told, and tools fetch the bytes from the
    // process while it lives.
    const void *bytes;
    // Its name, as tools should show it. Control characters come out as spaces.
    struct jitscribe_str name;
    // Name of the compiler's tier: "baseline", "optimised". May be empty.
    struct jitscribe_str tier;
    // A jitscribe_kind.
    uint32_t kind;
    // 0.
    uint32_t flags;
    // Paths of the source files, as a debugger should open them. Lines and calls refer to them by index.
    const struct jitscribe_str *files;
    // How many they are. If there are none, the index 0 means no file.
    size_t file_count;
    // The source lines.
    const struct jitscribe_line *lines;
    // How many they are.
    size_t line_count;
    // A second line table: lines of the bytecode or intermediate representation that the code was compiled
    // from, in a listing that the runtime wrote.
    const struct jitscribe_line *ir_lines;
    // How many they are.
    size_t ir_line_count;
    // The calls that were inlined.
    const struct jitscribe_inlined *inlined;
    // How many they are.
    size_t inlined_count;
    // How to unwind through it.
    struct jitscribe_unwind unwind;
} jitscribe_code;

// A code that was announced, to say later that it moved or is gone. A plain number, to be kept wherever
// the runtime keeps what it knows of the code; forgetting it costs nothing, then the code counts as
// alive. 0 if nothing was written: such a handle may be passed on as any other.
//
// One thread at a time may use a handle.
typedef uint64_t jitscribe_handle;

// Settings of an arena. Set all to zero but struct_size, and then what you want.
typedef struct jitscribe_arena_settings {
    // sizeof(jitscribe_arena_settings)
    size_t struct_size;
    // Bits of jitscribe_arena_flag.
    uint32_t flags;
    // Files in the directory that arenas of processes that are gone left, and that were not written to for so many hours, are
    // removed. 0: none is, since whoever reads a recording or a core file of such a process looks for names there.
    uint32_t sweep_hours;
    // Bytes of code that lie in one file, and so side by side: from 64 KiB to 256 MiB. 0: 16 MiB.
    uint64_t segment;
    // Bytes of code in all files. 0: 1 GiB.
    uint64_t limit;
    // Where the files go: a directory to which only this user can write, on a file system whose files may be executed.
    // Empty: JITSCRIBE_DIR if the environment is asked, else a folder `jitscribe` in XDG_RUNTIME_DIR, or in the home's
    // .cache.
    struct jitscribe_str dir;
} jitscribe_arena_settings;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a scribe with settings of one's own.
//
// What cannot be had is off, and said once by the notice callback; it is no error.
//
// @param settings  NULL: a log in memory. It is read during the call only.
// @param scribe    out: the scribe, which lives as long as the process.
jitscribe_result jitscribe_open(const struct jitscribe_settings *settings,
                                const struct jitscribe_scribe **scribe);

// Makes a scribe that does what the environment asks for; see JITSCRIBE_FLAG_ENVIRONMENT. Without anything there:
// a log in memory.
//
// @param scribe  out: the scribe, which lives as long as the process.
jitscribe_result jitscribe_open_from_env(const struct jitscribe_scribe **scribe);

// Whether announcements are written down. What takes time to prepare can be left when not. It costs a nanosecond or two.
//
// @return false for NULL, too.
bool jitscribe_is_on(const struct jitscribe_scribe *scribe);

// Announces code: made, or put in the place of what was there. Call it before the code runs.
//
// It makes no system call and waits for no other thread in the common case; tables of up to 32
// lines, 4 files and 8 inlined calls are passed on without an allocation.
//
// @param scribe  from jitscribe_open or jitscribe_open_from_env.
// @param code    read during the call only.
// @param handle  out: by which to say that the code moved or is gone; 0 if nothing was written. NULL: the code
//                lives as long as the process.
jitscribe_result jitscribe_load(const struct jitscribe_scribe *scribe,
                                const struct jitscribe_code *code,
                                jitscribe_handle *handle);

// Says that a code lies at `bytes` now, with everything else as it was. Call it before it runs there.
//
// @param handle  in and out: the code. It is another number afterwards.
// @param bytes   where the code runs now; its bytes are read during the call.
// @param size    its size in bytes, as it was.
jitscribe_result jitscribe_moved(const struct jitscribe_scribe *scribe,
                                 jitscribe_handle *handle,
                                 const void *bytes,
                                 size_t size);

// jitscribe_moved for code of which only the place is told, or that lies elsewhere than it runs.
//
// @param handle   in and out: the code. It is another number afterwards.
// @param address  where the code runs now.
jitscribe_result jitscribe_moved_to_address(const struct jitscribe_scribe *scribe,
                                            jitscribe_handle *handle,
                                            uint64_t address);

// Says that a code is gone. Call it before its memory is used for something else.
//
// @param handle  the code. It means nothing afterwards; used once more, it is JITSCRIBE_RESULT_ERROR_HANDLE. 0 does
//                nothing.
jitscribe_result jitscribe_unload(const struct jitscribe_scribe *scribe,
                                  jitscribe_handle handle);

// Does what was asked for from outside by `jitscribe ctl`, if anything was. Announcements do so too; a runtime that has
// none to make for a long time may call this now and then. It costs a nanosecond or two if nothing was asked for.
jitscribe_result jitscribe_poll(const struct jitscribe_scribe *scribe);

// Shows debuggers all code that is alive, for a signal handler that knows the signal for a crash and has a debugger
// look, or writes a core file, before it returns. It may be called in any handler, whatever locks are held, and waits for
// five seconds at most. Other handlers need not: see JITSCRIBE_FLAG_SHOW_ON_CRASH, without which this does nothing.
//
// @return whether all is shown.
bool jitscribe_show_before_crash(const struct jitscribe_scribe *scribe);

// The descriptor of the log's file: in memory, or the dump. It belongs to the library: do not close it.
//
// @param fd  out: the descriptor; -1 if there is none.
jitscribe_result jitscribe_log_fd(const struct jitscribe_scribe *scribe,
                                  int *fd);

// The path of the dump that is being written, if the log is a file.
//
// @param room    where to write it with a NUL behind it, if it fits; untouched if not. NULL if `size` is 0.
// @param size    how many bytes there are, with the one for the NUL.
// @param length  out: how many bytes it has, without the NUL; 0 if there is no dump.
jitscribe_result jitscribe_dump_path(const struct jitscribe_scribe *scribe,
                                     char *room,
                                     size_t size,
                                     size_t *length);

// The version of the library that runs: "0.1.0".
const char *jitscribe_version(void);

// The name of a result, as it is spelt here. It need not be freed.
//
// @param result  any number.
const char *jitscribe_result_name(int32_t result);

// Makes an arena. perf, debuggers that attach later, dladdr and unwinders in the process read from its files, with
// no further step, what is announced by jitscribe_load of code that lies there. The files stay when the process
// ends. On Windows none of the functions of arenas is there.
//
// @param scribe    from jitscribe_open or jitscribe_open_from_env: its notice callback hears why there is no arena.
// @param settings  NULL: the usual ones.
// @param arena     out: the arena; NULL if none can be had. Then go on with memory of your own.
jitscribe_result jitscribe_arena_open(const struct jitscribe_scribe *scribe,
                                      const struct jitscribe_arena_settings *settings,
                                      const struct jitscribe_arena **arena);

// Room for code, to be written at `bytes`, which will run at `address`: the two are different, and the code is never
// written where it runs. Call jitscribe_room_finish before it does.
//
// @param size     in bytes.
// @param align    a power of two, of a page at most; code lies at multiples of 32 in any case.
// @param room     out: the room; NULL if there is none, on the disk or within the limit.
// @param bytes    out: where to write it, as long as it is not finished.
// @param address  out: where it will run.
jitscribe_result jitscribe_arena_allocate(const struct jitscribe_arena *arena,
                                          size_t size,
                                          size_t align,
                                          struct jitscribe_room **room,
                                          void **bytes,
                                          uint64_t *address);

// The code is complete, and may run; `bytes` must not be written to any more. Nothing happens if it was finished before.
jitscribe_result jitscribe_room_finish(struct jitscribe_room *room);

// To change code that is finished, where it stands; it must not run meanwhile.
//
// @param bytes  out: where to write it; NULL if it may not be changed, as another process has it since a fork.
jitscribe_result jitscribe_room_edit(struct jitscribe_room *room,
                                     void **bytes);

// Frees code, finished or not: it must not run any more, nor be on any stack. Call jitscribe_unload before.
//
// @param room  NULL does nothing. It means nothing afterwards.
jitscribe_result jitscribe_room_free(struct jitscribe_room *room);

// Writes all code that is alive to a new file, as an object that a loader takes: dlopen and dlsym run the same code in another
// process, as far as it refers to nothing outside of itself. Of several codes with one name, dlsym finds the one announced last.
// It takes its time: milliseconds for thousands of codes.
//
// @param path    of the file, of this user alone, which must not be there.
// @param format  a jitscribe_object_format.
// @return JITSCRIBE_RESULT_ERROR_NO_CODE, JITSCRIBE_RESULT_ERROR_FILE, JITSCRIBE_RESULT_ERROR_FORMAT, or
//         JITSCRIBE_RESULT_ERROR_ARGUMENT for a format that this library does not know.
jitscribe_result jitscribe_write_object(const struct jitscribe_scribe *scribe,
                                        struct jitscribe_str path,
                                        uint32_t format);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JITSCRIBE_H */
