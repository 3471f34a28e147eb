// The CFI of the functions of an object file of LLVM's, as rows. Included by llvm.hpp and llvm_plugin.hpp.
//
// LLVM has classes for this, which keep each instruction and each row in memory of its own, and a row's registers in a map:
// with them, reading a function takes several times as long as announcing it.
#ifndef JITSCRIBE_LLVM_FRAMES_HPP
#define JITSCRIBE_LLVM_FRAMES_HPP

#include <jitscribe.hpp>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/DebugInfo/DIContext.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Error.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace jitscribe {
namespace llvm_detail {

/// The value, or none: what cannot be read is left out.
template <typename T>
std::optional<T> value_or_none(llvm::Expected<T> expected)
{
    if (expected) {
        return std::move(*expected);
    }
    llvm::consumeError(expected.takeError());
    return std::nullopt;
}

inline std::string_view view_of(llvm::StringRef text)
{
    return {text.data(), text.size()};
}

/// Reads numbers of an object file. Behind the end, all are 0.
class cursor {
public:
    cursor() = default;
    cursor(std::string_view bytes, bool is_little) : bytes_(bytes), is_little_(is_little) {}

    std::size_t left() const { return bytes_.size(); }
    /// Whether nothing was read behind the end.
    bool is_good() const { return is_good_; }

    std::string_view take(std::uint64_t size)
    {
        is_good_ = is_good_ && size <= bytes_.size();
        if (!is_good_) {
            bytes_ = {};
            return {};
        }
        const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(size));
        bytes_.remove_prefix(taken.size());
        return taken;
    }
    cursor part(std::uint64_t size) { return {take(size), is_little_}; }
    std::uint8_t byte()
    {
        const std::string_view taken = take(1);
        return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken[0]);
    }
    std::uint64_t number(std::size_t size)
    {
        const std::string_view taken = take(size);
        std::uint64_t number = 0;
        for (std::size_t at = 0; at < taken.size(); ++at) {
            const std::size_t place = is_little_ ? at : taken.size() - 1 - at;
            number |= std::uint64_t{static_cast<std::uint8_t>(taken[at])} << (8 * place);
        }
        return number;
    }
    std::uint64_t uleb() { return leb().first; }
    std::int64_t sleb()
    {
        auto [number, bits] = leb();
        if (bits < 64 && (number >> (bits - 1) & 1) != 0) {
            number |= ~std::uint64_t{0} << bits;
        }
        return static_cast<std::int64_t>(number);
    }
    /// A string that ends with a NUL.
    std::string_view text()
    {
        const std::size_t end = bytes_.find('\0');
        const std::string_view taken = take(end == std::string_view::npos ? left() + 1 : end);
        byte();
        return taken;
    }

private:
    /// The number, and how many bits of it there are.
    std::pair<std::uint64_t, unsigned> leb()
    {
        std::uint64_t number = 0;
        for (unsigned bits = 0; bits < 63; bits += 7) {
            const std::uint8_t next = byte();
            number |= std::uint64_t{next & 0x7fU} << bits;
            if (next < 0x80) {
                return {number, bits + 7};
            }
        }
        const std::uint8_t last = byte();
        is_good_ = is_good_ && (last == 0 || last == 1 || last == 0x7f);
        return {number | std::uint64_t{last} << 63, 64};
    }

    std::string_view bytes_;
    bool is_little_ = true;
    bool is_good_ = true;
};

/// The CFI of an object's functions, by their addresses.
class frames {
public:
    frames(const llvm::object::ObjectFile &object, const llvm::LoadedObjectInfo &loaded)
        : is_little_(object.isLittleEndian()), address_size_(object.getBytesInAddress()),
          // In the ABIs, the registers above 31 that a caller could need are the return address and floating-point
          // registers. x86-64 has no such floating-point registers, and its return address is number 16.
          registers_(object.getArch() == llvm::Triple::x86_64 ? 17 : state::most)
    {
        const auto arch = object.getArch();
        signs_ = arch == llvm::Triple::aarch64 || arch == llvm::Triple::aarch64_be ||
                 arch == llvm::Triple::aarch64_32;
        if (!object.isELF()) {
            return;
        }
        for (const llvm::object::SectionRef &section : object.sections()) {
            const auto name = value_or_none(section.getName());
            if (name && *name == ".eh_frame") {
                read(object, loaded, section);
            }
        }
        const auto is_before = [](const function &one, const function &other) {
            return one.start < other.start;
        };
        if (!std::is_sorted(functions_.begin(), functions_.end(), is_before)) {
            std::stable_sort(functions_.begin(), functions_.end(), is_before);
        }
        // If there are two for an address, the first counts.
        const auto is_same = [](const function &one, const function &other) {
            return one.start == other.start;
        };
        functions_.erase(std::unique(functions_.begin(), functions_.end(), is_same),
                         functions_.end());
    }

