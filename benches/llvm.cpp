// What a listener takes for each function that LLVM's JIT loads: LLVM's own, which writes a jitdump, and
// jitscribe/llvm.hpp, by turns, told of the same objects; beside them, what reading names and lines takes.
//
//     llvm FUNCTIONS ROUNDS
//
// LLVM's listener writes below JITDUMPDIR. Times are those of the thread's processor time.

#include <jitscribe/llvm.hpp>

#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

constexpr unsigned lines = 12;
/// Each takes ten bytes.
constexpr unsigned stores_a_line = 4;

[[noreturn]] void fail(const std::string &what)
{
    std::fprintf(stderr, "llvm: %s\n", what.c_str());
    std::exit(1);
}

template <typename T>
T need(llvm::Expected<T> expected)
{
    if (!expected) {
        fail(llvm::toString(expected.takeError()));
    }
    return std::move(*expected);
}

double now()
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// A listener, and what it takes.
class timed final : public llvm::JITEventListener {
public:
    timed(const char *name, llvm::JITEventListener &listener) : name(name), listener_(listener) {}

    void notifyObjectLoaded(ObjectKey key, const llvm::object::ObjectFile &object,
                            const llvm::RuntimeDyld::LoadedObjectInfo &info) override
    {
        const double before = now();
        listener_.notifyObjectLoaded(key, object, info);
        took.push_back(now() - before);
    }
    void notifyFreeingObject(ObjectKey key) override { listener_.notifyFreeingObject(key); }

    const char *name;
    std::vector<double> took;

private:
    llvm::JITEventListener &listener_;
};

/// What LLVM's listener asks of an object before it writes anything.
class reader final : public llvm::JITEventListener {
public:
    void notifyObjectLoaded(ObjectKey, const llvm::object::ObjectFile &object,
                            const llvm::RuntimeDyld::LoadedObjectInfo &info) override
    {
        const auto owner = info.getObjectForDebug(object);
        const llvm::object::ObjectFile &linked = *owner.getBinary();
        const auto context = llvm::DWARFContext::create(linked);
        for (const auto &[symbol, size] : llvm::object::computeSymbolSizes(linked)) {
            if (need(symbol.getType()) != llvm::object::SymbolRef::ST_Function) {
                continue;
            }
            const auto section = need(symbol.getSection())->getIndex();
            seen_ += need(symbol.getName()).size();
            seen_ += context
                         ->getLineInfoForAddressRange(
                             {need(symbol.getAddress()), section}, size,
                             llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath)
                         .size();
        }
    }

private:
    std::size_t seen_ = 0;
};

/// Functions with names of 32 bytes, of some 500 bytes each.
std::string module_of(unsigned functions, bool with_lines)
{
    std::string text = "@place = internal global i32 0\n";
    std::string debug;
    const unsigned first = 10;
    for (unsigned n = 0; n < functions; n++) {
        char name[40];
        std::snprintf(name, sizeof name, "a_function_name_of_32_bytes_%04u", n);
        const unsigned scope = first + n * (lines + 1);
        text += "define void @" + std::string(name) + "()";
        text += with_lines ? " !dbg !" + std::to_string(scope) + " {\n" : " {\n";
        for (unsigned line = 0; line < lines; line++) {
            const std::string at = ", !dbg !" + std::to_string(scope + 1 + line);
            for (unsigned store = 0; store < stores_a_line; store++) {
                text += "  store volatile i32 " + std::to_string(n + line + store);
                text += ", i32* @place" + (with_lines ? at : "") + "\n";
            }
            debug += "!" + std::to_string(scope + 1 + line) + " = !DILocation(line: ";
            debug += std::to_string(n * 20 + line + 1) + ", column: 3, scope: !";
            debug += std::to_string(scope) + ")\n";
        }
        text += "  ret void" + (with_lines ? ", !dbg !" + std::to_string(scope + lines) : "") + "\n}\n";
        debug += "!" + std::to_string(scope) + " = distinct !DISubprogram(name: \"" + name;
        debug += "\", scope: !1, file: !1, line: " + std::to_string(n * 20 + 1);
        debug += ", type: !2, unit: !0, spFlags: DISPFlagDefinition)\n";
    }
    if (!with_lines) {
        return text;
    }
    return text + R"(
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!4, !5}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "x", emissionKind: FullDebug)
!1 = !DIFile(filename: "module.lang", directory: "/home/user/project/src")
!2 = !DISubroutineType(types: !3)
!3 = !{null}
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !{i32 2, !"Dwarf Version", i32 4}
)" + debug;
}

std::unique_ptr<llvm::MemoryBuffer> compiled(const std::string &text)
{
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    auto module = llvm::parseIR(llvm::MemoryBufferRef(text, "module"), problem, context);
    if (!module) {
        fail(problem.getMessage().str());
    }
    auto machine = need(need(llvm::orc::JITTargetMachineBuilder::detectHost()).createTargetMachine());
    module->setDataLayout(machine->createDataLayout());
    return need(llvm::orc::SimpleCompiler(*machine)(*module));
}

/// Loads the object, which `listener` is told of, and frees it again.
void load(llvm::MemoryBufferRef object, llvm::JITEventListener &listener)
{
    auto builder = llvm::orc::LLJITBuilder();
    builder.setObjectLinkingLayerCreator(
        [&](llvm::orc::ExecutionSession &session, const llvm::Triple &) {
            auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
                session, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
            layer->registerJITEventListener(listener);
            return layer;
        });
    const auto jit = need(builder.create());
    if (auto error = jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object.getBuffer()))) {
        fail(llvm::toString(std::move(error)));
    }
    need(jit->lookup("a_function_name_of_32_bytes_0000"));
}

jitscribe::scribe scribe_with(bool bytes)
{
    jitscribe::settings settings;
    settings.limit(std::uint64_t{64} << 20);
    if (bytes) {
        settings.add(JITSCRIBE_FLAG_BYTES);
    }
    return jitscribe::scribe::open(settings);
}

} // namespace

int main(int count, char **words)
{
    if (count != 3) {
        fail("usage: llvm FUNCTIONS ROUNDS");
    }
    const auto functions = static_cast<unsigned>(std::atoi(words[1]));
    const auto rounds = static_cast<unsigned>(std::atoi(words[2]));
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto *llvms = llvm::JITEventListener::createPerfJITEventListener();
    if (llvms == nullptr) {
        fail("this LLVM has no listener for perf");
    }
    jitscribe::llvm_listener without_bytes(scribe_with(false));
    jitscribe::llvm_listener bytes(scribe_with(true));
    std::printf("%-20s %-30s %10s %10s\n", "", "", "fastest", "median");
    for (const bool with_lines : {false, true}) {
        const auto object = compiled(module_of(functions, with_lines));
        reader reads;
        timed listeners[] = {{"reading alone", reads},
                             {"LLVM's own", *llvms},
                             {"jitscribe, without bytes", without_bytes},
                             {"jitscribe, with bytes", bytes}};
        for (unsigned round = 0; round < rounds; round++) {
            for (auto &listener : listeners) {
                load(*object, listener);
            }
        }
        for (auto &listener : listeners) {
            std::sort(listener.took.begin(), listener.took.end());
            std::printf("%-20s %-30s %7.0f ns %7.0f ns\n", with_lines ? "12 lines a function" : "no lines",
                        listener.name, listener.took.front() / functions,
                        listener.took[listener.took.size() / 2] / functions);
        }
    }
}
