// jitscribe for LLVM: announces the code that MCJIT, or ORC's RTDyldObjectLinkingLayer, loads. For ORC's
// ObjectLinkingLayer (JITLink), see llvm_plugin.hpp. Header-only C++17, tested with LLVM 14, 16, 19, 22 and 23.
//
//     jitscribe::llvm_listener listener(jitscribe::scribe::global());   // lives as long as the JIT
//
//     layer->registerJITEventListener(listener);      // ORC: an RTDyldObjectLinkingLayer
//     engine->RegisterJITEventListener(&listener);    // MCJIT
//
// It announces for each function: the symbol name, source lines with columns and inlined calls (from the DWARF that
// the module was compiled with), and unwind info (from .eh_frame, so frame pointers are not needed). When an object
// is freed, its functions are unloaded.
//
// LLJIT uses that layer if told to; before LLVM 17 it is the default on x86-64 Linux:
//
//     LLJITBuilder().setObjectLinkingLayerCreator([&](ExecutionSession &session, const Triple &) {
//         auto layer = std::make_unique<RTDyldObjectLinkingLayer>(
//             session, [] { return std::make_unique<SectionMemoryManager>(); });
//         layer->registerJITEventListener(listener);
//         return layer;
//     })
//
// The listener may be registered with many JITs and used from many threads. Objects that are loaded while the scribe
// is off are announced later only if they are kept: see llvm/objects.hpp. MCJIT calls the listener before an object is
// linked: with JITSCRIBE=bytes, the log contains the bytes of the object file, in which the targets of calls are missing.
#ifndef JITSCRIBE_LLVM_HPP
#define JITSCRIBE_LLVM_HPP

#include <jitscribe/llvm/linked.hpp>

#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/SymbolSize.h>

namespace jitscribe {

/// Announces the functions of each object that a JIT loads. See the top of this file.
class llvm_listener final : public llvm::JITEventListener {
public:
    /// @param tier    name of the compiler's tier, if there are several
    /// @param replay  keeps what is loaded while the scribe is off, to announce it when the scribe is turned on
    explicit llvm_listener(scribe scribe, std::string tier = {}, llvm_replay *replay = nullptr)
        : scribe_(scribe), tier_(std::move(tier)), objects_(replay)
    {
    }

    void notifyObjectLoaded(ObjectKey key, const llvm::object::ObjectFile &object,
                            const llvm::RuntimeDyld::LoadedObjectInfo &loaded) override
    {
        const llvm::MemoryBufferRef file = object.getMemoryBufferRef();
        if (scribe_.is_on()) {
            const auto linked = linked_object(object, loaded, llvm::MemoryBuffer::getMemBuffer(file, false));
            objects_.add(key, linked.announce(scribe_, tier_));
        } else if (objects_.keeps()) {
            auto linked = linked_object(object, loaded,
                                        llvm::MemoryBuffer::getMemBufferCopy(file.getBuffer()));
            objects_.add(key, llvm_detail::keep(std::move(linked), scribe_, tier_));
            if (scribe_.is_on()) {
                objects_.replay();
            }
        }
    }

    void notifyFreeingObject(ObjectKey key) override { objects_.remove(key); }

private:
    static llvm_detail::linked_object linked_object(const llvm::object::ObjectFile &object,
                                                    const llvm::RuntimeDyld::LoadedObjectInfo &loaded,
                                                    std::unique_ptr<llvm::MemoryBuffer> file)
    {
        using llvm_detail::value_or_none;
        std::vector<std::uint64_t> starts;
        for (const llvm::object::SectionRef &section : object.sections()) {
            const auto index = static_cast<std::size_t>(section.getIndex());
            if (starts.size() <= index) {
                starts.resize(index + 1);
            }
            starts[index] = loaded.getSectionLoadAddress(section);
        }
        const llvm_detail::placement placed(std::move(starts));
        const auto symbols = llvm::object::computeSymbolSizes(object);
        // LLVM counts sections for both: most functions are in the section of the one before.
        const llvm::object::section_iterator end = object.section_end();
        llvm::object::section_iterator latest = end;
        std::uint64_t index = 0;
        std::vector<llvm_detail::linked_function> functions;
        functions.reserve(symbols.size());
        for (const auto &[symbol, size] : symbols) {
            if (size == 0) {
                continue;
            }
            const auto type = value_or_none(symbol.getType());
            if (!type || *type != llvm::object::SymbolRef::ST_Function) {
                continue;
            }
            const auto name = value_or_none(symbol.getName());
            const auto value = value_or_none(symbol.getValue());
            const auto section = value_or_none(symbol.getSection());
            if (!name || !value || !section || *section == end) {
                continue;
            }
            if (*section != latest) {
                latest = *section;
                index = latest->getIndex();
            }
            if (const std::uint64_t start = placed.start_of(index)) {
                functions.push_back({llvm_detail::view_of(*name),
                                     {start + *value, index},
                                     nullptr,
                                     static_cast<std::size_t>(size)});
            }
        }
        return {std::move(file), placed, std::move(functions)};
    }

    scribe scribe_;
    std::string tier_;
    llvm_detail::live_objects<ObjectKey> objects_;
};

} // namespace jitscribe

#endif // JITSCRIBE_LLVM_HPP
