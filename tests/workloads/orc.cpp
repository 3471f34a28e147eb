// Runs a function of an LLVM module again and again, by ORC or by MCJIT, and announces the module's code.
//
//     orc orc|both|jitlink|mcjit MODULE.ll FUNCTION SECONDS
//
// With `jitlink`, ORC links by JITLink, else by RTDyld. With `both`, ORC's code is announced by LLVM's own listener for perf as well, to JITDUMPDIR. Prints "loaded" when the
// code is there, "freed" when it is gone again, and then waits for its standard input to end.

#include <jitscribe/llvm_plugin.hpp>

#include <llvm/ExecutionEngine/ExecutionEngine.h>
#include <llvm/ExecutionEngine/MCJIT.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using spin = int (*)();

[[noreturn]] void fail(const std::string &what)
{
    std::fprintf(stderr, "orc: %s\n", what.c_str());
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

void say(const char *word)
{
    std::puts(word);
    std::fflush(stdout);
}

std::unique_ptr<llvm::Module> parse(const char *path, llvm::LLVMContext &context)
{
    llvm::SMDiagnostic problem;
    auto module = llvm::parseIRFile(path, problem, context);
    if (!module) {
        fail(problem.getMessage().str());
    }
    return module;
}

void run(spin function, double seconds)
{
    say("loaded");
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        if (function() != 0) {
            fail("main failed");
        }
    }
}

struct options {
    std::string mode;
    const char *path;
    const char *function;
    double seconds;
};

void by_orc(const options &wanted, jitscribe::llvm_listener &listener)
{
    // What JITLink expects; the same for both, so that the code is the same.
    auto host = need(llvm::orc::JITTargetMachineBuilder::detectHost());
    host.setRelocationModel(llvm::Reloc::PIC_).setCodeModel(llvm::CodeModel::Small);
    auto builder = llvm::orc::LLJITBuilder();
    builder.setJITTargetMachineBuilder(std::move(host));
    builder.setObjectLinkingLayerCreator(
        [&](llvm::orc::ExecutionSession &session,
            const llvm::Triple &) -> std::unique_ptr<llvm::orc::ObjectLayer> {
            if (wanted.mode == "jitlink") {
                auto layer = std::make_unique<llvm::orc::ObjectLinkingLayer>(session);
                layer->addPlugin(std::make_unique<jitscribe::llvm_plugin>(
                    jitscribe::scribe::global(), "llvm"));
                return layer;
            }
            auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
                session, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
            layer->registerJITEventListener(listener);
            if (wanted.mode == "both") {
                auto *theirs = llvm::JITEventListener::createPerfJITEventListener();
                if (theirs == nullptr) {
                    fail("this LLVM has no listener for perf");
                }
                layer->registerJITEventListener(*theirs);
            }
            return layer;
        });
    const auto jit = need(builder.create());
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = parse(wanted.path, *context);
    module->setDataLayout(jit->getDataLayout());
    auto &library = jit->getMainJITDylib();
    const auto tracker = library.createResourceTracker();
    if (auto error = jit->addIRModule(
            tracker, llvm::orc::ThreadSafeModule(std::move(module), std::move(context)))) {
        fail(llvm::toString(std::move(error)));
    }
    const auto function = need(jit->lookup(wanted.function));
    run(llvm::jitTargetAddressToPointer<spin>(function.getAddress()), wanted.seconds);
    // Resources may be given to another tracker, which then removes them.
    const auto last = library.createResourceTracker();
    tracker->transferTo(*last);
    if (auto error = last->remove()) {
        fail(llvm::toString(std::move(error)));
    }
}

void by_mcjit(const options &wanted, jitscribe::llvm_listener &listener)
{
    llvm::LLVMContext context;
    std::string problem;
    // For the same processor as ORC: the order of instructions, and so the line table, depends on it.
    auto host = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
    auto machine = llvm::cantFail(host.createTargetMachine());
    std::unique_ptr<llvm::ExecutionEngine> engine(
        llvm::EngineBuilder(parse(wanted.path, context))
            .setErrorStr(&problem)
            .create(machine.release()));
    if (!engine) {
        fail(problem);
    }
    engine->RegisterJITEventListener(&listener);
    engine->finalizeObject();
    run(reinterpret_cast<spin>(engine->getFunctionAddress(wanted.function)), wanted.seconds);
}

} // namespace

int main(int count, char **words)
{
    if (count != 5) {
        fail("usage: orc orc|both|jitlink|mcjit MODULE.ll FUNCTION SECONDS");
    }
    const options wanted{words[1], words[2], words[3], std::atof(words[4])};
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    jitscribe::llvm_listener listener(jitscribe::scribe::global(), "llvm");
    if (wanted.mode == "mcjit") {
        by_mcjit(wanted, listener);
    } else {
        by_orc(wanted, listener);
    }
    say("freed");
    while (std::getchar() != EOF) {
    }
}
