/* Has things open and mapped that are called as logs are, and are none: a FIFO, a folder, a device, a socket, a memfd that is too
 * short, and a mapping of a file that says it is one and is cut off. */
#include "log.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(void) {
    mkfifo("jit-1.dump", 0600);
    if (open("jit-1.dump", O_RDONLY | O_NONBLOCK) < 0) return failed("jit-1.dump");
    mkdir("jit-2.dump", 0700);
    if (open("jit-2.dump", O_RDONLY | O_DIRECTORY) < 0) return failed("jit-2.dump");
    symlink("/dev/zero", "jit-3.dump");
    if (open("jit-3.dump", O_RDONLY) < 0) return failed("jit-3.dump");
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "jit-4.dump"};
    int listens = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listens, (struct sockaddr *)&at, sizeof at) < 0) return failed("bind");
    int shorter = memfd_create("jitscribe", 0);
    ftruncate(shorter, 50);
    mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shorter, 0);
    int cut = open("jit-5.dump", O_RDWR | O_CREAT, 0600);
    ftruncate(cut, 1 << 20);
    unsigned char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, cut, 0);
    log_head(p, 65536, 16, 3, 1 << 20);
    ftruncate(cut, 0);
    say_pid();
    for (;;) pause();
}
