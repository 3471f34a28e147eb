import os

import lupa.luajit21 as lupa

lua = lupa.LuaRuntime()
lua.execute(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "spin.lua")).read())
