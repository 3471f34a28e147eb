// Prints the stack below jitted code, in the way that the first argument names.
//
//     backtraces WAY memory|unwinders|arena DIRECTORY
//
// The code is in memory of its own, is registered with unwinders there, or is in an arena whose file is in the directory. It has no
// frame pointer. The stack is main, native_bottom, jit::caller, native_top.
#include <jitscribe/arena.hpp>
#include <jitscribe/crash.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <string>
#include <sys/mman.h>
#include <unwind.h>

#if defined(WITH_BOOST)
#include <boost/stacktrace.hpp>
#include <iostream>
#endif
#if defined(WITH_LIBBACKTRACE)
#include <backtrace.h>
#endif
// Run by hand: docs/crash.md.
#if defined(WITH_CPPTRACE)
#include <cpptrace/cpptrace.hpp>
#endif

#include "../c/must.h"

// Calls its first argument, in a frame without a frame pointer in which rbp is 0.
static const unsigned char caller[] = {0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x31, 0xed, 0xff,
                                       0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0x5b, 0xc3};
static const jitscribe::saved rbx[] = {{-16, 3, 0}};
static const jitscribe::saved both[] = {{-16, 3, 0}, {-24, 6, 0}};
static const jitscribe::row rows[] = {
    {1, 16, 7, 0, 1, rbx},   {2, 24, 7, 0, 2, both}, {6, 32, 7, 0, 2, both},
    {14, 24, 7, 0, 2, both}, {15, 16, 7, 0, 1, rbx}, {16, 8, 7, 0, 0, nullptr},
};

static std::string way;
static jitscribe::scribe to;
static std::uint64_t code;
volatile int zero, most = 0x7fffffff;

using callback = void (*)();
using called = void (*)(callback);

// Names that dladdr finds: this program is linked with -rdynamic.
extern "C" {
void native_top();
void native_bottom(called jitted);
}

static void symbolize()
{
    // The frames are those of the unwinder in the process, the names ours.
    _Unwind_Backtrace(
        [](_Unwind_Context *context, void *) {
            char buffer[256];
            const std::uint64_t pc = _Unwind_GetIP(context) - 1;
            const auto found = jitscribe::symbolize(to, pc, buffer, sizeof buffer);
            Dl_info info{};
            const bool is_native = dladdr(reinterpret_cast<void *>(pc), &info) != 0 && info.dli_sname;
            std::printf("%s\n", found ? std::string(found->name).c_str() : is_native ? info.dli_sname : "?");
            return _URC_NO_REASON;
        },
        nullptr);
}

#if defined(WITH_LIBBACKTRACE)
static void by_libbacktrace()
{
    static const auto ignore = [](void *, const char *, int) {};
    static backtrace_state *state = backtrace_create_state(nullptr, 0, ignore, nullptr);
    // As its own backtrace_print: where there is no debug info, the symbol table is asked.
    backtrace_full(
        state, 0,
        [](void *, std::uintptr_t pc, const char *, int, const char *name) {
            const auto print = [](void *, std::uintptr_t, const char *symbol, std::uintptr_t, std::uintptr_t) {
                std::printf("%s\n", symbol ? symbol : "?");
            };
            if (name) {
                std::printf("%s\n", name);
            } else {
                backtrace_syminfo(state, pc, print, ignore, nullptr);
            }
            return 0;
        },
        ignore, nullptr);
}
#endif

extern "C" __attribute__((noinline)) void native_top()
{
    if (way == "dladdr") {
        Dl_info info{};
        const int found = dladdr(reinterpret_cast<void *>(code + 10), &info);
        std::printf("%s\n", found != 0 && info.dli_sname ? info.dli_sname : "?");
    } else if (way == "backtrace") {
        void *frames[32];
        const int count = backtrace(frames, 32);
        char **names = backtrace_symbols(frames, count);
        for (int number = 0; number < count; number++) {
            std::printf("%s\n", names[number]);
        }
        std::free(names);
    } else if (way == "symbolize") {
        symbolize();
    } else if (way == "abort") {
        std::abort();
    } else if (way == "fault") {
        *reinterpret_cast<volatile int *>(static_cast<std::uintptr_t>(zero) + 16) = 1;
    } else if (way == "overflow") {
        most = most + 1;
    }
#if defined(WITH_BOOST)
    if (way == "boost") {
        std::cout << boost::stacktrace::stacktrace() << std::flush;
    }
#endif
#if defined(WITH_CPPTRACE)
    if (way == "cpptrace") {
        cpptrace::generate_trace().print();
    }
#endif
#if defined(WITH_LIBBACKTRACE)
    if (way == "libbacktrace") {
        by_libbacktrace();
    }
#endif
    std::fflush(stdout);
}

extern "C" __attribute__((noinline)) void native_bottom(called jitted)
{
    jitted(native_top);
    zero = 0;
}

int main(int count, char **words)
{
    MUST(count == 4);
    way = words[1];
    const std::string place = words[2];
    jitscribe::settings settings;
    if (place == "unwinders") {
        settings.unwinders(JITSCRIBE_MODE_ON);
    }
    to = jitscribe::scribe::open(settings);
    jitscribe::allocation allocated;
    if (place == "arena") {
        const auto memory =
            jitscribe::arena::open(to, jitscribe::arena_settings().directory(words[3]));
        allocated = memory.allocate(sizeof caller);
        MUST(allocated);
        std::memcpy(allocated.bytes(), caller, sizeof caller);
        allocated.finish();
        code = allocated.address();
    } else {
        void *room = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(room != MAP_FAILED);
        std::memcpy(room, caller, sizeof caller);
        MUST(mprotect(room, 4096, PROT_READ | PROT_EXEC) == 0);
        code = reinterpret_cast<std::uintptr_t>(room);
    }
    const auto loaded = to.load(
        jitscribe::code::at(code, sizeof caller).name("jit::caller").rows(rows));
    MUST(loaded);
    native_bottom(reinterpret_cast<called>(static_cast<std::uintptr_t>(code)));
    return 0;
}
