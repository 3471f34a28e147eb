// All time is spent in `innermost`.
function innermost(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003;
  return sum;
}

function middle(n) {
  let all = 0;
  for (let i = 0; i < 20; i++) all += innermost(n + i);
  return all;
}

function outer(n) {
  return middle(n) + 1;
}

// Not from the module itself, so that few other functions are on the stack.
setImmediate(() => {
  // About a second of processor time, however busy the machine is.
  let sum = 0;
  for (let round = 0; round < 10000; round++) sum += outer(200);
  console.log(sum > 0);
});
