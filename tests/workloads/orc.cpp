// Runs a function of an LLVM module again and again, by ORC or by MCJIT, and announces the module's code.
//
//     orc MODE MODULE.ll FUNCTION SECONDS
//
// Prints "loaded" when the code is there, "freed" when it is gone again, and then waits for its standard input to end. SIGUSR1
// ends the time early. Modes:
//
//     orc       ORC links by RTDyld
//     both      the same, and LLVM's own listener for perf announces the code as well, to JITDUMPDIR
//     jitlink   ORC links by JITLink
//     perf      the same, and LLVM's own plugin for perf announces the code as well, to JITDUMPDIR (from LLVM 18 on)
//     default   the layer that LLJIT makes by itself (from LLVM 17 on: JITLink)
//     mcjit     MCJIT
//     plain-orc, plain-jitlink, plain-mcjit: without jitscribe; perf-only, gdb-only: with one of LLVM's own plugins instead
//     late-orc, late-jitlink, late-mcjit: the log is off at first, and what was loaded is announced when it is turned on
//
//     orc MODE MODULE.ll FUNCTION measure LINKS     what it takes to link the module's object file

#include <jitscribe/llvm.hpp>
#include <jitscribe/llvm_plugin.hpp>

#include <llvm/ExecutionEngine/ExecutionEngine.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/MCJIT.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#if LLVM_VERSION_MAJOR >= 18
#include <llvm/ExecutionEngine/Orc/Debugging/DebugInfoSupport.h>
#include <llvm/ExecutionEngine/Orc/Debugging/DebuggerSupport.h>
#include <llvm/ExecutionEngine/Orc/Debugging/PerfSupportPlugin.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderPerf.h>
#endif

#include <time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

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

