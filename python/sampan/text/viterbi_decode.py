"""The best sequence of tags."""

from __future__ import annotations

from .. import _core
from ..nn import Layer


def viterbi_decode(potentials, transition_params, lengths, include_bos_eos_tag: bool = True, name: str | None = None):
    """The sequences of tags with the highest scores, as `(scores, paths)`: `[B]` and `[B, longest of lengths]`.

    `potentials` `[B, T, N]` holds the score of each tag at each place, `transition_params` `[N, N]` that of one tag after
    another, `lengths` `[B]` how many places count. With `include_bos_eos_tag` the last row of the transitions is the one
    from the start and the row before it the one to the end.

    >>> import sampan
    >>> potentials = sampan.to_tensor([[[1.0, 0.0], [0.0, 2.0]]])
    >>> transitions = sampan.to_tensor([[0.0, 0.5], [0.0, 0.0]])
    >>> scores, paths = sampan.text.viterbi_decode(potentials, transitions, sampan.to_tensor([2]), False)
    >>> scores.tolist(), paths.tolist()
    ([3.5], [[0, 1]])
    """
    return _core._viterbi_decode(potentials, transition_params, lengths, bool(include_bos_eos_tag))


class ViterbiDecoder(Layer):
    """`viterbi_decode` as a layer that keeps the transitions."""

    def __init__(self, transitions, include_bos_eos_tag: bool = True, name: str | None = None) -> None:
        super().__init__()
        self.transitions = transitions
        self.include_bos_eos_tag = include_bos_eos_tag
        self.name = name

    def forward(self, potentials, lengths):
        """Scores and paths."""
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag, self.name)
