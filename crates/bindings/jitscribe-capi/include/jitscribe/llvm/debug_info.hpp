// What an object file of LLVM's says about its functions: source lines, inlined calls, unwind info. Included by llvm.hpp and
// llvm_plugin.hpp.
#ifndef JITSCRIBE_LLVM_DEBUG_INFO_HPP
#define JITSCRIBE_LLVM_DEBUG_INFO_HPP

#include <jitscribe.hpp>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/DebugInfo/DIContext.h>
#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDataExtractor.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugFrame.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugLine.h>
#include <llvm/DebugInfo/DWARF/DWARFDie.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Error.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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
#if LLVM_VERSION_MAJOR >= 21
        const auto table = value_or_null(llvm::dwarf::createUnwindTable(found->second));
#else
        const auto table = value_or_null(llvm::dwarf::UnwindTable::create(found->second));
#endif
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
        made.cfa_register = static_cast<std::uint16_t>(cfa.getRegister());
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
        // As DWARFContext::getLineInfoForAddressRange, which makes a path for each line.
        if (const auto dies = context.getDIEsForAddress(start.Address)) {
            table_ = context.getLineTableForUnit(dies.CompileUnit);
            unit_folder_ = dies.CompileUnit->getCompilationDir();
            add_lines(start);
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

    void add_lines(llvm::object::SectionedAddress start)
    {
        std::vector<std::uint32_t> rows;
        if (table_ == nullptr || !table_->lookupAddressRange(start, size_, rows)) {
            return;
        }
        lines_.reserve(rows.size());
        for (const std::uint32_t number : rows) {
            const llvm::DWARFDebugLine::Row &row = table_->Rows[number];
            lines_.push_back(line{offset(row.Address.Address), row.Line, row.Column, file(row.File)});
        }
    }

    /// The index of a file of the line table.
    std::uint32_t file(std::uint64_t number)
    {
        const auto [known, is_new] = numbers_.emplace(number, 0);
        if (!is_new) {
            return known->second;
        }
        std::string path;
        if (table_ != nullptr) {
            table_->getFileNameByIndex(number, unit_folder_,
                                       llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath, path);
        }
        const auto [place, is_new_path] = paths_.emplace(std::move(path), static_cast<std::uint32_t>(files_.size()));
        if (is_new_path) {
            // Keys of a std::map do not move.
            files_.push_back(text(place->first));
        }
        known->second = place->second;
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
        call.file = file(file_number);
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
    /// Indices of files by their numbers in the table, and by their paths: a table may have one twice.
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::map<std::string, std::uint32_t> paths_;
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
} // namespace jitscribe

#endif // JITSCRIBE_LLVM_DEBUG_INFO_HPP
