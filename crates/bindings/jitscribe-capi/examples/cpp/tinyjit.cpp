// The JIT compiler of one instruction in C++: a cache of functions, each of which announces its own unload.
//
//     c++ -std=c++17 tinyjit.cpp $(pkg-config --cflags --libs jitscribe) -o tinyjit
#include <jitscribe.hpp>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace {

constexpr std::size_t room = 4096;

/// Executable memory with `x -> x + n`, and its announcement, which is destroyed first.
class function {
public:
    function(jitscribe::scribe scribe, int n)
    {
        void *memory = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        memory_ = static_cast<unsigned char *>(memory);
        const auto bytes = compile(n);
        std::memcpy(memory_, bytes.data(), bytes.size());
        mprotect(memory_, room, PROT_READ | PROT_EXEC);
        __builtin___clear_cache(reinterpret_cast<char *>(memory_),
                                reinterpret_cast<char *>(memory_) + bytes.size());

        const std::string name = "add_" + std::to_string(n);
        const std::vector<jitscribe::line> lines = {{0, 1, 1, 0}, {4, 2, 5, 0}};
        announced_ = scribe.load(jitscribe::code(memory_, bytes.size())
                                     .name(name)
                                     .tier("baseline")
                                     .kind(jitscribe::kind::JITSCRIBE_KIND_FUNCTION)
                                     .file("add.tiny")
                                     .lines(lines)
                                     .frame_pointer());
    }
    ~function()
    {
        announced_.unload();
        if (memory_ != nullptr) {
            munmap(memory_, room);
        }
    }
    function(const function &) = delete;
    function &operator=(const function &) = delete;

    int operator()(int x) const
    {
        int (*callee)(int) = nullptr;
        std::memcpy(&callee, &memory_, sizeof callee);
        return callee(x);
    }

private:
    static std::vector<unsigned char> compile(int n)
    {
#if defined(__x86_64__)
        std::vector<unsigned char> code = {0x55, 0x48, 0x89, 0xe5, 0x8d, 0x87, 0, 0, 0, 0, 0x5d, 0xc3};
        std::memcpy(code.data() + 6, &n, 4);
        return code;
#elif defined(__aarch64__)
        const unsigned words[] = {0xa9bf7bfd, 0x910003fd,
                                  0x11000000u | (static_cast<unsigned>(n) & 0xfff) << 10, 0xa8c17bfd,
                                  0xd65f03c0};
        std::vector<unsigned char> code(sizeof words);
        std::memcpy(code.data(), words, sizeof words);
        return code;
#else
#error "this example makes code for x86-64 and aarch64"
#endif
    }

    unsigned char *memory_ = nullptr;
    jitscribe::loaded_code announced_;
};

} // namespace

int main(int argc, char **)
{
    const auto notice = [](std::uint32_t, std::string_view text) {
        std::fprintf(stderr, "tinyjit: %.*s\n", static_cast<int>(text.size()), text.data());
    };
    const auto scribe = jitscribe::scribe::open(
        jitscribe::settings().add(JITSCRIBE_FLAG_ENVIRONMENT).notice(notice));

    std::map<int, function> cache;
    int sum = 0;
    for (int n : {1, 2, 3}) {
        sum += cache.try_emplace(n, scribe, n).first->second(10);
    }
    cache.erase(2);

    std::printf("%d\n", sum);
    std::fflush(stdout);
    while (argc > 1 && std::getchar() != EOF) {
    }
    return sum == 36 ? 0 : 1;
}
