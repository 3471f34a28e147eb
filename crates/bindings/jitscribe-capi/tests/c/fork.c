/*
 * Forks while another thread announces, and reads in the child what is shown to debuggers.
 *
 *     JITSCRIBE=gdb fork COUNT
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interface.h"

enum { ROOM = 4096, SIZE = 16 };

static const jitscribe_scribe *scribe;
static unsigned char *room;
static volatile int ends;

static jitscribe_handle announce(const char *name, int place)
{
    const jitscribe_code code = {
        .struct_size = sizeof code,
        .bytes = room + place * SIZE,
        .size = SIZE,
        .name = {.data = name, .size = strlen(name)},
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER},
    };
    jitscribe_handle handle;
    OK(jitscribe_load(scribe, &code, &handle));
    return handle;
}

/* Loads and unloads code. */
static void *churn(void *unused)
{
    while (!ends) {
        jitscribe_handle handles[8];
        for (int place = 0; place < 8; place++) {
            handles[place] = announce("churn", 8 + place);
        }
        for (int place = 0; place < 8; place++) {
            OK(jitscribe_unload(scribe, handles[place]));
        }
    }
    return unused;
}

static void call(int place)
{
    unsigned char *code = room + place * SIZE;
    void (*callee)(void);
    memcpy(&callee, &code, sizeof callee);
    callee();
}

static void child(void)
{
    announce("child_code", 1);
    call(0);
    call(1);
    MUST(shown("parent_code") == 1 && shown("child_code") == 1);
    jitscribe_handle handle = announce("short_life", 2);
    OK(jitscribe_unload(scribe, handle));
    call(1);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    scribe = jitscribe_global();
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(room != MAP_FAILED);
    for (int place = 0; place < 16; place++) {
        /* push rbp; mov rbp, rsp; pop rbp; ret */
        memcpy(room + place * SIZE, "\x55\x48\x89\xe5\x5d\xc3", 6);
    }
    MUST(mprotect(room, ROOM, PROT_READ | PROT_EXEC) == 0);
    announce("parent_code", 0);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, churn, NULL) == 0);
    for (int turn = atoi(argv[1]); turn > 0; turn--) {
        usleep((unsigned)turn % 16 * 50);
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            child();
            _exit(0);
        }
        int status;
        MUST(waitpid(pid, &status, 0) == pid && status == 0);
    }
    ends = 1;
    pthread_join(thread, NULL);
    puts("all is so");
    return 0;
}
