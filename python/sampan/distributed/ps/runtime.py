"""What workers and servers of a training do."""

from __future__ import annotations

import os
import tempfile

from ... import _core
from ..sharding import parameters_of
from .embedding import converted

# All dense parameters are one vector, cut into rows of this many values, which servers share.
_ROW = 4096
_DENSE = "dense"
_SEED = 2026


def _timeout() -> float:
    return float(os.environ.get("SAMPAN_TIMEOUT", "1800"))


def _rule(optimizer) -> tuple[tuple[str, list[float]], float]:
    """The rule of the servers that is this optimizer, and its penalty."""
    kind, told = type(optimizer).__name__, optimizer._settings
    penalty = getattr(optimizer.regularization, "_coeff", getattr(optimizer.regularization, "coeff", 0.0)) or 0.0
    if type(optimizer.regularization).__name__ not in ("NoneType", "L2Decay"):
        raise ValueError("(InvalidArgument) parameter server: a penalty is L2Decay or a number.")
    if kind == "SGD":
        return ("sgd", [0.0] * 4), penalty
    if kind == "Momentum":
        return ("momentum", [told["momentum"], float(told["use_nesterov"]), 0.0, 0.0]), penalty
    if kind == "Adagrad":
        return ("adagrad", [told["epsilon"], told["initial_accumulator_value"], 0.0, 0.0]), penalty
    if kind in ("Adam", "AdamW") and not told["amsgrad"]:
        decay = told["weight_decay"] if kind == "AdamW" else 0.0
        return ("adam", [told["beta1"], told["beta2"], told["epsilon"], float(decay)]), penalty
    raise ValueError(
        f"(InvalidArgument) parameter server: servers cannot step as {kind} does. Hint: SGD, Momentum, Adagrad, Adam or AdamW."
    )


