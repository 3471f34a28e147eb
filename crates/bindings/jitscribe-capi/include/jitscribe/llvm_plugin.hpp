// jitscribe for LLVM's JITLink: announces the code that ORC's ObjectLinkingLayer links, which is the default of LLJIT on
// x86-64 Linux from LLVM 16 on. Header-only C++17, tested with LLVM 14; compiles with 14 to 19.
//
//     layer->addPlugin(std::make_unique<jitscribe::llvm_plugin>(jitscribe::scribe::global()));
//
// The default layer of an LLJIT, from LLVM 16 on:
//
//     static_cast<llvm::orc::ObjectLinkingLayer &>(jit->getObjLinkingLayer()).addPlugin(…)
//
// It announces for each function what llvm.hpp does: the symbol name, source lines with columns, inlined calls, and unwind
// info. When the resources of an object are removed, its functions are unloaded. (From LLVM 20 on, addPlugin takes a shared
// pointer.)
//
// For code that runs in this process. A plugin may be added to one layer only, and is used from many threads. Objects that
// are linked while the scribe is off are not announced later. An object that is linked as a graph, without an object file,
// has names only.
#ifndef JITSCRIBE_LLVM_PLUGIN_HPP
#define JITSCRIBE_LLVM_PLUGIN_HPP

#include <jitscribe/llvm.hpp>

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <algorithm>

namespace jitscribe {
namespace llvm_detail {

// Types that differ between the versions of LLVM.
inline std::uint64_t number(std::uint64_t address)
{
    return address;
}
inline std::uint64_t number(llvm::orc::ExecutorAddr address)
{
    return address.getValue();
}
inline llvm::StringRef text_of(llvm::StringRef name)
{
    return name;
}
inline llvm::StringRef text_of(const llvm::orc::SymbolStringPtr &name)
{
    return *name;
}

/// Where JITLink has put the sections of an object: it says so of symbols only.
class placement final : public llvm::LoadedObjectInfoHelper<placement> {
public:
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
    std::uint64_t section_of(std::string_view name) const
    {
        const auto found = sections_.find(std::string(name));
        return found == sections_.end() ? llvm::object::SectionedAddress::UndefSection : found->second;
    }

    /// 0 if no symbol of the section is there.
    std::uint64_t getSectionLoadAddress(const llvm::object::SectionRef &section) const override
    {
        const auto found = starts_.find(section.getIndex());
        return found == starts_.end() ? 0 : found->second;
    }

private:
    std::unordered_map<std::uint64_t, std::uint64_t> starts_;
    std::unordered_map<std::string, std::uint64_t> sections_;
};

/// An object file that was linked, and where its sections are.
class linked_object {
public:
    linked_object(std::unique_ptr<llvm::object::ObjectFile> object,
                  const std::unordered_map<std::string, std::uint64_t> &symbols)
        : object_(std::move(object)), placement_(*object_, symbols),
          context_(llvm::DWARFContext::create(
              *object_, llvm::DWARFContext::ProcessDebugRelocations::Process, &placement_)),
          frames_(*object_, placement_)
    {
    }

    /// Announces a function, whose section is found by its name.
    loaded_code announce(const scribe &scribe, function function)
    {
        function.start.SectionIndex = placement_.section_of(function.name);
        return llvm_detail::announce(scribe, function, *context_, frames_);
    }

private:
    std::unique_ptr<llvm::object::ObjectFile> object_;
    placement placement_;
    std::unique_ptr<llvm::DWARFContext> context_;
    frames frames_;
};

} // namespace llvm_detail

/// Announces the functions of each object that JITLink links. See the top of this file.
class llvm_plugin final : public llvm::orc::ObjectLinkingLayer::Plugin {
public:
    /// @param tier  name of the compiler's tier, if there are several
    explicit llvm_plugin(scribe scribe, std::string tier = {})
        : scribe_(scribe), tier_(std::move(tier))
    {
    }

    void notifyMaterializing(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &,
                             llvm::jitlink::JITLinkContext &, llvm::MemoryBufferRef input) override
    {
        if (scribe_.is_on() && input.getBufferSize() != 0) {
            const std::lock_guard<std::mutex> guard(mutex_);
            inputs_.insert_or_assign(&unit, input);
        }
    }

    void modifyPassConfig(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &,
                          llvm::jitlink::PassConfiguration &passes) override
    {
        // The code is complete and not yet executable: nothing can run it before it is announced.
        passes.PostFixupPasses.push_back([this, &unit](llvm::jitlink::LinkGraph &graph) {
            if (scribe_.is_on()) {
                announce(unit, graph);
            }
            return llvm::Error::success();
        });
    }

    llvm::Error notifyEmitted(llvm::orc::MaterializationResponsibility &unit) override
    {
        auto codes = take(unit);
        if (codes.empty()) {
            return llvm::Error::success();
        }
        return unit.withResourceKeyDo([&](llvm::orc::ResourceKey key) {
            const std::lock_guard<std::mutex> guard(mutex_);
            auto &known = loaded_[key];
            for (loaded_code &code : codes) {
                known.push_back(std::move(code));
            }
        });
    }

    llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility &unit) override
    {
        take(unit);
        return llvm::Error::success();
    }

#if LLVM_VERSION_MAJOR >= 16
    llvm::Error notifyRemovingResources(llvm::orc::JITDylib &, llvm::orc::ResourceKey key) override
    {
        return remove(key);
    }

    void notifyTransferringResources(llvm::orc::JITDylib &, llvm::orc::ResourceKey to,
                                     llvm::orc::ResourceKey from) override
    {
        transfer(to, from);
    }
#else
    llvm::Error notifyRemovingResources(llvm::orc::ResourceKey key) override
    {
        return remove(key);
    }

    void notifyTransferringResources(llvm::orc::ResourceKey to, llvm::orc::ResourceKey from) override
    {
        transfer(to, from);
    }
#endif

private:
    using codes = std::vector<loaded_code>;

    void announce(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &graph)
    {
        // The graph has them in no order.
        std::vector<const llvm::jitlink::Symbol *> functions;
        for (const llvm::jitlink::Symbol *symbol : graph.defined_symbols()) {
            if (symbol->hasName() && symbol->isCallable() && symbol->getSize() != 0 &&
                !symbol->getBlock().isZeroFill()) {
                functions.push_back(symbol);
            }
        }
        std::sort(functions.begin(), functions.end(), [](const auto *one, const auto *other) {
            return one->getAddress() < other->getAddress();
        });
        const auto object = object_of(unit, graph);
        codes announced;
        for (const llvm::jitlink::Symbol *symbol : functions) {
            const llvm::StringRef name = llvm_detail::text_of(symbol->getName());
            const llvm_detail::function function{
                {name.data(), name.size()},
                tier_,
                {llvm_detail::number(symbol->getAddress()),
                 llvm::object::SectionedAddress::UndefSection},
                symbol->getBlock().getContent().data() + symbol->getOffset(),
                static_cast<std::size_t>(symbol->getSize())};
            if (object != nullptr) {
                announced.push_back(object->announce(scribe_, function));
            } else {
                code code(function.bytes, function.size);
                code.runs_at(function.start.Address).name(function.name).tier(tier_);
                announced.push_back(scribe_.load(code));
            }
        }
        const std::lock_guard<std::mutex> guard(mutex_);
        linked_.insert_or_assign(&unit, std::move(announced));
    }

    /// The object file that is being linked, or null.
    std::unique_ptr<llvm_detail::linked_object>
    object_of(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &graph)
    {
        llvm::MemoryBufferRef input;
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            const auto found = inputs_.find(&unit);
            if (found == inputs_.end()) {
                return nullptr;
            }
            input = found->second;
            inputs_.erase(found);
        }
        auto read = llvm_detail::value_or_null(llvm::object::ObjectFile::createObjectFile(input));
        if (read == nullptr) {
            return nullptr;
        }
        // Local symbols may have the same name. Then they do not tell where their sections are.
        std::unordered_map<std::string, std::uint64_t> symbols;
        std::vector<std::string> ambiguous;
        for (const llvm::jitlink::Symbol *symbol : graph.defined_symbols()) {
            if (symbol->hasName()) {
                std::string name = llvm_detail::text_of(symbol->getName()).str();
                const std::uint64_t address = llvm_detail::number(symbol->getAddress());
                const auto [known, is_new] = symbols.emplace(std::move(name), address);
                if (!is_new && known->second != address) {
                    ambiguous.push_back(known->first);
                }
            }
        }
        for (const std::string &name : ambiguous) {
            symbols.erase(name);
        }
        return std::make_unique<llvm_detail::linked_object>(std::move(*read), symbols);
    }

    /// What was announced of a unit that was linked, or not.
    codes take(llvm::orc::MaterializationResponsibility &unit)
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        inputs_.erase(&unit);
        const auto found = linked_.find(&unit);
        if (found == linked_.end()) {
            return {};
        }
        codes announced = std::move(found->second);
        linked_.erase(found);
        return announced;
    }

    llvm::Error remove(llvm::orc::ResourceKey key)
    {
        // Unloaded without the lock.
        codes gone;
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto found = loaded_.find(key);
        if (found != loaded_.end()) {
            gone = std::move(found->second);
            loaded_.erase(found);
        }
        return llvm::Error::success();
    }

    void transfer(llvm::orc::ResourceKey to, llvm::orc::ResourceKey from)
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto found = loaded_.find(from);
        if (found == loaded_.end()) {
            return;
        }
        codes moved = std::move(found->second);
        loaded_.erase(found);
        auto &known = loaded_[to];
        for (loaded_code &code : moved) {
            known.push_back(std::move(code));
        }
    }

    scribe scribe_;
    std::string tier_;
    std::mutex mutex_;
    /// The object files of units that are being linked: JITLink keeps them until then.
    std::unordered_map<const llvm::orc::MaterializationResponsibility *, llvm::MemoryBufferRef> inputs_;
    /// What was announced of units that are not emitted yet.
    std::unordered_map<const llvm::orc::MaterializationResponsibility *, codes> linked_;
    std::unordered_map<llvm::orc::ResourceKey, codes> loaded_;
};

} // namespace jitscribe

#endif // JITSCRIBE_LLVM_PLUGIN_HPP
