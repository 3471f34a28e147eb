/*
 * Memory for code that is a growing object file, which perf, debuggers, dladdr and unwinders read. Not on Windows and macOS.
 * Results, ownership, units and pointers are as in jitscribe.h.
 *
 * This file is generated from the library's source by cbindgen. Do not edit it.
 */

#ifndef JITSCRIBE_ARENA_H
#define JITSCRIBE_ARENA_H

#include <jitscribe.h>


// What an arena does. The library ignores bits that it does not know.
enum jitscribe_arena_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Every fork of this process is followed by an exec. Code that was made before the fork may still be changed and freed
    // after it. Without this flag, such code belongs to both processes for ever.
    JITSCRIBE_ARENA_FLAG_FORKS_ONLY_TO_EXEC = 1,
    // Code is written where it runs: for compilers that compute addresses from where they write, or that change code in place
    // while it runs. The memory is writable and executable at once, which some systems forbid: then there is no arena. As
    // JITSCRIBE_ARENA_FLAG_FORKS_ONLY_TO_EXEC: the child of a fork shares the memory, and must not write there.
    JITSCRIBE_ARENA_FLAG_IN_PLACE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_arena_flag jitscribe_arena_flag;
#else
typedef uint32_t jitscribe_arena_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Space for code, from jitscribe_arena_allocate to jitscribe_allocation_free. Only one thread at a time may use it.
typedef struct jitscribe_allocation jitscribe_allocation;

// Memory for code that is a growing object file. It lives as long as the process, is never freed, and may be used from any
// thread.
typedef struct jitscribe_arena jitscribe_arena;

// Settings of an arena. Set struct_size, set everything else to zero, and then set what you need.
typedef struct jitscribe_arena_settings {
    // sizeof(jitscribe_arena_settings)
    size_t struct_size;
    // Bits of jitscribe_arena_flag.
    uint32_t flags;
    // Remove files in the directory that arenas of dead processes left, and that have not been written to for this many
    // hours. 0: remove none, because readers of a recording or a core file of such a process need them for symbol names.
    uint32_t sweep_hours;
    // Bytes of code in one file, and so next to each other in memory: from 64 KiB to 256 MiB. 0: 16 MiB.
    uint64_t segment;
    // Bytes of code in all files together. 0: 1 GiB.
    uint64_t limit;
    // Directory of the files: only this user can write to it, and its file system allows files to be executed. Empty:
    // JITSCRIBE_DIR if the scribe uses the environment, else the directory `jitscribe` in XDG_RUNTIME_DIR, or in ~/.cache.
    jitscribe_str dir;
} jitscribe_arena_settings;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates an arena. perf, debuggers that attach later, dladdr and the unwinders in the process read the code that is
// announced with jitscribe_load from the arena's files, without any further step. The files remain when the process ends. The
// arena functions do not exist on Windows.
//
// @param scribe    from jitscribe_open or jitscribe_global: its notice callback reports why there is no arena.
// @param settings  NULL: the defaults.
// @param arena     out: the arena; NULL if it could not be created. Then use memory of your own.
jitscribe_result jitscribe_arena_open(const jitscribe_scribe *scribe,
                                      const struct jitscribe_arena_settings *settings,
                                      const struct jitscribe_arena **arena);

// Allocates space for code. Write the code at `bytes`; it will run at `address`. The two are different, unless the arena has
// JITSCRIBE_ARENA_FLAG_IN_PLACE. Call jitscribe_allocation_finish before the code runs.
//
// @param size        in bytes.
// @param align       a power of two, at most a page. Code is aligned to 32 bytes in any case.
// @param allocation  out: the allocation; NULL if there is no space on the disk or within the limit.
// @param bytes       out: where to write the code until it is finished.
// @param address     out: where the code will run.
jitscribe_result jitscribe_arena_allocate(const struct jitscribe_arena *arena,
                                          size_t size,
                                          size_t align,
                                          struct jitscribe_allocation **allocation,
                                          void **bytes,
                                          uint64_t *address);

// Marks the code as complete, so that it may run. Do not write to `bytes` any more. Does nothing if it was finished before.
jitscribe_result jitscribe_allocation_finish(struct jitscribe_allocation *allocation);

// Makes finished code writable again, at the same address. It must not run until it is finished again.
//
// @param bytes  out: where to write the code; NULL if it may not be changed because another process shares it since a fork.
jitscribe_result jitscribe_allocation_edit(struct jitscribe_allocation *allocation,
                                           void **bytes);

// Frees code, finished or not. It must not run any more, nor be on any stack. Call jitscribe_unload before.
//
// @param allocation  NULL does nothing. The allocation is invalid afterwards.
jitscribe_result jitscribe_allocation_free(struct jitscribe_allocation *allocation);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JITSCRIBE_ARENA_H */
