/* Registers code with GDB's JIT interface, as LLVM's listeners do, and runs it. The symbols are local, as in numba's library.
 *
 * registers MODE SECONDS (of processor time)
 *   plain  one object, with the function `spin_in_memory`
 *   stale  its addresses are those of the heap: the code was copied elsewhere
 *   gone   the object is unregistered and its code is unmapped after half of the time; from then on, other code runs
 *   loop   the list has no end
 *   wild   its second entry is not in memory
 *   late   the code becomes executable half a second after it was registered, as LLVM's may
 *   file   a file was mapped where the code is
 *   brief  each object is unregistered and its code is unmapped after 100 ms; the times before and after each registration go to standard error
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct entry { struct entry *next, *prev; const char *symfile; uint64_t size; };
struct descriptor { uint32_t version, action; struct entry *relevant, *first; };
__attribute__((noinline, used)) static void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((used)) static volatile struct descriptor __jit_debug_descriptor = {1, 0, 0, 0};

static void add(struct entry *entry) {
  entry->next = __jit_debug_descriptor.first;
  if (entry->next) entry->next->prev = entry;
  __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = 1;
  __jit_debug_register_code();
}

/* An object with one function, of `size` bytes at `address`. */
static struct entry *object(const char *name, const void *address, uint64_t size) {
  struct { Elf64_Ehdr head; Elf64_Shdr sections[4]; Elf64_Sym symbols[2]; char names[96]; } *o = calloc(1, sizeof *o);
  const char names[] = "\0.text\0.symtab\0.strtab";
  memcpy(o->head.e_ident, ELFMAG "\2\1\1", 7);
  o->head.e_type = ET_REL, o->head.e_machine = EM_X86_64, o->head.e_version = 1, o->head.e_ehsize = sizeof o->head;
  o->head.e_shoff = (char *)o->sections - (char *)o, o->head.e_shentsize = sizeof *o->sections;
  o->head.e_shnum = 4, o->head.e_shstrndx = 3;
  o->sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                .sh_addr = (uint64_t)address, .sh_size = size};
  o->sections[2] = (Elf64_Shdr){.sh_name = 7, .sh_type = SHT_SYMTAB, .sh_offset = (char *)o->symbols - (char *)o,
                                .sh_size = sizeof o->symbols, .sh_link = 3, .sh_entsize = sizeof *o->symbols};
  o->sections[3] = (Elf64_Shdr){.sh_name = 15, .sh_type = SHT_STRTAB, .sh_offset = o->names - (char *)o, .sh_size = 96};
  memcpy(o->names, names, sizeof names);
  strcpy(o->names + 32, name);
  o->symbols[1] = (Elf64_Sym){.st_name = 32, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = size};
  struct entry *entry = calloc(1, sizeof *entry);
  entry->symfile = (char *)o, entry->size = sizeof *o;
  return entry;
}

/* mov ecx, 1000000; 1: dec ecx; jnz 1b; ret */
static const unsigned char CODE[] = {0xb9, 0x40, 0x42, 0x0f, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void *code_at(void *address) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED : 0);
  void *memory = mmap(address, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
  memcpy(memory, CODE, sizeof CODE);
  return memory;
}

static void *code(void) { return code_at(0); }

static void unregister(struct entry *entry) {
  __jit_debug_descriptor.first = 0;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = 2;
  __jit_debug_register_code();
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static unsigned long long monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static void run(void *code, double seconds) {
  for (double end = now() + seconds; now() < end;) ((void (*)(void))code)();
}

/* Code after code, each at the address of the one before. */
static void brief(double seconds) {
  void *place = code();
  for (int number = 0; number < seconds * 10; number++) {
    char name[32];
    snprintf(name, sizeof name, "brief_%d", number);
    code_at(place);
    struct entry *entry = object(name, place, sizeof CODE);
    unsigned long long before = monotonic();
    add(entry);
    fprintf(stderr, "%s %llu %llu\n", name, before, monotonic());
    run(place, 0.1);
    unregister(entry);
    munmap(place, 4096);
  }
}

int main(int argc, char **words) {
  if (argc != 3) return 2;
  const char *mode = words[1];
  double seconds = atof(words[2]);
  if (!strcmp(mode, "brief")) return brief(seconds), 0;
  void *place = 0;
  if (!strcmp(mode, "file")) {
    int file = open("/proc/self/exe", O_RDONLY);
    place = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    close(file);
  }
  void *first = code_at(place);
  int is_late = !strcmp(mode, "late");
  if (is_late) mprotect(first, 4096, PROT_READ | PROT_WRITE);
  int is_stale = !strcmp(mode, "stale");
  struct entry *entry = object("spin_in_memory", is_stale ? malloc(64) : first, sizeof CODE);
  add(entry);
  if (!strcmp(mode, "loop")) {
    struct entry *other = object("never_run", (char *)first + 64, 16);
    add(other);
    entry->next = other;
  }
  if (!strcmp(mode, "wild")) entry->next = (void *)0x123456789000;
  if (is_late) {
    usleep(500000);
    mprotect(first, 4096, PROT_READ | PROT_EXEC);
  }
  printf("ready %p\n", first);
  fflush(stdout);
  if (!strcmp(mode, "gone")) {
    run(first, seconds / 2);
    unregister(entry);
    munmap(first, 4096);
    first = code();
    /* What is at the old address now is other code. */
    ((unsigned char *)first)[1]++;
    seconds /= 2;
  }
  run(first, seconds);
  return 0;
}
