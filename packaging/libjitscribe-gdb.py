# gdb runs this file when a program loads libjitscribe.so.0: from then on, it knows the program's JIT-compiled code at each stop.
#
# gdb finds it by its name, in /usr/share/gdb/auto-load. The work is done by the script that `jitscribe debug --print-script` prints, which
# the package of the command installs, and which runs the command. Without that package, nothing changes.

import os
import runpy

import gdb

SCRIPT = "/usr/share/jitscribe/gdb.py"

# `jitscribe debug`, or a line in ~/.gdbinit, may have started it already.
if not hasattr(gdb, "jitscribe_is_started") and os.path.exists(SCRIPT):
    # In a namespace of its own, beside the user's variables.
    runpy.run_path(SCRIPT, run_name="jitscribe")
