// jitscribe for LLVM: announces the code that MCJIT, or ORC's RTDyldObjectLinkingLayer, loads. For ORC's
// ObjectLinkingLayer (JITLink), see llvm_plugin.hpp. Header-only C++17, tested with LLVM 14; compiles with 14 to 19.
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
// LLJIT uses that layer if told to; before LLVM 16 it is the default on x86-64 Linux:
//
//     LLJITBuilder().setObjectLinkingLayerCreator([&](ExecutionSession &session, const Triple &) {
//         auto layer = std::make_unique<RTDyldObjectLinkingLayer>(
//             session, [] { return std::make_unique<SectionMemoryManager>(); });
//         layer->registerJITEventListener(listener);
//         return layer;
//     })
//
// The listener may be registered with many JITs and used from many threads. Objects that are loaded while the scribe
// is off are not announced later. MCJIT calls the listener before an object is linked: with JITSCRIBE=bytes, the log
// contains the bytes of the object file, in which the targets of calls are missing.
#ifndef JITSCRIBE_LLVM_HPP
#define JITSCRIBE_LLVM_HPP

#include <jitscribe.hpp>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/DebugInfo/DIContext.h>
#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDataExtractor.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugFrame.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugLine.h>
#include <llvm/DebugInfo/DWARF/DWARFDie.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Object/SymbolSize.h>
#include <llvm/Support/Error.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace jitscribe {
namespace llvm_detail {

/// The value, or null: what cannot be read is left out.
template <typename T>
std::unique_ptr<T> value_or_null(llvm::Expected<T> expected)
{
    if (expected) {
        return std::make_unique<T>(std::move(*expected));
    }
    llvm::consumeError(expected.takeError());
    return nullptr;
}

/// The CFI of an object's functions, by their addresses.
class frames {
public:
    frames(const llvm::object::ObjectFile &object, const llvm::LoadedObjectInfo &loaded)
        : parsed_(object.getArch(), /*IsEH=*/true),
          // In the ABIs, the registers above 31 that a caller could need are the return address and floating-point
          // registers. x86-64 has no such floating-point registers, and its return address is number 16.
          registers_(object.getArch() == llvm::Triple::x86_64 ? 17 : 128)
    {
        for (const llvm::object::SectionRef &section : object.sections()) {
            const auto name = value_or_null(section.getName());
            if (name != nullptr && *name == ".eh_frame") {
                read(object, loaded, section);
            }
        }
    }

    /// The rows of the function that begins at `address`; they refer to this object. Null if there is no CFI, or if
    /// it uses rules that rows cannot express.
    std::unique_ptr<std::vector<row>> of(std::uint64_t address)
    {
        const auto found = functions_.find(address);
        if (found == functions_.end()) {
            return nullptr;
        }
        const auto table = value_or_null(llvm::dwarf::UnwindTable::create(found->second));
        if (table == nullptr) {
            return nullptr;
        }
        auto rows = std::make_unique<std::vector<row>>();
        for (const llvm::dwarf::UnwindRow &state : *table) {
            if (!add(*rows, state, found->second->getInitialLocation())) {
                return nullptr;
            }
        }
        return rows;
    }

private:
    using location = llvm::dwarf::UnwindLocation;

    void read(const llvm::object::ObjectFile &object,
              const llvm::LoadedObjectInfo &loaded,
              const llvm::object::SectionRef &section)
    {
        const auto contents = value_or_null(section.getContents());
        if (contents == nullptr) {
            return;
        }
        is_little_ = object.isLittleEndian();
        address_size_ = object.getBytesInAddress();
        llvm::consumeError(parsed_.parse(
            llvm::DWARFDataExtractor(*contents, is_little_, address_size_)));
        const auto starts = starts_of(object, loaded, section);
        for (const llvm::dwarf::FrameEntry &entry : parsed_) {
            const auto *fde = llvm::dyn_cast<llvm::dwarf::FDE>(&entry);
            if (fde == nullptr) {
                continue;
            }
            // The reference follows the length, which is 64 bits long if its first 32 bits say so, and the CIE
            // pointer.
            const std::uint64_t head =
                fde->getLength() > UINT32_MAX - 16 ? 4 + 8 + 8 : 4 + 4;
            const auto start = starts.find(fde->getOffset() + head);
            if (start != starts.end()) {
                functions_.emplace(start->second, fde);
            }
        }
    }

    /// The addresses that a section refers to, by the offset of the reference. They are read from the object file,
    /// because MCJIT calls the listener before the references in memory are resolved.
    static std::unordered_map<std::uint64_t, std::uint64_t>
    starts_of(const llvm::object::ObjectFile &object,
              const llvm::LoadedObjectInfo &loaded,
              const llvm::object::SectionRef &section)
    {
        std::unordered_map<std::uint64_t, std::uint64_t> starts;
        for (const llvm::object::SectionRef &other : object.sections()) {
            const auto relocated = value_or_null(other.getRelocatedSection());
            if (relocated == nullptr || *relocated == object.section_end() ||
                **relocated != section) {
                continue;
            }
            for (const llvm::object::RelocationRef &reference : other.relocations()) {
                const auto symbol = reference.getSymbol();
                if (symbol == object.symbol_end()) {
                    continue;
                }
                const auto target = value_or_null(symbol->getSection());
                const auto value = value_or_null(symbol->getValue());
                const auto addend =
                    value_or_null(llvm::object::ELFRelocationRef(reference).getAddend());
                if (target == nullptr || *target == object.section_end() || value == nullptr ||
                    addend == nullptr) {
                    continue;
                }
                const std::uint64_t base = loaded.getSectionLoadAddress(**target);
                if (base != 0) {
                    starts.emplace(reference.getOffset(),
                                   base + *value + static_cast<std::uint64_t>(*addend));
                }
            }
        }
        return starts;
    }

