// About a second of work, or as many seconds as the first argument says, in several functions, some of which come and go. Runs in node and in jsc.
const clock = typeof performance === 'object' ? performance : Date;

function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function sieve(limit) {
  const composite = new Uint8Array(limit + 1);
  let primes = 0;
  for (let i = 2; i <= limit; i++) {
    if (composite[i]) continue;
    primes++;
    for (let j = i * i; j <= limit; j += i) composite[j] = 1;
  }
  return primes;
}

class Vector {
  constructor(x, y) {
    this.x = x;
    this.y = y;
  }
  plus(other) {
    return new Vector(this.x + other.x, this.y + other.y);
  }
}

function walk(steps) {
  let at = new Vector(0, 0);
  for (let i = 0; i < steps; i++) at = at.plus(new Vector(i % 3, 1));
  return at.x + at.y;
}

// Code that is made, used and dropped, so that its memory is used again.
function passing(round) {
  const made = new Function('n', `let s = ${round}; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s;`);
  let sum = 0;
  for (let i = 0; i < 40; i++) sum ^= made(500);
  return sum;
}

const seconds = Number(typeof process === 'object' && process.argv[2]) || 1;
const end = clock.now() + 1000 * seconds;
let total = 0;
for (let round = 0; clock.now() < end; round++) {
  total += fib(18) + sieve(4000) + walk(2000) + passing(round);
}
(typeof console === 'object' ? console.log : print)(total);
