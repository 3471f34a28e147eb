// jitscribe for LLVM's JITLink: announces the code that ORC's ObjectLinkingLayer links, which is the default of LLJIT on
// x86-64 Linux from LLVM 17 on. Header-only C++17, tested with LLVM 14, 16, 19, 22 and 23.
//
//     layer->addPlugin(std::make_unique<jitscribe::llvm_plugin>(jitscribe::scribe::global()));
//
// The default layer of an LLJIT, from LLVM 17 on:
//
//     static_cast<llvm::orc::ObjectLinkingLayer &>(jit->getObjLinkingLayer()).addPlugin(…)
//
// It announces for each function what llvm.hpp does: the symbol name, source lines with columns, inlined calls, and unwind
// info. When the resources of an object are removed, its functions are unloaded. (From LLVM 20 on, addPlugin takes a shared
// pointer.)
//
// For code that runs in this process. A plugin may be added to one layer only, and is used from many threads. Objects that
// are linked while the scribe is off are announced later only if they are kept: see llvm/objects.hpp. An object that is
// linked as a graph, without an object file, has names only.
#ifndef JITSCRIBE_LLVM_PLUGIN_HPP
#define JITSCRIBE_LLVM_PLUGIN_HPP

#include <jitscribe/llvm/linked.hpp>

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

} // namespace llvm_detail

/// Announces the functions of each object that JITLink links. See the top of this file.
class llvm_plugin final : public llvm::orc::ObjectLinkingLayer::Plugin {
public:
    /// @param tier    name of the compiler's tier, if there are several
    /// @param replay  keeps what is linked while the scribe is off, to announce it when the scribe is turned on
    explicit llvm_plugin(scribe scribe, std::string tier = {}, llvm_replay *replay = nullptr)
        : scribe_(scribe), tier_(std::move(tier)), objects_(replay)
    {
    }

    void notifyMaterializing(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &,
                             llvm::jitlink::JITLinkContext &, llvm::MemoryBufferRef input) override
    {
        if ((scribe_.is_on() || objects_.keeps()) && input.getBufferSize() != 0) {
            const std::lock_guard<std::mutex> guard(mutex_);
            inputs_.insert_or_assign(&unit, input);
        }
    }

    void modifyPassConfig(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &,
                          llvm::jitlink::PassConfiguration &passes) override
    {
        // The code is complete and not yet executable: nothing can run it before it is announced.
        passes.PostFixupPasses.push_back([this, &unit](llvm::jitlink::LinkGraph &graph) {
            linked(unit, graph);
            return llvm::Error::success();
        });
    }

    llvm::Error notifyEmitted(llvm::orc::MaterializationResponsibility &unit) override
    {
        auto object = take(unit);
        if (object.announced.empty() && !object.later) {
            return llvm::Error::success();
        }
        llvm::Error error = unit.withResourceKeyDo([&](llvm::orc::ResourceKey key) {
            if (object.later) {
                objects_.add(key, std::move(object.later));
            } else {
                objects_.add(key, std::move(object.announced));
            }
        });
        // The scribe may have been turned on since the unit was linked. The session's lock is not held here.
        if (objects_.keeps() && scribe_.is_on()) {
            objects_.replay();
        }
        return error;
    }

    llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility &unit) override
    {
        take(unit);
        return llvm::Error::success();
    }

#if LLVM_VERSION_MAJOR >= 16
    llvm::Error notifyRemovingResources(llvm::orc::JITDylib &, llvm::orc::ResourceKey key) override
    {
        objects_.remove(key);
        return llvm::Error::success();
    }

    void notifyTransferringResources(llvm::orc::JITDylib &, llvm::orc::ResourceKey to,
                                     llvm::orc::ResourceKey from) override
    {
        objects_.transfer(to, from);
    }
#else
    llvm::Error notifyRemovingResources(llvm::orc::ResourceKey key) override
    {
        objects_.remove(key);
        return llvm::Error::success();
    }

    void notifyTransferringResources(llvm::orc::ResourceKey to, llvm::orc::ResourceKey from) override
    {
        objects_.transfer(to, from);
    }
#endif

