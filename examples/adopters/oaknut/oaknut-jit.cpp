// Two functions made with oaknut, for AArch64, which are announced: what is for jitscribe is in
// `announce`. The inner one calls back, for a backtrace that must come through both of them to
// `start`.
//
//     JITSCRIBE=unwinders oaknut-jit      then it waits for the end of its input
#include <jitscribe.hpp>

#include <oaknut/code_block.hpp>
#include <oaknut/oaknut.hpp>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

/// Where a function is, in bytes, and its frame.
struct function {
    const char *name;
    std::ptrdiff_t begin, saved, end;
    std::vector<jitscribe::saved> registers;
};

void announce(const jitscribe::scribe &scribe, const oaknut::CodeBlock &memory,
              const function &made)
{
    const auto *bytes = reinterpret_cast<const char *>(memory.ptr()) + made.begin;
    jitscribe::row row{};
    row.offset = static_cast<std::uint32_t>(made.saved - made.begin);
    row.saved_count = static_cast<std::uint32_t>(made.registers.size());
    row.saved = made.registers.data();
    jitscribe::code code(bytes, static_cast<std::size_t>(made.end - made.begin));
    code.name(made.name);
    made.registers.empty() ? code.frame_pointer() : code.frame_pointer({&row, 1});
    scribe.load(code).keep();
}

std::vector<std::uint64_t> seen;

/// What the generated code calls.
extern "C" void look()
{
    seen.clear();
    _Unwind_Backtrace(
        [](_Unwind_Context *context, void *) {
            seen.push_back(_Unwind_GetIP(context));
            return _URC_NO_REASON;
        },
        nullptr);
}

[[gnu::noinline]] void start()
{
    using namespace oaknut::util;
    oaknut::CodeBlock memory(4096);
    oaknut::CodeGenerator code(memory.ptr());
    memory.unprotect();

    // inner(): calls back.
    function inner = {"inner", 0, 0, 0, {}};
    oaknut::Label at_inner = code.l();
    code.STP(X29, X30, SP, PRE_INDEXED, -16);
    code.MOV(X29, SP);
    inner.saved = code.offset();
    code.MOV(X16, reinterpret_cast<std::uint64_t>(&look));
    code.BLR(X16);
    code.LDP(X29, X30, SP, POST_INDEXED, 16);
    code.RET();
    inner.end = code.offset();

    // rounds(n): calls it n times.
    function rounds = {"rounds", code.offset(), 0, 0, {{-32, 19, 0}}};
    oaknut::Label round;
    const auto run = code.xptr<void (*)(std::uint64_t)>();
    // As with any frame pointer: a frame that is allocated by `stp x29, x30, [sp, -32]!` needs rows
    // instead.
    code.STP(X29, X30, SP, PRE_INDEXED, -16);
    code.MOV(X29, SP);
    code.STR(X19, SP, PRE_INDEXED, -16);
    rounds.saved = code.offset();
    code.MOV(X19, X0);
    code.l(round);
    code.BL(at_inner);
    code.SUBS(X19, X19, 1);
    code.B(NE, round);
    code.LDR(X19, SP, POST_INDEXED, 16);
    code.LDP(X29, X30, SP, POST_INDEXED, 16);
    code.RET();
    rounds.end = code.offset();
    memory.protect();
    memory.invalidate_all();
    const auto scribe = jitscribe::scribe::global();
    announce(scribe, memory, inner);
    announce(scribe, memory, rounds);

    run(10);
    // Which frame is in which code: `look`, the two functions, and this one.
    for (const std::uint64_t address : seen) {
        char name[64];
        jitscribe_symbol symbol{};
        symbol.struct_size = sizeof symbol;
        if (jitscribe_symbolize(scribe.raw(), address - 1, 0, name, sizeof name, &symbol)) {
            std::printf("through %s\n", name);
        } else if (_Unwind_FindEnclosingFunction(reinterpret_cast<void *>(address - 1)) ==
                   reinterpret_cast<void *>(&start)) {
            std::puts("to the caller");
        }
    }
    std::fflush(stdout);
    std::getchar();
}

} // namespace

int main()
{
    start();
}
