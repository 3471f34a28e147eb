/*
 * A collector for Intel's JIT Profiling API that writes down what it is told: a line for each call, appended to the file that
 * COLLECTOR_LOG names.
 *
 * The structures follow the API's documentation. They are declared here once more, apart from those of the crate, so that the two
 * check one another.
 *
 * COLLECTOR_MODE   what Initialize returns; 1 by default
 * COLLECTOR_GATE   a file: a code with the name `waits` returns only when it exists
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct line {
    unsigned end, number;
};

struct load {
    unsigned id;
    char *name;
    void *address;
    unsigned size, line_count;
    struct line *lines;
    char *class, *source, *module;
    int architecture;
};

struct inlined {
    unsigned id, parent;
    char *name;
    void *address;
    unsigned size, line_count;
    struct line *lines;
    char *class, *source;
};

struct unload {
    unsigned id;
    char *name;
    void *address;
    unsigned size, line_count;
    struct line *lines;
    unsigned class_id;
    char *class, *source;
};

/* Held during each call, as a collector may do. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put_text(FILE *out, const char *text) {
    if (!text) {
        fputs(" NULL", out);
        return;
    }
    fputs(" \"", out);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte <= ' ' || byte >= 0x7f || byte == '"')
            fprintf(out, "\\x%02x", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
}

static void put_lines(FILE *out, unsigned count, const struct line *lines) {
    fputs(" [", out);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s%u:%u", i ? " " : "", lines[i].end, lines[i].number);
    fputc(']', out);
}

static void write_down(const char *text, size_t size) {
    const char *path = getenv("COLLECTOR_LOG");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0 || write(file, text, size) != (ssize_t)size)
        abort();
    close(file);
}

unsigned Initialize(void) {
    const char *mode = getenv("COLLECTOR_MODE");
    write_down("initialize\n", 11);
    return mode ? (unsigned)atoi(mode) : 1;
}

unsigned NotifyEvent(unsigned kind, void *data) {
    char *text = NULL;
    size_t size = 0;
    int waits = 0;
    pthread_mutex_lock(&lock);
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "%d %ld ", (int)getpid(), (long)syscall(SYS_gettid));
    if (kind == 22) {
        const struct load *it = data;
        fprintf(out, "load %u", it->id);
        put_text(out, it->name);
        fprintf(out, " %p+%x", it->address, it->size);
        put_lines(out, it->line_count, it->lines);
        put_text(out, it->class);
        put_text(out, it->source);
        put_text(out, it->module);
        fprintf(out, " %d", it->architecture);
        waits = strcmp(it->name, "waits") == 0;
    } else if (kind == 16) {
        const struct inlined *it = data;
        fprintf(out, "inline %u in %u", it->id, it->parent);
        put_text(out, it->name);
        fprintf(out, " %p+%x", it->address, it->size);
        put_lines(out, it->line_count, it->lines);
        put_text(out, it->class);
        put_text(out, it->source);
    } else if (kind == 14) {
        const struct unload *it = data;
        fprintf(out, "unload %u", it->id);
        put_text(out, it->name);
        fprintf(out, " %p+%x", it->address, it->size);
        put_lines(out, it->line_count, it->lines);
        put_text(out, it->class);
        put_text(out, it->source);
    } else {
        fprintf(out, "event %u", kind);
    }
    fputc('\n', out);
    fclose(out);
    write_down(text, size);
    free(text);
    if (waits) {
        const char *gate = getenv("COLLECTOR_GATE");
        while (access(gate, F_OK) != 0)
            usleep(1000);
    }
    pthread_mutex_unlock(&lock);
    return 1;
}
