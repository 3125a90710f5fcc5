"""The normal distribution of vectors, and the distribution of their correlations."""

import math

import sampan

from .distribution import Distribution, broadcast_shape, expand, to_tensor
from .gamma import Beta


def transposed(x):
    """`x` with its last two axes exchanged."""
    axes = list(range(len(x.shape)))
    return x.transpose(axes[:-2] + [axes[-1], axes[-2]])


def inverse_of_lower(x):
    """The inverse of lower triangular matrices."""
    one = sampan.eye(x.shape[-1], dtype=x.dtype)
    return sampan.linalg.triangular_solve(x, expand(one, x.shape), upper=False)


def diagonal(x):
    """The diagonals of matrices."""
    return sampan.diagonal(x, axis1=-2, axis2=-1)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors of mean `loc`, given one of three: the covariance matrix, its inverse, or its
    lower triangular root `scale_tril`.

    >>> import sampan
    >>> from sampan.distribution import MultivariateNormal
    >>> d = MultivariateNormal(sampan.zeros([2]), covariance_matrix=sampan.to_tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(d.log_prob(sampan.to_tensor([1.0, -1.0])).item(), 4)
    -3.3872
    """

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None):
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [name for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError(
                "MultivariateNormal: exactly one of covariance_matrix, precision_matrix and scale_tril must be given, "
                f"but received {' and '.join(given) or 'none'}"
            )
        name = given[0]
        shape = self._parameters(loc=loc)
        loc = self.loc if shape else self.loc.reshape([1])
        matrix = to_tensor("MultivariateNormal", name, matrices[name]).astype(self.dtype)
        n = loc.shape[-1]
        if len(matrix.shape) < 2 or list(matrix.shape[-2:]) != [n, n]:
            raise ValueError(
                f"MultivariateNormal: {name} must have the shape [..., {n}, {n}], as loc has {list(loc.shape)}, "
                f"but received {list(matrix.shape)}"
            )
        if name == "scale_tril":
            self._root = matrix
        else:
            self._root = (sampan.linalg.cholesky if name == "covariance_matrix" else root_of_inverse)(matrix)
        batch = broadcast_shape(matrix.shape[:-2], loc.shape[:-1])
        self.loc = expand(loc, batch + [n])
        for other in matrices:
            setattr(self, other, expand(matrix, batch + [n, n]) if other == name else None)
        super().__init__(batch, [n])

    @property
    def mean(self):
        return self.loc

    @property
    def variance(self):
        return expand((self._root**2).sum(-1), self.loc.shape)

    def rsample(self, shape=()):
        noise = sampan.randn(list(self._extend_shape(shape)), dtype=self.dtype)
        return self.loc + sampan.matmul(self._root, noise.unsqueeze(-1)).squeeze(-1)

    def _log_volume(self):
        """Half the logarithm of the determinant of the covariance matrix."""
        return sampan.log(diagonal(self._root)).sum(-1)

    def _distance(self, difference):
        """The squared length of `difference`, measured in standard deviations."""
        whitened = sampan.matmul(inverse_of_lower(self._root), difference.unsqueeze(-1)).squeeze(-1)
        return (whitened**2).sum(-1)

    def log_prob(self, value):
        distance = self._distance(self._value(value) - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - self._log_volume()

    def entropy(self):
        entropy = self._log_volume() + 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi))
        return expand(entropy, self.batch_shape)


def root_of_inverse(precision):
    """The lower triangular L with L Lᵀ = precision⁻¹.

    The Cholesky root of the matrix with its rows and columns in reverse order, reversed again, is an upper triangular U
    with U Uᵀ = precision; so L is the inverse of Uᵀ.
    """
    upper = sampan.flip(sampan.linalg.cholesky(sampan.flip(precision, [-2, -1])), [-2, -1])
    return inverse_of_lower(transposed(upper))


class LKJCholesky(Distribution):
    """The distribution of Lewandowski, Kurowicka and Joe, of the lower triangular roots L of correlation matrices of
    `dim` rows: L Lᵀ has a density proportional to its determinant to the power `concentration` - 1, so 1 is uniform.

    `sample_method` "onion" draws L row by row, "cvine" from partial correlations; the distribution is the same.

    >>> import sampan
    >>> from sampan.distribution import LKJCholesky
    >>> d = LKJCholesky(dim=2, concentration=1.0)
    >>> round(d.prob(sampan.eye(2)).item(), 4)  # the correlation is uniform between -1 and 1
    0.5
    """

    def __init__(self, dim=2, concentration=1.0, sample_method="onion"):
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TypeError(f"LKJCholesky: dim must be an int, but received {type(dim).__name__} {dim!r}")
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be at least 2, but received {dim}")
        if sample_method not in ("onion", "cvine"):
            raise ValueError(f"LKJCholesky: sample_method must be 'onion' or 'cvine', but received {sample_method!r}")
        shape = self._parameters(concentration=concentration)
        if not bool((self.concentration > 0).all()):
            raise ValueError(f"LKJCholesky: concentration must be positive, but received {self.concentration.tolist()}")
        self.dim, self.sample_method = dim, sample_method
        # Row i, from 1 on, has i elements left of its diagonal, whose squares add up to a beta number. The partial
        # correlations of column i - 1 are symmetric beta numbers, stretched to [-1, 1].
        row = sampan.arange(1, dim, dtype=self.dtype)
        rest = self.concentration.unsqueeze(-1) + 0.5 * (dim - 1 - row)
        self._beta = Beta(0.5 * row, rest) if sample_method == "onion" else Beta(rest, rest)
        super().__init__(shape, [dim, dim])

    def sample(self, sample_shape=()):
        """Lower triangular matrices, whose rows have length 1, of shape `sample_shape + batch_shape + event_shape`."""
        shape = list(self._extend_shape(sample_shape))
        with sampan.no_grad():
            return self._onion(shape, sample_shape) if self.sample_method == "onion" else self._cvine(shape)

    def _onion(self, shape, sample_shape):
        """Row i is a random direction times a random length, and what is missing to length 1 on the diagonal."""
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        directions = sampan.tril(sampan.randn(shape, dtype=self.dtype), diagonal=-1)[..., 1:, :]
        directions = directions / sampan.sqrt((directions**2).sum(-1, keepdim=True))
        first = sampan.zeros(shape[:-2] + [1, self.dim], dtype=self.dtype)
        lower = sampan.concat([first, sampan.sqrt(squares) * directions], axis=-2)
        one = sampan.ones(shape[:-2] + [1], dtype=self.dtype)
        return lower + sampan.diag_embed(sampan.concat([one, sampan.sqrt(1.0 - squares).squeeze(-1)], axis=-1))

    def _cvine(self, shape):
        """L[i, j] is a partial correlation times what the elements to its left leave of length 1."""
        samples = len(shape) - 2 - len(self.batch_shape)
        draws = self._beta.sample(shape[:samples] + [self.dim])
        # Axes of `draws`: samples, rows, batch, columns. The rows move behind the batch.
        order = [*range(samples), *range(samples + 1, len(shape) - 1), samples, len(shape) - 1]
        partial = sampan.tril(2.0 * draws.transpose(order) - 1.0, diagonal=-1)
        left = sampan.cumprod(sampan.sqrt(1.0 - partial**2), dim=-1)
        left = sampan.concat([sampan.ones(shape[:-1] + [1], dtype=self.dtype), left], axis=-1)
        partial = sampan.concat([partial, sampan.zeros(shape[:-1] + [1], dtype=self.dtype)], axis=-1)
        return (partial + sampan.eye(self.dim, dtype=self.dtype)) * left

    def log_prob(self, value):
        value = self._value(value)
        row = sampan.arange(1, self.dim, dtype=self.dtype)
        power = 2.0 * (self.concentration.unsqueeze(-1) - 1.0) + (self.dim - 1 - row)
        density = (power * sampan.log(diagonal(value)[..., 1:])).sum(-1)
        n, half = self.dim - 1, self.concentration + 0.5 * (self.dim - 1)
        # The integral over each row is that of the density of `_beta` in the onion method.
        constant = sampan.multigammaln(half - 0.5, n) - n * sampan.lgamma(half) + 0.5 * n * math.log(math.pi)
        return density - constant
