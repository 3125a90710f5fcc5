"""Nested structures, names, versions, downloads from the cache, and models from a folder."""

import collections
import hashlib
import sys
import tarfile
import warnings
import zipfile

import pytest

import sampan
from sampan import hub, sysconfig, utils, version
from sampan.utils import dlpack, download, unique_name

Pair = collections.namedtuple("Pair", "left right")


def test_structures_come_back_from_their_leaves():
    nest = {"b": [1, Pair(2, (3,))], "a": collections.OrderedDict(z=4, y=5), "c": []}
    leaves = utils.flatten(nest)
    assert leaves == [5, 4, 1, 2, 3]
    again = utils.pack_sequence_as(nest, leaves)
    assert again == nest and list(again) == ["b", "a", "c"] and isinstance(again["b"][1], Pair)
    doubled = utils.map_structure(lambda x, y: x + y, nest, nest)
    assert doubled["b"] == [2, Pair(4, (6,))] and list(doubled["a"].items()) == [("z", 8), ("y", 10)]
    assert nest["b"] == [1, Pair(2, (3,))]
    assert utils.flatten("text") == ["text"] and utils.pack_sequence_as(0, [1]) == 1
    counts = collections.defaultdict(int, a=1)
    assert utils.map_structure(str, counts)["b"] == 0


def test_structures_that_do_not_fit():
    with pytest.raises(ValueError, match="structure has 2 leaves, but flat_sequence has 3"):
        utils.pack_sequence_as([0, 0], [1, 2, 3])
    with pytest.raises(TypeError, match="flat_sequence must be a sequence"):
        utils.pack_sequence_as([0], 1)
    with pytest.raises(ValueError, match=r"as many leaves, but received \[2, 1\]"):
        utils.map_structure(max, [1, 2], [1])
    with pytest.raises(TypeError, match="must have an order"):
        utils.flatten({"a": 1, 2: 2})
    utils.assert_same_structure([1, {"a": (2,)}], [3, {"a": (4,)}])
    utils.assert_same_structure([1, [2]], (3, (4,)), check_types=False)
    for first, second, error in (
        ([1, 2], [1], ValueError),
        ([1], [[1]], ValueError),
        ([1], (1,), TypeError),
        ({"a": 1}, {"b": 1}, ValueError),
    ):
        with pytest.raises(error):
            utils.assert_same_structure(first, second)
    with pytest.raises(ValueError, match="stride must be one int or 2 of them, but received"):
        utils.convert_to_list([1, 2, 3], 2, "stride")


def test_names_are_unique_and_guards_nest():
    first, second = unique_name.generate("thing"), unique_name.generate("thing")
    assert first != second and first.startswith("thing_")
    with unique_name.guard("outer_"):
        assert unique_name.generate("thing") == "outer_thing_0"
        with unique_name.guard():
            assert unique_name.generate("thing") == "thing_0"
        assert unique_name.generate("thing") == "outer_thing_1"
    number = int(second.split("_")[1])
    assert unique_name.generate("thing") == f"thing_{number + 1}"
    with pytest.raises(RuntimeError, match="inside"), unique_name.guard():
        raise RuntimeError("inside")
    assert unique_name.generate("thing") == f"thing_{number + 2}"


def test_a_generator_goes_on_where_it_was():
    own = unique_name.UniqueNameGenerator("own_")
    assert own("a") == "own_a_0"
    with unique_name.guard(own):
        assert unique_name.generate("a") == "own_a_1"
    assert own.generate("a") == "own_a_2"


