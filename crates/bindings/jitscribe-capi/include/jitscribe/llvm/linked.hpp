// An object file of LLVM's, and where the JIT has put its sections. Included by llvm.hpp and llvm_plugin.hpp.
#ifndef JITSCRIBE_LLVM_LINKED_HPP
#define JITSCRIBE_LLVM_LINKED_HPP

#include <jitscribe/llvm/debug_info.hpp>
#include <jitscribe/llvm/objects.hpp>

#include <llvm/Support/MemoryBuffer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace jitscribe {
namespace llvm_detail {

/// The addresses of the sections of an object.
class placement final : public llvm::LoadedObjectInfoHelper<placement> {
public:
    /// Addresses by the index of the section; 0 if it was not loaded.
    explicit placement(std::unordered_map<std::uint64_t, std::uint64_t> starts)
        : starts_(std::move(starts))
    {
    }

    /// As JITLink tells: not where sections are, but where symbols are.
    ///
    /// @param symbols  the addresses of all symbols with one definition
    placement(const llvm::object::ObjectFile &object,
              const std::unordered_map<std::string, std::uint64_t> &symbols)
    {
        for (const llvm::object::SymbolRef &symbol : object.symbols()) {
            const auto name = value_or_null(symbol.getName());
            const auto value = value_or_null(symbol.getValue());
            const auto section = value_or_null(symbol.getSection());
            if (name == nullptr || value == nullptr || section == nullptr ||
                *section == object.section_end()) {
                continue;
            }
            const auto found = symbols.find(name->str());
            if (found != symbols.end()) {
                const std::uint64_t index = (*section)->getIndex();
                starts_.emplace(index, found->second - *value);
                sections_.emplace(found->first, index);
            }
        }
    }

    /// The index of the section that a symbol is in, if it has one definition.
    std::uint64_t section_of(const std::string &name) const
    {
        const auto found = sections_.find(name);
        return found == sections_.end() ? llvm::object::SectionedAddress::UndefSection : found->second;
    }

    /// 0 if it is not known.
    std::uint64_t getSectionLoadAddress(const llvm::object::SectionRef &section) const override
    {
        const auto found = starts_.find(section.getIndex());
        return found == starts_.end() ? 0 : found->second;
    }

private:
    std::unordered_map<std::uint64_t, std::uint64_t> starts_;
    std::unordered_map<std::string, std::uint64_t> sections_;
};

/// A function of an object that was loaded.
struct linked_function {
    std::string name;
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

    /// The code is where it runs.
    void finish()
    {
        for (linked_function &one : functions_) {
            one.code = nullptr;
        }
    }

    /// Announces the functions.
    codes announce(const scribe &scribe, const std::string &tier) const
    {
        const auto object = file_ == nullptr ? nullptr
                                             : value_or_null(llvm::object::ObjectFile::createObjectFile(
                                                   file_->getMemBufferRef()));
        codes announced;
        if (object == nullptr) {
            for (const linked_function &one : functions_) {
                code code(bytes_of(one), one.size);
                code.runs_at(one.start.Address).name(one.name).tier(tier);
                announced.push_back(scribe.load(code));
            }
            return announced;
        }
        const auto context = llvm::DWARFContext::create(
            **object, llvm::DWARFContext::ProcessDebugRelocations::Process, &placement_);
        frames frames(**object, placement_);
        for (const linked_function &one : functions_) {
            const function told{one.name, tier, one.start, bytes_of(one), one.size};
            announced.push_back(llvm_detail::announce(scribe, told, *context, frames));
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
};

/// Announces an object later.
inline announcer keep(linked_object object, scribe scribe, std::string tier)
{
    const auto kept = std::make_shared<const linked_object>(std::move(object));
    return [kept, scribe, tier = std::move(tier)] { return kept->announce(scribe, tier); };
}

} // namespace llvm_detail
} // namespace jitscribe

#endif // JITSCRIBE_LLVM_LINKED_HPP
