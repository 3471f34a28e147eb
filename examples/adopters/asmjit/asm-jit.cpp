// Two functions made with AsmJit, which are announced: what is for jitscribe are the lines with `scribe`.
//
//     asm-jit SECONDS
#include <jitscribe.hpp>

#include <asmjit/x86.h>

#include <cstdlib>
#include <ctime>
#include <string_view>

namespace {

using work = int (*)(int);

/// Counts down from its argument by a step, with the usual frame. What AsmJit places is announced at once.
work compile(asmjit::JitRuntime &runtime, const jitscribe::scribe &scribe, std::string_view name, int step)
{
    using namespace asmjit;
    CodeHolder holder;
    holder.init(runtime.environment());
    x86::Assembler assembler(&holder);
    const Label loop = assembler.newLabel();
    assembler.push(x86::rbp);
    assembler.mov(x86::rbp, x86::rsp);
    assembler.mov(x86::eax, x86::edi);
    assembler.bind(loop);
    assembler.imul(x86::ecx, x86::eax, 17);
    assembler.sub(x86::eax, step);
    assembler.jg(loop);
    assembler.pop(x86::rbp);
    assembler.ret();
    work made = nullptr;
    if (runtime.add(&made, &holder) != kErrorOk) {
        std::abort();
    }
    jitscribe::code code(reinterpret_cast<const void *>(made), holder.codeSize());
    scribe.load(code.name(name).frame_pointer()).keep();
    return made;
}

} // namespace

int main(int count, char **words)
{
    // Of processor time.
    const double seconds = count > 1 ? std::atof(words[1]) : 1;
    const auto scribe = jitscribe::scribe::global();
    asmjit::JitRuntime runtime;
    const work by_one = compile(runtime, scribe, "down by one", 1);
    const work by_two = compile(runtime, scribe, "down by two", 2);
    const double end = static_cast<double>(std::clock()) + seconds * CLOCKS_PER_SEC;
    while (static_cast<double>(std::clock()) < end) {
        by_one(100000);
        by_two(100000);
    }
}
