// A server that never ends: it works in turns, in `before` and, after a line on standard input, also in `after`; with the argument `threads`, in worker threads:
// one from the start, one after the line. It prints a line when it is ready, and after each line that it gets.
const { Worker, isMainThread, workerData } = require('worker_threads');

// Both call themselves, so that not all of them is inlined.
function before(n) {
  return n < 2 ? n : before(n - 1) + before(n - 2);
}

function after(n) {
  return n < 3 ? 1 : after(n - 1) + after(n - 3);
}

let functions = [before];

function turn() {
  let sum = 0;
  for (const work of functions) sum += work(work === before ? 22 : 31);
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
