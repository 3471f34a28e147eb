<?php
// Works until it is killed, half of the time in one function, and the rest in two others.
function php_heavy(int $n): int { return $n < 2 ? $n : php_heavy($n - 1) + php_heavy($n - 2); }
function php_middle(int $n): int { return $n < 2 ? $n : php_middle($n - 1) + php_middle($n - 2); }
function php_light(int $n): int { return $n < 2 ? $n : php_light($n - 1) + php_light($n - 2); }
for (;;) { php_heavy(18); php_heavy(18); php_heavy(18); php_middle(18); php_middle(18); php_light(18); }