class ParameterServer:
    """A process of a training with parameter servers: a worker with its connections, or a server."""

    def __init__(self, role, strategy):
        self.role = role
        self.take_strategy(strategy)
        self.layers, self.dense, self.optimizer, self.client = [], [], None, None
        self._version, self._steps = 0, 0
        self._known: dict = {}

    def take_strategy(self, strategy) -> None:
        """Whether workers go in step, out of step, or on their own for a while."""
        steps = strategy.a_sync_configs.get("k_steps", -1)
        self.mode = "sync" if not strategy.a_sync else "geo" if steps > 0 else "async"
        self.every = max(steps, 1)

    # ---- servers

    def serve(self, folder=None) -> None:
        """Serves tables until every worker has left."""
        role = self.role
        address = role._get_pserver_endpoints()[role._server_index()]
        place = role._server_index(), role._server_num()
        _core._ps_serve(address, role._worker_num(), place, folder or tempfile.gettempdir(), _timeout())

    # ---- workers

    def take_model(self, model):
        """Finds the embeddings of a network that lie on servers."""
        self.layers += [layer for layer in converted(model) if layer not in self.layers]
        return model

    def take_optimizer(self, optimizer):
        """The optimizer whose steps the servers make."""
        _rule(optimizer)
        if self.mode == "geo" and type(optimizer).__name__ != "SGD":
            raise ValueError("(InvalidArgument) parameter server: with k_steps (geo-SGD) the optimizer is SGD.")
        self.optimizer = optimizer
        self.dense = [p for p in parameters_of(optimizer) if not p.stop_gradient]
        return ServedOptimizer(optimizer, self)

    def connect(self, folder=None) -> None:
        """Connects to the servers, makes the tables, and begins with the parameters of the first worker, or with those that
        a folder holds."""
        role = self.role
        self.client = _core.PsClient(role._get_pserver_endpoints(), role._worker_index(), _timeout())
        rule, penalty = _rule(self.optimizer) if self.optimizer is not None else (("sgd", [0.0] * 4), 0.0)
        if self.dense:
            self.client.create(_DENSE, _ROW, rule, penalty, 0.0, _SEED, 1 << 40)
        for layer in self.layers:
            layer.__dict__["_server"] = self
            limit = max(1, layer.rows_in_memory)
            self.client.create(layer.table, layer.embedding_dim, rule, penalty, float(layer.init_range), _SEED, limit)
        self.barrier("tables")
        if role._is_first_worker():
            if folder is not None:
                self.client.load(folder)
            elif self.dense:
                self.client.push(_DENSE, _ROW, self._rows_of(), self._flat(self.dense), 0.0, "set")
        self.barrier("begin")
        self._pull_dense()

    def barrier(self, name: str) -> None:
        """Waits for all workers."""
        self.client.barrier(name, self.role._worker_num())

    def leave(self) -> None:
        """This worker is done; servers end when all are."""
        if self.client is not None:
            self.client.leave()
            self.client = None

    def _rows_of(self):
        from ... import arange

        count = sum(p.size for p in self.dense)
        return arange(-(-count // _ROW), dtype="int64")

    def _flat(self, tensors: list):
        """Tensors one after the other, as rows."""
        from ... import concat, zeros

        flat = concat([t.detach().astype("float32").reshape([-1]) for t in tensors])
        rest = -flat.size % _ROW
        return (concat([flat, zeros([rest])]) if rest else flat).reshape([-1, _ROW])

    def _pull_dense(self, version: int = 0) -> None:
        if not self.dense:
            return
        flat = self.client.pull(_DENSE, _ROW, self._rows_of(), version).reshape([-1])
        at = 0
        for p in self.dense:
            p.set_value(flat[at : at + p.size].reshape(p.shape).astype(p.dtype))
            at += p.size
        if self.mode == "geo":
            self._base = flat

    def rows(self, layer, ids):
        """Rows of a table: in geo-SGD this worker's own, as it has changed them."""
        if self.mode != "geo":
            return self.client.pull(layer.table, layer.embedding_dim, ids, self._version if self.mode == "sync" else 0)
        from ... import stack

        own = self._known.setdefault(layer.table, {})
        numbers = ids.tolist()
        missing = [i for i in numbers if i not in own]
        if missing:
            from ... import to_tensor

            found = self.client.pull(layer.table, layer.embedding_dim, to_tensor(missing, dtype="int64"), 0)
            for i, row in zip(missing, found):
                own[i] = [row.clone(), row.clone()]
        return stack([own[i][0] for i in numbers]).detach()

    def step(self) -> None:
        """One step with the gradients of this worker."""
        from ... import zeros_like

        lr = self.optimizer.get_lr()
        if self.mode == "geo":
            self._step_alone(lr)
            return
        how = "together" if self.mode == "sync" else "at_once"
        clip = self.optimizer._grad_clip
        if clip is not None:
            pairs = clip([(p, p.grad) for p in self.dense if p.grad is not None])
            for p, grad in pairs:
                p.grad = grad
        if self.dense:
            grads = [zeros_like(p.detach()) if p.grad is None else p.grad for p in self.dense]
            self.client.push(_DENSE, _ROW, self._rows_of(), self._flat(grads), lr, how)
        for layer in self.layers:
            ids, grads = _joined(layer)
            if self.mode == "sync" or ids is not None:
                from ... import zeros

                empty = zeros([0], dtype="int64"), zeros([0, layer.embedding_dim])
                self.client.push(
                    layer.table, layer.embedding_dim, *((ids, grads) if ids is not None else empty), lr, how
                )
        if self.mode == "sync":
            self._version += 1
        self._pull_dense(self._version if self.mode == "sync" else 0)

    def _step_alone(self, lr: float) -> None:
        """A step of this worker's own; now and then what changed is added to what the servers have."""
        self.optimizer.step()
        for layer in self.layers:
            own = self._known.setdefault(layer.table, {})
            for ids, rows in layer._used:
                if rows.grad is not None:
                    for i, grad in zip(ids.tolist(), rows.grad):
                        own[i][0] = own[i][0] - lr * grad
            layer._used.clear()
        self._steps += 1
        if self._steps % self.every == 0:
            self.exchange()

    def exchange(self) -> None:
        """Adds what this worker changed since the last time, divided by the number of workers, and takes what all have."""
        from ... import stack, to_tensor

        share = 1.0 / self.role._worker_num()
        if self.dense:
            moved = (self._flat(self.dense).reshape([-1])[: self._base.size] - self._base) * share
            self.client.push(_DENSE, _ROW, self._rows_of(), moved.reshape([-1, _ROW]), 0.0, "added")
        for layer in self.layers:
            own = self._known.pop(layer.table, {})
            changed = {i: now - before for i, (now, before) in own.items()}
            if changed:
                ids = to_tensor(list(changed), dtype="int64")
                moved = stack(list(changed.values())) * share
                self.client.push(layer.table, layer.embedding_dim, ids, moved, 0.0, "added")
        self._pull_dense()

    def save(self, folder: str) -> None:
        """Writes all tables into a folder, each server its rows. The first worker asks for it."""
        self.client.save(os.path.abspath(folder))


def _joined(layer):
    """The ids and gradients of all rows that were used since the last step, each id once."""
    from ... import concat, unique, zeros

    used = [(ids, rows.grad) for ids, rows in layer._used if rows.grad is not None]
    layer._used.clear()
    if not used:
        return None, None
    if len(used) == 1:
        return used[0]
    ids, at = unique(concat([ids for ids, _ in used]), return_inverse=True)
    total = zeros([ids.shape[0], layer.embedding_dim])
    return ids, total.index_add(at, 0, concat([grad for _, grad in used]))


class ServedOptimizer:
    """An optimizer whose steps the servers make. Everything else is the other optimizer's."""

    def __init__(self, optimizer, server: ParameterServer):
        self.__dict__.update(_inner_opt=optimizer, _server=server)

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def __setattr__(self, name, value):
        setattr(self._inner_opt, name, value)

    def step(self) -> None:
        """Gives the gradients to the servers and takes the parameters they have."""
        if self._server.client is None:
            raise RuntimeError("(PreconditionNotMet) step: there are no servers yet. Hint: fleet.init_worker().")
        self._server.step()

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """`step`, as Paddle 1 called it."""
        self.step()
        return [], []
