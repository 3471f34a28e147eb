// Three functions. For another version of the program, a test changes a number in the second, and moves the third one line down.
function kept(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum * 17 + i) % 65521;
  return sum;
}

function changed(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 65521;
  return sum;
}

// Moved.
function moved(n) {
  switch (n % 8) {
    case 0: return kept(n + 1);
    case 1: return kept(n + 2) + 1;
    case 2: return kept(n + 3) + 2;
    case 3: return kept(n + 4) + 3;
    case 4: return kept(n + 5) + 4;
    case 5: return kept(n + 6) + 5;
    case 6: return kept(n + 7) + 6;
    default: return changed(n);
  }
}

let all = 0;
for (let round = 0; round < 3000; round++) all += kept(9000) + changed(9000) + moved(9000 + round % 8);
console.log(all > 0);