    /// The rows of the function that begins at `address`, which are valid until the next call. Null if there is no CFI, or
    /// if it uses rules that rows cannot express.
    const std::vector<row> *of(std::uint64_t address)
    {
        // Most objects have functions and their entries in the same order.
        if (next_ == functions_.size() || functions_[next_].start != address) {
            const auto found = std::lower_bound(
                functions_.begin(), functions_.end(), address,
                [](const function &one, std::uint64_t start) { return one.start < start; });
            if (found == functions_.end() || found->start != address) {
                return nullptr;
            }
            next_ = static_cast<std::size_t>(found - functions_.begin());
        }
        const function &one = functions_[next_++];
        rows_.clear();
        saved_.clear();
        return make_rows(shared_[one.shared], one.program) ? &rows_ : nullptr;
    }

private:
    /// A frame as instructions describe it.
    struct state {
        static constexpr std::uint32_t most = 128;
        using bits = std::array<std::uint64_t, most / 64>;

        /// Of the instruction from which on it is so.
        std::uint64_t offset = 0;
        /// Whether the CFA is a register plus an offset.
        bool is_cfa_plain = false;
        std::uint16_t cfa_register = 0;
        std::int32_t cfa_offset = 0;
        /// Registers that are saved at offsets from the CFA, and registers with rules that rows cannot express.
        bits saved{};
        bits other{};
        std::array<std::int32_t, most> offsets{};

        void set_cfa(std::uint64_t number, std::int64_t offset)
        {
            is_cfa_plain = true;
            cfa_register = static_cast<std::uint16_t>(number);
            cfa_offset = static_cast<std::int32_t>(offset);
        }
        void forget(std::uint64_t number)
        {
            saved[number / 64] &= ~(std::uint64_t{1} << number % 64);
            other[number / 64] &= ~(std::uint64_t{1} << number % 64);
        }
        void save(std::uint64_t number, std::int64_t offset)
        {
            forget(number);
            saved[number / 64] |= std::uint64_t{1} << number % 64;
            offsets[number] = static_cast<std::int32_t>(offset);
        }
        void set_other(std::uint64_t number)
        {
            forget(number);
            other[number / 64] |= std::uint64_t{1} << number % 64;
        }
        bool is_saved(std::uint64_t number) const
        {
            return (saved[number / 64] >> number % 64 & 1) != 0;
        }
        bool is_other(std::uint64_t number) const
        {
            return (other[number / 64] >> number % 64 & 1) != 0;
        }
    };

    /// What the entries of functions have in common: a CIE.
    struct shared {
        /// Its offset in the section.
        std::uint64_t offset;
        std::uint64_t code_factor;
        std::int64_t data_factor;
        /// Of addresses.
        std::size_t size;
        bool has_data;
        /// The frame at the beginning of a function, unless there is none.
        bool is_empty;
        state initial;

        /// From the CFA. What is damaged may overflow.
        std::int64_t distance(std::uint64_t count) const
        {
            return static_cast<std::int64_t>(count * static_cast<std::uint64_t>(data_factor));
        }
    };

    struct function {
        std::uint64_t start;
        /// An index into `shared_`.
        std::size_t shared;
        cursor program;
    };

