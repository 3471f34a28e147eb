/*
 * Prints the code that a jitdump has at an address at a time: its name, address and size, and its first bytes.
 *
 *     cc -std=c99 code_at.c $(pkg-config --cflags --libs jitscribe-codes) -o code_at
 *     ./code_at jit-1234.dump 7f0012345678 [TIME]
 *
 * Without a time, it is the first code at this address.
 */
#include <jitscribe/codes.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: code_at DUMP ADDRESS [TIME]\n");
        return 2;
    }
    uint64_t address = strtoull(argv[2], NULL, 16);
    uint64_t time = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

    char message[200];
    jitscribe_codes *codes = jitscribe_codes_open(argv[1], message, sizeof message);
    if (codes == NULL) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    const char *damage;
    for (size_t n = 0; (damage = jitscribe_codes_damage(codes, n)) != NULL; n++) {
        fprintf(stderr, "%s\n", damage);
    }
    jitscribe_codes_found found;
    bool known = jitscribe_codes_at(codes, address, time, &found);
    if (known) {
        printf("%.*s: %zu bytes at %" PRIx64 ":", (int)found.name_size, found.name, found.size, found.address);
        unsigned char bytes[16];
        size_t copied = jitscribe_codes_copy(codes, found.address, time, bytes, sizeof bytes);
        for (size_t n = 0; n < copied && n < found.size; n++) {
            printf(" %02x", bytes[n]);
        }
        printf("\n");
    } else {
        fprintf(stderr, "none of %zu codes was there\n", jitscribe_codes_count(codes));
    }
    jitscribe_codes_close(codes);
    return known ? 0 : 1;
}
