"""Checkpoints of several processes: Paddle's files, read into other placements; and what is refused."""

import pathlib
import sys

import numpy as np
import pytest

import sampan
import sampan.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_distributed_auto import run  # noqa: E402

SAVE = """
import os
import numpy as np
import sampan
import sampan.distributed as dist

dist.init_parallel_env()
rank, mesh = dist.get_rank(), dist.ProcessMesh([0, 1], dim_names=["x"])
values = np.arange(15, dtype="float32").reshape(5, 3)
flat = sampan.to_tensor(np.arange(8.0)[:5] if rank == 0 else np.arange(8.0)[5:])
state = {
    "cut": dist.shard_tensor(values, mesh, [dist.Shard(0)]),
    "parts": dist.shard_tensor(values, mesh, [dist.Partial()]),
    "nested": {"plain": sampan.full([2], 7.0, dtype="bfloat16"), "number": sampan.to_tensor(4)},
    "flat": dist.ShardedWeight("flat", flat, (2, 4), (2, 4), (0, 0), True, slice(0, 5) if rank == 0 else slice(5, 8)),
}
def emptied(placements):
    return dist.shard_tensor(np.zeros((5, 3)), mesh, placements)

for safetensors in (False, True):
    folder = f"saved{safetensors}"
    dist.save_state_dict(state, folder, safetensors=safetensors)
    end = "safetensors" if safetensors else "distcp"
    assert sorted(os.listdir(folder)) == ["0.metadata", f"0_0.{end}", f"1_0.{end}"], os.listdir(folder)
    whole = dist.load_merged_state_dict(folder)
    assert sorted(whole) == ["cut", "flat", "nested.number", "nested.plain", "parts"]
    assert (whole["cut"].numpy() == values).all() and (whole["parts"].numpy() == values).all()
    assert (whole["flat"].numpy() == np.arange(8.0).reshape(2, 4)).all() and whole["flat"].dtype == sampan.float64
    assert whole["nested.plain"].dtype == sampan.bfloat16 and whole["nested.number"].item() == 4
    assert list(dist.load_merged_state_dict(folder, prefix="nested")) == ["plain", "number"]
    for placements in ([dist.Shard(1)], [dist.Replicate()], [dist.Partial()], [dist.Shard(0)]):
        target = {"cut": emptied(placements), "nested": {"number": sampan.to_tensor(0)}}
        dist.load_state_dict(target, folder)
        assert (target["cut"].numpy() == values).all() and target["nested"]["number"].item() == 4
        assert target["cut"].placements == placements and target["cut"].dtype == sampan.float64

# Several in one folder; the last one unless another is asked for.
for number in (3, 11):
    dist.save_state_dict({"w": sampan.full([1], float(number))}, "several", unique_id=number)
assert dist.load_merged_state_dict("several")["w"].item() == 11
assert dist.load_merged_state_dict("several", unique_id=3)["w"].item() == 3
# Without a number the last one is written anew, in all processes alike.
dist.save_state_dict({"w": sampan.full([1], 5.0)}, "several")
assert dist.load_merged_state_dict("several")["w"].item() == 5
assert sorted(int(name.split(".")[0]) for name in os.listdir("several") if "metadata" in name) == [3, 11]
try:
    dist.save_state_dict({"w": sampan.ones([1])}, "several", unique_id=rank)
    raise SystemExit("two numbers")
except ValueError as e:
    assert "not the same in all processes" in str(e)

# Parts that begin at one place: an empty one, which has nothing to say, and one of another shape, which has.
part = sampan.arange(2 * rank, dtype="float32").reshape([rank, 2])
dist.save_state_dict({"w": dist.ShardedWeight("w", part, (rank, 2), (1, 2), (0, 0))}, "empty")
assert dist.load_merged_state_dict("empty")["w"].tolist() == [[0.0, 1.0]]
part = sampan.arange(3.0)[: 2 + rank]
dist.save_state_dict({"w": dist.ShardedWeight("w", part, (2 + rank,), (3,), (0,)), "none": sampan.zeros([0, 2], "int64")}, "longer")
whole = dist.load_merged_state_dict("longer")
assert whole["w"].tolist() == [0.0, 1.0, 2.0] and whole["none"].shape == [0, 2] and whole["none"].dtype == sampan.int64

# One process alone, which another one does not disturb; and a group without its coordinator.
group = dist.new_group([1])
dist.save_state_dict({"w": sampan.full([1], float(rank))}, "one", group, coordinator_rank=1)
dist.barrier()
assert os.listdir("one") and dist.load_merged_state_dict("one")["w"].item() == 1
if rank == 1:
    try:
        dist.save_state_dict({"w": sampan.ones([1])}, "nobody", group)
        raise SystemExit("nobody wrote")
    except ValueError as e:
        assert "process 0, which should write what lies where, is none of the group [1]" in str(e), e

# A process that cannot write is told by all.
if rank == 1:
    os.makedirs("full/1_0.distcp", exist_ok=True)
dist.barrier()
big = dist.shard_tensor(values, mesh, [dist.Shard(0)])
try:
    dist.save_state_dict({"w": big}, "full")
    raise SystemExit("nobody noticed")
except (RuntimeError, ValueError) as e:
    assert "could not write its part" in str(e) if rank == 0 else "a folder" in str(e), e
assert not os.path.exists("full/0.metadata")
"""