    void read(const llvm::object::ObjectFile &object,
              const llvm::LoadedObjectInfo &loaded,
              const llvm::object::SectionRef &section)
    {
        const auto contents = value_or_none(section.getContents());
        if (!contents) {
            return;
        }
        const auto starts = starts_of(object, loaded, section);
        auto start = starts.begin();
        const std::size_t first = shared_.size();
        cursor left(view_of(*contents), is_little_);
        while (left.left() != 0) {
            const std::uint64_t offset = contents->size() - left.left();
            const std::uint64_t length = left.number(4);
            // The end, or the mark of lengths of 64 bits, which no object of a JIT needs.
            if (length == 0 || length == UINT32_MAX) {
                return;
            }
            cursor entry = left.part(length);
            const std::uint64_t back = entry.number(4);
            if (!left.is_good() || !entry.is_good()) {
                return;
            }
            if (back == 0) {
                read_shared(offset, entry);
                continue;
            }
            // The distance counts from where it is, the reference to the function is behind it.
            const std::uint64_t cie = offset + 4 - back;
            const std::uint64_t reference = offset + 4 + 4;
            while (start != starts.end() && start->first < reference) {
                ++start;
            }
            if (start == starts.end() || start->first != reference) {
                continue;
            }
            // Most often it is the latest.
            for (std::size_t number = shared_.size(); number > first; --number) {
                if (shared_[number - 1].offset == cie) {
                    read_function(start->second, number - 1, entry);
                    break;
                }
            }
        }
    }

    void read_shared(std::uint64_t offset, cursor entry)
    {
        shared made{};
        made.offset = offset;
        const std::uint8_t version = entry.byte();
        const std::string_view letters = entry.text();
        made.code_factor = entry.uleb();
        made.data_factor = entry.sleb();
        version == 1 ? entry.byte() : entry.uleb(); // the register with the return address
        std::uint8_t encoding = llvm::dwarf::DW_EH_PE_absptr;
        for (const char letter : letters) {
            switch (letter) {
            case 'z':
                entry.uleb();
                made.has_data = true;
                break;
            case 'R':
                encoding = entry.byte();
                break;
            case 'P':
                entry.take(size_of(entry.byte()));
                break;
            case 'L':
                entry.byte();
                break;
            case 'S':
            case 'B':
            case 'G':
                break;
            default:
                return;
            }
        }
        made.size = size_of(encoding);
        made.is_empty = true;
        const bool is_known = (version == 1 || version == 3) && made.size != 0 &&
                              made.code_factor != 0 && made.data_factor != 0;
        if (is_known && entry.is_good() && run(made, entry, nullptr, made.initial, made.is_empty)) {
            shared_.push_back(made);
        }
    }

    void read_function(std::uint64_t start, std::size_t shared, cursor entry)
    {
        entry.take(2 * shared_[shared].size); // where it is, and its size
        if (shared_[shared].has_data) {
            entry.take(entry.uleb());
        }
        if (entry.is_good()) {
            functions_.push_back({start, shared, entry});
        }
    }

    /// The size of an address; 0 if it has no fixed size.
    std::size_t size_of(std::uint8_t encoding) const
    {
        switch (encoding & 0xf) {
        case llvm::dwarf::DW_EH_PE_absptr:
            return address_size_;
        case llvm::dwarf::DW_EH_PE_udata2:
        case llvm::dwarf::DW_EH_PE_sdata2:
            return 2;
        case llvm::dwarf::DW_EH_PE_udata4:
        case llvm::dwarf::DW_EH_PE_sdata4:
            return 4;
        case llvm::dwarf::DW_EH_PE_udata8:
        case llvm::dwarf::DW_EH_PE_sdata8:
            return 8;
        default:
            return 0;
        }
    }

