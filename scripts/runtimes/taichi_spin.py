import taichi as ti

ti.init(arch=ti.cpu, offline_cache=False)


@ti.kernel
def work(n: int) -> float:
    total = 0.0
    for i in range(n):
        x = float(i)
        for _ in range(50):
            x = ti.sin(x) * 0.5 + x
        total += x
    return total


for _ in range(30):
    work(100000)
