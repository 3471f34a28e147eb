def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
6.times { fib(27) }
