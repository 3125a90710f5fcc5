#!/usr/bin/env python3
"""Files written by the real PaddlePaddle, PyTorch, NumPy, safetensors and TensorBoard for the tests of sampan-io.

Without arguments: writes crates/sampan-io/tests/fixtures anew.
With --check: the other way round; sampan-io writes samples (`cargo run -p sampan-io --example write_samples`), and the
real libraries load them.

Every tensor holds a ramp, so that both sides know its values: (i - 2) / 2 for floats, i - 2 for signed integers, i for
unsigned ones, "i is odd" for truth values.
"""
import collections
import io
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "crates/sampan-io/tests/fixtures"
# What two processes of Paddle write together.
TOGETHER = ROOT / "crates/sampan-io/tests/distcp"
NUMPY_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
DTYPES = NUMPY_DTYPES + ["bfloat16"]
COMPLEX = np.array([1 + 2j, -0.5], "complex64")


def ramp(shape, dtype="float32"):
    """The values of every tensor in the fixtures; bfloat16 comes back as float32."""
    i = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype == "bool":
        i = i % 2
    elif dtype.startswith("int"):
        i = i - 2
    elif not dtype.startswith("uint"):
        i = (i - 2) / 2
    return np.asarray(i, "float32" if dtype == "bfloat16" else dtype)


def paddle_ramp(shape, dtype="float32"):
    import paddle

    return paddle.to_tensor(ramp(shape, dtype)).astype(dtype).reshape(shape)


def linear_and_adam():
    import paddle

    with paddle.utils.unique_name.guard():
        linear = paddle.nn.Linear(2, 3)
        linear.set_state_dict({"weight": paddle_ramp([2, 3]), "bias": paddle_ramp([3])})
        schedule = paddle.optimizer.lr.StepDecay(0.1, 3)
        adam = paddle.optimizer.Adam(schedule, parameters=linear.parameters())
    return linear, adam


