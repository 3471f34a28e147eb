<?php
// Works until it is killed, half of the time in one function, and the rest in two others. Says "steady" when it has begun.
function steady_heavy(int $n): int { return $n < 2 ? $n : steady_heavy($n - 1) + steady_heavy($n - 2); }
function steady_middle(int $n): int { return $n < 2 ? $n : steady_middle($n - 1) + steady_middle($n - 2); }
function steady_light(int $n): int { return $n < 2 ? $n : steady_light($n - 1) + steady_light($n - 2); }
function round_of_all() {
    steady_heavy(18); steady_heavy(18); steady_heavy(18); steady_middle(18); steady_middle(18); steady_light(18);
}
round_of_all();
fwrite(STDOUT, "steady\n");
for (;;) round_of_all();
