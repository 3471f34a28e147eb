// jitscribe for C++17: RAII types around the C API.
//
//     auto scribe = jitscribe::scribe::global();
//     jitscribe::line lines[] = {{0, 3, 1, 0}, {17, 4, 1, 0}};
//     jitscribe::loaded_code code = scribe.load(
//         jitscribe::code(memory, size).name("fib").file("fib.lang").lines(lines).frame_pointer());
//     // ... the code runs, until `code` goes out of scope
//
// Nothing throws, and nothing needs exceptions or RTTI. An invalid call does nothing; `loaded_code::result()` returns
// the reason. Threads, ownership and units are as in jitscribe.h.
//
// What few runtimes need is in jitscribe/arena.hpp, jitscribe/crash.hpp and jitscribe/objects.hpp.
#ifndef JITSCRIBE_HPP
#define JITSCRIBE_HPP

#include <jitscribe.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

namespace jitscribe {

using line = ::jitscribe_line;
using range = ::jitscribe_range;
using row = ::jitscribe_row;
using saved = ::jitscribe_saved;
using inlined = ::jitscribe_inlined;
using str = ::jitscribe_str;
using result = ::jitscribe_result;
using kind = ::jitscribe_kind;
using flag = ::jitscribe_flag;
using mode = ::jitscribe_mode;

/// A string for the C structs. It refers to `text`.
inline constexpr str text(std::string_view text) noexcept
{
    return str{text.data(), text.size()};
}

/// A view of contiguous values that belong to someone else: an array, a vector, a span, a braced list.
template <typename T>
class view {
public:
    constexpr view() noexcept = default;
    constexpr view(const T *data, std::size_t size) noexcept : data_(data), size_(size) {}

    /// Anything with data() and size().
    template <typename C,
              typename = std::enable_if_t<std::is_convertible_v<
                  decltype(std::data(std::declval<const C &>())), const T *>>>
    constexpr view(const C &values) noexcept // NOLINT: meant to convert
        : data_(std::data(values)), size_(std::size(values))
    {
    }

    constexpr const T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

private:
    const T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// A code, and what is known about it. Arguments are kept by reference, and must stay valid until `scribe::load`
/// returns.
class code {
public:
    /// Code at `bytes`.
    code(const void *bytes, std::size_t size) noexcept
    {
        raw_.struct_size = sizeof raw_;
        raw_.bytes = bytes;
        raw_.size = size;
    }

    /// Code without bytes, of which only the place is known.
    static code at(std::uint64_t address, std::uint64_t size) noexcept
    {
        code made(nullptr, 0);
        made.raw_.address = address;
        made.raw_.size = size;
        return made;
    }

    /// The code runs at `address`, not at `bytes`.
    code &runs_at(std::uint64_t address) noexcept
    {
        raw_.address = address;
        return *this;
    }
    code &name(std::string_view name) noexcept
    {
        raw_.name = text(name);
        return *this;
    }
    /// An object file that the runtime made of the code, for debuggers.
    code &symfile(const void *object, std::size_t size) noexcept
    {
        raw_.symfile = object;
        raw_.symfile_size = size;
        return *this;
    }
    code &tier(std::string_view tier) noexcept
    {
        raw_.tier = text(tier);
        return *this;
    }
    code &kind(jitscribe::kind kind) noexcept
    {
        raw_.kind = static_cast<std::uint32_t>(kind);
        return *this;
    }
    /// The only source file: index 0 in lines and inlined calls.
    code &file(std::string_view path) noexcept
    {
        file_ = text(path);
        has_file_ = true;
        return *this;
    }
    /// The source files, to which lines and inlined calls refer by index.
    code &files(view<str> files) noexcept
    {
        raw_.files = files.data();
        raw_.file_count = files.size();
        has_file_ = false;
        return *this;
    }
    code &lines(view<line> lines) noexcept
    {
        raw_.lines = lines.data();
        raw_.line_count = lines.size();
        return *this;
    }
    /// Lines of the bytecode or intermediate representation.
    code &ir_lines(view<line> lines) noexcept
    {
        raw_.ir_lines = lines.data();
        raw_.ir_line_count = lines.size();
        return *this;
    }
    code &inlined(view<jitscribe::inlined> calls) noexcept
    {
        raw_.inlined = calls.data();
        raw_.inlined_count = calls.size();
        return *this;
    }
    /// The usual prologue at offset `prologue`, and a frame pointer from there to the end.
    code &frame_pointer(std::uint32_t prologue = 0, bool is_signed = false) noexcept
    {
        return unwind(JITSCRIBE_UNWIND_KIND_FRAME_POINTER, prologue, is_signed);
    }
    /// The same, and from the offset of the one row on, the registers that it lists are saved, too.
    code &frame_pointer(view<row> saves, std::uint32_t prologue = 0,
                        bool is_signed = false) noexcept
    {
        unwind(JITSCRIBE_UNWIND_KIND_FRAME_POINTER, prologue, is_signed);
        raw_.unwind.rows = saves.data();
        raw_.unwind.row_count = saves.size();
        return *this;
    }
    /// A frame pointer that is valid at each instruction.
    code &frame_pointer_always(bool is_signed = false) noexcept
    {
        return unwind(JITSCRIBE_UNWIND_KIND_FRAME_POINTER_ALWAYS, 0, is_signed);
    }
    /// The state of the frame at each offset where it changes.
    code &rows(view<row> rows) noexcept
    {
        unwind(JITSCRIBE_UNWIND_KIND_ROWS, 0, false);
        raw_.unwind.rows = rows.data();
        raw_.unwind.row_count = rows.size();
        return *this;
    }
    /// An .eh_frame section.
    code &eh_frame(view<std::uint8_t> section) noexcept
    {
        unwind(JITSCRIBE_UNWIND_KIND_EH_FRAME, 0, false);
        raw_.unwind.eh_frame = section.data();
        raw_.unwind.eh_frame_size = section.size();
        return *this;
    }

