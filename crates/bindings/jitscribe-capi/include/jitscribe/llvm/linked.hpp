// An object file of LLVM's, and where the JIT has put its sections. Included by llvm.hpp and llvm_plugin.hpp.
#ifndef JITSCRIBE_LLVM_LINKED_HPP
#define JITSCRIBE_LLVM_LINKED_HPP

#include <jitscribe/llvm/debug_info.hpp>
#include <jitscribe/llvm/objects.hpp>

#include <llvm/Support/MemoryBuffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace jitscribe {
namespace llvm_detail {

/// A symbol as JITLink describes it.
struct placed_symbol {
    std::uint64_t address;
    /// The section of the object that it is in, if that is known.
    std::uint64_t section = llvm::object::SectionedAddress::UndefSection;
};

/// By names, which are the JIT's.
using placed_symbols = std::unordered_map<std::string_view, placed_symbol>;

/// The addresses of the sections of an object.
class placement final : public llvm::LoadedObjectInfoHelper<placement> {
public:
    /// Addresses by the index of the section; 0 if it was not loaded.
    explicit placement(std::vector<std::uint64_t> starts) : starts_(std::move(starts)) {}

    /// As JITLink tells: not where sections are, but where symbols are.
    ///
    /// @param symbols  all symbols with one definition; their sections are filled in
    placement(const llvm::object::ObjectFile &object, placed_symbols &symbols)
    {
        const llvm::object::section_iterator end = object.section_end();
        for (const llvm::object::SymbolRef &symbol : object.symbols()) {
            const auto name = value_or_none(symbol.getName());
            const auto value = value_or_none(symbol.getValue());
            const auto section = value_or_none(symbol.getSection());
            if (!name || !value || !section || *section == end) {
                continue;
            }
            const auto found = symbols.find(view_of(*name));
            if (found == symbols.end()) {
                continue;
            }
            const std::uint64_t index = (*section)->getIndex();
            if (starts_.size() <= index) {
                starts_.resize(static_cast<std::size_t>(index) + 1);
            }
            if (starts_[index] == 0) {
                starts_[index] = found->second.address - *value;
            }
            if (found->second.section == llvm::object::SectionedAddress::UndefSection) {
                found->second.section = index;
            }
        }
    }

    /// 0 if it is not known.
    std::uint64_t getSectionLoadAddress(const llvm::object::SectionRef &section) const override
    {
        return start_of(section.getIndex());
    }

    std::uint64_t start_of(std::uint64_t index) const
    {
        return index < starts_.size() ? starts_[index] : 0;
    }

private:
    std::vector<std::uint64_t> starts_;
};

/// A function of an object that was loaded.
struct linked_function {
    /// In the memory of the JIT, unless the object is kept.
    std::string_view name;
    /// Where it runs, and its section in the object.
    llvm::object::SectionedAddress start;
    /// Its code while it is being linked. Null: where it runs, which is in this process.
    const void *code;
    std::size_t size;
};

/// An object that was loaded: its functions, and what its file says about them.
class linked_object {
public:
    /// @param file  null: there is no file, and the functions have names only
    linked_object(std::unique_ptr<llvm::MemoryBuffer> file, placement placed,
                  std::vector<linked_function> functions)
        : file_(std::move(file)), placement_(std::move(placed)), functions_(std::move(functions))
    {
    }

    /// Makes it last: the code will be where it runs, and names of the JIT's may be gone.
    void finish()
    {
        std::size_t size = 0;
        for (const linked_function &one : functions_) {
            size += one.name.size();
        }
        std::vector<char> names;
        names.reserve(size);
        for (linked_function &one : functions_) {
            one.code = nullptr;
            const std::size_t before = names.size();
            names.insert(names.end(), one.name.begin(), one.name.end());
            one.name = {names.data() + before, one.name.size()};
        }
        names_ = std::move(names);
    }

    /// Announces the functions.
    codes announce(const scribe &scribe, const std::string &tier) const
    {
        std::optional<std::unique_ptr<llvm::object::ObjectFile>> object;
        if (file_ != nullptr) {
            object = value_or_none(
                llvm::object::ObjectFile::createObjectFile(file_->getMemBufferRef()));
        }
        codes announced;
        announced.reserve(functions_.size());
        if (!object) {
            for (const linked_function &one : functions_) {
                code code(bytes_of(one), one.size);
                code.runs_at(one.start.Address).name(one.name).tier(tier);
                announced.push_back(scribe.load(code));
            }
            return announced;
        }
        std::unique_ptr<llvm::DWARFContext> context;
        if (has_debug_info(**object)) {
            context = llvm::DWARFContext::create(
                **object, llvm::DWARFContext::ProcessDebugRelocations::Process, &placement_);
        }
        frames frames(**object, placement_);
        for (const linked_function &one : functions_) {
            const function described{one.name, tier, one.start, bytes_of(one), one.size};
            announced.push_back(llvm_detail::announce(scribe, described, context.get(), frames));
        }
        return announced;
    }

private:
    static const void *bytes_of(const linked_function &one)
    {
        return one.code != nullptr
                   ? one.code
                   : reinterpret_cast<const void *>(static_cast<std::uintptr_t>(one.start.Address));
    }

    std::unique_ptr<llvm::MemoryBuffer> file_;
    placement placement_;
    std::vector<linked_function> functions_;
    /// Of functions of an object that is kept.
    std::vector<char> names_;
};

/// Announces an object later.
inline announcer keep(linked_object object, scribe scribe, std::string tier)
{
    object.finish();
    const auto kept = std::make_shared<const linked_object>(std::move(object));
    return [kept, scribe, tier = std::move(tier)] { return kept->announce(scribe, tier); };
}

} // namespace llvm_detail
} // namespace jitscribe

#endif // JITSCRIBE_LLVM_LINKED_HPP