    bool add(std::vector<row> &rows, const llvm::dwarf::UnwindRow &state, std::uint64_t start)
    {
        const location &cfa = state.getCFAValue();
        // Only a comparison shows whether the location is an address or the value at it.
        if (cfa.getLocation() != location::RegPlusOffset ||
            !(cfa == location::createIsRegisterPlusOffset(cfa.getRegister(), cfa.getOffset()))) {
            return false;
        }
        row made{};
        made.offset = static_cast<std::uint32_t>(state.getAddress() - start);
        made.cfa_reg = static_cast<std::uint16_t>(cfa.getRegister());
        made.cfa_offset = cfa.getOffset();
        auto &saved_here = saved_.emplace_back();
        // Each register is looked up separately, so keep their number low.
        for (std::uint32_t number = 0; number < registers_; ++number) {
            const auto where = state.getRegisterLocations().getRegisterLocation(number);
            if (!where) {
                continue;
            }
            switch (where->getLocation()) {
            case location::CFAPlusOffset:
                if (!(*where == location::createAtCFAPlusOffset(where->getOffset()))) {
                    return false;
                }
                saved_here.push_back(
                    saved{where->getOffset(), static_cast<std::uint16_t>(number), 0});
                break;
            case location::Unspecified:
            case location::Undefined:
            case location::Same:
                break;
            default:
                return false;
            }
        }
        made.saved = saved_here.data();
        made.saved_count = static_cast<std::uint32_t>(saved_here.size());
        rows.push_back(made);
        return true;
    }

    llvm::DWARFDebugFrame parsed_;
    std::uint32_t registers_;
    bool is_little_ = true;
    std::uint8_t address_size_ = 8;
    std::unordered_map<std::uint64_t, const llvm::dwarf::FDE *> functions_;
    std::deque<std::vector<saved>> saved_;
};

/// Lines and inlined calls of one function.
class positions {
public:
    positions(llvm::DWARFContext &context, llvm::object::SectionedAddress start,
              std::uint64_t size)
        : start_(start.Address), size_(size)
    {
        using specifier = llvm::DILineInfoSpecifier;
        const specifier wanted(specifier::FileLineInfoKind::AbsoluteFilePath,
                               specifier::FunctionNameKind::None);
        for (const auto &[address, info] : context.getLineInfoForAddressRange(start, size, wanted)) {
            lines_.push_back(line{offset(address), info.Line, info.Column, file(info.FileName)});
        }
        if (const auto dies = context.getDIEsForAddress(start.Address)) {
            table_ = context.getLineTableForUnit(dies.CompileUnit);
            unit_folder_ = dies.CompileUnit->getCompilationDir();
            add_calls(dies.FunctionDIE, JITSCRIBE_NO_PARENT, 0);
        }
    }
    positions(const positions &) = delete;
    positions &operator=(const positions &) = delete;

    void give_to(code &code) const
    {
        code.files(files_).lines(lines_).inlined(calls_);
    }

private:
    /// Limits the depth of the tree. Compilers do not make deeper ones; they come from damaged debug info.
    static constexpr unsigned max_depth = 256;

    std::uint32_t offset(std::uint64_t address) const
    {
        const std::uint64_t distance = address < start_ ? 0 : address - start_;
        return static_cast<std::uint32_t>(distance < size_ ? distance : size_);
    }

    std::uint32_t file(const std::string &path)
    {
        const auto [known, is_new] =
            numbers_.emplace(path, static_cast<std::uint32_t>(files_.size()));
        if (is_new) {
            // Keys of a std::map do not move.
            const bool is_known = path != llvm::DILineInfo::BadString;
            files_.push_back(text(is_known ? std::string_view(known->first) : std::string_view()));
        }
        return known->second;
    }

    void add_calls(const llvm::DWARFDie &parent, std::uint32_t within, unsigned depth)
    {
        if (depth == max_depth) {
            return;
        }
        for (const llvm::DWARFDie die : parent.children()) {
            if (die.getTag() == llvm::dwarf::DW_TAG_inlined_subroutine) {
                add_calls(die, add_call(die, within), depth + 1);
            } else if (die.getTag() == llvm::dwarf::DW_TAG_lexical_block) {
                add_calls(die, within, depth + 1);
            }
        }
    }