    /// The C struct, which may refer to this object.
    jitscribe_code raw() const noexcept
    {
        jitscribe_code copy = raw_;
        if (has_file_) {
            copy.files = &file_;
            copy.file_count = 1;
        }
        return copy;
    }

private:
    code &unwind(jitscribe_unwind_kind kind, std::uint32_t prologue, bool is_signed) noexcept
    {
        raw_.unwind = jitscribe_unwind{};
        raw_.unwind.kind = static_cast<std::uint32_t>(kind);
        raw_.unwind.prologue = prologue;
        raw_.unwind.flags = is_signed ? static_cast<std::uint32_t>(JITSCRIBE_UNWIND_FLAG_SIGNED) : 0;
        return *this;
    }

    jitscribe_code raw_{};
    str file_{};
    bool has_file_ = false;
};

/// An announced code. Its destructor announces the unload. It can be moved, not copied.
class [[nodiscard]] loaded_code {
public:
    /// No code.
    loaded_code() noexcept = default;
    loaded_code(loaded_code &&other) noexcept
        : scribe_(other.scribe_), handle_(std::exchange(other.handle_, 0)), result_(other.result_)
    {
    }
    loaded_code &operator=(loaded_code &&other) noexcept
    {
        if (this != &other) {
            unload();
            scribe_ = other.scribe_;
            handle_ = std::exchange(other.handle_, 0);
            result_ = other.result_;
        }
        return *this;
    }
    loaded_code(const loaded_code &) = delete;
    loaded_code &operator=(const loaded_code &) = delete;
    ~loaded_code() { unload(); }

    /// Announces that the code has moved to `bytes`.
    jitscribe::result moved_to(const void *bytes, std::size_t size) noexcept
    {
        return handle_ == 0 ? JITSCRIBE_RESULT_OK : jitscribe_moved(scribe_, &handle_, bytes, size);
    }
    /// Announces that the code now runs at `address`.
    jitscribe::result moved_to(std::uint64_t address) noexcept
    {
        return handle_ == 0 ? JITSCRIBE_RESULT_OK
                            : jitscribe_moved_to_address(scribe_, &handle_, address);
    }
    /// Announces that the code is gone.
    void unload() noexcept
    {
        if (handle_ != 0) {
            jitscribe_unload(scribe_, std::exchange(handle_, 0));
        }
    }
    /// Makes the code live as long as the process.
    void keep() noexcept { handle_ = 0; }
    /// The handle as a number, for `scribe::adopt`. The code stays announced.
    jitscribe_handle release() noexcept { return std::exchange(handle_, 0); }
    /// Whether anything was written.
    explicit operator bool() const noexcept { return handle_ != 0; }
    /// The result of `scribe::load`.
    jitscribe::result result() const noexcept { return result_; }

private:
    friend class scribe;
    loaded_code(const jitscribe_scribe *scribe, jitscribe_handle handle,
                jitscribe::result result) noexcept
        : scribe_(scribe), handle_(handle), result_(result)
    {
    }

    const jitscribe_scribe *scribe_ = nullptr;
    jitscribe_handle handle_ = 0;
    jitscribe::result result_ = JITSCRIBE_RESULT_OK;
};

class settings;

/// Receives announcements. Copies refer to the same scribe, which lives as long as the process.
class scribe {
public:
    /// A scribe that is off, to be replaced once the settings are known.
    scribe() noexcept = default;
    /// Wraps a scribe of the C API.
    explicit scribe(const jitscribe_scribe *raw) noexcept : raw_(raw) {}

    /// The scribe that is configured by the environment.
    static scribe global() noexcept
    {
        return scribe(jitscribe_global());
    }
    /// Creates a scribe with the given settings.
    static scribe open(const settings &wanted) noexcept;

