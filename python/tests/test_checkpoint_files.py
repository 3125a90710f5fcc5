"""What a process that is killed leaves behind, and a disk that is full."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from threading import Thread

import pytest
import sampan
from sampan.utils import download

# Weights and what the optimizer remembers hold the number of the save.
WRITER = """
import sys, sampan
net = sampan.nn.Linear(64, 64)
model = sampan.Model(net)
model.prepare(sampan.optimizer.Momentum(parameters=net.parameters()), sampan.nn.MSELoss())
net(sampan.ones([1, 64])).sum().backward()
model._optimizer.step()
state = model._optimizer.state_dict()
print("ready", flush=True)
for number in range(1, 10**6):
    for value in [*net.state_dict().values(), *(v for v in state.values() if isinstance(v, sampan.Tensor))]:
        value.set_value(sampan.full(value.shape, float(number)))
    model._optimizer.set_state_dict(state)
    model.save(sys.argv[1])
"""


def numbers(base):
    """Which saves the files come from."""
    parts = [*sampan.load(f"{base}.pdparams").values(), *sampan.load(f"{base}.pdopt").values()]
    return {t.max().item() for t in parts if isinstance(t, sampan.Tensor) and t.ndim > 0}


@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_weights_and_optimizer_come_from_one_save(tmp_path):
    base, chance = tmp_path / "net", random.Random()
    for _ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, base], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        while not base.with_suffix(".pdopt").exists():
            time.sleep(0.01)
        time.sleep(chance.random() * 0.2)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert len(numbers(base)) == 1


def test_a_set_that_was_torn_is_completed(tmp_path):
    def model(number):
        net = sampan.nn.Linear(2, 2)
        model = sampan.Model(net)
        model.prepare(sampan.optimizer.Momentum(parameters=net.parameters()), sampan.nn.MSELoss())
        net(sampan.ones([1, 2])).sum().backward()
        model._optimizer.step()
        net.weight.set_value(sampan.full([2, 2], number))
        return model

    old, new = model(1.0), model(2.0)
    old.save(str(tmp_path / "net"))
    new.save(str(tmp_path / "new"))
    # As it lies when the writer is killed after the first of two renames.
    shutil.move(tmp_path / "new.pdparams", tmp_path / "net.pdparams")
    shutil.move(tmp_path / "new.pdopt", tmp_path / ".net.pdopt.1.0.partial")
    lines = "".join(f".net.{end}.1.0.partial\tnet.{end}\n" for end in ("pdparams", "pdopt"))
    (tmp_path / ".net.saving").write_text(lines)
    (tmp_path / "net.pdopt").unlink()
    old.load(str(tmp_path / "net"))
    assert old.network.weight.tolist() == [[2.0, 2.0]] * 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.pdopt", "net.pdparams"]


def test_a_save_that_fails_changes_nothing(tmp_path):
    net = sampan.nn.Linear(2, 2)
    model = sampan.Model(net)
    model.prepare(sampan.optimizer.Adam(parameters=net.parameters()), sampan.nn.MSELoss())
    net(sampan.ones([1, 2])).sum().backward()
    model._optimizer.step()
    model.save(str(tmp_path / "net"))
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    own = []
    own.append(own)
    with pytest.raises(RecursionError):
        sampan._core._save_set(str(tmp_path / "net"), {"pdparams": {"a": 1}, "pdopt": own})
    (tmp_path / "net.pdscaler").mkdir()  # Where a file belongs.
    with pytest.raises((OSError, ValueError)):
        sampan._core._save_set(str(tmp_path / "net"), {"pdparams": {"a": 1}, "pdscaler": {"b": 2}})
    (tmp_path / "net.pdscaler").rmdir()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.fixture
def served():
    """A server on this machine; `/to/ADDRESS` leads on to another address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", self.path[4:])
                self.end_headers()
            else:
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"data")

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_address_that_leads_to_another(served, tmp_path):
    path = download.get_path_from_url(f"http://{served}/to/http://{served}/a.bin", str(tmp_path))
    assert open(path, "rb").read() == b"data"
    # Nobody speaks TLS there; that is an error like any other.
    with pytest.raises(RuntimeError, match="could not be downloaded"):
        download.get_path_from_url(f"http://{served}/to/https://{served}/b.bin", str(tmp_path))


def _archive(path, names):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "hi")
    else:
        with tarfile.open(path, "w") as archive:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 2
                archive.addfile(member, BytesIO(b"hi"))


@pytest.mark.parametrize("end", [".tar", ".zip"])
def test_archives_unpack_beside_themselves(end, tmp_path):
    cases = [(["a/x", "a/y"], "a"), (["./a/x"], "a"), (["/etc/x"], "etc"), (["a/x", "b"], "set"), (["x"], "x"), ([], "set")]
    for i, (names, expected) in enumerate(cases):
        path = tmp_path / str(i) / f"set{end}"
        path.parent.mkdir()
        _archive(path, names)
        found = download._unpacked(path)
        assert found == path.parent / expected and found.exists()
        assert all((path.parent / name.strip("/")).exists() or (found / name).exists() for name in names)
    for i, names in enumerate((["../x"], ["a/../../x"], ["a/b", "..\\x"])):
        path = tmp_path / f"bad{i}" / f"set{end}"
        path.parent.mkdir()
        _archive(path, names)
        with pytest.raises(ValueError, match="lies outside"):
            download._unpacked(path)
        assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_links_out_of_an_archive(tmp_path):
    path = tmp_path / "set.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("a/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(tarfile.FilterError):
        download._unpacked(path)