void check(llvm::Error error)
{
    if (error) {
        fail(llvm::toString(std::move(error)));
    }
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

volatile std::sig_atomic_t is_stopped = 0;

void run(spin function, double seconds)
{
    std::signal(SIGUSR1, [](int) { is_stopped = 1; });
    say("loaded");
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (is_stopped == 0 && std::chrono::steady_clock::now() < end) {
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

    bool is(std::string_view word) const { return mode.find(word) != std::string::npos; }
    /// Whether jitscribe announces the code.
    bool announces() const { return !is("plain") && !is("only"); }
};

/// The scribe, and what listens for it.
struct announcing {
    jitscribe::llvm_replay *replay;
    jitscribe::scribe scribe;
    jitscribe::llvm_listener listener;

    explicit announcing(const options &wanted)
        : replay(wanted.is("late") ? new jitscribe::llvm_replay : nullptr),
          scribe(replay == nullptr ? jitscribe::scribe::global()
                                   : jitscribe::scribe::open(jitscribe::settings()
                                                                 .add(JITSCRIBE_FLAG_OFF)
                                                                 .add(JITSCRIBE_FLAG_CONTROL_THREAD)
                                                                 .replay(*replay))),
          listener(scribe, "llvm", replay)
    {
    }
};

std::unique_ptr<llvm::orc::ObjectLayer> layer_of(const options &wanted, announcing &announces,
                                                 llvm::orc::ExecutionSession &session)
{
    if (wanted.is("jitlink") || wanted.is("perf") || wanted.is("gdb")) {
        auto layer = std::make_unique<llvm::orc::ObjectLinkingLayer>(
            session, need(llvm::jitlink::InProcessMemoryManager::Create()));
        if (wanted.announces()) {
            layer->addPlugin(std::make_unique<jitscribe::llvm_plugin>(announces.scribe, "llvm",
                                                                      announces.replay));
        }
        return layer;
    }
    auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
        session, [](auto &&...) { return std::make_unique<llvm::SectionMemoryManager>(); });
    if (wanted.announces()) {
        layer->registerJITEventListener(announces.listener);
    }
    if (wanted.mode == "both") {
        auto *theirs = llvm::JITEventListener::createPerfJITEventListener();
        if (theirs == nullptr) {
            fail("this LLVM has no listener for perf");
        }
        layer->registerJITEventListener(*theirs);
    }
    return layer;
}

/// Adds LLVM's own plugins, if they are wanted.
void add_theirs(const options &wanted, llvm::orc::LLJIT &jit)
{
#if LLVM_VERSION_MAJOR >= 18
    if (wanted.is("perf")) {
        auto &layer = static_cast<llvm::orc::ObjectLinkingLayer &>(jit.getObjLinkingLayer());
        auto &session = jit.getExecutionSession();
        auto process = jit.getProcessSymbolsJITDylib();
        // Without it, theirs has no lines.
        layer.addPlugin(need(llvm::orc::DebugInfoPreservationPlugin::Create()));
        layer.addPlugin(need(llvm::orc::PerfSupportPlugin::Create(session.getExecutorProcessControl(),
                                                                 *process, true, true)));
    }
    if (wanted.is("gdb")) {
        check(llvm::orc::enableDebuggerSupport(jit));
    }
#else
    if (wanted.is("perf") || wanted.is("gdb")) {
        fail("this LLVM has no such plugin");
    }
    (void)jit;
#endif
}

std::unique_ptr<llvm::orc::LLJIT> create(const options &wanted, announcing &announces)
{
    // What JITLink expects; the same for all, so that the code is the same.
    auto host = need(llvm::orc::JITTargetMachineBuilder::detectHost());
    host.setRelocationModel(llvm::Reloc::PIC_).setCodeModel(llvm::CodeModel::Small);
    auto builder = llvm::orc::LLJITBuilder();
    builder.setJITTargetMachineBuilder(std::move(host));
    if (!wanted.is("default")) {
        builder.setObjectLinkingLayerCreator([&](llvm::orc::ExecutionSession &session, auto &&...) {
            return llvm::Expected<std::unique_ptr<llvm::orc::ObjectLayer>>(
                layer_of(wanted, announces, session));
        });
    }
    auto jit = need(builder.create());
    if (wanted.is("default")) {
        auto *layer = llvm::dyn_cast<llvm::orc::ObjectLinkingLayer>(&jit->getObjLinkingLayer());
        if (layer == nullptr) {
            fail("the default is not JITLink");
        }
        layer->addPlugin(
            std::make_unique<jitscribe::llvm_plugin>(announces.scribe, "llvm", announces.replay));
    }
    add_theirs(wanted, *jit);
    return jit;
}

template <typename Function>
Function function_at(llvm::orc::LLJIT &jit, const char *name)
{
#if LLVM_VERSION_MAJOR >= 15
    return need(jit.lookup(name)).toPtr<Function>();
#else
    return llvm::jitTargetAddressToPointer<Function>(need(jit.lookup(name)).getAddress());
#endif
}

void by_orc(const options &wanted, announcing &announces)
{
    const auto jit = create(wanted, announces);
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = parse(wanted.path, *context);
    module->setDataLayout(jit->getDataLayout());
    auto &library = jit->getMainJITDylib();
    const auto tracker = library.createResourceTracker();
    check(jit->addIRModule(tracker, llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    run(function_at<spin>(*jit, wanted.function), wanted.seconds);
    // Resources may be given to another tracker, which then removes them.
    const auto last = library.createResourceTracker();
    tracker->transferTo(*last);
    check(last->remove());
}

void by_mcjit(const options &wanted, announcing &announces)
{
    llvm::LLVMContext context;
    std::string problem;
    // For the same processor as ORC: the order of instructions, and so the line table, depends on it.
    auto host = need(llvm::orc::JITTargetMachineBuilder::detectHost());
    auto machine = need(host.createTargetMachine());
    std::unique_ptr<llvm::ExecutionEngine> engine(
        llvm::EngineBuilder(parse(wanted.path, context))
            .setErrorStr(&problem)
            .create(machine.release()));
    if (!engine) {
        fail(problem);
    }
    if (wanted.announces()) {
        engine->RegisterJITEventListener(&announces.listener);
    }
    engine->finalizeObject();
    run(reinterpret_cast<spin>(engine->getFunctionAddress(wanted.function)), wanted.seconds);
}

/// Links the module's object file again and again. Prints what a link takes on average, in microseconds of this thread's
/// processor time: of ten rounds, the fastest.
void measure(const options &wanted, announcing &announces, unsigned links)
{
    llvm::LLVMContext context;
    auto module = parse(wanted.path, context);
    auto host = need(llvm::orc::JITTargetMachineBuilder::detectHost());
    host.setRelocationModel(llvm::Reloc::PIC_).setCodeModel(llvm::CodeModel::Small);
    auto machine = need(host.createTargetMachine());
    module->setDataLayout(machine->createDataLayout());
    const auto object = need(llvm::orc::SimpleCompiler(*machine)(*module));
    const auto jit = create(wanted, announces);
    double fastest = 1e9;
    for (unsigned round = 0; round < 10; ++round) {
        double time = 0;
        for (unsigned link = 0; link < links; ++link) {
            auto &library = jit->getMainJITDylib();
            const auto tracker = library.createResourceTracker();
            timespec before{}, after{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
            check(jit->addObjectFile(tracker, llvm::MemoryBuffer::getMemBuffer(object->getMemBufferRef())));
            function_at<void *>(*jit, wanted.function);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
            time += static_cast<double>(after.tv_sec - before.tv_sec) * 1e6 +
                    static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e3;
            check(tracker->remove());
        }
        fastest = std::min(fastest, time / links);
    }
    std::printf("%.1f\n", fastest);
}

} // namespace

int main(int count, char **words)
{
    if (count < 5) {
        fail("usage: orc MODE MODULE.ll FUNCTION SECONDS|measure [LINKS]");
    }
    const options wanted{words[1], words[2], words[3], std::atof(words[4])};
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    announcing announces(wanted);
    if (count == 6) {
        measure(wanted, announces, static_cast<unsigned>(std::atoi(words[5])));
        return 0;
    }
    if (wanted.is("mcjit")) {
        by_mcjit(wanted, announces);
    } else {
        by_orc(wanted, announces);
    }
    say("freed");
    while (std::getchar() != EOF) {
    }
}