    bool is_on() const noexcept { return jitscribe_is_on(raw_); }

    /// Announces code. Call it before the code runs.
    loaded_code load(const code &code) const noexcept
    {
        // When the scribe is off, skip filling the struct.
        if (!is_on()) {
            return loaded_code();
        }
        const jitscribe_code given = code.raw();
        jitscribe_handle handle = 0;
        const jitscribe::result result = jitscribe_load(raw_, &given, &handle);
        return loaded_code(raw_, handle, result);
    }
    /// Takes ownership of a handle from `loaded_code::release`.
    loaded_code adopt(jitscribe_handle handle) const noexcept
    {
        return loaded_code(raw_, handle, JITSCRIBE_RESULT_OK);
    }
    /// Applies a pending request of `jitscribe ctl`, if there is one.
    void poll() const noexcept
    {
        if (raw_ != nullptr) {
            jitscribe_poll(raw_);
        }
    }
    /// The file descriptor of the log; -1 if there is none.
    int log_fd() const noexcept
    {
        int fd = -1;
        jitscribe_log_fd(raw_, &fd);
        return fd;
    }
    const jitscribe_scribe *raw() const noexcept { return raw_; }

private:
    const jitscribe_scribe *raw_ = nullptr;
};

/// Settings of a scribe. Strings must stay valid until `scribe::open` returns. Callbacks must stay valid as long as the
/// process, be callable from any thread, and not throw.
class settings {
public:
    settings() noexcept { raw_.struct_size = sizeof raw_; }

    settings &add(flag flag) noexcept
    {
        raw_.flags |= static_cast<std::uint32_t>(flag);
        return *this;
    }
    /// Maximum size of the log in bytes.
    settings &limit(std::uint64_t bytes) noexcept
    {
        raw_.limit = bytes;
        return *this;
    }
    /// The perf map; for this and the other publishers, see the fields of `jitscribe_settings`.
    settings &perf_map(mode mode) noexcept
    {
        raw_.perf_map = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// The log is a file in `dir`.
    settings &jitdump(mode mode) noexcept
    {
        raw_.jitdump = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// gdb, lldb and other users of GDB's JIT interface.
    settings &gdb(mode mode) noexcept
    {
        raw_.gdb = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// The unwinders in the process.
    settings &unwinders(mode mode) noexcept
    {
        raw_.unwinders = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// The Valgrind that runs the process.
    settings &valgrind(mode mode) noexcept
    {
        raw_.valgrind = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// VTune's collector.
    settings &vtune(mode mode) noexcept
    {
        raw_.vtune = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// OpenTelemetry's process context.
    settings &process_context(mode mode) noexcept
    {
        raw_.process_context = static_cast<std::uint32_t>(mode);
        return *this;
    }
    /// The directory for files. If empty: one of the user.
    settings &dir(std::string_view dir) noexcept
    {
        raw_.dir = text(dir);
        return *this;
    }
    /// The directory of the perf map, instead of /tmp.
    settings &perf_map_dir(std::string_view dir) noexcept
    {
        raw_.perf_map_dir = text(dir);
        return *this;
    }
    /// The name of the module in which VTune shows the code.
    settings &vtune_module(std::string_view name) noexcept
    {
        raw_.vtune_module = text(name);
        return *this;
    }
    /// The `service.name` of the process context.
    settings &service_name(std::string_view name) noexcept
    {
        raw_.service_name = text(name);
        return *this;
    }
    /// Settings as words of the environment's JITSCRIBE, such as "bytes,gdb=off". They override the others.
    settings &words(std::string_view words) noexcept
    {
        raw_.words = text(words);
        return *this;
    }
    /// Called as `f(scribe)` to announce all code that is alive.
    template <typename F>
    settings &replay(F &f) noexcept
    {
        raw_.replay_data = const_cast<void *>(static_cast<const void *>(&f));
        raw_.replay = [](void *data, const jitscribe_scribe *raw) noexcept {
            (*static_cast<F *>(data))(scribe(raw));
        };
        return *this;
    }
    /// Called as `f(subject, text)`, with a number and a string_view, when a feature is not available.
    template <typename F>
    settings &notice(F &f) noexcept
    {
        raw_.notice_data = const_cast<void *>(static_cast<const void *>(&f));
        raw_.notice = [](void *data, std::uint32_t subject, const char *text) noexcept {
            (*static_cast<F *>(data))(subject, std::string_view(text));
        };
        return *this;
    }
    const jitscribe_settings &raw() const noexcept { return raw_; }

private:
    jitscribe_settings raw_{};
};

inline scribe scribe::open(const settings &wanted) noexcept
{
    scribe made;
    jitscribe_open(&wanted.raw(), &made.raw_);
    return made;
}

} // namespace jitscribe

#endif // JITSCRIBE_HPP
