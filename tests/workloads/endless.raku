# Compiles a function, says so, and calls it until it is ended.
sub collatz(int $n --> int) { my int $m = $n; my int $steps = 0; while $m > 1 { $m = $m % 2 == 0 ?? $m div 2 !! 3 * $m + 1; $steps = $steps + 1 }; $steps }
sub some() { my int $sum = 0; loop (my int $i = 1; $i < 3000; $i = $i + 1) { $sum = $sum + collatz($i) }; $sum }
my $end = now + 3;
some() while now < $end;
say 'warm';
$*OUT.flush;
some() while True;
