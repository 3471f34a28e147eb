/*
 * Makes a trace of Intel PT with libipt's encoder, and decodes it with its decoder, which takes the code from a jitdump.
 *
 *     intel_pt encode FIRST OTHER > TRACE
 *     intel_pt decode DUMP TRACE ZERO SHIFT MULT
 *
 * The traced program runs the code at FIRST, then the one at OTHER, then again FIRST, where other code is by then, and OTHER. Each code ends with an
 * indirect jump. FIRST takes its only branch the first time, and not the second. `decode` prints the address, the bytes and the code of each instruction.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jitscribe/libipt.h>

/* Counts of the processor's clock: the beginning, after the replacement, and the end. */
enum { BEGINS = 100000, REPLACED = 300000, ENDS = 400000 };

static void fail(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, pt_errstr(pt_errcode(error)));
    exit(1);
}

static void put(struct pt_encoder *encoder, enum pt_packet_type type, uint64_t value)
{
    struct pt_packet packet;
    memset(&packet, 0, sizeof packet);
    packet.type = type;
    switch (type) {
    case ppt_tip_pge:
    case ppt_tip:
    case ppt_tip_pgd:
        packet.payload.ip.ipc = pt_ipc_sext_48;
        packet.payload.ip.ip = value;
        break;
    case ppt_tsc:
        packet.payload.tsc.tsc = value;
        break;
    case ppt_tnt_8:
        packet.payload.tnt.bit_size = 1;
        packet.payload.tnt.payload = value;
        break;
    case ppt_mode:
        packet.payload.mode.leaf = pt_mol_exec;
        packet.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
        break;
    default:
        break;
    }
    int error = pt_enc_next(encoder, &packet);
    if (error < 0) {
        fail("pt_enc_next", error);
    }
}

static void encode(uint64_t first, uint64_t other)
{
    static uint8_t trace[4096];
    struct pt_config config;
    pt_config_init(&config);
    config.begin = trace;
    config.end = trace + sizeof trace;
    struct pt_encoder *encoder = pt_alloc_encoder(&config);
    put(encoder, ppt_psb, 0);
    put(encoder, ppt_tsc, BEGINS);
    put(encoder, ppt_psbend, 0);
    put(encoder, ppt_mode, 0);
    put(encoder, ppt_tip_pge, first);
    put(encoder, ppt_tnt_8, 1);
    put(encoder, ppt_tip, other);
    put(encoder, ppt_tsc, REPLACED);
    put(encoder, ppt_tip, first);
    put(encoder, ppt_tnt_8, 0);
    put(encoder, ppt_tip, other);
    put(encoder, ppt_tsc, ENDS);
    put(encoder, ppt_tip_pgd, first);
    uint64_t size;
    int error = pt_enc_get_offset(encoder, &size);
    if (error < 0) {
        fail("pt_enc_get_offset", error);
    }
    pt_free_encoder(encoder);
    if (fwrite(trace, 1, size, stdout) != size) {
        exit(1);
    }
}

static void decode(const char *dump, const char *path, uint64_t zero, uint16_t shift, uint32_t mult)
{
    char message[300];
    jitscribe_codes *codes = jitscribe_codes_open(dump, message, sizeof message);
    if (codes == NULL) {
        fprintf(stderr, "%s\n", message);
        exit(1);
    }
    static uint8_t trace[4096];
    FILE *file = fopen(path, "rb");
    size_t size = file == NULL ? 0 : fread(trace, 1, sizeof trace, file);

    struct pt_config config;
    pt_config_init(&config);
    config.begin = trace;
    config.end = trace + size;
    struct pt_insn_decoder *decoder = pt_insn_alloc_decoder(&config);
    jitscribe_libipt memory = {.codes = codes, .insn = decoder};
    jitscribe_libipt_perf_clock(&memory, zero, shift, mult);
    pt_image_set_callback(pt_insn_get_image(decoder), jitscribe_libipt_read, &memory);

    int status = pt_insn_sync_forward(decoder);
    while (status >= 0 && !(status & pts_eos)) {
        if (status & pts_event_pending) {
            struct pt_event event;
            status = pt_insn_event(decoder, &event, sizeof event);
            continue;
        }
        struct pt_insn insn;
        status = pt_insn_next(decoder, &insn, sizeof insn);
        if (status < 0) {
            break;
        }
        jitscribe_codes_found found = {0};
        jitscribe_codes_at(codes, insn.ip, jitscribe_libipt_now(&memory), &found);
        printf("%" PRIx64 " ", insn.ip);
        for (int i = 0; i < insn.size; i++) {
            printf("%02x", insn.raw[i]);
        }
        printf(" %.*s\n", (int)found.name_size, found.name == NULL ? "" : found.name);
    }
    if (status < 0 && status != -pte_eos) {
        fail("decoding", status);
    }
    pt_insn_free_decoder(decoder);
    jitscribe_codes_close(codes);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "encode") == 0) {
        encode(strtoull(arguments[2], NULL, 16), strtoull(arguments[3], NULL, 16));
    } else if (count == 7 && strcmp(arguments[1], "decode") == 0) {
        decode(arguments[2], arguments[3], strtoull(arguments[4], NULL, 10),
               (uint16_t)atoi(arguments[5]), (uint32_t)atoi(arguments[6]));
    } else {
        return 2;
    }
    return 0;
}
