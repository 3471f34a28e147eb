// LLVM's C API, and so inkwell, has no function that registers a listener with MCJIT.
#include <jitscribe/llvm.hpp>

#include <llvm-c/ExecutionEngine.h>
#include <llvm/ExecutionEngine/ExecutionEngine.h>

extern "C" void announce_code_of(LLVMExecutionEngineRef engine)
{
    // It lives as long as the process, as the engine may be freed at its end.
    static auto &listener = *new jitscribe::llvm_listener(jitscribe::scribe::global());
    llvm::unwrap(engine)->RegisterJITEventListener(&listener);
}