    /// The addresses that a section refers to, by the offset of the reference. They are read from the object file,
    /// because MCJIT calls the listener before the references in memory are resolved.
    static std::vector<std::pair<std::uint64_t, std::uint64_t>>
    starts_of(const llvm::object::ObjectFile &object,
              const llvm::LoadedObjectInfo &loaded,
              const llvm::object::SectionRef &section)
    {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> starts;
        const llvm::object::symbol_iterator no_symbol = object.symbol_end();
        // Most often all of them refer to the symbol of one section.
        std::optional<llvm::object::SymbolRef> latest;
        std::optional<std::uint64_t> address;
        for (const llvm::object::SectionRef &other : object.sections()) {
            const auto relocated = value_or_none(other.getRelocatedSection());
            if (!relocated || *relocated == object.section_end() || **relocated != section) {
                continue;
            }
            for (const llvm::object::RelocationRef &reference : other.relocations()) {
                const auto symbol = reference.getSymbol();
                if (symbol == no_symbol) {
                    continue;
                }
                if (!latest || !(*latest == *symbol)) {
                    latest = *symbol;
                    address = address_of(object, loaded, *symbol);
                }
                const auto addend =
                    value_or_none(llvm::object::ELFRelocationRef(reference).getAddend());
                if (address && addend) {
                    starts.emplace_back(reference.getOffset(),
                                        *address + static_cast<std::uint64_t>(*addend));
                }
            }
        }
        const auto is_before = [](const auto &one, const auto &another) {
            return one.first < another.first;
        };
        if (!std::is_sorted(starts.begin(), starts.end(), is_before)) {
            std::stable_sort(starts.begin(), starts.end(), is_before);
        }
        return starts;
    }

    static std::optional<std::uint64_t> address_of(const llvm::object::ObjectFile &object,
                                                   const llvm::LoadedObjectInfo &loaded,
                                                   const llvm::object::SymbolRef &symbol)
    {
        const auto section = value_or_none(symbol.getSection());
        const auto value = value_or_none(symbol.getValue());
        if (!section || *section == object.section_end() || !value) {
            return std::nullopt;
        }
        const std::uint64_t base = loaded.getSectionLoadAddress(**section);
        return base == 0 ? std::nullopt : std::optional<std::uint64_t>(base + *value);
    }

    /// Runs the instructions. False if rows cannot express them.
    bool make_rows(const shared &shared, cursor program)
    {
        state now = shared.initial;
        // Without any instruction, the frame is as the call left it: no rows.
        bool is_empty = shared.is_empty;
        if (!run(shared, program, &shared.initial, now, is_empty) || (!is_empty && !add(now))) {
            return false;
        }
        // They move no more.
        const saved *from = saved_.data();
        for (row &one : rows_) {
            one.saved = from;
            from += one.saved_count;
        }
        return true;
    }

