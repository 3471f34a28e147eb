/* A process that writes a map and forks an heir, and then changes its own code. Prints the heir's process id, and waits.
 *
 * heirs DIR HOW: "lives": the process that forked still runs; "exits": it has ended; "replaces": the heir replaces some of what
 * it inherited; "forks": it forks an heir of its own, whose id is printed; "idles": the same, but that one writes nothing. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OLD = 2000, SIZE = 64 };

static unsigned char *code;
static const char *dir;

static int map(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/perf-%d.map", dir, getpid());
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
}

static void write_codes(int fd, const char *name, int first, int count)
{
    char line[100];
    for (int i = first; i < first + count; i++) {
        int size = snprintf(line, sizeof line, "%lx %x %s %d\n", (unsigned long)code + i * SIZE, SIZE, name, i);
        if (write(fd, line, size) != size) exit(9);
    }
}

static void say(int pipe) { if (write(pipe, "x", 1) != 1) exit(8); }
static void hear(int pipe) { char c; if (read(pipe, &c, 1) != 1) exit(7); }

static void heir(const char *how, int say_to, int hear_from, int ready)
{
    int fd = map();
    write_codes(fd, "heir", 3 * OLD, 3);
    say(say_to);
    hear(hear_from);
    if (!strcmp(how, "replaces")) write_codes(fd, "mine", 100, 10);
    pid_t last = getpid();
    if (!strcmp(how, "idles") && (last = fork()) == 0) {
        say(say_to);
        pause();
    }
    if (!strcmp(how, "forks") && (last = fork()) == 0) {
        write_codes(map(), "late", 4 * OLD, 2);
        say(say_to);
        pause();
    }
    if (last != getpid()) hear(hear_from);
    printf("%d\n", last);
    fflush(stdout);
    say(ready);
    pause();
}

int main(int count, char **words)
{
    if (count < 3) return 6;
    dir = words[1];
    const char *how = words[2];
    code = mmap(NULL, 5 * OLD * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int up[2], down[2], ready[2];
    if (pipe(up) || pipe(down) || pipe(ready)) return 5;
    setpgid(0, 0);
    pid_t process = fork();
    if (process == 0) {
        int fd = map();
        write_codes(fd, "old", 0, OLD);
        if (fork() == 0) heir(how, up[1], down[0], ready[1]);
        hear(up[0]);
        write_codes(fd, "new", 0, OLD / 2);
        write_codes(fd, "later", OLD, 500);
        if (!strcmp(how, "exits")) _exit(0);
        say(down[1]);
        if (!strcmp(how, "forks") || !strcmp(how, "idles")) {
            hear(up[0]);
            say(down[1]);
        }
        pause();
    }
    if (!strcmp(how, "exits")) {
        int status;
        waitpid(process, &status, 0);
        say(down[1]);
    }
    hear(ready[0]);
    puts("done");
    fflush(stdout);
    getchar();
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    return 3;
}
