// A function of WebAssembly that calls itself through the jump table of its module. With a file's name, it goes on until that file exists.
const [file] = process.argv.slice(2);
const fs = require("fs");
// (func $fib (export "fib") (param i32) (result i32)
//   (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
//     (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
const module_ = new WebAssembly.Module(new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 102, 105, 98, 0, 0, 10, 30, 1, 28, 0,
  32, 0, 65, 2, 72, 4, 127, 32, 0, 5, 32, 0, 65, 1, 107, 16, 0, 32, 0, 65, 2, 107, 16, 0, 106, 11, 11,
]));
const { fib } = new WebAssembly.Instance(module_).exports;
const spin = (time) => { for (const end = Date.now() + time; Date.now() < end; ) fib(20); };
spin(1500);
console.log("warm");
while (file && !fs.existsSync(file)) spin(50);
