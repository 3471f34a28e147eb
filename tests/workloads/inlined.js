// About a second of work in `leaf`, which is inlined into `mid`, which is inlined into `top`. With the argument
// `worker`, a worker thread does the same.
'use strict';
const { Worker, isMainThread } = require('worker_threads');

function leaf(x) {
  let r = x;
  for (let i = 0; i < 8; i++) {
    r = (r * 31 + i) | 0;
  }
  return r;
}

function mid(x) {
  return leaf(x) ^ leaf(x + 1);
}

function top(n) {
  let s = 0;
  for (let i = 0; i < n; i++) {
    s = (s + mid(i)) | 0;
  }
  return s;
}

if (isMainThread && process.argv[2] === 'worker') new Worker(__filename);
let t = 0;
for (let round = 0; round < 4000; round++) t ^= top(10000);
console.log(t);
