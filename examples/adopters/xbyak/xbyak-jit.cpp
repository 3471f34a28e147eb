// Two functions made with Xbyak in one generator, which are announced: what is for jitscribe is in `announce`.
//
//     xbyak-jit SECONDS
#include <jitscribe.hpp>

#include <xbyak/xbyak.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

class generator : public Xbyak::CodeGenerator {
public:
    using work = std::uint64_t (*)(std::uint64_t);

    // Memory that grows while code is written, and so may move.
    generator() : CodeGenerator(4096, Xbyak::AutoGrow)
    {
        // mix(n): a leaf, which leaves the stack pointer alone.
        Xbyak::Label mix, step;
        L(mix);
        mov(rax, rdi);
        mov(ecx, 40);
        L(step);
        imul(rax, rax, 31);
        xor_(rax, rcx);
        dec(ecx);
        jnz(step);
        ret();
        // Before the padding: what is between two functions belongs to none.
        mix_end_ = getSize();
        align(16);

        // rounds(n): the sum of mix(n) to mix(1).
        rounds_ = getSize();
        Xbyak::Label round;
        push(rbp);
        mov(rbp, rsp);
        push(rbx);
        push(r12);
        saved_ = getSize() - rounds_;
        mov(rbx, rdi);
        xor_(r12d, r12d);
        L(round);
        mov(rdi, rbx);
        call(mix);
        add(r12, rax);
        dec(rbx);
        jnz(round);
        mov(rax, r12);
        pop(r12);
        pop(rbx);
        pop(rbp);
        ret();
        rounds_end_ = getSize();
        // Jumps are resolved, the code has its final place, and can no longer be written.
        readyRE();
    }

    /// Offsets are by `getSize`, which is where the next instruction will be; the address is final behind `ready`.
    void announce(const jitscribe::scribe &scribe) const
    {
        scribe.load(jitscribe::code(getCode(), mix_end_).name("mix of words").rows({})).keep();
        const jitscribe::saved saved[] = {{-24, 3, 0}, {-32, 12, 0}}; // rbx and r12, below the return address and rbp
        const jitscribe::row row = {static_cast<std::uint32_t>(saved_), 16, 6, 0, 2, saved};
        jitscribe::code code(getCode() + rounds_, rounds_end_ - rounds_);
        scribe.load(code.name("rounds").frame_pointer({&row, 1})).keep();
    }

    work rounds() const { return reinterpret_cast<work>(reinterpret_cast<std::uintptr_t>(getCode() + rounds_)); }

private:
    std::size_t mix_end_ = 0, rounds_ = 0, saved_ = 0, rounds_end_ = 0;
};

} // namespace

int main(int count, char **words)
{
    // Of processor time.
    const double seconds = count > 1 ? std::atof(words[1]) : 1;
    const generator made;
    made.announce(jitscribe::scribe::global());
    const double end = static_cast<double>(std::clock()) + seconds * CLOCKS_PER_SEC;
    while (static_cast<double>(std::clock()) < end) {
        made.rounds()(1000);
    }
}
