"""The contenders as processes: who takes part, and a line to each of them."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

RUST = "sampan (Rust)"
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}


def environment(threads):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "SAMPAN_NUM_THREADS": str(threads)}


def contenders(options):
    """Label, command and environment of each."""
    env, python = environment(options.threads), [sys.executable, str(HERE / "contender.py")]
    yield "sampan", [*python, "sampan"], env
    if options.rust:
        yield RUST, [options.rust, str(options.threads)], env
    for peer in options.peers:
        yield peer, [*python, peer], env
        yield f"{peer} passive", [*python, peer], {**env, **PASSIVE}


class Contender:
    """A process that answers lines. Use it with `with`: it ends with the block, whatever happens."""

    def __init__(self, label, command, env):
        self.label = label
        self.errors = tempfile.TemporaryFile()
        # A session of its own, so that Ctrl-C reaches the one who has to write the table, and not the contenders.
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.process = subprocess.Popen(command, **pipes, env=env, cwd=HERE, start_new_session=True)

    def ask(self, *command):
        """The answer, `{"error": …}` if the process has died."""
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": self.death()}
        if "error" in answer:
            # Where things lie on this machine is nobody's business.
            answer["error"] = answer["error"].replace(str(ROOT), ".").replace(sys.prefix, "")
        return answer

    def death(self):
        code = self.process.wait()
        self.errors.seek(0)
        print(self.errors.read()[-2000:].decode(errors="replace"), file=sys.stderr)
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return f"the process ended {how}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.errors.close()
