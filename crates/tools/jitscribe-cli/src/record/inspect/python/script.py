# Has CPython call its functions through trampolines, for as long as something has the pipe open for writing. Answers in its own file, which it removes when it is done: the
# interpreter's facts (python_facts.py), "on" or "used"; or, without removing it, "!" and what failed.
def jitscribe(pipe, own):
    import _thread, os, sys

    def answer(text):
        with open(own, "w") as file:
            file.write(text)

    def wait(descriptor):
        os.read(descriptor, 1)
        sys.deactivate_stack_trampoline()
        os.close(descriptor)

    def start():
        if sys.is_stack_trampoline_active():
            return "on"
        # CPython 3.14 and 3.15 crash at their end if trampolines are turned on twice (python/cpython#146522).
        if hasattr(sys, "_jitscribe") or not {"perf", "perf_jit"}.isdisjoint(sys._xoptions) or os.environ.get("PYTHONPERFSUPPORT"):
            return "used"
        facts = python_facts()
        descriptor = os.open(pipe, os.O_RDONLY)
        try:
            sys._jitscribe = True
            # The other way, "perf_jit", keeps what it writes in a buffer until the process ends.
            sys.activate_stack_trampoline("perf")
            _thread.start_new_thread(wait, (descriptor,))
        except BaseException:
            os.close(descriptor)
            raise
        return facts

    try:
        answer(start())
        os.unlink(own)
    except BaseException as error:
        answer("!" + repr(error))
