"""An embedding whose rows lie on parameter servers."""

from __future__ import annotations

from ... import is_grad_enabled, nn


class SparseEmbedding(nn.Layer):
    """Rows by id, from a table on the parameter servers. Any id that is not negative has a row, which comes into being when
    it is first asked for, with values between `-init_range` and `init_range`. A server keeps `rows_in_memory` rows in memory
    and the others on disk."""

    def __init__(self, embedding_dim, padding_idx=None, init_range=0.05, rows_in_memory=1_000_000, name=None):
        super().__init__()
        if embedding_dim < 1:
            raise ValueError(f"(InvalidArgument) SparseEmbedding: embedding_dim is at least 1, got {embedding_dim}.")
        self.embedding_dim, self.padding_idx, self.init_range = embedding_dim, padding_idx, init_range
        self.rows_in_memory, self.table = rows_in_memory, name
        self.__dict__["_server"] = None
        # Rows that were used since the last step, with the ids that they belong to.
        self.__dict__["_used"] = []

    def forward(self, x):
        from ... import unique

        if self._server is None:
            raise RuntimeError(
                "(PreconditionNotMet) SparseEmbedding: there are no servers yet. Hint: fleet.distributed_model(net) and "
                "fleet.init_worker() come before the first forward."
            )
        ids, at = unique(x.reshape([-1]), return_inverse=True)
        rows = self._server.rows(self, ids)
        if self.training and is_grad_enabled():
            rows.stop_gradient = False
            self._used.append((ids, rows))
        found = nn.functional.embedding(at.reshape(x.shape), rows)
        if self.padding_idx is not None:
            found = found * (x != self.padding_idx).astype(found.dtype).unsqueeze(-1)
        return found

    def extra_repr(self) -> str:
        return f"{self.embedding_dim}, table={self.table}"


def converted(model):
    """The embeddings of a network that lie on servers; `nn.Embedding(sparse=True)` become such ones, in place."""
    found = []
    for path, layer in list(model.named_sublayers(include_self=True)):
        for name, inner in list(layer._sub_layers.items()):
            if isinstance(inner, nn.Embedding) and inner._settings.get("sparse"):
                told = inner._settings
                made = SparseEmbedding(told["embedding_dim"], told["padding_idx"], name=f"{path}.{name}".strip("."))
                setattr(layer, name, made)
    for path, layer in model.named_sublayers(include_self=True):
        if isinstance(layer, SparseEmbedding):
            layer.table = layer.table or path or "embedding"
            found.append(layer)
    names = [layer.table for layer in found]
    if len(set(names)) != len(names):
        raise ValueError(
            f"(InvalidArgument) SparseEmbedding: several tables have one name, {names}. Hint: name=… tells them apart."
        )
    return found
