/*
 * The memory of libipt, Intel's decoder of processor traces, for JIT-compiled code: the bytes of a jitdump, as of the trace's time.
 *
 *     jitscribe_libipt memory = {.codes = codes, .insn = decoder};
 *     jitscribe_libipt_perf_clock(&memory, time_zero, time_shift, time_mult);
 *     pt_image_set_callback(image, jitscribe_libipt_read, &memory);
 *
 * libipt asks the callback for addresses that are in no section of the image.
 */
#ifndef JITSCRIBE_LIBIPT_H
#define JITSCRIBE_LIBIPT_H

#include <intel-pt.h>
#include <string.h>

#include "codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The context of jitscribe_libipt_read. Set what is described, and everything else to zero. One is for one decoder. */
typedef struct jitscribe_libipt {
    /* The code of the traced process. */
    const jitscribe_codes *codes;
    /* The decoder that asks, for its time: one of these. */
    struct pt_insn_decoder *insn;
    struct pt_block_decoder *block;
    /* NULL, or what is asked for memory that holds no known code, with its own context. */
    read_memory_callback_t *otherwise;
    void *otherwise_context;
    /* Set by jitscribe_libipt_perf_clock. */
    uint64_t time_zero;
    uint32_t time_mult;
    uint16_t time_shift;
    /* The last answer. */
    jitscribe_codes_found last;
} jitscribe_libipt;

/*
 * Says how counts of the processor's clock become nanoseconds: by the fields of these names of perf's mapped page, which
 * perf.data has in its PERF_RECORD_TIME_CONV and in the AUXTRACE_INFO of Intel PT. Without it, the dump must have counts of the processor's clock.
 */
static inline void jitscribe_libipt_perf_clock(jitscribe_libipt *memory, uint64_t time_zero,
                                               uint16_t time_shift, uint32_t time_mult)
{
    memory->time_zero = time_zero;
    memory->time_shift = time_shift;
    memory->time_mult = time_mult;
}

/* The trace's time, in the unit of the dump. Before the trace's first timing packet, the latest. */
static inline uint64_t jitscribe_libipt_now(const jitscribe_libipt *memory)
{
    uint64_t counts = 0;
    int error = memory->insn != NULL ? pt_insn_time(memory->insn, &counts, NULL, NULL)
                                     : pt_blk_time(memory->block, &counts, NULL, NULL);
    if (error < 0) {
        return UINT64_MAX - 1;
    }
    if (memory->time_mult == 0) {
        return counts;
    }
    /* As the kernel's header says: linux/perf_event.h, time_zero. */
    uint64_t rest = counts & (((uint64_t)1 << memory->time_shift) - 1);
    return memory->time_zero + (counts >> memory->time_shift) * memory->time_mult +
           ((rest * memory->time_mult) >> memory->time_shift);
}

/* A read_memory_callback_t for pt_image_set_callback; its context is a jitscribe_libipt. */
static inline int jitscribe_libipt_read(uint8_t *buffer, size_t size, const struct pt_asid *asid,
                                        uint64_t ip, void *context)
{
    jitscribe_libipt *memory = (jitscribe_libipt *)context;
    jitscribe_codes_found *last = &memory->last;
    uint64_t now = jitscribe_libipt_now(memory);
    bool is_last = ip >= last->first_address && ip < last->end_address && now >= last->first_time &&
                   now < last->end_time;
    if (!is_last && !jitscribe_codes_at(memory->codes, ip, now, last)) {
        memset(last, 0, sizeof *last);
    }
    /* Where this code ends or was overwritten, what follows it is copied as well. */
    if (last->end_address - ip >= size && last->size != 0 && ip - last->address <= last->size &&
        last->size - (ip - last->address) >= size) {
        memcpy(buffer, last->bytes + (ip - last->address), size);
        return (int)size;
    }
    size_t copied = jitscribe_codes_copy(memory->codes, ip, now, buffer, size);
    if (copied != 0) {
        return (int)copied;
    }
    if (memory->otherwise != NULL) {
        return memory->otherwise(buffer, size, asid, ip, memory->otherwise_context);
    }
    return -pte_nomap;
}

#ifdef __cplusplus
}
#endif

#endif
