int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int mix(int n)
{
    unsigned hash = 17;
    for (int i = 0; i < n * 10000; i++) {
        hash = hash * 31 + i;
    }
    return hash;
}

int run(int n)
{
    return fib(n - 6) + mix(n);
}
