"""What JAX compiles for the processor: `python kernels_jax.py SECONDS`, of processor time."""

import sys
import time

import jax
import jax.numpy as jnp


@jax.jit
def step(x):
    for _ in range(4):
        x = jnp.sin(x) * 0.5 + jnp.cos(x) * x
    return x


x = step(jnp.linspace(0, 1, 200000)).block_until_ready()
begin = time.process_time()
while time.process_time() - begin < float(sys.argv[1]):
    x = step(x).block_until_ready()
