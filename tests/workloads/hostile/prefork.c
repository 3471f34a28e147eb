/* A server that announces its code, forks workers that announce nothing and run it, and goes on announcing and dropping. Prints its own
 * process id and the worker's. */
#include "log.h"
#include "spin.h"
#include <jitscribe.h>
#include <sys/prctl.h>
#include <signal.h>

int main(void) {
    unsigned char *room = executable_memory();
    for (int i = 0; i < 60; i++) memcpy(room + i * 64, spin, sizeof spin);
    const jitscribe_scribe *scribe = jitscribe_global();
    jitscribe_handle handles[60];
    for (int i = 0; i < 60; i++) {
        if (i == 50) {
            pid_t worker = fork();
            if (worker == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) ((void (*)(void))room)();
            }
            printf("%d %d\n", getpid(), worker);
            /* Past what the kernel tells times of processes by. */
            usleep(200000);
        }
        char name[20];
        const jitscribe_code code = {
            .struct_size = sizeof code, .bytes = room + i * 64, .size = sizeof spin,
            .name = {name, sprintf(name, i < 50 ? "before%d" : "after%d", i)}};
        jitscribe_load(scribe, &code, &handles[i]);
    }
    for (int i = 40; i < 50; i++) jitscribe_unload(scribe, handles[i]);
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
}
