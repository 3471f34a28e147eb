# About a second of work in several routines.
sub fib(int $n --> int) { $n < 2 ?? $n !! fib($n - 1) + fib($n - 2) }

sub collatz(int $start --> int) {
    my int $at = $start;
    my int $steps = 0;
    while $at != 1 {
        $at = $at % 2 == 0 ?? $at div 2 !! 3 * $at + 1;
        $steps = $steps + 1;
    }
    $steps
}

my $end = now + 1.5;
my $total = 0;
while now < $end {
    $total += fib(14);
    $total += collatz($_) for 1..200;
}
say $total;