def test_what_all_write_all_read(tmp_path):
    run(tmp_path, SAVE, 2)


def test_what_paddle_wrote():
    """Files of two processes of the real one; the rest of the format is tested in Rust."""
    folder = pathlib.Path(__file__).parents[2] / "crates/sampan-io/tests/distcp"
    if not folder.exists():
        pytest.skip("the sources are not there")
    target = {"rows": sampan.zeros([6, 4]), "both": {"alike": sampan.zeros([3])}}
    dist.load_state_dict(target, folder)
    np.testing.assert_array_equal(target["rows"].numpy(), (np.arange(24).reshape(6, 4) - 2) / 2)
    assert target["both"]["alike"].tolist() == [-1.0, -0.5, 0.0]


def test_boxes_of_layers():
    layer = sampan.nn.Sequential(sampan.nn.Linear(2, 3), sampan.nn.BatchNorm1D(3))
    found = layer.sharded_state_dict("net.")
    assert sorted(found) == [f"net.{name}" for name in sorted(layer.state_dict())]
    weight = found["net.0.weight"]
    assert (weight.key, weight.local_shape, weight.global_offset) == ("net.0.weight", (2, 3), (0, 0))
    assert weight.local_tensor is layer[0].weight and "flattened_range=None" in repr(weight)


def test_what_cannot_be_is_told(tmp_path):
    dist.save_state_dict({"w": sampan.ones([2])}, tmp_path / "one")
    for target, kind, text in (
        ({"v": sampan.ones([2])}, KeyError, "has no v"),
        ({"w": sampan.ones([3])}, ValueError, "w has shape .3., on disk .2."),
        ({"w": 3}, ValueError, "w is int"),
    ):
        with pytest.raises(kind, match=text):
            dist.load_state_dict(target, tmp_path / "one")
    with pytest.raises(FileNotFoundError, match="has no 5.metadata; it has 0"):
        dist.load_merged_state_dict(tmp_path / "one", unique_id=5)
    with pytest.raises(FileNotFoundError, match="has no metadata"):
        dist.load_merged_state_dict(tmp_path / "none")
    with pytest.raises(NotImplementedError, match="aoa_config"):
        dist.load_state_dict({}, tmp_path / "one", aoa_config={})
    with pytest.raises(ValueError, match="is a file, a folder is needed"):
        dist.save_state_dict({}, tmp_path / "one" / "0.metadata")
    for twice in ({"a": {"b": sampan.ones([1])}, "a.b": sampan.ones([2])}, {1: sampan.ones([1]), "1": sampan.ones([2])}):
        with pytest.raises(ValueError, match="two tensors of a state dict are called"):
            dist.save_state_dict(twice, tmp_path / "twice")
    with pytest.raises(ValueError, match="unique_id is 0 or more"):
        dist.save_state_dict({}, tmp_path / "one", unique_id=-1)
    with pytest.raises(ValueError, match="in which no box"):
        dist.ShardedWeight("w", sampan.ones([2]), (2,), (2,), (1,))
