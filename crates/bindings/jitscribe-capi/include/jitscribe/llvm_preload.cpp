// A library to preload into programs that use the shared library of LLVM (libLLVM.so), such as lli: it announces the code of
// their JITs, and the programs are not changed.
//
//     c++ -shared -fPIC -O2 -o libjitscribe_llvm.so /usr/local/include/jitscribe/llvm_preload.cpp
//         $(llvm-config --cxxflags --ldflags --libs) -std=c++17 $(pkg-config --cflags --libs jitscribe)
//     jitscribe record -- env LD_PRELOAD=./libjitscribe_llvm.so lli module.ll
//
// It is for the version of LLVM that it was compiled with: programs that load another one end with a message. What it sees:
//
// - LLJIT and LLLazyJIT: a listener or plugin is added behind their constructors. `LLJITBuilder::create` is in LLVM's header,
//   so the call is in the program.
// - Programs that register LLVM's own listener for perf with MCJIT or a layer, as PostgreSQL and lli do: they get jitscribe's.
//
// What it does not see: programs with LLVM linked in, layers that a program makes without LLJIT and without that listener, and
// objects that the constructor of LLJIT itself links. Not for programs that load another version of LLVM later on.
#include <jitscribe/llvm.hpp>
#include <jitscribe/llvm_plugin.hpp>

#include <llvm-c/ExecutionEngine.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

/// Lives as long as the process: JITs may be freed after the destructors of this library.
jitscribe::llvm_listener &listener()
{
    static auto &made = *new jitscribe::llvm_listener(jitscribe::scribe::global());
    return made;
}

void add_to(llvm::orc::LLJIT &jit)
{
    llvm::orc::ObjectLayer &layer = jit.getObjLinkingLayer();
    if (auto *linking = llvm::dyn_cast<llvm::orc::ObjectLinkingLayer>(&layer)) {
        linking->addPlugin(std::make_unique<jitscribe::llvm_plugin>(jitscribe::scribe::global()));
    } else if (auto *loading = llvm::dyn_cast<llvm::orc::RTDyldObjectLinkingLayer>(&layer)) {
        loading->registerJITEventListener(listener());
    }
}

/// Two versions of LLVM have the same names for different things, and nothing tells which one a caller means.
__attribute__((constructor)) void look_for_other_versions()
{
    int found = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t, void *count) {
            const char *slash = std::strrchr(info->dlpi_name, '/');
            const char *name = slash == nullptr ? info->dlpi_name : slash + 1;
            *static_cast<int *>(count) += std::strncmp(name, "libLLVM", 7) == 0;
            return 0;
        },
        &found);
    if (found > 1) {
        std::fputs("libjitscribe_llvm.so: it is for LLVM " LLVM_VERSION_STRING
                   ", and this program uses another version\n",
                   stderr);
        _exit(127);
    }
}

/// The constructor of LLLazyJIT may call that of LLJIT.
thread_local unsigned depth = 0;

template <typename JIT, typename State>
void construct(const char *symbol, JIT *jit, State &state, llvm::Error &error)
{
    ++depth;
    // It is there: the program is linked with it.
    reinterpret_cast<void (*)(JIT *, State &, llvm::Error &)>(dlsym(RTLD_NEXT, symbol))(jit, state, error);
    --depth;
    if (depth != 0 || error) {
        return;
    }
    // Looking at it counts as having handled it, which is for its owner to do.
    error = llvm::Error::success();
    add_to(*jit);
}

} // namespace

// The constructors, by their names in the ABI that GCC and Clang share.
#define JITSCRIBE_CONSTRUCTOR(name, symbol, jit, state)                                            \
    extern "C" __attribute__((visibility("default"))) void name(jit *made, state &wanted,        \
                                                                llvm::Error &error) asm(symbol);   \
    void name(jit *made, state &wanted, llvm::Error &error)                                        \
    {                                                                                              \
        construct(symbol, made, wanted, error);                                                    \
    }

JITSCRIBE_CONSTRUCTOR(jitscribe_lljit_complete, "_ZN4llvm3orc5LLJITC1ERNS0_17LLJITBuilderStateERNS_5ErrorE",
                      llvm::orc::LLJIT, llvm::orc::LLJITBuilderState)
JITSCRIBE_CONSTRUCTOR(jitscribe_lljit_base, "_ZN4llvm3orc5LLJITC2ERNS0_17LLJITBuilderStateERNS_5ErrorE",
                      llvm::orc::LLJIT, llvm::orc::LLJITBuilderState)
JITSCRIBE_CONSTRUCTOR(jitscribe_lazy_complete,
                      "_ZN4llvm3orc9LLLazyJITC1ERNS0_21LLLazyJITBuilderStateERNS_5ErrorE",
                      llvm::orc::LLLazyJIT, llvm::orc::LLLazyJITBuilderState)
JITSCRIBE_CONSTRUCTOR(jitscribe_lazy_base,
                      "_ZN4llvm3orc9LLLazyJITC2ERNS0_21LLLazyJITBuilderStateERNS_5ErrorE",
                      llvm::orc::LLLazyJIT, llvm::orc::LLLazyJITBuilderState)

#if LLVM_USE_PERF
// What programs register to be seen by perf.
__attribute__((visibility("default"))) llvm::JITEventListener *
llvm::JITEventListener::createPerfJITEventListener()
{
    return &listener();
}
#endif

extern "C" __attribute__((visibility("default"))) LLVMJITEventListenerRef LLVMCreatePerfJITEventListener(void)
{
    return llvm::wrap(&listener());
}
