"""About a second of WebAssembly, its module compiled again and again over old addresses."""
import sys
import time

import wasmtime

MODULE = """
(module
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                     (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $count (export "count") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))
"""

config = wasmtime.Config()
config.profiler = sys.argv[1]
engine = wasmtime.Engine(config)
end = time.monotonic() + 1.0
total = 0
while time.monotonic() < end:
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, wasmtime.Module(engine, MODULE), []).exports(store)
    for _ in range(20):
        total += exports["fib"](store, 20) + exports["count"](store, 50000)
print(total)