def test_deprecated():
    @utils.deprecated(update_to="sampan.new", since="2.0.0", reason="It was slow", level=1)
    def old(x):
        """Adds one."""
        return x + 1

    with pytest.warns(UserWarning, match=r"old is deprecated since 2.0.0; use sampan.new \(It was slow\)"):
        assert old(1) == 2
    assert old.__doc__.startswith("Warning: ") and old.__doc__.endswith("Adds one.")
    later = utils.deprecated(since="99.0", level=1)(lambda: 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert later() == 3
        assert utils.deprecated()(lambda: 4)() == 4
    with pytest.raises(RuntimeError, match="is deprecated"):
        utils.deprecated(level=2)(lambda: 5)()
    with pytest.raises(ValueError, match="level must be 0, 1 or 2, but received 3"):
        utils.deprecated(level=3)
    with pytest.raises(TypeError, match="since must be a str"):
        utils.deprecated(since=2)


def test_versions():
    utils.require_version("2.0")
    utils.require_version("0.1.0", "10.0.0")
    for least, most in (("99.0.0", None), ("1.0", "2.0")):
        with pytest.raises(Exception, match="the program needs the API of a version from"):
            utils.require_version(least, most)
    with pytest.raises(TypeError, match="min_version must be a str"):
        utils.require_version(2)
    with pytest.raises(ValueError, match="max_version must be up to four numbers"):
        utils.require_version("1.0", "2.x")
    assert version.cuda() == "False" and version.hip is None
    assert sysconfig.get_include().endswith("include")


def test_version_show(capsys):
    version.show()
    assert f"full_version: {version.full_version}\n" in capsys.readouterr().out


def test_try_import():
    assert utils.try_import("json").loads("[1]") == [1]
    with pytest.raises(ImportError, match="pip install no_such_package"):
        utils.try_import("no_such_package.inner")
    with pytest.raises(ImportError, match="^mine$"):
        utils.try_import("no_such_package", "mine")


def test_run_check(capsys):
    utils.run_check()
    assert "as it should" in capsys.readouterr().out


def test_dlpack_wants_tensors():
    with pytest.raises(TypeError, match="x must be a Tensor, but received list"):
        dlpack.to_dlpack([1.0])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SAMPAN_HOME", str(tmp_path))
    (tmp_path / "weights").mkdir()
    return tmp_path / "weights"


def test_cached_files_need_no_network(cache, monkeypatch):
    (cache / "a.pdparams").write_bytes(b"hello")
    url = "https://localhost/folder/a.pdparams?version=2"
    assert download.get_weights_path_from_url(url) == str(cache / "a.pdparams")
    md5 = hashlib.md5(b"hello").hexdigest()
    assert download.get_weights_path_from_url(url, md5) == str(cache / "a.pdparams")
    with pytest.raises(ValueError, match="url must start with http"):
        download.get_weights_path_from_url("a.pdparams")
    for name in ("b.pdparams", "a.pdparams"):  # Not there, and there with another sum.
        with pytest.raises(RuntimeError, match=f"Hint: with a file from elsewhere, put it at .*{name}"):
            download.get_path_from_url(f"http://127.0.0.1:9/{name}", str(cache), "0" * 32)


def test_archives_are_unpacked(cache):
    (cache / "one").mkdir()
    (cache / "one" / "x.txt").write_text("x")
    with tarfile.open(cache / "single.tar.gz", "w:gz") as archive:
        archive.add(cache / "one", "one")
    with zipfile.ZipFile(cache / "many.zip", "w") as archive:
        archive.writestr("a.txt", "a")
        archive.writestr("b.txt", "b")
    assert download.get_weights_path_from_url("https://localhost/single.tar.gz") == str(cache / "one")
    many = download.get_weights_path_from_url("https://localhost/many.zip")
    assert many == str(cache / "many") and (cache / "many" / "b.txt").read_text() == "b"


def test_hub(tmp_path):
    (tmp_path / "neighbour_of_hubconf.py").write_text("SIZE = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "from neighbour_of_hubconf import SIZE\n"
        "dependencies = ['json']\n"
        "def net(depth=1):\n    'A net.'\n    return depth * SIZE\n"
        "def _hidden():\n    pass\n"
    )
    folder, before = str(tmp_path), list(sys.path)
    assert hub.list(folder, source="local") == ["net"]
    assert hub.help(folder, "net", source="local") == "A net."
    assert hub.load(folder, "net", source="local", depth=2) == 6
    assert sys.path == before
    with pytest.raises(RuntimeError, match="has no function 'other'"):
        hub.load(folder, "other", source="local")
    with pytest.raises(ValueError, match="'github', 'gitee' or 'local', but received 'web'"):
        hub.list(folder, source="web")
    with pytest.raises(RuntimeError, match="source='local'"):
        hub.list("owner/name")
    with pytest.raises(FileNotFoundError, match="hubconf.py"):
        hub.list(str(tmp_path / "nothing"), source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\ndef net():\n    pass\n")
    with pytest.raises(RuntimeError, match="not installed: no_such_package"):
        hub.load(folder, "net", source="local")


def test_a_checkpoint_keeps_the_random_state(tmp_path):
    import numpy

    sampan.seed(2**63 + 5)
    state = {"rng": sampan.get_rng_state(), "best": numpy.float32(1.5), "n": numpy.int64(3)}
    sampan.save(state, tmp_path / "c.pd")
    first = sampan.rand([3]).tolist()
    loaded = sampan.load(tmp_path / "c.pd")
    sampan.set_rng_state(loaded["rng"])
    assert sampan.rand([3]).tolist() == first
    assert (loaded["best"], loaded["n"]) == (1.5, 3)
