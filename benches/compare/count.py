"""How much work a step is at least, counted while PyTorch does it once: operations and bytes."""

from math import prod


def size(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def convolution_backward(grad, x, weight, *settings, **_):
    """Each gradient costs what the forward pass costs. (PyTorch's formula counts that of a weight once per group.)"""
    wanted = settings[-1]
    return 2 * prod(grad) * prod(weight[1:]) * sum(wanted[:2])


def count(torch, work):
    """Multiplications and additions of all products and (direct) convolutions, and the bytes that the step must move:
    what `Work` names and, in training, what the forward pass keeps for the backward pass, written once, read once."""
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import FlopCounterMode

    named = {t.untyped_storage().data_ptr() for t in work.inputs}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in named:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    formulas = {torch.ops.aten.convolution_backward: convolution_backward}
    # Without oneDNN an LSTM is made of products, which the counter knows.
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            result = work.step()
    results = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
    moved = size(work.inputs) + size(work.outputs) + size(results) + work.trains * 2 * sum(kept.values())
    return {"flops": counter.get_total_flops(), "bytes": moved}
