/* A file system of an ordinary user's whose reads are never answered, and a process with code in a mapping of its file, and some
 * elsewhere. The mount is made as fusermount3, which is set-user-id root, makes it. */
#include "log.h"
#include <jitscribe.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <signal.h>

static void serve(int fd) {
    static char in[1 << 17];
    for (;;) {
        if (read(fd, in, sizeof in) < 0) {
            if (errno == EINTR || errno == ENOENT) continue;
            _exit(0);
        }
        struct fuse_in_header *head = (void *)in;
        char answer[4096] = {0};
        struct fuse_out_header *out = (void *)answer;
        out->unique = head->unique;
        size_t length = 0;
        struct fuse_attr attr = {
            .ino = head->nodeid, .size = 1 << 20, .mode = head->nodeid == 1 ? S_IFDIR | 0755 : S_IFREG | 0644,
            .nlink = 1, .uid = 65534, .gid = 65534, .blksize = 4096};
        switch (head->opcode) {
        case FUSE_INIT: {
            struct fuse_init_out *init = (void *)(out + 1);
            init->major = 7; init->minor = 31; init->max_write = 65536; init->max_readahead = 65536;
            length = sizeof *init;
            break;
        }
        case FUSE_LOOKUP: {
            struct fuse_entry_out *entry = (void *)(out + 1);
            if (strcmp(in + sizeof *head, "f") != 0) { out->error = -ENOENT; break; }
            entry->nodeid = 2; entry->attr = attr; entry->attr.ino = 2; entry->attr.mode = S_IFREG | 0644;
            entry->attr_valid = entry->entry_valid = 1000;
            length = sizeof *entry;
            break;
        }
        case FUSE_GETATTR: {
            struct fuse_attr_out *got = (void *)(out + 1);
            got->attr = attr; got->attr_valid = 1000;
            length = sizeof *got;
            break;
        }
        case FUSE_OPEN: case FUSE_OPENDIR: {
            struct fuse_open_out *opened = (void *)(out + 1);
            opened->fh = 1;
            length = sizeof *opened;
            break;
        }
        case FUSE_READ: continue;   /* never answered */
        case FUSE_INTERRUPT: case FUSE_FORGET: case FUSE_BATCH_FORGET: continue;
        case FUSE_FLUSH: case FUSE_RELEASE: case FUSE_ACCESS: break;
        default: out->error = -ENOSYS;
        }
        out->len = sizeof *out + length;
        write(fd, answer, out->len);
    }
}

int main(int argc, char **argv) {
    char options[200], file[4096];
    int fd = open("/dev/fuse", O_RDWR);
    if (fd < 0) return failed("/dev/fuse");
    sprintf(options, "fd=%d,rootmode=40000,user_id=65534,group_id=65534,allow_other", fd);
    if (mount("hostile", argv[1], "fuse.hostile", MS_NOSUID | MS_NODEV, options)) return failed("mount");
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setgid(65534); setuid(65534);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(fd);
    }
    setgid(65534); setuid(65534);
    prctl(PR_SET_DUMPABLE, 1);
    close(fd);
    snprintf(file, sizeof file, "%s/f", argv[1]);
    int opened = open(file, O_RDONLY);
    if (opened < 0) return failed(file);
    char *p = mmap(0, 1 << 16, PROT_READ, MAP_PRIVATE, opened, 0);
    const jitscribe_scribe *scribe = jitscribe_global();
    static const unsigned char here[64] = {0xc3};
    jitscribe_handle handle;
    jitscribe_code there = {.struct_size = sizeof there, .bytes = (void *)p, .size = 4096, .name = JITSCRIBE_STR("stuck")};
    jitscribe_load(scribe, &there, &handle);
    jitscribe_code code = {.struct_size = sizeof code, .bytes = (void *)here, .size = 64, .name = JITSCRIBE_STR("sound")};
    jitscribe_load(scribe, &code, &handle);
    say_pid();
    for (;;) pause();
}