private:
    /// A unit that is not emitted yet.
    struct linked_unit {
        llvm_detail::codes announced;
        llvm_detail::announcer later;
    };

    void linked(llvm::orc::MaterializationResponsibility &unit, llvm::jitlink::LinkGraph &graph)
    {
        const llvm::MemoryBufferRef file = input_of(unit);
        linked_unit made;
        if (scribe_.is_on()) {
            const auto object = linked_object(graph, file, llvm::MemoryBuffer::getMemBuffer(file, false));
            made.announced = object.announce(scribe_, tier_);
        } else if (objects_.keeps()) {
            auto object = linked_object(graph, file, llvm::MemoryBuffer::getMemBufferCopy(file.getBuffer()));
            made.later = llvm_detail::keep(std::move(object), scribe_, tier_);
        } else {
            return;
        }
        const std::lock_guard<std::mutex> guard(mutex_);
        linked_.insert_or_assign(&unit, std::move(made));
    }

    /// The object file that a unit is linked from; empty if there is none.
    llvm::MemoryBufferRef input_of(llvm::orc::MaterializationResponsibility &unit)
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto found = inputs_.find(&unit);
        if (found == inputs_.end()) {
            return {};
        }
        const llvm::MemoryBufferRef input = found->second;
        inputs_.erase(found);
        return input;
    }

    static llvm_detail::linked_object linked_object(llvm::jitlink::LinkGraph &graph,
                                                    llvm::MemoryBufferRef file,
                                                    std::unique_ptr<llvm::MemoryBuffer> kept)
    {
        // Local symbols may have the same name. Then they do not tell where their sections are.
        llvm_detail::placed_symbols symbols;
        std::vector<std::string_view> ambiguous;
        std::vector<llvm_detail::linked_function> functions;
        for (const llvm::jitlink::Symbol *symbol : graph.defined_symbols()) {
            if (!symbol->hasName()) {
                continue;
            }
            const std::string_view name =
                llvm_detail::view_of(llvm_detail::text_of(symbol->getName()));
            const std::uint64_t address = llvm_detail::number(symbol->getAddress());
            const auto [known, is_new] =
                symbols.emplace(name, llvm_detail::placed_symbol{address});
            if (!is_new && known->second.address != address) {
                ambiguous.push_back(name);
            }
            if (symbol->isCallable() && symbol->getSize() != 0 && !symbol->getBlock().isZeroFill()) {
                // Memory may be linked at another address than it runs at.
                functions.push_back({name,
                                     {address, llvm::object::SectionedAddress::UndefSection},
                                     symbol->getBlock().getContent().data() + symbol->getOffset(),
                                     static_cast<std::size_t>(symbol->getSize())});
            }
        }
        for (const std::string_view name : ambiguous) {
            symbols.erase(name);
        }
        // The graph has them in no order.
        std::sort(functions.begin(), functions.end(), [](const auto &one, const auto &other) {
            return one.start.Address < other.start.Address;
        });
        const auto object = llvm_detail::value_or_none(llvm::object::ObjectFile::createObjectFile(file));
        if (!object) {
            return {nullptr, llvm_detail::placement({}), std::move(functions)};
        }
        llvm_detail::placement placed(**object, symbols);
        for (llvm_detail::linked_function &one : functions) {
            const auto found = symbols.find(one.name);
            if (found != symbols.end()) {
                one.start.SectionIndex = found->second.section;
            }
        }
        return {std::move(kept), std::move(placed), std::move(functions)};
    }

    /// What was linked of a unit, which is emitted now, or failed.
    linked_unit take(llvm::orc::MaterializationResponsibility &unit)
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        inputs_.erase(&unit);
        const auto found = linked_.find(&unit);
        if (found == linked_.end()) {
            return {};
        }
        linked_unit made = std::move(found->second);
        linked_.erase(found);
        return made;
    }

    scribe scribe_;
    std::string tier_;
    llvm_detail::live_objects<llvm::orc::ResourceKey> objects_;
    std::mutex mutex_;
    /// The object files of units that are being linked: JITLink keeps them until then.
    std::unordered_map<const llvm::orc::MaterializationResponsibility *, llvm::MemoryBufferRef> inputs_;
    /// What was linked of units that are not emitted yet.
    std::unordered_map<const llvm::orc::MaterializationResponsibility *, linked_unit> linked_;
};

} // namespace jitscribe

#endif // JITSCRIBE_LLVM_PLUGIN_HPP
