"""Beam search and decoders of one's own."""

import numpy as np
import sampan as sp
from sampan import nn


def test_beam_search_finds_what_paddle_finds(recorded):
    fill = recorded.fill
    def wide(layer):
        for p in fill(layer).parameters():
            p.set_value(p * 3)
        return layer

    embedding, output, cell = wide(nn.Embedding(12, 4)), wide(nn.Linear(6, 12)), wide(nn.LSTMCell(4, 6))
    decoder = nn.BeamSearchDecoder(cell, 0, 1, 3, embedding_fn=embedding, output_fn=output)
    h = sp.to_tensor(np.cos(np.arange(12)).astype("float32").reshape(2, 6))
    tokens, states, lengths = nn.dynamic_decode(decoder, inits=(h, h), max_step_num=6, return_length=True)
    # Numbers of Paddle 3.3.1 for the same weights.
    assert lengths.tolist() == [[1, 3, 7], [1, 7, 7]]
    assert tokens[0].tolist() == [[1, 0, 0], [1, 8, 8], [1, 1, 10], [1, 1, 2], [1, 1, 0], [1, 1, 8], [1, 1, 10]]
    assert tokens[1].tolist() == [[1, 10, 10], [1, 2, 2], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 9]]
    np.testing.assert_allclose(states.log_probs[0].numpy(), [-2.2791, -6.2462, -14.2861], rtol=1e-4)
    by_time, _ = nn.dynamic_decode(decoder, inits=(h, h), max_step_num=6, output_time_major=True)
    assert by_time.shape == [7, 2, 3]


def test_a_decoder_of_ones_own():
    class Count(nn.decode.Decoder):
        def initialize(self, inits):
            return inits, inits, sp.to_tensor([False, False])

        def step(self, time, inputs, states, **kwargs):
            new = states + 1
            return new, new, new, new.flatten() > 3

    outputs, states = nn.dynamic_decode(Count(), sp.to_tensor([[0.0], [2.0]]), impute_finished=True)
    assert outputs.shape == [2, 4, 1] and outputs[0].flatten().tolist() == [1.0, 2.0, 3.0, 4.0]
    _, _, lengths = nn.dynamic_decode(Count(), sp.to_tensor([[0.0], [2.0]]), return_length=True)
    assert lengths.tolist() == [3, 1]
    assert states.tolist() == [[3.0], [3.0]]
