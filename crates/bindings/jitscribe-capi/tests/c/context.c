/*
 * A program whose OpenTelemetry SDK publishes a process context (OTEP 4719), as far as readers see it.
 *
 *     context ours      the library publishes one; the program has no SDK
 *     context first     the SDK publishes before the library
 *     context after     the SDK publishes after the library, which makes way
 *
 * It prints "ready" after each step, and goes on when it gets a line.
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct header {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t published_at, payload;
};

static volatile struct header *published;

/* The next step follows when a line comes. */
static void ready(void)
{
    char line[16];
    printf("ready\n");
    fflush(stdout);
    MUST(fgets(line, sizeof line, stdin));
}

/* resource: service.name = "sdk", and an attribute of the SDK's own. */
static const char own[] = "\012\027\012\025\012\014service.name\022\005\012\003sdk"
                          "\022\021\012\007sdk.own\022\006\012\004mine";

/* Publishes or updates the context, with the attributes of the library. */
static void sdk_publishes(void)
{
    static unsigned char payloads[2][2048];
    static int number;
    unsigned char *payload = payloads[number++ % 2];
    size_t size = sizeof own - 1, length = 0;
    memcpy(payload, own, size);
    OK(jitscribe_code_context(payload + size, 1024, &length));
    if (!published) {
        const int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        MUST(fd >= 0 && ftruncate(fd, sizeof *published) == 0);
        void *page = mmap(NULL, sizeof *published, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        MUST(page != MAP_FAILED && close(fd) == 0);
        MUST(madvise(page, sizeof *published, MADV_DONTFORK) == 0);
        published = page;
        memcpy(page, "OTEL_CTX", 8);
        published->version = 2;
    }
    struct timespec now;
    MUST(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    published->published_at = 0;
    atomic_thread_fence(memory_order_seq_cst);
    published->payload_size = (uint32_t)(size + length);
    published->payload = (uint64_t)(uintptr_t)payload;
    atomic_thread_fence(memory_order_seq_cst);
    published->published_at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, published, sizeof *published, "OTEL_CTX");
}

/* How many contexts this process has. */
static int contexts(void)
{
    char line[4352];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps)) {
        count += strstr(line, "OTEL_CTX") != NULL;
    }
    fclose(maps);
    return count;
}

static const jitscribe_scribe *opens(uint32_t process_context)
{
    const jitscribe_settings settings = {
        .struct_size = sizeof settings, .process_context = process_context, .limit = 1 << 20};
    const jitscribe_scribe *scribe;
    OK(jitscribe_open(&settings, &scribe));
    return scribe;
}

int main(int count, char **words)
{
    MUST(count == 2);
    size_t length = 77;
    OK(jitscribe_code_context(NULL, 0, &length));
    MUST(length == 0);
    if (!strcmp(words[1], "ours")) {
        jitscribe_global();
        OK(jitscribe_code_context(NULL, 0, &length));
        MUST(length > 0);
        /* The entries are written whole or not at all. */
        char entry = '?';
        OK(jitscribe_code_context(&entry, 1, &length));
        MUST(entry == '?');
        ready();
        opens(JITSCRIBE_MODE_AUTO);
    } else if (!strcmp(words[1], "first")) {
        sdk_publishes();
        opens(JITSCRIBE_MODE_ON);
        ready();
        sdk_publishes();
    } else {
        const jitscribe_scribe *scribe = opens(JITSCRIBE_MODE_ON);
        ready();
        sdk_publishes();
        MUST(contexts() == 2);
        while (contexts() != 1) {
            OK(jitscribe_poll(scribe));
            usleep(1000);
        }
    }
    ready();
    return 0;
}
