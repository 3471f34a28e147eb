/* A host whose malloc returns NULL, and which can live with that, calls the library. */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char bytes[4096];
static const jitscribe_scribe *scribe;
static jitscribe_code code = {
    .struct_size = sizeof code, .bytes = bytes, .size = 64, .name = JITSCRIBE_STR_INIT("first")};
static volatile int go;

/* Leaves a megabyte of address space, and takes it by malloc. */
static void exhaust(void) {
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%ld", &pages) != 1)
        _exit(90);
    fclose(statm);
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * 4096 + (1 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(91);
    for (size_t size = 1 << 20; size >= 16; size /= 2)
        while (malloc(size) != NULL)
            ;
}

static void notice(void *data, uint32_t subject, const char *text) {
    (void)data, (void)subject;
    (void)!write(2, "notice: ", 8);
    (void)!write(2, text, strlen(text));
    (void)!write(2, "\n", 1);
}

static void say(const char *text) {
    (void)!write(1, text, strlen(text));
}

static void *announce(void *unused) {
    (void)unused;
    while (!go)
        usleep(1000);
    jitscribe_handle handle;
    if (jitscribe_load(scribe, &code, &handle) != JITSCRIBE_RESULT_OK)
        _exit(92);
    return NULL;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    jitscribe_settings settings = {
        .struct_size = sizeof settings, .flags = JITSCRIBE_FLAG_ENVIRONMENT, .notice = notice};
    if (strcmp(what, "open") == 0) {
        exhaust();
        int result = jitscribe_open(&settings, &scribe);
        jitscribe_handle handle;
        int loaded = jitscribe_load(scribe, &code, &handle);
        say(result == JITSCRIBE_RESULT_OK && loaded == JITSCRIBE_RESULT_OK ? "lives\n" : "failed\n");
        return 0;
    }
    jitscribe_open(&settings, &scribe);
    jitscribe_handle handle, keep;
    jitscribe_load(scribe, &code, &keep);
    pthread_t thread;
    if (strcmp(what, "thread") == 0)
        pthread_create(&thread, NULL, announce, NULL);
    exhaust();
    if (strcmp(what, "thread") == 0) {
        go = 1;
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 2000; i++) {
        jitscribe_code next = code;
        if (strcmp(what, "unwind") == 0)
            next.unwind.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER;
        if (jitscribe_load(scribe, &next, &handle) != JITSCRIBE_RESULT_OK)
            return 93;
        if (strcmp(what, "moved") == 0)
            jitscribe_moved_to_address(scribe, &handle, 0x1000 + i);
        if (strcmp(what, "unload") == 0)
            jitscribe_unload(scribe, handle);
        if (strcmp(what, "fork") == 0 && i == 1000) {
            pid_t child = fork();
            if (child == 0)
                _exit(jitscribe_load(scribe, &next, &handle) == JITSCRIBE_RESULT_OK ? 0 : 1);
            int status = 0;
            waitpid(child, &status, 0);
            if (status != 0)
                return 94;
        }
    }
    say("lives\n");
    return 0;
}
