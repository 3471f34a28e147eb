/*
 * The machine code that was at an address of a process at a time, from a jitdump: for decoders of processor traces.
 *
 *     char message[200];
 *     jitscribe_codes *codes = jitscribe_codes_open("jit-1234.dump", message, sizeof message);
 *     if (codes == NULL) { fprintf(stderr, "%s\n", message); ... }
 *     unsigned char bytes[15];
 *     size_t known = jitscribe_codes_copy(codes, address, time, bytes, sizeof bytes);
 *     jitscribe_codes_close(codes);
 *
 * The dump is that of any JIT compiler. Of a process with a code log, `jitscribe dump -p PID --jitdump FILE` writes one.
 * With libipt, see jitscribe/libipt.h.
 *
 * Times are those of the dump: nanoseconds of CLOCK_MONOTONIC, or counts of the processor's clock if
 * jitscribe_codes_has_processor_clock. The dump is read once, when it is opened. Any number of threads may ask at the same time.
 *
 * Link with -ljitscribe_codes.
 */
#ifndef JITSCRIBE_CODES_H
#define JITSCRIBE_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All codes of a dump, with their bytes. */
typedef struct jitscribe_codes jitscribe_codes;

/* A code that was found. What it points to is valid until jitscribe_codes_close. */
typedef struct jitscribe_codes_found {
    /* Its name, as the runtime gave it, without a NUL at the end. */
    const char *name;
    size_t name_size;
    /* Address of its first byte. */
    uint64_t address;
    /* Its machine code, all of it; a size of 0 for a code that was announced without bytes. */
    const unsigned char *bytes;
    size_t size;
    /* The addresses and times for which this is the answer: from the first number up to, and without, the second one. The addresses are
     * fewer than the code's if a part of it had been overwritten. */
    uint64_t first_address, end_address;
    uint64_t first_time, end_time;
} jitscribe_codes_found;

/*
 * Reads a jitdump. What is damaged is left out; see jitscribe_codes_damage.
 *
 * message  gets the cause of a failure, with a NUL, shortened to `size` bytes. NULL with size 0.
 * returns  NULL if the file cannot be read, is not a jitdump, or if memory is refused.
 */
jitscribe_codes *jitscribe_codes_open(const char *path, char *message, size_t size);

/* Frees it. NULL does nothing. */
void jitscribe_codes_close(jitscribe_codes *codes);

/*
 * The code at an address at a time. Where there was none, the first that came there later: runtimes write the record when the code is complete,
 * and it may run before that; and a trace knows the time only at its timing packets.
 *
 * returns  false, and nothing is written, if there is none.
 */
bool jitscribe_codes_at(const jitscribe_codes *codes, uint64_t address, uint64_t time,
                        jitscribe_codes_found *found);

/* Copies the bytes that were at an address at a time, through as many codes as follow one another.
 *
 * returns  how many were copied, at most `size`; 0 if none are known. */
size_t jitscribe_codes_copy(const jitscribe_codes *codes, uint64_t address, uint64_t time, void *buffer,
                            size_t size);

/* The number of codes. */
size_t jitscribe_codes_count(const jitscribe_codes *codes);

/* Whether times are counts of the processor's clock (x86: TSC) instead of nanoseconds. */
bool jitscribe_codes_has_processor_clock(const jitscribe_codes *codes);

/* What could not be read: sentence number n, from 0, with a NUL. NULL: there are no more. Valid until jitscribe_codes_close. */
const char *jitscribe_codes_damage(const jitscribe_codes *codes, size_t n);

#ifdef __cplusplus
}
#endif

#endif
