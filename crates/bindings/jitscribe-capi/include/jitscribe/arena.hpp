// Arenas for C++17: memory for code that is a growing object file. See jitscribe/arena.h.
#ifndef JITSCRIBE_ARENA_HPP
#define JITSCRIBE_ARENA_HPP

#include <jitscribe.hpp>
#include <jitscribe/arena.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace jitscribe {

/// Space in an arena, with the code that is written to it. Its destructor frees the space: the code must not run any
/// more, nor be on any stack, and its `loaded_code` must be destroyed first. It can be moved, not copied.
class [[nodiscard]] allocation {
public:
    /// An empty allocation.
    allocation() noexcept = default;
    allocation(allocation &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), bytes_(std::exchange(other.bytes_, nullptr)),
          address_(std::exchange(other.address_, 0))
    {
    }
    allocation &operator=(allocation &&other) noexcept
    {
        if (this != &other) {
            free();
            raw_ = std::exchange(other.raw_, nullptr);
            bytes_ = std::exchange(other.bytes_, nullptr);
            address_ = std::exchange(other.address_, 0);
        }
        return *this;
    }
    allocation(const allocation &) = delete;
    allocation &operator=(const allocation &) = delete;
    ~allocation() { free(); }

    /// Whether the allocation is not empty.
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /// Where to write the code; null once it is finished.
    void *bytes() const noexcept { return bytes_; }
    /// Where the code runs.
    std::uint64_t address() const noexcept { return address_; }
    /// Where the code runs, as a function pointer.
    template <typename F>
    F function() const noexcept
    {
        static_assert(std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>);
        return reinterpret_cast<F>(static_cast<std::uintptr_t>(address_));
    }
    /// Marks the code as complete, so that it may run.
    void finish() noexcept
    {
        if (raw_ != nullptr) {
            jitscribe_allocation_finish(raw_);
            bytes_ = nullptr;
        }
    }
    /// Where to change finished code, which must not run while it is changed; null if another process shares it.
    void *edit() noexcept
    {
        if (raw_ != nullptr) {
            jitscribe_allocation_edit(raw_, &bytes_);
        }
        return bytes_;
    }
    /// Frees the allocation.
    void free() noexcept
    {
        jitscribe_allocation_free(std::exchange(raw_, nullptr));
        bytes_ = nullptr;
        address_ = 0;
    }
    /// The allocation of the C API. The caller must free it.
    jitscribe_allocation *release() noexcept
    {
        bytes_ = nullptr;
        address_ = 0;
        return std::exchange(raw_, nullptr);
    }

private:
    friend class arena;
    jitscribe_allocation *raw_ = nullptr;
    void *bytes_ = nullptr;
    std::uint64_t address_ = 0;
};

/// Settings of an arena. The directory must stay valid until `arena::open` returns.
class arena_settings {
public:
    arena_settings() noexcept { raw_.struct_size = sizeof raw_; }

    /// Bytes of code in one file.
    arena_settings &segment(std::uint64_t bytes) noexcept
    {
        raw_.segment = bytes;
        return *this;
    }
    /// Bytes of code in all files together.
    arena_settings &limit(std::uint64_t bytes) noexcept
    {
        raw_.limit = bytes;
        return *this;
    }
    /// Directory of the files.
    arena_settings &directory(std::string_view dir) noexcept
    {
        raw_.dir = text(dir);
        return *this;
    }
    /// Every fork of this process is followed by an exec.
    arena_settings &forks_only_to_exec() noexcept
    {
        raw_.flags |= static_cast<std::uint32_t>(JITSCRIBE_ARENA_FLAG_FORKS_ONLY_TO_EXEC);
        return *this;
    }
    /// Code is written where it runs: see JITSCRIBE_ARENA_FLAG_IN_PLACE.
    arena_settings &in_place() noexcept
    {
        raw_.flags |= static_cast<std::uint32_t>(JITSCRIBE_ARENA_FLAG_IN_PLACE);
        return *this;
    }
    /// Removes files of dead processes from the directory that were not written to for this many hours.
    arena_settings &sweep_hours(std::uint32_t hours) noexcept
    {
        raw_.sweep_hours = hours;
        return *this;
    }
    const jitscribe_arena_settings &raw() const noexcept { return raw_; }

private:
    jitscribe_arena_settings raw_{};
};

/// Memory for code that is a growing object file. Copies refer to the same arena, which lives as long as the process.
class arena {
public:
    /// An empty arena, without space.
    arena() noexcept = default;
    /// Wraps an arena of the C API.
    explicit arena(const jitscribe_arena *raw) noexcept : raw_(raw) {}

    /// Creates an arena. It is empty on failure, which the scribe's notice callback reports.
    static arena open(const scribe &announces_to, const arena_settings &wanted = {}) noexcept
    {
        arena made;
        jitscribe_arena_open(announces_to.raw(), &wanted.raw(), &made.raw_);
        return made;
    }
    explicit operator bool() const noexcept { return raw_ != nullptr; }

    /// Allocates space for `size` bytes of code at a multiple of `align`. The allocation is empty on failure.
    allocation allocate(std::size_t size, std::size_t align = 16) const noexcept
    {
        allocation made;
        if (raw_ != nullptr) {
            jitscribe_arena_allocate(raw_, size, align, &made.raw_, &made.bytes_, &made.address_);
        }
        return made;
    }
    const jitscribe_arena *raw() const noexcept { return raw_; }

private:
    const jitscribe_arena *raw_ = nullptr;
};

} // namespace jitscribe

#endif // JITSCRIBE_ARENA_HPP
