// The C++ wrapper: ownership, and that all of its settings reach C.
#include <jitscribe/arena.hpp>
#include <jitscribe/crash.hpp>
#include <jitscribe/objects.hpp>

#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "../c/must.h"

using jitscribe::loaded_code;
using jitscribe::scribe;

static_assert(!std::is_copy_constructible_v<loaded_code>);
static_assert(!std::is_copy_assignable_v<loaded_code>);
static_assert(std::is_nothrow_move_constructible_v<loaded_code>);
static_assert(std::is_nothrow_move_assignable_v<loaded_code>);
static_assert(std::is_nothrow_destructible_v<loaded_code>);
static_assert(std::is_trivially_copyable_v<scribe>);
static_assert(std::is_convertible_v<std::vector<jitscribe::line>, jitscribe::view<jitscribe::line>>);
static_assert(!std::is_convertible_v<std::vector<int>, jitscribe::view<jitscribe::line>>);

static loaded_code load(scribe to, std::uint64_t address)
{
    return to.load(jitscribe::code::at(address, 16).name("code"));
}

static void ownership(scribe to)
{
    loaded_code one = load(to, 0x1000);
    MUST(one);
    loaded_code two = std::move(one);
    MUST(two && !one); // NOLINT: that is the question
    one = load(to, 0x2000);
    MUST(one);
    one = std::move(two);
    MUST(one && !two);
    loaded_code &same = one;
    one = std::move(same);
    MUST(one);
    MUST(one.moved_to(0x3000) == JITSCRIBE_RESULT_OK);
    static const unsigned char bytes[16] = {};
    MUST(one.moved_to(bytes, sizeof bytes) == JITSCRIBE_RESULT_OK);
    const jitscribe_handle raw = one.release();
    MUST(raw != 0 && !one);
    loaded_code again = to.adopt(raw);
    MUST(again);
    again.unload();
    MUST(!again);
    again.unload();
    loaded_code kept = load(to, 0x4000);
    kept.keep();
    MUST(!kept);
}

static void inputs(scribe to)
{
    const jitscribe::saved saved[] = {{-16, 6, 0}};
    const jitscribe::row rows[] = {{4, 16, 7, 0, 1, saved}};
    const jitscribe::range ranges[] = {{0, 4}};
    const std::array<jitscribe::inlined, 1> calls = {
        {{jitscribe::text("callee"), JITSCRIBE_NO_PARENT, 0, 1, 2, ranges, 1}}};
    const std::vector<jitscribe::line> lines = {{0, 1, 1, 0}};
    const std::vector<std::uint8_t> bytes(16);
    const jitscribe::str files[] = {jitscribe::text("a"), jitscribe::text("b")};

    jitscribe::code code(bytes.data(), bytes.size());
    code.runs_at(0x5000).name("all").tier("first").kind(JITSCRIBE_KIND_WRAPPER);
    code.file("only").lines(lines).ir_lines(lines).inlined(calls).rows(rows);
    jitscribe_code raw = code.raw();
    MUST(raw.struct_size == sizeof raw && raw.address == 0x5000 && raw.size == 16);
    MUST(raw.file_count == 1 && std::strcmp(raw.files[0].data, "only") == 0);
    MUST(raw.lines == lines.data() && raw.line_count == 1 && raw.ir_line_count == 1);
    MUST(raw.inlined == calls.data() && raw.inlined_count == 1);
    MUST(raw.unwind.kind == JITSCRIBE_UNWIND_KIND_ROWS && raw.unwind.rows == rows);
    MUST(to.load(code));

    // A copy refers to its own file, not to that of the original.
    const jitscribe::code copy = code;
    MUST(copy.raw().files != code.raw().files);

    MUST(to.load(code.files(files).frame_pointer(4)));
    raw = code.raw();
    MUST(raw.files == files && raw.file_count == 2);
    MUST(raw.unwind.rows == nullptr && raw.unwind.prologue == 4);

    const jitscribe::line wrong[] = {{0, 1, 1, 7}};
    // Announced without the line.
    MUST(to.load(code.lines(wrong)).result() == JITSCRIBE_RESULT_OK);
    const jitscribe::row no_saves[] = {{8, 0, 0, 0, 0, nullptr}, {9, 0, 0, 0, 0, nullptr}};
    loaded_code refused = to.load(code.lines({}).frame_pointer(no_saves));
    MUST(!refused && refused.result() == JITSCRIBE_RESULT_ERROR_ARGUMENT);
    MUST(to.load(code.lines({}).frame_pointer_always().eh_frame({})).result() ==
         JITSCRIBE_RESULT_OK);
}

static void off()
{
    scribe none;
    MUST(!none.is_on() && none.log_fd() == -1);
    none.poll();
    MUST(!load(none, 0x1000));
    loaded_code nothing;
    MUST(nothing.moved_to(0x1) == JITSCRIBE_RESULT_OK);
    scribe later = scribe::open(jitscribe::settings().limit(1 << 20).add(JITSCRIBE_FLAG_OFF));
    MUST(!later.is_on() && later.raw() != nullptr);
    MUST(!load(later, 0x1000));
}

static void callbacks()
{
    static unsigned times = 0;
    static auto notice = [](std::uint32_t subject, std::string_view text) {
        std::fprintf(stderr, "notice %u: %.*s\n", unsigned(subject), int(text.size()), text.data());
        MUST(subject == JITSCRIBE_SUBJECT_LOG && !text.empty());
        times += 1;
    };
    static auto replay = [](scribe to) { load(to, 0x1000).keep(); };
    scribe made = scribe::open(
        jitscribe::settings()
            .jitdump(JITSCRIBE_MODE_ON)
            .valgrind(JITSCRIBE_MODE_OFF)
            .dir("/proc/self/none")
            .limit(1 << 20)
            .notice(notice)
            .replay(replay));
    MUST(times > 0 && made.raw() != nullptr);
}

static void symbols(scribe to)
{
    const auto code = jitscribe::code::at(0x5000, 16);
    const jitscribe::line lines[] = {{0, 3, 4, 0}};
    loaded_code loaded = to.load(jitscribe::code(code).name("named").file("f.lang").lines(lines));
    char buffer[64];
    const auto found = jitscribe::symbolize(to, 0x500f, buffer, sizeof buffer);
    MUST(found && found->name == "named" && found->file == "f.lang");
    MUST(found->line == 3 && found->column == 4 && found->function_count == 1 && !found->is_cut);
    MUST(found->address == 0x5000 && found->size == 16);
    MUST(!jitscribe::symbolize(to, 0x500f, buffer, sizeof buffer, 1) && !jitscribe::symbolize(to, 0x5010, nullptr, 0));
    MUST(!jitscribe::symbolize(scribe(), 0x500f, buffer, sizeof buffer));
    static char stream[4096];
    const std::uint64_t word[] = {0x5008};
    const std::size_t size = jitscribe::crash_stream(to, {}, word, stream, sizeof stream);
    MUST(size > 80 && std::string_view(stream, size).find("named") != std::string_view::npos);
    MUST(jitscribe::crash_stream(scribe(), {}, word, stream, sizeof stream) == 0);
    loaded.unload();
    MUST(!jitscribe::symbolize(to, 0x500f, buffer, sizeof buffer));
}

int main()
{
    scribe to = scribe::global();
    MUST(to.is_on() && to.log_fd() >= 0);
    ownership(to);
    inputs(to);
    off();
    callbacks();
    symbols(to);
    std::puts("all is so");
}
