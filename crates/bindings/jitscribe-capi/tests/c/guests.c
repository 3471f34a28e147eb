/*
 * Several libraries in one process that show code to debuggers: the shared library, opened twice under two names, each as if
 * it were alone; with WITH_OURS, the static library, linked into the program; with WITH_LLVM, LLVM, which also has the
 * symbols of the interface.
 *
 *     JITSCRIBE=gdb guests LIBRARY ANOTHER
 *
 * The code of one calls that of the next: llvm_code, static_code, first_copy, second_copy.
 */
#define _GNU_SOURCE
#include <jitscribe.h>

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "must.h"

enum { ROOM = 4096, SIZE = 64 };

typedef void (*code)(void);

static unsigned char *room;

/* push rbp; mov rbp, rsp; mov rax, callee; call rax; pop rbp; ret */
static unsigned char *compile(int place, const void *callee)
{
    unsigned char *at = room + place * SIZE;
    memcpy(at, "\x55\x48\x89\xe5\x48\xb8", 6);
    memcpy(at + 6, &callee, 8);
    memcpy(at + 14, "\xff\xd0\x5d\xc3", 4);
    return at;
}

static jitscribe_code describe(const unsigned char *bytes, const char *name)
{
    const jitscribe_code it = {
        .struct_size = sizeof it,
        .bytes = bytes,
        .size = 18,
        .name = {.data = name, .size = strlen(name)},
        .unwind = {.kind = JITSCRIBE_UNWIND_KIND_FRAME_POINTER},
    };
    return it;
}

/* The function that the innermost code calls. */
void bottom(void);
__attribute__((noinline)) void bottom(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Announces code through a library that nothing else in the process sees. */
static void announce_by(const char *path, const jitscribe_code *it)
{
    const jitscribe_scribe *(*global)(void);
    jitscribe_result (*load)(const jitscribe_scribe *, const jitscribe_code *, jitscribe_handle *);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library != NULL);
    void *symbol = dlsym(library, "jitscribe_global");
    memcpy(&global, &symbol, sizeof symbol);
    symbol = dlsym(library, "jitscribe_load");
    memcpy(&load, &symbol, sizeof symbol);
    OK(load(global(), it, NULL));
}

#ifdef WITH_LLVM
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Target.h>

/* llvm_code, which calls its argument. */
static void call(code callee)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMLinkInMCJIT();
    LLVMModuleRef module = LLVMModuleCreateWithName("guest");
    LLVMTypeRef nothing = LLVMFunctionType(LLVMVoidType(), NULL, 0, 0);
    LLVMTypeRef pointer = LLVMPointerType(nothing, 0);
    LLVMValueRef function =
        LLVMAddFunction(module, "llvm_code", LLVMFunctionType(LLVMVoidType(), &pointer, 1, 0));
    LLVMBuilderRef builder = LLVMCreateBuilder();
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlock(function, ""));
    LLVMBuildCall2(builder, nothing, LLVMGetParam(function, 0), NULL, 0, "");
    LLVMBuildRetVoid(builder);
    LLVMExecutionEngineRef engine;
    char *why = NULL;
    MUST(!LLVMCreateExecutionEngineForModule(&engine, module, &why));
    uint64_t address = LLVMGetFunctionAddress(engine, "llvm_code");
    void (*caller)(code);
    memcpy(&caller, &address, sizeof caller);
    caller(callee);
}
#else
static void call(code callee)
{
    callee();
}
#endif

#ifdef WITH_OURS
#include "interface.h"

static void announce(const jitscribe_code *it)
{
    const jitscribe_scribe *scribe = jitscribe_global();
    OK(jitscribe_load(scribe, it, NULL));
}
#endif

int main(int argc, char **argv)
{
    MUST(argc == 3);
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(room != MAP_FAILED);
    code innermost = bottom;
    const void *callee;
    memcpy(&callee, &innermost, sizeof callee);
    const unsigned char *second = compile(2, callee);
    const unsigned char *first = compile(1, second);
    const unsigned char *outermost = compile(0, first);
    MUST(mprotect(room, ROOM, PROT_READ | PROT_EXEC) == 0);

    jitscribe_code it = describe(first, "first_copy");
    announce_by(argv[1], &it);
    it = describe(second, "second_copy");
    announce_by(argv[2], &it);
#ifdef WITH_OURS
    it = describe(outermost, "static_code");
    announce(&it);
#else
    outermost = first;
#endif

    memcpy(&innermost, &outermost, sizeof innermost);
    call(innermost);
#ifdef WITH_OURS
    MUST(shown("static_code") == 1);
#endif
    puts("all is so");
    return 0;
}
