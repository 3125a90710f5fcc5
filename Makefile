# The commands of the project. `make test` is the one that must pass; it installs what the tests need.

VENV := .venv
PY := $(VENV)/bin/python

# Versions whose files are read and which read ours.
PADDLES := 2.6.2 3.0.0 3.3.1

# The machine that programs are built for.
HOST := $(shell rustc -vV | sed -n 's/host: //p')

.PHONY: dist graph-readers onnx-peers help train test lint deny rust-tests doc-tests wheel python-tests stubs peers golden golden-check python-dev bench bench-core align-faults test-gpu bench-gpu clean

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

train: ## The main job: LeNet on the bundled MNIST
	cargo run --release -p sampan -- train

test: lint deny rust-tests doc-tests python-tests ## Everything that CI checks

lint: ## Format and clippy, without warnings
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	python3 scripts/check_features.py

deny: ## Licences and sources of the dependencies
	if command -v cargo-deny >/dev/null; then cargo deny --log-level error check licenses bans sources; \
	else python3 scripts/check_dependencies.py; fi

# The Python package is among them so that all features are those of its wheel, and nothing is compiled twice.
TESTED := --workspace --exclude sampan-bench --all-features

# `cargo test --examples` would build the programs without their `main`, and a test runs them.
rust-tests: ## Unit and integration tests
	cargo build --examples $(TESTED)
	cargo test --tests $(TESTED)

doc-tests: ## The examples in the documentation
	cargo test --doc $(TESTED)

# Built as the tests above are, so that nothing is compiled twice; `pip install ./python` builds for speed.
wheel: ## The Python package as a wheel, in target/wheels
	python3 -m venv target/build-env
	target/build-env/bin/pip install --quiet 'maturin>=1.9,<2'
	rm -rf target/wheels
	target/build-env/bin/maturin build --quiet -m python/Cargo.toml --features sampan-core/ndarray

python-tests: wheel ## The wheel in an empty environment, and its tests
	rm -rf target/test-env
	python3 -m venv target/test-env
	target/test-env/bin/pip install --quiet "$$(ls target/wheels/*.whl)[test]"
	# Not from python/, whose sources have no native part.
	cd target/test-env && bin/pytest -q -p no:cacheprovider --import-mode=importlib ../../python/tests

stubs: python-dev ## The type stubs of the Python package
	PYTHONPATH=python python3 scripts/python_stubs.py

peers: ## The real libraries, in a virtual environment
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet paddlepaddle torch numpy scipy mpmath safetensors tensorboard pillow setuptools "opencv-python-headless<5"

golden: peers ## Record the peers' answers anew
	for script in golden layers_golden init_golden optim_golden transforms_golden vision_ops_golden models_golden parity io_fixtures extremes_golden semantics_golden; do \
		$(PY) scripts/$$script.py || exit 1; done
	$(PY) scripts/python_coverage.py --record

golden-check: peers ## Compare the recorded answers with the live peers
	for script in golden layers_golden optim_golden transforms_golden models_golden parity io_fixtures extremes_golden semantics_golden; do \
		$(PY) scripts/$$script.py --check || exit 1; done
	$(PY) scripts/python_coverage.py --module paddle

python-dev: ## The Python package in place, quickly built: PYTHONPATH=python python
	cargo build -p sampan-py
	cp target/debug/lib_core.so python/sampan/_core.abi3.so

test-gpu: ## Every op on the GPU of this machine against the CPU
	cargo test --release -p sampan-core --test suite on_gpu -- --nocapture

bench-gpu: ## Training and inference on the GPU of this machine beside PyTorch, in an environment that has both
	for what in sampan torch "sampan graph" "torch graph"; do $(PY) benches/compare/gpu.py $$what || exit 1; done

bench: ## sampan beside PyTorch and PaddlePaddle: a table and a picture in docs/
	python3 -m venv target/bench-env
	target/bench-env/bin/pip install --quiet torch torchvision paddlepaddle setuptools matplotlib ./python
	cargo build --release -p sampan-bench
	target/bench-env/bin/python benches/compare/run.py $(BENCH)

bench-core: ## Microbenchmarks of the core
	cargo bench -p sampan-bench

align-faults: ## Injected faults: sampan.align beside PaDiff, into docs/align-faults.md
	python3 -m venv target/align-env
	target/align-env/bin/pip install --quiet torch paddlepaddle padiff setuptools ./python
	target/align-env/bin/python scripts/align_faults/run.py target/ours.json
	target/align-env/bin/python scripts/align_faults/padiff_column.py target/padiff.json
	target/align-env/bin/python scripts/align_faults/table.py target/ours.json target/padiff.json > target/align-faults.md
	mv target/align-faults.md docs/align-faults.md

graph-readers: python-dev ## What jit.save writes, read by each version of Paddle in an environment of its own; and theirs, read here
	python3 -m venv target/graph-env && target/graph-env/bin/pip install --quiet numpy
	PYTHONPATH=python target/graph-env/bin/python scripts/graph/write.py target/graphs
	for v in $(PADDLES); do \
		python3 -m venv target/paddle-$$v && \
		target/paddle-$$v/bin/pip install --quiet paddlepaddle==$$v setuptools "numpy<2" && \
		target/paddle-$$v/bin/python scripts/graph/check.py target/graphs && \
		target/paddle-$$v/bin/python scripts/graph/check.py target/graphs .pdmodel && \
		target/paddle-$$v/bin/python scripts/graph/theirs.py save target/theirs-$$v && \
		PYTHONPATH=python target/graph-env/bin/python scripts/graph/theirs.py check target/theirs-$$v || exit 1; done

onnx-peers: python-dev ## What onnx.export writes, computed by ONNX Runtime; ONNX's own tests on our backend and on theirs
	python3 -m venv target/onnx-env
	target/onnx-env/bin/pip install --quiet onnx==1.17.0 onnxruntime numpy
	PYTHONPATH=python target/onnx-env/bin/python scripts/onnx/write.py target/onnx
	PYTHONPATH=python target/onnx-env/bin/python scripts/onnx/backend.py
	PYTHONPATH=python target/onnx-env/bin/python scripts/onnx/backend.py --onnxruntime

# Linked without any library of the system; functions of the same code are one.
dist: ## One small program that runs networks anywhere: target/dist/sampan-deploy
	RUSTFLAGS="-C target-feature=+crt-static" cargo rustc --profile dist -p sampan-deploy --bin sampan-deploy --target $(HOST) -- \
		-C link-arg=-Wl,--icf=all -C link-arg=-Wl,-z,pack-relative-relocs
	mkdir -p target/dist
	cp target/$(HOST)/dist/sampan-deploy target/dist/
	ls -l target/dist/sampan-deploy

clean: ## Forget what was built
	cargo clean
	rm -rf $(VENV)
