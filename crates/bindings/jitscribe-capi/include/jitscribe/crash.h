/*
 * For crash handlers and crash reporters in the process. All of this may be called in signal handlers.
 * Results, ownership, units and pointers are as in jitscribe.h.
 *
 * This file is generated from the library's source by cbindgen. Do not edit it.
 */

#ifndef JITSCRIBE_CRASH_H
#define JITSCRIBE_CRASH_H

#include <jitscribe.h>

/* The type of the stream of jitscribe_crash_stream in a minidump. */
#define JITSCRIBE_CRASH_STREAM_TYPE 0x4a530001


// The stack of a thread, or a part of it.
typedef struct jitscribe_stack {
    // Its lowest address: the thread's stack pointer.
    uint64_t address;
    // Its size in bytes. What is not readable is skipped, so it may be too large.
    uint64_t size;
} jitscribe_stack;

// A function at an address: see jitscribe_symbolize. Set `struct_size` to `sizeof` the struct; the call writes the other fields.
typedef struct jitscribe_symbol {
    // sizeof(jitscribe_symbol). Not written.
    size_t struct_size;
    // The address of the code.
    uint64_t address;
    // The size of the code.
    uint64_t size;
    // The function's name, which ends with a NUL: that of the code, or of a function that was inlined into it. It is in the
    // buffer; NULL if that has no byte.
    const char *name;
    // The size of the name, without the NUL.
    size_t name_size;
    // The source file, which ends with a NUL. It is in the buffer, and empty if the file is not known. NULL if there is no space
    // left for the NUL.
    const char *file;
    // The size of the file's name, without the NUL.
    size_t file_size;
    // The line. In a function into which another one was inlined, that of the call.
    uint32_t line;
    // The column.
    uint32_t column;
    // The number of functions at the address: the code's own, and those that were inlined there.
    uint32_t function_count;
    // 1 if the buffer was too small, so that the name or the file is cut; else 0.
    uint32_t is_cut;
} jitscribe_symbol;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Writes the stream of a minidump that describes the code on the stacks of this process: names, lines, inlined calls, unwind info
// and machine code. It is for a crash reporter that writes streams of its own, such as Crashpad with user streams; the type of the
// stream is JITSCRIBE_CRASH_STREAM_TYPE. docs/crash.md describes it.
//
// Like jitscribe_symbolize, it may be called from any signal handler, at any instant. During the call it has /proc/self/mem open, by
// which stacks and machine code are read. Where that is not possible, only `words` count.
//
// @param stacks       the stacks of some threads. NULL if `stack_count` is 0.
// @param stack_count  their number.
// @param words        the registers of these threads, the program counter among them. NULL if `word_count` is 0.
// @param word_count   their number.
// @param buffer       for the stream. Space behind the stream is written to as well.
// @param size         the size of the buffer in bytes. 64 KiB are enough for hundreds of codes, and the stream says how many
//                     did not fit.
// @param length       out: the size of the stream; 0 if there is no log, in the child of a fork that has announced nothing, or if
//                     the buffer has less than 80 bytes.
jitscribe_result jitscribe_crash_stream(const jitscribe_scribe *scribe,
                                        const struct jitscribe_stack *stacks,
                                        size_t stack_count,
                                        const uint64_t *words,
                                        size_t word_count,
                                        void *buffer,
                                        size_t size,
                                        size_t *length);

// Finds the function at an address, by what was announced and is alive: for crash handlers, and for backtraces of the process
// itself. Unlike other functions, it may be called from any signal handler, at any instant: also in one that interrupted
// a call of this library, and in the child of a fork. It takes no lock, allocates nothing, waits for no thread, and leaves errno
// as it is. The time is in proportion to the number of announced codes: see docs/crash.md.
//
// For a return address, pass the address before it: the call may be the last instruction of its code.
//
// @param pc      an address.
// @param number  of the functions at the address, if some were inlined there: 0 is the innermost one, and jitscribe_symbol says
//                how many there are.
// @param buffer  for the name and the file; both are cut if they do not fit. NULL if `size` is 0.
// @param size    the size of the buffer in bytes. 256 are enough for most.
// @param symbol  in: struct_size. Out: the function.
// @return        whether there is one. If not, or if a pointer is not valid, `symbol` is not written.
bool jitscribe_symbolize(const jitscribe_scribe *scribe,
                         uint64_t pc,
                         uint32_t number,
                         char *buffer,
                         size_t size,
                         struct jitscribe_symbol *symbol);

// Shows all code that is alive to debuggers. It is for signal handlers that treat the signal as a crash, and that let a
// debugger attach or write a core file before they return. It may be called in any handler, whatever locks are held, and
// waits for at most five seconds. Other handlers need not call it: see JITSCRIBE_FLAG_GDB_ON_CRASH, without which this
// does nothing.
//
// @return whether all code is shown.
bool jitscribe_show_to_debuggers(const jitscribe_scribe *scribe);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JITSCRIBE_CRASH_H */
