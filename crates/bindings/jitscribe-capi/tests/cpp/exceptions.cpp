/* An exception goes through generated code, and the registers that the code saved have their values afterwards. */

#include <jitscribe.hpp>

#include <cstdio>
#include <cstring>
#include <sys/mman.h>

namespace {

using thrower = void (*)();
using runner = void (*)(thrower);

[[noreturn]] void throw_seven() { throw 7; }

/* Compilers keep the sums in registers that the callee must restore. */
__attribute__((noinline)) long work(long a, long b, runner run)
{
    const long x = a * 3;
    const long y = b * 5;
    try {
        run(throw_seven);
    } catch (int thrown) {
        return x + y + thrown;
    }
    return -1;
}

} // namespace

int main()
{
    /* push rbp; mov rbp, rsp; push rbx; push r12; xor ebx, ebx; xor r12d, r12d; call rdi; pop r12; pop rbx; pop rbp; ret */
    static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x41, 0x54, 0x31, 0xdb, 0x45,
                                          0x31, 0xe4, 0xff, 0xd7, 0x41, 0x5c, 0x5b, 0x5d, 0xc3};
    void *const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return 1;
    }
    std::memcpy(memory, bytes, sizeof bytes);
    jitscribe::settings settings;
    const auto scribe = jitscribe::scribe::open(settings.unwinders(JITSCRIBE_MODE_ON));
    const jitscribe_saved saved[] = {{-16, 6, 0}, {-24, 3, 0}, {-32, 12, 0}};
    const jitscribe_row rows[] = {
        {1, 16, 7, 0, 1, saved}, {4, 16, 6, 0, 1, saved}, {7, 16, 6, 0, 3, saved}};
    const jitscribe_row saves[] = {{7, 0, 0, 0, 2, saved + 1}};
    for (const bool by_rows : {true, false}) {
        jitscribe::code code(memory, sizeof bytes);
        code.name("saver");
        if (by_rows) {
            code.rows(rows);
        } else {
            code.frame_pointer(saves);
        }
        const auto loaded = scribe.load(code);
        const long got = work(1000, 2000, reinterpret_cast<runner>(memory));
        if (got != 13007) {
            std::printf("by rows %d: 13007 is %ld\n", by_rows, got);
            return 1;
        }
    }
    std::puts("all is so");
    return 0;
}