def python2_state_dict(arrays):
    """A pickle as Paddle 1.x wrote it under Python 2: protocol 2, texts and bytes both as byte strings."""
    short = lambda b: b"U" + bytes([len(b)]) + b
    out = b"\x80\x02}("
    for name, a in arrays.items():
        out += short(name.encode())
        out += b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + short(b"b") + b"\x87R"
        out += b"(K\x01(" + b"".join(b"K" + bytes([d]) for d in a.shape) + b"t"
        out += b"cnumpy\ndtype\n" + short(a.dtype.str[1:].encode()) + b"K\x00K\x01\x87R"
        out += b"(K\x03" + short(b"<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + short(a.tobytes()) + b"tb"
    return out + b"u."


def old_numpy(data):
    """The same pickle with the module name NumPy 1.x had, as Paddle 2.x files have it."""
    new, old = b"\x8c\x16numpy._core.multiarray", b"\x8c\x15numpy.core.multiarray"
    assert data.count(new) == 1 and data[2] == 0x95
    (frame,) = struct.unpack("<Q", data[3:11])
    return data[:3] + struct.pack("<Q", frame - 1) + data[11:].replace(new, old)


def write_paddle(out):
    import paddle

    linear, adam = linear_and_adam()
    for protocol in (2, 3, 4):
        paddle.save(linear.state_dict(), str(out / f"linear_p{protocol}.pdparams"), protocol=protocol)
    linear(paddle.ones([1, 2])).sum().backward()
    adam.step()
    state = adam.state_dict()
    for key, value in state.items():
        if isinstance(value, paddle.Tensor):
            value.set_value(paddle_ramp(value.shape))
    paddle.save(state, str(out / "adam.pdopt"))
    every = {d: paddle_ramp([2, 3], d) for d in DTYPES}
    every |= {"zero_d": paddle_ramp([]), "empty": paddle_ramp([0, 3])}
    paddle.save(every, str(out / "dtypes.pdparams"))
    bare = paddle_ramp([4], "int64")
    bare.name = "bare"
    paddle.save(bare, str(out / "bare.pdtensor"))
    a, b = paddle_ramp([2]), paddle_ramp([3], "bfloat16")
    a.name, b.name = "first", "second"
    nested = {
        "epoch": 7, "negative": -70000, "large": 1 << 40, "loss": 0.25, "best": None, "done": True, "name": "löss",
        "items": [a, (b, 3)], "scalar": np.float64(1.5), 5: [],
        "model": collections.OrderedDict(weight=a, bias=b),
    }
    paddle.save(nested, str(out / "nested.pdparams"))
    (out / "raw_p2.pkl").write_bytes(pickle.dumps([b"\x00\xff", b""], 2))
    parts = {"small": ramp([2]), "StructuredToParameterName@@": {"big": "linear_0.w_0", "small": "linear_0.b_0"}}
    parts |= {"big@@.0": ramp([6])[:4], "big@@.1": ramp([6])[4:]}
    parts["UnpackBigParamInfor@@"] = {"big": {"OriginShape": (2, 3), "slices": ["big@@.0", "big@@.1"]}}
    (out / "parts.pdparams").write_bytes(pickle.dumps(parts, 2))
    dense = paddle.base.core.DenseTensor()
    dense.set(ramp([2, 2]), paddle.CPUPlace())
    paddle.save([dense], str(out / "dense.pdparams"))
    paddle.save({"c": paddle.to_tensor(COMPLEX)}, str(out / "complex.pdparams"))
    binary = paddle_ramp([2, 3], "bfloat16")
    paddle.save(binary, str(out / "binary.pdtensor"), use_binary_format=True)
    paddle.save(binary.astype("complex64"), str(out / "complex.pdiparams"), use_binary_format=True)
    program = paddle.jit.to_static(linear, input_spec=[paddle.static.InputSpec([None, 2], "float32")], full_graph=True)
    with tempfile.TemporaryDirectory() as folder:
        linear.set_state_dict({"weight": paddle_ramp([2, 3]), "bias": paddle_ramp([3])})
        paddle.jit.save(program, folder + "/program")
        (out / "program.pdiparams").write_bytes(pathlib.Path(folder, "program.pdiparams").read_bytes())
    (out / "paddle2.pdparams").write_bytes(old_numpy((out / "linear_p4.pdparams").read_bytes()))
    (out / "paddle1.pdparams").write_bytes(python2_state_dict({"weight": ramp([2, 3]), "bias": ramp([3])}))
    for name in ("linear_p2", "linear_p3", "linear_p4", "paddle2", "paddle1"):
        loaded = paddle.load(str(out / f"{name}.pdparams"))
        assert (loaded["weight"].numpy() == ramp([2, 3])).all(), name
    assert (paddle.load(str(out / "parts.pdparams"))["big"].numpy() == ramp([2, 3])).all()


def write_torch(out):
    import torch

    def t(shape, dtype="float32"):
        return torch.from_numpy(ramp(shape, dtype)).to(getattr(torch, dtype))

    state = {d: t([2, 3], d) for d in DTYPES}
    state |= {"transposed": t([3, 2]).t(), "sliced": t([4, 4])[1:3, ::2], "expanded": t([3, 1]).expand(3, 4)}
    state |= {"zero_d": t([]), "empty": t([0, 3]), "parameter": torch.nn.Parameter(t([2])), "uint16": t([3], "uint16")}
    state["tied"] = state["float32"]
    torch.save(state, out / "state.pth")
    layer = torch.nn.Linear(2, 2)
    adam = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    adam.step()
    extra = {"dtype": torch.float16, "size": torch.Size([2, 3])}
    torch.save({"model": layer.state_dict(), "optimizer": adam.state_dict(), "epoch": 3, **extra}, out / "checkpoint.pth")
    old = {"a": t([2, 3]), "b": t([4], "int64")[1:], "c": torch.nn.Parameter(t([2], "float16"))}
    torch.save(old, out / "legacy.pth", _use_new_zipfile_serialization=False)
    torch.save({"c": torch.from_numpy(COMPLEX)}, out / "complex.pth")
    torch.save(layer, out / "refused_module.pth")


def write_numpy(out):
    def raw(name, descr, shape, data, version=(1, 0), fortran=False):
        header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
        length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
        (out / name).write_bytes(b"\x93NUMPY" + bytes(version) + length + header + data)

    for d in NUMPY_DTYPES:
        np.save(out / f"{d}.npy", ramp([2, 3], d))
    np.save(out / "fortran.npy", np.asfortranarray(ramp([2, 3, 4])))
    np.save(out / "big_endian.npy", ramp([2, 3]).astype(">f4"))
    np.save(out / "fortran_big_endian.npy", np.asfortranarray(ramp([2, 3], "int16").astype(">i2")))
    np.save(out / "zero_d.npy", ramp([], "int64"))
    np.save(out / "empty.npy", ramp([0, 3]))
    for d in ("uint16", "uint32", "uint64"):
        np.save(out / f"{d}.npy", ramp([4], d))
    raw("version2.npy", "'<f4'", "(2, 3)", ramp([2, 3]).tobytes(), (2, 0))
    raw("version3.npy", '"<f4"', "(2L, 3L)", ramp([2, 3]).tobytes(), (3, 0))
    np.save(out / "refused_struct.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
    np.save(out / "refused_object.npy", np.array([{}, None], object), allow_pickle=True)
    np.save(out / "complex.npy", COMPLEX)
    np.save(out / "complex_big_endian.npy", COMPLEX.astype(">c16"))
    np.save(out / "refused_text.npy", np.array(["a", "b"]))
    arrays = {"a": ramp([2, 3]), "b": ramp([3], "int64"), "folder/c": ramp([], "bool")}
    np.savez(out / "stored.npz", **arrays)
    np.savez_compressed(out / "deflated.npz", **arrays)
    value = {"a": ramp([2, 3]), "f": np.asfortranarray(ramp([2, 3])), "n": -5, "x": 0.5, "t": (1, "ü\n"), "l": [True, None]}
    for protocol in range(6):
        (out / f"protocol{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))


def write_safetensors(out):
    import torch
    from safetensors.torch import save_file

    tensors = {d: torch.from_numpy(ramp([2, 3], d)).to(getattr(torch, d)) for d in DTYPES}
    save_file(tensors | {"zero_d": torch.from_numpy(ramp([]))}, out / "dtypes.safetensors", {"format": "pt", "nöte": "ü"})


def write_events(out):
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    file = io.BytesIO()
    writer = RecordWriter(file)
    writer.write(event_pb2.Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString())
    for step in range(3):
        value = summary_pb2.Summary.Value(tag="loss", simple_value=1.0 / (step + 1))
        writer.write(event_pb2.Event(wall_time=2.0, step=step, summary=summary_pb2.Summary(value=[value])).SerializeToString())
    plugin = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="scalars"))
    for tensor in (tensor_pb2.TensorProto(dtype=1, float_val=[0.5]), tensor_pb2.TensorProto(dtype=1, tensor_content=struct.pack("<f", 0.25))):
        value = summary_pb2.Summary.Value(tag="new/form", tensor=tensor, metadata=plugin)
        writer.write(event_pb2.Event(wall_time=3.0, step=9, summary=summary_pb2.Summary(value=[value])).SerializeToString())
    (out / "events.out.tfevents.0000000001.host.1.0").write_bytes(file.getvalue())


def same(name, found, shape, dtype="float32"):
    expected = ramp(shape, dtype)
    found = np.asarray(found)
    assert found.shape == expected.shape and found.dtype == expected.dtype and (found == expected).all(), (name, found, expected)


def check_paddle(out):
    import paddle

    def same_tensor(name, t, shape, dtype="float32"):
        assert str(t.dtype) == f"paddle.{dtype}", (name, t.dtype)
        same(name, t.astype("float32").numpy() if dtype == "bfloat16" else t.numpy(), shape, dtype)

    for protocol in (2, 3, 4):
        state = paddle.load(str(out / f"dtypes_p{protocol}.pdparams"))
        assert list(state) == sorted(DTYPES) + ["zero_d", "empty"], list(state)
        for d in DTYPES:
            same_tensor(d, state[d], [2, 3], d)
        same_tensor("zero_d", state["zero_d"], [])
        same_tensor("empty", state["empty"], [0, 3])
    assert state["float32"].name == "named.w_0"
    linear, adam = linear_and_adam()
    missing, unexpected = linear.set_state_dict(paddle.load(str(out / "linear.pdparams")))
    assert not missing and not unexpected
    same("weight", linear.weight.numpy(), [2, 3])
    loaded = paddle.load(str(out / "adam.pdopt"))
    assert loaded["LR_Scheduler"] == {"last_epoch": 0, "last_lr": 0.1}, loaded["LR_Scheduler"]
    linear(paddle.ones([1, 2])).sum().backward()
    adam.set_state_dict(loaded)
    adam.step()
    restored = adam.state_dict()
    assert set(restored) == set(loaded)
    same_tensor("bare", paddle.load(str(out / "bare.pdtensor")), [4], "int64")
    nested = paddle.load(str(out / "nested.pdparams"))
    same_tensor("items", nested["items"][0], [2])
    same_tensor("model", nested["model"]["bias"], [3], "bfloat16")
    assert nested["items"][0].name == "first"
    plain = {k: nested[k] for k in ("epoch", "negative", "large", "loss", "best", "done", "name", 5)}
    expected = {"epoch": 7, "negative": -70000, "large": 1 << 40, "loss": 0.25, "best": None, "done": True, "name": "löss", 5: []}
    assert plain == expected, plain
    for d in DTYPES:
        same_tensor("binary", paddle.load(str(out / f"{d}.pdtensor")), [2, 3], d)
    program = paddle.jit.to_static(linear, input_spec=[paddle.static.InputSpec([None, 2], "float32")], full_graph=True)
    with tempfile.TemporaryDirectory() as folder:
        paddle.jit.save(program, folder + "/program")
        pathlib.Path(folder, "program.pdiparams").write_bytes((out / "program.pdiparams").read_bytes())
        answer = paddle.jit.load(folder + "/program")(paddle.ones([1, 2])).numpy()
        assert answer.tolist() == (ramp([2, 3]).sum(0) + ramp([3])).reshape(1, 3).tolist(), answer
    for protocol in (2, 3, 4):
        value = pickle.loads((out / f"plain_p{protocol}.pkl").read_bytes())
        assert value == [b"\x00\xff", b"", b"\x80" * 300, "x" * 300, -1, -(1 << 40)], value


def check_numpy(out):
    for d in NUMPY_DTYPES:
        same(d, np.load(out / f"{d}.npy"), [2, 3], d)
    bits = np.load(out / "bfloat16.npy").view(np.uint16)
    same("bfloat16", (bits.astype(np.uint32) << 16).view(np.float32), [2, 3])
    same("zero_d", np.load(out / "zero_d.npy"), [], "int64")
    same("empty", np.load(out / "empty.npy"), [0, 3])
    for name in ("stored.npz", "deflated.npz"):
        with np.load(out / name) as archive:
            assert archive.zip.testzip() is None
            same("a", archive["a"], [2, 3])
            same("b", archive["ünter/b"], [3], "int64")


def check_safetensors(out):
    from safetensors import safe_open

    with safe_open(out / "dtypes.safetensors", "pt") as file:
        assert file.metadata() == {"format": "sampan", "nöte": "ü"}, file.metadata()
        assert sorted(file.keys()) == sorted(DTYPES + ["empty", "zero_d"])
        for d in DTYPES:
            t = file.get_tensor(d)
            same(d, t.float().numpy() if d == "bfloat16" else t.numpy(), [2, 3], d)


def check_events(out):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    everything = EventAccumulator(str(out / "run"), size_guidance={"histograms": 0, "images": 0, "scalars": 0, "tensors": 0})
    everything.Reload()
    tags = everything.Tags()
    assert tags["scalars"] == ["loss"] and tags["images"] == ["picture"] and tags["histograms"] == ["weights"], tags
    # The second file resumed at step 3, so what the first said of later steps is gone.
    assert [(e.step, e.value) for e in everything.Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0), (3, 9.0)]
    image = everything.Images("picture")[0]
    from PIL import Image

    assert list(Image.open(io.BytesIO(image.encoded_image_string)).getdata()) == [0, 255]
    assert (image.width, image.height) == (2, 1)
    h = everything.Histograms("weights")[0].histogram_value
    assert (h.min, h.max, h.num, sum(h.bucket)) == (-1.0, 1.5, 6.0, 6.0), h
    (text,) = everything.Tensors("notes/text_summary") if "notes/text_summary" in tags["tensors"] else everything.Tensors("notes")
    assert text.tensor_proto.string_val[0].decode() == "a **text**"


