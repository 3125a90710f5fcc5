"""Numbers that look random and are the same in every language: crates/sampan-data/tests/suite/formula.rs repeats them.

The i-th number of a name is splitmix64 after i + 1 steps from the name's FNV-1a hash; its upper 24 bits make a fraction, which
float32 holds exactly.
"""
import numpy as np

U64 = (1 << 64) - 1


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & U64
    return h


def bits(name, n):
    with np.errstate(over="ignore"):
        z = np.uint64(fnv(name)) + np.arange(1, n + 1, dtype="uint64") * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, shape):
    """Numbers in [-1, 1)."""
    n = int(np.prod(shape))
    return ((bits(name, n) >> np.uint64(40)).astype("float64") / (1 << 23) - 1.0).reshape(shape)


def integers(name, shape, below):
    return (bits(name, int(np.prod(shape))) % np.uint64(below)).astype("int64").reshape(shape)


def state(name, shape, gain=6.0):
    """A parameter or buffer: a gain of 6 keeps the size of activations; variances are positive."""
    u, last = uniform(name, shape), name.rsplit(".", 1)[-1]
    if last == "_variance":
        return 1.0 + 0.5 * u
    if len(shape) > 1:
        fan_in = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
        return u * (gain / fan_in) ** 0.5
    return 1.0 + 0.2 * u if last.startswith("weight") else 0.1 * u


def fill(layer, gain=6.0):
    """Fills the whole state; a tensor with two names takes the values of the first in the alphabet."""
    for name, value in sorted(layer.state_dict().items(), reverse=True):
        value.set_value(state(name, list(value.shape), gain).astype(value.numpy().dtype))
