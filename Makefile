# The commands of the project. `make test` is the one that must pass; it installs what the tests need.

VENV := .venv
PY := $(VENV)/bin/python

.PHONY: help train test lint deny rust-tests doc-tests golden golden-check bench clean

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

train: ## The main job: LeNet on the bundled MNIST
	cargo run --release -p sampan -- train

test: lint deny rust-tests doc-tests ## Everything that CI checks

lint: ## Format and clippy, without warnings
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

deny: ## Licences and sources of the dependencies
	command -v cargo-deny >/dev/null || cargo install --locked --quiet cargo-deny
	cargo deny --log-level error check licenses bans sources

rust-tests: ## Unit and integration tests
	cargo test --tests --examples --all-features

doc-tests: ## The examples in the documentation
	cargo test --doc --all-features

golden: ## Record PaddlePaddle's answers to every op's and layer's samples anew
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet paddlepaddle numpy scipy safetensors setuptools
	$(PY) scripts/golden.py
	$(PY) scripts/layers_golden.py
	$(PY) scripts/init_golden.py

golden-check: ## Compare the recorded answers with a live PaddlePaddle
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet paddlepaddle numpy scipy safetensors setuptools
	$(PY) scripts/golden.py --check
	$(PY) scripts/layers_golden.py --check

bench: ## Microbenchmarks of the core
	cargo bench -p sampan-bench

clean: ## Forget what was built
	cargo clean
	rm -rf $(VENV)
