<?php
// About a second of work in several functions, for the tracing JIT.

function fib(int $n): int {
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function sieve(int $limit): int {
    $composite = array_fill(0, $limit + 1, false);
    $primes = 0;
    for ($i = 2; $i <= $limit; $i++) {
        if ($composite[$i]) continue;
        $primes++;
        for ($j = $i * $i; $j <= $limit; $j += $i) $composite[$j] = true;
    }
    return $primes;
}

function mandelbrot(int $points): int {
    $inside = 0;
    for ($p = 0; $p < $points; $p++) {
        $x = $y = 0.0;
        for ($i = 0; $i < 50 && $x * $x + $y * $y < 4.0; $i++) {
            $next = $x * $x - $y * $y - 0.7 + $p * 1e-6;
            $y = 2.0 * $x * $y + 0.3;
            $x = $next;
        }
        $inside += $i;
    }
    return $inside;
}

$end = hrtime(true) + 1_000_000_000;
$total = 0;
while (hrtime(true) < $end) {
    $total += fib(15) + sieve(3000) + mandelbrot(200);
}
echo $total, "\n";
