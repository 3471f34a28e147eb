// What the debug info of an object file of LLVM's says about its functions: source lines and inlined calls. Included by
// llvm.hpp and llvm_plugin.hpp.
#ifndef JITSCRIBE_LLVM_DEBUG_INFO_HPP
#define JITSCRIBE_LLVM_DEBUG_INFO_HPP

#include <jitscribe/llvm/frames.hpp>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/DebugInfo/DIContext.h>
#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugLine.h>
#include <llvm/DebugInfo/DWARF/DWARFDie.h>
#include <llvm/Object/ObjectFile.h>

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
        if (const auto told = value_or_none(die.getAddressRanges())) {
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

/// Whether an object has debug info. Without any, a context for it would be made for nothing: that reads the references of
/// .eh_frame too.
inline bool has_debug_info(const llvm::object::ObjectFile &object)
{
    for (const llvm::object::SectionRef &section : object.sections()) {
        const auto name = value_or_none(section.getName());
        // The formats have different characters before it.
        if (name && name->find("debug_info") != llvm::StringRef::npos) {
            return true;
        }
    }
    return false;
}

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
///
/// @param context  null: there is no debug info
inline loaded_code announce(const scribe &scribe, const function &one, llvm::DWARFContext *context,
                            frames &frames)
{
    code code(one.bytes, one.size);
    code.runs_at(one.start.Address).name(one.name).tier(one.tier);
    if (const std::vector<row> *rows = frames.of(one.start.Address)) {
        code.rows(*rows);
    }
    if (context == nullptr) {
        return scribe.load(code);
    }
    const positions positions(*context, one.start, one.size);
    positions.give_to(code);
    return scribe.load(code);
}

} // namespace llvm_detail
} // namespace jitscribe

#endif // JITSCRIBE_LLVM_DEBUG_INFO_HPP
