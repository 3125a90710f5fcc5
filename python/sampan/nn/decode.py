"""Generating sequences step by step: the loop, and beam search."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core
from .layer.rnn import _first, _map

_op = _core.op

# The log-probability of what cannot be.
_NEVER = -1e9


class Decoder:
    """Makes sequences one step at a time in `dynamic_decode`; subclass it for a decoder of your own."""

    def initialize(self, inits):
        """The first inputs, states and which sequences have ended, from what the caller gives."""
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} has no initialize().")

    def step(self, time, inputs, states, **kwargs):
        """One step: outputs, next states, next inputs, and which sequences have ended."""
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} has no step().")

    def finalize(self, outputs, final_states, sequence_lengths):
        """Turns the outputs of all steps, stacked along a new first axis, into results."""
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} has no finalize().")

    @property
    def tracks_own_finished(self) -> bool:
        """Does it follow itself which sequences have ended, because it reorders them?"""
        return False


class OutputWrapper(NamedTuple):
    """What one step of a beam search gives."""

    scores: _core.Tensor
    predicted_ids: _core.Tensor
    parent_ids: _core.Tensor


class StateWrapper(NamedTuple):
    """What a beam search remembers; `[batch, beam, …]` each."""

    cell_states: object
    log_probs: _core.Tensor
    finished: _core.Tensor
    lengths: _core.Tensor


class BeamSearchDecoder(Decoder):
    """Keeps the `beam_size` most probable sequences at each step of a recurrent cell."""

    OutputWrapper, StateWrapper = OutputWrapper, StateWrapper

    def __init__(self, cell, start_token, end_token, beam_size, embedding_fn=None, output_fn=None):
        self.cell = cell
        self.start_token, self.end_token, self.beam_size = int(start_token), int(end_token), int(beam_size)
        self.embedding_fn, self.output_fn = embedding_fn, output_fn

    @staticmethod
    def tile_beam_merge_with_batch(x, beam_size):
        """Each entry of the batch `beam_size` times in a row: for a tensor that the cell uses beside its states."""
        return _op("repeat_interleave")(x, int(beam_size), 0)

    def _split(self, x):
        return x.reshape([-1, self.beam_size, *x.shape[1:]])

    def _merge(self, x):
        return x.reshape([-1, *x.shape[2:]])

    def _pick(self, x, beams):
        """The beams `[batch, beam]` of a tensor `[batch, beam, …]`."""
        index = beams.reshape([*beams.shape, *[1] * (x.ndim - 2)])
        index = _op("expand")(index, [*beams.shape, *x.shape[2:]])
        return _op("take_along_axis")(x, index, 1)

    def _embed(self, tokens):
        return tokens if self.embedding_fn is None else self.embedding_fn(tokens)

    def initialize(self, initial_cell_states):
        """The start tokens, with all beams but the first impossible, so that the beams become different."""
        batch = _first(initial_cell_states).shape[0]
        shape = [batch, self.beam_size]
        states = _map(lambda x: self._split(self.tile_beam_merge_with_batch(x, self.beam_size)), initial_cell_states)
        inputs = _op("full")(shape, self.start_token, "int64")
        first = [[0.0] + [_NEVER] * (self.beam_size - 1)] * batch
        log_probs = _core.to_tensor_py(first, _core.get_default_dtype())
        finished = _op("full")(shape, False, "bool")
        return self._embed(inputs), StateWrapper(states, log_probs, finished, _op("zeros")(shape, "int64")), finished

    def step(self, time, inputs, states, **kwargs):
        """One step of the cell for all beams, and the best continuations."""
        outputs, cell_states = self.cell(_map(self._merge, inputs), _map(self._merge, states.cell_states), **kwargs)
        outputs, cell_states = _map(self._split, outputs), _map(self._split, cell_states)
        logits = outputs if self.output_fn is None else self.output_fn(outputs)
        found, next_states = self._choose(logits, cell_states, states)
        return found, next_states, self._embed(found.predicted_ids), next_states.finished

    def _choose(self, logits, cell_states, before: StateWrapper):
        vocabulary = logits.shape[-1]
        step = _op("log_softmax")(logits, -1)
        # A sequence that has ended goes on with nothing but its end token.
        ended = _op("full")([vocabulary], _NEVER, step.dtype)
        ended[self.end_token] = 0.0
        step = _op("where")(before.finished.unsqueeze(2), ended, step)
        scores = (step + before.log_probs.unsqueeze(2)).reshape([-1, self.beam_size * vocabulary])
        best, places = _op("topk")(scores, self.beam_size)
        beams, tokens = places // vocabulary, places % vocabulary
        finished, lengths = self._pick(before.finished, beams), self._pick(before.lengths, beams)
        lengths = lengths + _op("logical_not")(finished).astype("int64")
        finished = _op("logical_or")(finished, tokens == self.end_token)
        states = StateWrapper(_map(lambda x: self._pick(x, beams), cell_states), best, finished, lengths)
        return OutputWrapper(best, tokens.detach(), beams), states

    def finalize(self, outputs, final_states, sequence_lengths):
        """The tokens of each sequence, `[time, batch, beam]`, the best first."""
        return _op("gather_tree")(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        return True


def dynamic_decode(
    decoder,
    inits=None,
    max_step_num=None,
    output_time_major=False,
    impute_finished=False,
    is_test=False,
    return_length=False,
    **kwargs,
):
    """Calls a decoder step by step until every sequence has ended, or until the step of number `max_step_num` is done.

    Gives the results `[batch, time, …]` (`[time, batch, …]` if `output_time_major`), the last states, and with
    `return_length` the lengths. With `impute_finished` the states of a sequence stay as they are when it has ended.
    """
    inputs, states, finished = decoder.initialize(inits)
    lengths = finished.astype("int64") * 0
    steps = []
    while not bool(finished.all()) and (max_step_num is None or len(steps) <= int(max_step_num)):
        time = _core.to_tensor_py([len(steps)], "int64")
        outputs, new_states, inputs, now = decoder.step(time, inputs, states, **kwargs)
        if decoder.tracks_own_finished:
            lengths = getattr(new_states, "lengths", lengths)
        else:
            now = _op("logical_or")(now, finished)
            lengths = lengths + _op("logical_not")(now).astype("int64")
            if impute_finished:
                new_states = _map(lambda old, new: _keep(now, old, new), states, new_states)
        steps.append(outputs)
        states, finished = new_states, now
    if not steps:
        raise ValueError("(InvalidArgument) dynamic_decode: every sequence has ended before the first step.")
    outputs = _map(lambda *each: _op("stack")(list(each), 0), *steps)
    try:
        outputs, states = decoder.finalize(outputs, states, lengths)
    except NotImplementedError:
        pass
    if not output_time_major:
        outputs = _map(lambda x: x.transpose([1, 0, *range(2, x.ndim)]), outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


def _keep(finished, old, new):
    """The old state of the sequences that have ended."""
    mask = finished.reshape([*finished.shape, *[1] * (new.ndim - finished.ndim)])
    return _op("where")(mask, old, new)
