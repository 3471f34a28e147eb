// For crash handlers and crash reporters, in C++17. All of this may be called in signal handlers: see jitscribe/crash.h.
#ifndef JITSCRIBE_CRASH_HPP
#define JITSCRIBE_CRASH_HPP

#include <jitscribe.hpp>
#include <jitscribe/crash.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace jitscribe {

/// A function at an address. Its texts are in the buffer that was passed.
struct symbol {
    /// The function's name, and its source file, which is empty if it is not known.
    std::string_view name, file;
    /// The line and the column; 0 if they are not known.
    std::uint32_t line, column;
    /// The code's address and size.
    std::uint64_t address, size;
    /// The number of functions at the address.
    std::uint32_t function_count;
    /// Whether the buffer was too small.
    bool is_cut;
};

/// The function number `number` at `pc`: see `jitscribe_symbolize`.
inline std::optional<symbol> symbolize(const scribe &scribe, std::uint64_t pc, char *buffer,
                                       std::size_t size, std::uint32_t number = 0) noexcept
{
    jitscribe_symbol found{};
    found.struct_size = sizeof found;
    if (!jitscribe_symbolize(scribe.raw(), pc, number, buffer, size, &found)) {
        return std::nullopt;
    }
    return symbol{std::string_view(found.name, found.name_size),
                  std::string_view(found.file, found.file_size),
                  found.line,
                  found.column,
                  found.address,
                  found.size,
                  found.function_count,
                  found.is_cut != 0};
}

/// Writes the stream of a minidump to `buffer`: see `jitscribe_crash_stream`. Returns its size; 0 if there is none.
inline std::size_t crash_stream(const scribe &scribe, view<jitscribe_stack> stacks,
                                view<std::uint64_t> words, void *buffer, std::size_t size) noexcept
{
    std::size_t length = 0;
    jitscribe_crash_stream(scribe.raw(), stacks.data(), stacks.size(), words.data(), words.size(),
                           buffer, size, &length);
    return length;
}

/// Shows all code that is alive to debuggers: see `jitscribe_show_to_debuggers`.
inline bool show_to_debuggers(const scribe &scribe) noexcept
{
    return jitscribe_show_to_debuggers(scribe.raw());
}

} // namespace jitscribe

#endif // JITSCRIBE_CRASH_HPP