def write_together():
    """Two processes run this file again, and write a checkpoint: cut along rows, unevenly too, the same in both, and flat."""
    import paddle
    import paddle.distributed as dist

    dist.init_parallel_env()
    rank, mesh = dist.get_rank(), dist.ProcessMesh([0, 1], dim_names=["x"])
    flat = paddle_ramp([8])[rank * 4 : rank * 4 + 4]
    state = {
        "rows": dist.shard_tensor(paddle_ramp([6, 4]), mesh, [dist.Shard(0)]),
        "uneven": dist.shard_tensor(paddle_ramp([5, 3], "int64"), mesh, [dist.Shard(0)]),
        "both": {"alike": dist.shard_tensor(paddle_ramp([3], "bfloat16"), mesh, [dist.Replicate()])},
        "flat": dist.ShardedWeight("flat", flat, (2, 4), (2, 4), (0, 0), True, slice(rank * 4, rank * 4 + 4)),
    }
    dist.save_state_dict(state, str(TOGETHER))


def main():
    if "--together" in sys.argv:
        return write_together()
    if "--check" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            command = ["cargo", "run", "-q", "-p", "sampan-io", "--example", "write_samples", "--", folder]
            subprocess.run(command, cwd=ROOT, check=True)
            for check in (check_paddle, check_numpy, check_safetensors, check_events):
                check(pathlib.Path(folder))
                print(check.__name__, "ok")
        return
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for old in FIXTURES.iterdir():
        old.unlink()
    for write in (write_paddle, write_torch, write_numpy, write_safetensors, write_events):
        write(FIXTURES)
    with tempfile.TemporaryDirectory() as logs:
        launch = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", logs]
        subprocess.run([*launch, __file__, "--together"], check=True)
    files = sorted([*FIXTURES.iterdir(), *TOGETHER.iterdir()])
    print(len(files), "files,", sum(f.stat().st_size for f in files), "bytes")


if __name__ == "__main__":
    main()
