int spin(void *ctx) {
    int sum = 0;
    for (int i = 1000; i != 0; i--)
        sum += i * 31;
    return sum;
}
