"""`import paddle` that means sampan, in this process and in programs that `python -m sampan run` starts."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import sampan
from sampan import compat

HOME = str(pathlib.Path(sampan.__file__).parents[1])


@pytest.fixture
def as_paddle():
    compat.install_as_paddle()
    yield
    compat.uninstall()


def command(*arguments, cwd, **options):
    env = os.environ | {"PYTHONPATH": HOME}
    return subprocess.run(
        [sys.executable, "-m", "sampan", *arguments], cwd=cwd, env=env, capture_output=True, text=True, **options
    )


def program(folder, text, name="train.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return str(path)


# ---- in this process


def test_modules_are_the_same_objects(as_paddle):
    import paddle
    import paddle.nn.functional as F
    import paddle.optimizer.lr
    from paddle import nn
    from paddle.nn import Linear

    assert paddle is sampan and nn is sampan.nn and F is sampan.nn.functional
    assert Linear is sampan.nn.Linear and paddle.optimizer.lr is sampan.optimizer.lr
    # A module keeps its own name, so that pickles and messages do.
    assert (F.__name__, F.__spec__.name) == ("sampan.nn.functional", "sampan.nn.functional")


def test_programs_see_the_version_of_the_api(as_paddle):
    import paddle

    assert tuple(map(int, paddle.__version__.split("."))) >= (2, 0, 0)
    assert paddle.version.full_version != paddle.__version__


def test_missing_parts_say_so(as_paddle):
    with pytest.raises(ModuleNotFoundError, match="'paddle.no_such_part'.*sampan.no_such_part") as caught:
        import paddle.no_such_part  # noqa: F401
    assert caught.value.name == "paddle.no_such_part"
    with pytest.raises(ImportError):
        from paddle.nn import NoSuchLayer  # noqa: F401


def test_base_and_fluid_come_with_paddle(as_paddle):
    import paddle

    assert paddle.base.framework.in_dygraph_mode()
    assert paddle.fluid.dygraph.to_variable([1.0, 2.0]).shape == [2]
    from paddle.base.data_feeder import check_variable_and_dtype

    check_variable_and_dtype(paddle.ones([1]), "x", ["float32"], "op")
    with pytest.raises(TypeError, match="dtype of x"):
        check_variable_and_dtype(paddle.ones([1]), "x", ["int64"], "op")
    with pytest.raises(AttributeError, match="dynamic graphs"):
        paddle.base.Executor  # noqa: B018


def test_uninstall_undoes_it():
    before = sampan.__version__
    compat.install_as_paddle()
    compat.install_as_paddle()
    assert compat.installed() and "paddle" in sys.modules
    compat.uninstall()
    assert not compat.installed() and "paddle" not in sys.modules and "paddle.nn" not in sys.modules
    assert sampan.__version__ == before


def test_another_paddle_that_is_imported_already_is_an_error(monkeypatch):
    import types

    monkeypatch.setitem(sys.modules, "paddle", types.ModuleType("paddle"))
    with pytest.raises(RuntimeError, match="before the first `import paddle`"):
        compat.install_as_paddle()


# ---- the command


def test_run_sets_the_stage(tmp_path):
    program(tmp_path, "VALUE = 7", "beside.py")
    path = program(
        tmp_path,
        """
        import sys, beside, paddle, sampan
        print(__name__, __file__ == sys.argv[0], sys.argv[1:], beside.VALUE, paddle is sampan)
        print(sys.modules["__main__"].__dict__ is globals())
        """,
    )
    done = command("run", path, "--epochs", "3", cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["__main__ True ['--epochs', '3'] 7 True", "True"]


def test_a_traceback_shows_the_program_alone(tmp_path):
    path = program(tmp_path, "import paddle\ndef f():\n    paddle.ones([2]).reshape([3])\nf()\n")
    done = command("run", path, cwd=tmp_path)
    assert done.returncode == 1
    files = [line.split('"')[1] for line in done.stderr.splitlines() if line.startswith("  File")]
    assert files == [path, path]
    assert "paddle.ones([2]).reshape([3])" in done.stderr and "ValueError" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('bye')", 1, "bye"),
        ("x = (", 1, "SyntaxError"),
        ("import os; os._exit(3)", 3, ""),
    ],
)
def test_exit_codes_pass(tmp_path, text, code, told):
    done = command("run", program(tmp_path, text), cwd=tmp_path)
    assert done.returncode == code
    assert told in done.stderr


def test_run_a_module(tmp_path):
    package = tmp_path / "job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    program(
        package,
        "import sys, paddle\nfrom . import other\nprint(__name__, __package__, sys.argv[1:], paddle.__name__)",
        "__main__.py",
    )
    program(package, "", "other.py")
    done = command("run", "-m", "job", "-x", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("__main__ job ['-x'] sampan\n", "")
    assert command("run", "-m", "no_such_module", cwd=tmp_path).returncode == 1


def test_processes_of_the_program_find_sampan_too(tmp_path):
    path = program(
        tmp_path,
        """
        import multiprocessing, subprocess, sys
        import paddle

        def double(x):
            return paddle.__name__, float(paddle.to_tensor(x) * 2)

        if __name__ == "__main__":
            subprocess.run([sys.executable, "-c", "import paddle.nn; print(paddle.nn.__name__)"])
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [4.0]))
        """,
    )
    done = command("run", path, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("sampan.nn\n[('sampan', 8.0)]\n", "")


def test_help_info_and_mistakes(tmp_path):
    assert "run train.py" in command("--help", cwd=tmp_path).stdout
    assert "Paddle 3" in command("info", cwd=tmp_path).stdout
    assert command("--version", cwd=tmp_path).stdout.startswith("sampan ")
    missing = command("run", "nothing.py", cwd=tmp_path)
    assert (missing.returncode, "nothing.py" in missing.stderr) == (2, True)
    assert command("run", cwd=tmp_path).returncode == 2
    assert command("fly", cwd=tmp_path).returncode == 2


def test_a_module_does_not_take_the_place_of_its_function(as_paddle):
    import paddle
    import paddle.amp.auto_cast
    from paddle.amp.auto_cast import amp_global_state, amp_state

    assert isinstance(paddle.amp.auto_cast, type) and amp_state() is None
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
        with paddle.amp.auto_cast(enable=False):
            assert amp_state()["enable"] is False
        assert (amp_state()["level"], amp_state()["dtype"]) == ("O2", "bfloat16")
    assert amp_state() is None and amp_global_state() is amp_global_state()


def test_names_that_large_programs_import(as_paddle):
    import paddle
    from paddle.common_ops_import import LayerHelper, ParamAttr, Variable, check_type, convert_dtype  # noqa: F401
    from paddle.distributed.collective import _c_concat, _c_identity, _c_split, _mp_allreduce
    from paddle.distributed.communication.group import _get_global_group  # noqa: F401
    from paddle.distributed.fleet.layers.mpu import mp_ops
    from paddle.distributed.fleet.layers.mpu.random import get_rng_state_tracker
    from paddle.distributed.fleet.meta_parallel.parallel_layers import PipelineLayer, SharedLayerDesc  # noqa: F401
    from paddle.framework.io import EagerParamBase
    from paddle.incubate.nn.layer.fused_dropout_add import FusedDropoutAdd  # noqa: F401
    from paddle.io.dataloader.collate import default_collate_fn  # noqa: F401
    from paddle.nn.layer.layers import in_declarative_mode
    from paddle.utils.download import _get_unique_endpoints

    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    assert isinstance(x, paddle.static.Variable) and isinstance(x, Variable) and not isinstance(x, paddle.pir.Value)
    assert EagerParamBase is paddle.nn.Parameter and convert_dtype(paddle.float16) == "float16"
    assert mp_ops._c_identity is _c_identity and get_rng_state_tracker() is get_rng_state_tracker()
    for collective in (_c_identity, _c_concat, _c_split, _mp_allreduce):
        assert collective(x, group=paddle.distributed.new_group([0])).tolist() == [1.0, 2.0]
    assert not in_declarative_mode() and isinstance(paddle.__git_commit__, str)
    assert _get_unique_endpoints(["b:2", "a:3", "b:1"]) == {"a:3", "b:1"}
    assert paddle.autograd.grad(x.pow(2).sum(), x)[0].tolist() == [2.0, 4.0]
    with paddle.framework._no_check_dy2st_diff():
        paddle.framework._dygraph_tracer()._has_grad = False
        assert (x * 2).stop_gradient
        paddle.framework._dygraph_tracer()._has_grad = True
    assert not (x * 2).stop_gradient


def test_a_layer_helper_is_made_where_nothing_asks_it_for_a_graph(as_paddle):
    import paddle
    from paddle.common_ops_import import LayerHelper

    def shifted(input, act=None, name=None):
        helper = LayerHelper("shifted", **locals())
        assert helper.input_dtype() == input.dtype and helper.input() is input
        return helper.append_activation(input - 1), helper

    result, helper = shifted(paddle.to_tensor([0.0, 3.0]), act="relu")
    assert result.tolist() == [0.0, 2.0] and helper.name.startswith("shifted_") and helper.layer_type == "shifted"
    with pytest.raises(NotImplementedError, match="static graphs"):
        helper.append_op(type="relu")