    /// @param initial   what registers are restored to; null: the instructions are those of a CIE
    /// @param is_empty  false if there are instructions that do something
    bool run(const shared &shared, cursor left, const state *initial, state &now, bool &is_empty)
    {
        using namespace llvm::dwarf;
        remembered_.clear();
        while (left.left() != 0) {
            const std::uint8_t code = left.byte();
            if (code == DW_CFA_nop) {
                continue;
            }
            is_empty = false;
            // Three of them have an operand in their low bits.
            const std::uint8_t low = code & 0x3f;
            switch ((code & 0xc0) != 0 ? code & 0xc0 : code) {
            case DW_CFA_advance_loc:
            case DW_CFA_advance_loc1:
            case DW_CFA_advance_loc2:
            case DW_CFA_advance_loc4: {
                const bool is_short = code >= DW_CFA_advance_loc;
                const std::uint64_t distance =
                    is_short ? low : left.number(std::size_t{1} << (code - DW_CFA_advance_loc1));
                if (initial == nullptr || !add(now)) {
                    return false;
                }
                now.offset += distance * shared.code_factor;
                break;
            }
            case DW_CFA_offset:
                save(now, low, left.uleb(), shared);
                break;
            case DW_CFA_offset_extended: {
                const std::uint64_t number = left.uleb();
                save(now, number, left.uleb(), shared);
                break;
            }
            case DW_CFA_offset_extended_sf: {
                const std::uint64_t number = left.uleb();
                save(now, number, static_cast<std::uint64_t>(left.sleb()), shared);
                break;
            }
            case DW_CFA_restore:
            case DW_CFA_restore_extended: {
                const std::uint64_t number = code >= DW_CFA_restore ? low : left.uleb();
                if (initial == nullptr) {
                    return false;
                }
                if (number >= registers_) {
                    break;
                }
                if (initial->is_saved(number)) {
                    now.save(number, initial->offsets[number]);
                } else if (initial->is_other(number)) {
                    now.set_other(number);
                } else {
                    now.forget(number);
                }
                break;
            }
            case DW_CFA_undefined:
            case DW_CFA_same_value: {
                const std::uint64_t number = left.uleb();
                if (number < registers_) {
                    now.forget(number);
                }
                break;
            }
            case DW_CFA_register:
            case DW_CFA_val_offset: {
                const std::uint64_t number = left.uleb();
                left.uleb();
                set_other(now, number);
                break;
            }
            case DW_CFA_val_offset_sf: {
                const std::uint64_t number = left.uleb();
                left.sleb();
                set_other(now, number);
                break;
            }
            case DW_CFA_expression:
            case DW_CFA_val_expression: {
                const std::uint64_t number = left.uleb();
                left.take(left.uleb());
                set_other(now, number);
                break;
            }
            case DW_CFA_remember_state:
                remembered_.push_back(now);
                break;
            case DW_CFA_restore_state:
                if (remembered_.empty()) {
                    return false;
                }
                remembered_.back().offset = now.offset;
                now = remembered_.back();
                remembered_.pop_back();
                break;
            case DW_CFA_def_cfa: {
                const std::uint64_t number = left.uleb();
                now.set_cfa(number, static_cast<std::int64_t>(left.uleb()));
                break;
            }
            case DW_CFA_def_cfa_sf: {
                const std::uint64_t number = left.uleb();
                now.set_cfa(number, shared.distance(static_cast<std::uint64_t>(left.sleb())));
                break;
            }
            case DW_CFA_def_cfa_register: {
                // Some CIEs begin with it.
                now.set_cfa(left.uleb(), now.is_cfa_plain ? now.cfa_offset : 0);
                break;
            }
            case DW_CFA_def_cfa_offset:
            case DW_CFA_def_cfa_offset_sf: {
                const std::int64_t distance = code == DW_CFA_def_cfa_offset
                                                  ? static_cast<std::int64_t>(left.uleb())
                                                  : shared.distance(
                                                        static_cast<std::uint64_t>(left.sleb()));
                if (!now.is_cfa_plain) {
                    return false;
                }
                now.set_cfa(now.cfa_register, distance);
                break;
            }
            case DW_CFA_def_cfa_expression:
                left.take(left.uleb());
                now.is_cfa_plain = false;
                break;
            case DW_CFA_GNU_args_size:
                left.uleb();
                break;
            case DW_CFA_GNU_window_save:
                // AArch64: the return address is signed from here on.
                if (!signs_) {
                    return false;
                }
                now.set_other(34);
                break;
            default:
                return false;
            }
        }
        return left.is_good();
    }

    void save(state &now, std::uint64_t number, std::uint64_t count, const shared &shared) const
    {
        if (number < registers_) {
            now.save(number, shared.distance(count));
        }
    }

    void set_other(state &now, std::uint64_t number) const
    {
        if (number < registers_) {
            now.set_other(number);
        }
    }

    bool add(const state &now)
    {
        if (!now.is_cfa_plain || now.other != state::bits{}) {
            return false;
        }
        const std::size_t before = saved_.size();
        for (std::uint32_t number = 0; number < registers_; ++number) {
            if (now.is_saved(number)) {
                saved_.push_back(
                    saved{now.offsets[number], static_cast<std::uint16_t>(number), 0});
            }
        }
        row made{};
        made.offset = static_cast<std::uint32_t>(now.offset);
        made.cfa_register = now.cfa_register;
        made.cfa_offset = now.cfa_offset;
        made.saved_count = static_cast<std::uint32_t>(saved_.size() - before);
        rows_.push_back(made);
        return true;
    }

    bool is_little_;
    std::size_t address_size_;
    std::uint32_t registers_;
    /// Whether DW_CFA_GNU_window_save means that the return address is signed.
    bool signs_;
    std::vector<shared> shared_;
    /// By their addresses.
    std::vector<function> functions_;
    std::size_t next_ = 0;
    /// Of the latest function.
    std::vector<row> rows_;
    std::vector<saved> saved_;
    std::vector<state> remembered_;
};

} // namespace llvm_detail
} // namespace jitscribe

#endif // JITSCRIBE_LLVM_FRAMES_HPP
