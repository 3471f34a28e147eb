// Works until it is killed, half of the time in one function, and the rest in two others. Says "steady" when it has begun.
function steadyHeavy(n) { return n < 2 ? n : steadyHeavy(n - 1) + steadyHeavy(n - 2); }
function steadyMiddle(n) { return n < 2 ? n : steadyMiddle(n - 1) + steadyMiddle(n - 2); }
function steadyLight(n) { return n < 2 ? n : steadyLight(n - 1) + steadyLight(n - 2); }
function round() {
    steadyHeavy(18); steadyHeavy(18); steadyHeavy(18); steadyMiddle(18); steadyMiddle(18); steadyLight(18);
}
for (let i = 0; i < 100; i++) round();
require("fs").writeSync(1, "steady\n");
for (;;) round();
