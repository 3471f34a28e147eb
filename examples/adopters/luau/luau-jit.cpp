// Compiles a file of Luau to machine code, announces it, and calls the function that the file returns again and again.
//
//     luau-jit FILE.luau SECONDS
//
// What is for jitscribe is `announce`, and the line with `setPerfLog`.
#include <jitscribe.hpp>

#include <Luau/CodeGen.h>
#include <lua.h>
#include <luacode.h>
#include <lualib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

namespace {

/// Luau calls this for the gate, through which the VM enters all machine code, and for each module's helpers and functions.
void announce(void *context, std::uintptr_t address, unsigned size, const char *name)
{
    // All other code runs in the frame that the gate has set up, on x86-64 by `push rbp; mov rbp, rsp` and five more pushes.
    static const jitscribe::saved saved[] = {{-16, 6, 0},  {-24, 3, 0},  {-32, 12, 0},
                                             {-40, 13, 0}, {-48, 14, 0}, {-56, 15, 0}};
    static const jitscribe::row of_gate = {13, 0, 0, 0, 5, saved + 1}, of_others = {0, 16, 6, 0, 6, saved};
    const bool is_gate = std::strcmp(name, "<luau gate>") == 0;
    // Luau says a page, but the gate begins behind the unwind info: so much would reach into the next page.
    if (is_gate) {
        size -= address % 4096;
    }
    jitscribe::code code(reinterpret_cast<const void *>(address), size);
    code.name(name).tier("native");
    if (is_gate) {
        code.kind(jitscribe::kind::JITSCRIBE_KIND_TRAMPOLINE).frame_pointer({&of_gate, 1});
    } else {
        code.rows({&of_others, 1});
    }
    static_cast<const jitscribe::scribe *>(context)->load(code).keep();
}

} // namespace

int main(int count, char **words)
{
    if (count != 3) {
        std::fputs("usage: luau-jit FILE.luau SECONDS\n", stderr);
        return 2;
    }
    if (!Luau::CodeGen::isSupported()) {
        std::fputs("luau-jit: Luau compiles nothing to machine code here\n", stderr);
        return 1;
    }
    std::ifstream file(words[1]);
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    auto scribe = jitscribe::scribe::global();
    if (scribe.is_on()) {
        // Before `create`, which makes the gate.
        Luau::CodeGen::setPerfLog(&scribe, announce);
    }
    Luau::CodeGen::create(state);
    std::size_t size = 0;
    char *bytecode = luau_compile(source.data(), source.size(), nullptr, &size);
    const std::string name = std::string("@") + words[1];
    const bool is_loaded = luau_load(state, name.c_str(), bytecode, size, 0) == 0;
    std::free(bytecode);
    if (!is_loaded) {
        std::fprintf(stderr, "luau-jit: %s\n", lua_tostring(state, -1));
        return 1;
    }
    Luau::CodeGen::compile(state, -1, 0);
    lua_call(state, 0, 1);

    // Of processor time.
    const std::clock_t end = std::clock() + std::atoi(words[2]) * CLOCKS_PER_SEC;
    while (std::clock() < end) {
        lua_pushvalue(state, -1);
        lua_pushnumber(state, 10000);
        lua_call(state, 1, 1);
        lua_pop(state, 1);
    }
    lua_close(state);
}