    std::uint32_t add_call(const llvm::DWARFDie &die, std::uint32_t within)
    {
        inlined call{};
        if (const char *name = die.getSubroutineName(llvm::DINameKind::LinkageName)) {
            call.name = text(name);
        }
        call.parent = within;
        std::uint32_t file_number = 0;
        std::uint32_t discriminator = 0;
        die.getCallerFrame(file_number, call.line, call.column, discriminator);
        std::string path(llvm::DILineInfo::BadString);
        if (table_ != nullptr) {
            table_->getFileNameByIndex(
                file_number, unit_folder_,
                llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath, path);
        }
        call.file = file(path);
        auto &ranges = ranges_.emplace_back();
        if (const auto told = value_or_null(die.getAddressRanges())) {
            for (const llvm::DWARFAddressRange &part : *told) {
                ranges.push_back(range{offset(part.LowPC), offset(part.HighPC)});
            }
        }
        call.ranges = ranges.data();
        call.range_count = ranges.size();
        calls_.push_back(call);
        return static_cast<std::uint32_t>(calls_.size() - 1);
    }

    std::uint64_t start_;
    std::uint64_t size_;
    const llvm::DWARFDebugLine::LineTable *table_ = nullptr;
    const char *unit_folder_ = nullptr;
    std::map<std::string, std::uint32_t> numbers_;
    std::vector<str> files_;
    std::vector<line> lines_;
    std::vector<inlined> calls_;
    std::deque<std::vector<range>> ranges_;
};

/// What a function of an object is announced as.
struct function {
    std::string_view name;
    std::string_view tier;
    /// Where it runs, and its section in the object.
    llvm::object::SectionedAddress start;
    /// Its code, which may be elsewhere while it is being linked.
    const void *bytes;
    std::size_t size;
};

/// Announces a function with what the debug info and the CFI of its object say.
inline loaded_code announce(const scribe &scribe, const function &told, llvm::DWARFContext &context,
                            frames &frames)
{
    const positions positions(context, told.start, told.size);
    const auto rows = frames.of(told.start.Address);
    code code(told.bytes, told.size);
    code.runs_at(told.start.Address).name(told.name).tier(told.tier);
    positions.give_to(code);
    if (rows != nullptr) {
        code.rows(*rows);
    }
    return scribe.load(code);
}

} // namespace llvm_detail

/// Announces the functions of each object that a JIT loads. See the top of this file.
class llvm_listener final : public llvm::JITEventListener {
public:
    /// @param tier  name of the compiler's tier, if there are several
    explicit llvm_listener(scribe scribe, std::string tier = {})
        : scribe_(scribe), tier_(std::move(tier))
    {
    }

    void notifyObjectLoaded(ObjectKey key, const llvm::object::ObjectFile &object,
                            const llvm::RuntimeDyld::LoadedObjectInfo &loaded) override
    {
        if (!scribe_.is_on()) {
            return;
        }
        // A copy of the object with the addresses at which its sections were loaded.
        const auto placed = loaded.getObjectForDebug(object);
        if (placed.getBinary() == nullptr) {
            return;
        }
        std::vector<loaded_code> codes;
        const auto context = llvm::DWARFContext::create(*placed.getBinary());
        llvm_detail::frames frames(object, loaded);
        for (const auto &[symbol, size] : llvm::object::computeSymbolSizes(*placed.getBinary())) {
            announce(codes, *context, frames, symbol, size);
        }
        const std::lock_guard<std::mutex> guard(mutex_);
        auto &known = loaded_[key];
        for (loaded_code &code : codes) {
            known.push_back(std::move(code));
        }
    }

    void notifyFreeingObject(ObjectKey key) override
    {
        std::vector<loaded_code> gone;
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto found = loaded_.find(key);
        if (found != loaded_.end()) {
            gone = std::move(found->second);
            loaded_.erase(found);
        }
    }

private:
    void announce(std::vector<loaded_code> &codes, llvm::DWARFContext &context,
                  llvm_detail::frames &frames, const llvm::object::SymbolRef &symbol,
                  std::uint64_t size) const
    {
        using llvm_detail::value_or_null;
        const auto type = value_or_null(symbol.getType());
        if (size == 0 || type == nullptr || *type != llvm::object::SymbolRef::ST_Function) {
            return;
        }
        const auto name = value_or_null(symbol.getName());
        const auto address = value_or_null(symbol.getAddress());
        const auto section = value_or_null(symbol.getSection());
        if (name == nullptr || address == nullptr || section == nullptr ||
            *section == symbol.getObject()->section_end() || (*section)->getAddress() == 0) {
            return;
        }
        // A JIT event listener is only called for code in its own process.
        const auto *bytes = reinterpret_cast<const void *>(static_cast<std::uintptr_t>(*address));
        const llvm_detail::function function{{name->data(), name->size()},
                                             tier_,
                                             {*address, (*section)->getIndex()},
                                             bytes,
                                             static_cast<std::size_t>(size)};
        codes.push_back(llvm_detail::announce(scribe_, function, context, frames));
    }

    scribe scribe_;
    std::string tier_;
    std::mutex mutex_;
    std::unordered_map<ObjectKey, std::vector<loaded_code>> loaded_;
};

} // namespace jitscribe

#endif // JITSCRIBE_LLVM_HPP
