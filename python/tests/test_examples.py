"""Every program of the course runs on a cut of the data and says what it has learnt."""

import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import sampan

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
# What each must print.
COURSE = {
    "01_linear_regression": "nearest digit right",
    "02_data_sync": "epoch 0: validation loss",
    "03_data_async": "the same bits for any number of workers",
    "04_mlp": "bent hidden layers",
    "05_cnn": "Total params: 11,521",
    "06_cross_entropy": "read as",
    "07_optimizers": "a learning rate that falls",
    "08_debugging": "a wrong shape",
    "09_evaluation": "among the best three",
    "10_regularisation": "L2 decay and dropout",
    "11_loss_curve": "events: ",
    "12_resume": "weights are the same to the bit",
    "13_fine_tuning": "2 of 6 parameters are trained",
    "14_image_folder": "is a digit_",
    "15_custom_function": "right are [0, 1, 1, 0]",
    "16_transformer": "written: one person can",
    "17_lstm": '"the film was not good": kind with',
    "18_high_level": "the first test images read",
}


def test_the_course_is_complete():
    assert {path.stem for path in EXAMPLES.glob("[0-9]*.py")} == set(COURSE)
    rust = EXAMPLES.parents[1] / "examples"
    assert {path.stem for path in rust.glob("[0-9]*.rs")} == set(COURSE)


def run(name, folder):
    env = os.environ | {"SAMPAN_EXAMPLE_LIMIT": "64", "PYTHONPATH": str(pathlib.Path(sampan.__file__).parents[1])}
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All programs, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(run, name, tmp_path_factory.mktemp(name)) for name in COURSE}


@pytest.mark.parametrize("name", COURSE)
def test_a_program_of_the_course(name, runs):
    done = runs[name].result()
    assert done.returncode == 0, done.stderr
    assert COURSE[name] in done.stdout


def test_a_saved_network_runs(tmp_path):
    """The example of deployment; its siblings in C and Rust have tests of their own."""
    net = sampan.nn.Sequential(sampan.nn.Linear(4, 3), sampan.nn.Tanh())
    path = str(tmp_path / "net")
    sampan.jit.save(net, path, input_spec=[sampan.static.InputSpec([None, 4], "float32", "x")])
    program = EXAMPLES.parents[1] / "examples" / "deploy" / "infer.py"
    env = os.environ | {"PYTHONPATH": str(pathlib.Path(sampan.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-W", "error", str(program), path + ".pdmodel"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = net(sampan.to_tensor([[0.0, 0.25, 0.5, 0.75]])).tolist()[0]
    first, second = done.stdout.splitlines()
    assert first == "input x [1, 4]" and second.startswith("output 0 [1, 3] ")
    assert [float(word) for word in second.split()[4:]] == pytest.approx(expected, abs=1e-4)
