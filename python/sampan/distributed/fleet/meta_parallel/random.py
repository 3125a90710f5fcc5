"""Random numbers of processes that hold parts of one layer: some must be the same in all of them, some must not."""

from __future__ import annotations

import contextlib

from .... import get_rng_state, set_rng_state
from .... import seed as begin

_NAME = "model_parallel_rng"


class RNGStatesTracker:
    """Streams of random numbers beside the usual one, by name."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        """Forgets all streams."""
        self._states: dict = {}
        self._seeds: set[int] = set()

    def add(self, name: str, seed: int) -> None:
        """A new stream, begun by a seed that no other one has."""
        if seed in self._seeds:
            raise ValueError(f"(InvalidArgument) RNGStatesTracker.add: another stream has the seed {seed} already.")
        if name in self._states:
            raise ValueError(f"(InvalidArgument) RNGStatesTracker.add: there is a stream {name!r} already.")
        self._seeds.add(seed)
        self._states[name] = _begun(seed)

    def get_states_tracker(self) -> dict:
        """Where each stream stands."""
        return dict(self._states)

    def set_states_tracker(self, states: dict) -> None:
        """Goes to where `get_states_tracker` said the streams stood."""
        self._states = dict(states)

    @contextlib.contextmanager
    def rng_state(self, name: str = _NAME):
        """Inside, random numbers are those of a stream; the usual one is left as it was."""
        if name not in self._states:
            raise ValueError(
                f"(InvalidArgument) RNGStatesTracker: there is no stream {name!r}. Hint: model_parallel_random_seed(seed), or "
                "add(name, seed)."
            )
        before = get_rng_state()
        set_rng_state(self._states[name])
        try:
            yield
        finally:
            self._states[name] = get_rng_state()
            set_rng_state(before)


def _begun(number: int):
    before = get_rng_state()
    begin(number)
    state = get_rng_state()
    set_rng_state(before)
    return state


_tracker = RNGStatesTracker()


def get_rng_state_tracker() -> RNGStatesTracker:
    """The streams of this process."""
    return _tracker


def model_parallel_random_seed(seed: int | None = None) -> None:
    """Seeds the usual random numbers alike in all processes that share layers, and a stream for what is cut, in which each of
    them has its own."""
    from ..fleet import get_hybrid_communicate_group

    groups = get_hybrid_communicate_group()
    if seed is None:
        import random

        from ...communication import broadcast
        from .... import to_tensor

        drawn = to_tensor([random.randrange(2**20)], dtype="int64")
        broadcast(drawn, 0)
        seed = drawn.item()
    place = groups.get_model_parallel_rank()
    _tracker.reset()
    _tracker.add(_NAME, seed + 1 + place * groups.get_pipe_parallel_world_size() + groups.get_stage_id())
    begin(seed)
