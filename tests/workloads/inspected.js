// A server that never ends: it works in turns, in `before` and, after a line on standard input, also in `after`; with the argument `threads`, in worker threads:
// one from the start, one after the line. It prints a line when it is ready, and after each line that it gets.
const { Worker, isMainThread, workerData } = require('worker_threads');

function before(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003;
  return s;
}

function after(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s = (s * 37 + i) % 1000033;
  return s;
}

let functions = [before];

function turn() {
  let sum = 0;
  for (let i = 0; i < 20; i++) for (const work of functions) sum += work(20000);
  setImmediate(turn);
  return sum;
}

if (!isMainThread) {
  functions = [workerData === 'before' ? before : after];
  turn();
} else {
  const work = process.argv[2] === 'threads'
    ? (which) => new Worker(__filename, { workerData: which })
    : (which) => { functions = which === 'before' ? [before] : [before, after]; if (which === 'before') turn(); };
  work('before');
  process.stdin.once('data', () => work('after'));
  process.stdin.on('data', () => console.log('heard'));
  console.log('ready');
}
