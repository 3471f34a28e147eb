// The arena of the C++ wrapper, in the directory that the argument names: ownership of allocations, and exceptions through its
// code.
#include <jitscribe/arena.hpp>

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <type_traits>

#include "../c/must.h"

using jitscribe::arena;
using jitscribe::allocation;

static_assert(!std::is_copy_constructible_v<allocation>);
static_assert(!std::is_copy_assignable_v<allocation>);
static_assert(std::is_nothrow_move_constructible_v<allocation>);
static_assert(std::is_nothrow_move_assignable_v<allocation>);
static_assert(std::is_nothrow_destructible_v<allocation>);
static_assert(std::is_trivially_copyable_v<arena>);

#if defined(__x86_64__)
static const unsigned char answer[] = {0xb8, 42, 0, 0, 0, 0xc3};
// Calls its first argument, in a frame without a frame pointer in which rbp is 0.
static const unsigned char caller[] = {0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x31, 0xed, 0xff,
                                       0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0x5b, 0xc3};
static const jitscribe::saved rbx[] = {{-16, 3, 0}};
static const jitscribe::saved both[] = {{-16, 3, 0}, {-24, 6, 0}};
static const jitscribe::row rows[] = {
    {1, 16, 7, 0, 1, rbx},   {2, 24, 7, 0, 2, both}, {6, 32, 7, 0, 2, both},
    {14, 24, 7, 0, 2, both}, {15, 16, 7, 0, 1, rbx}, {16, 8, 7, 0, 0, nullptr},
};
#elif defined(__aarch64__)
static const unsigned char answer[] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static allocation put(const arena &memory, const unsigned char *bytes, std::size_t size)
{
    allocation made = memory.allocate(size);
    MUST(made && made.bytes() != nullptr && made.address() != 0);
    std::memcpy(made.bytes(), bytes, size);
    made.finish();
    MUST(made.bytes() == nullptr);
    return made;
}

static void ownership(const arena &memory)
{
    allocation one = put(memory, answer, sizeof answer);
    const std::uint64_t address = one.address();
    MUST(one.function<int (*)()>()() == 42);
    allocation two = std::move(one);
    MUST(two && !one && two.address() == address && one.address() == 0); // NOLINT: that is the question
    one = put(memory, answer, sizeof answer);
    MUST(one.address() != address);
    one = std::move(two);
    MUST(one && !two && one.address() == address);
    allocation &same = one;
    one = std::move(same);
    MUST(one && one.function<int (*)()>()() == 42);
#if defined(__x86_64__)
    static_cast<unsigned char *>(one.edit())[1] = 43;
    one.finish();
    MUST(one.function<int (*)()>()() == 43);
#endif
    one.free();
    MUST(!one);
    one.free();
    one.finish();
    MUST(one.edit() == nullptr);
    MUST(!memory.allocate(static_cast<std::size_t>(2) << 30));
    allocation last = put(memory, answer, sizeof answer);
    jitscribe_allocation *raw = last.release();
    MUST(raw != nullptr && !last);
    MUST(jitscribe_allocation_free(raw) == JITSCRIBE_RESULT_OK);
    MUST(!arena() && !arena().allocate(16));
}

#if defined(__x86_64__)
[[gnu::noinline]] static void thrower()
{
    throw std::string("through");
}

static void exceptions(jitscribe::scribe to, const arena &memory)
{
    allocation code = put(memory, caller, sizeof caller);
    auto known = to.load(
        jitscribe::code(caller, sizeof caller).runs_at(code.address()).name("caller").rows(rows));
    MUST(known);
    Dl_info info;
    MUST(dladdr(reinterpret_cast<void *>(static_cast<std::uintptr_t>(code.address())), &info) != 0);
    MUST(std::strcmp(info.dli_sname, "caller") == 0);
    bool caught = false;
    try {
        code.function<void (*)(void (*)())>()(thrower);
    } catch (const std::string &text) {
        caught = text == "through";
    }
    MUST(caught);
}
#endif

int main(int count, char **arguments)
{
    MUST(count == 2);
    auto to = jitscribe::scribe::open(jitscribe::settings());
    const arena memory = arena::open(
        to, jitscribe::arena_settings().segment(1 << 20).limit(1 << 22).directory(arguments[1]).sweep_hours(1));
    MUST(memory && memory.raw() != nullptr);
    ownership(memory);
#if defined(__x86_64__)
    exceptions(to, memory);
#endif
    MUST(!arena::open(to, jitscribe::arena_settings().directory("/nowhere/at/all")));
    std::puts("all is so");
}
