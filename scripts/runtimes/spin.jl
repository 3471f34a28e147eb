fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
for _ in 1:20
    fib(36)
end
