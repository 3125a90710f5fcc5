# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from .. import _registry as _registry

def cholesky(x: Tensor, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The triangular `L` of `x = L Lᵀ` for symmetric positive definite matrices, or `U` of `x = Uᵀ U` with `upper=True`.
    Only the triangle of that name is read.
    """


def cholesky_inverse(x: Tensor, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is `x`."""


def cholesky_solve(x: Tensor, y: Tensor, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The `X` of `A X = x`, where `y` is the Cholesky factor of `A` (lower, or upper with `upper=True`)."""


def cond(x: Tensor, p: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """The condition numbers of matrices under the norm `p`: 2 (the default) and -2 from the singular values; `fro`, `nuc`, 1, -1,
    inf and -inf for invertible square matrices.
    """


def corrcoef(x: Tensor, rowvar: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The correlation coefficients of variables in the rows of `x` (in its columns without `rowvar`)."""


def cov(x: Tensor, rowvar: _bool = True, ddof: _bool = True, fweights: Tensor | None = None, aweights: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The covariance matrix of variables in the rows of `x` (in its columns without `rowvar`), one observation in each
    column. `ddof` divides by one less than the observations; `fweights` says how often each occurred, `aweights` how
    much it counts.
    """


def cross(x: Tensor, y: Tensor, axis: _int = 9, *args: Any, **kwargs: Any) -> Tensor:
    """The cross product of vectors of three elements along `axis`; by default along the first axis of that extent."""


def det(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The determinants of square matrices. The gradient needs an invertible matrix."""


def diagonal(x: Tensor, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """A view on a diagonal of two axes, which becomes the last axis; `offset` moves it to the right."""


def eig(x: Tensor, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The eigenvalues of square matrices and their unit eigenvectors as columns, where all are real; complex ones are an
    error.
    """


def eigh(x: Tensor, uplo: _str = 'L', *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns. One triangle is read. The
    gradient of the vectors needs distinct eigenvalues.
    """


def eigvals(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The eigenvalues of square matrices, where all are real; complex ones are an error."""


def eigvalsh(x: Tensor, uplo: _str = 'L', *args: Any, **kwargs: Any) -> Tensor:
    """The eigenvalues of symmetric matrices, ascending. One triangle is read."""


def householder_product(x: Tensor, tau: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The first `n` columns of the product of Householder reflections `I - tau[i] v vᵀ`, whose vectors stand below the
    diagonal of `x` (`m × n`), as LAPACK's `geqrf` leaves them.
    """


def inv(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverses of square matrices."""


def lstsq(x: Tensor, y: Tensor, rcond: _float | None = None, driver: _str | None = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor, Tensor]:
    """The shortest `X` that minimises `|x X - y|`, with the squared residuals, the rank of `x` and its singular values.
    `driver` is LAPACK's: `gelsy` (the default) gives no residuals, `gels` no rank, and only `gelsd` and `gelss` give singular
    values; what is not given is empty.
    """


def lu(x: Tensor, pivot: _bool = True, get_infos: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """The packed factors of `x = P L U` (unit lower `L` below the diagonal, `U` on and above it), the pivots (from 1, as
    LAPACK gives them) and, with `get_infos`, where the first zero pivot stands (0 if nowhere).
    """


def lu_solve(b: Tensor, lu: Tensor, pivots: Tensor, trans: _str = 'N', *args: Any, **kwargs: Any) -> Tensor:
    """The `X` of `A X = b` (`trans="N"`) or `Aᵀ X = b` (`"T"`), where `lu` and `pivots` are what `lu` gives for `A`."""


def lu_unpack(x: Tensor, y: Tensor, unpack_ludata: _bool = True, unpack_pivots: _bool = True, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """The `P`, `L` and `U` of `x = P L U` from what `lu` gives: the packed factors `x` and the pivots `y`. What is not asked
    for is empty.
    """


def matmul(x: Tensor, y: Tensor, transpose_x: _bool = False, transpose_y: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The matrix product, with vectors and batches as in NumPy; either operand may be taken transposed."""


def matrix_exp(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The exponential of square matrices: the sum of `xᵏ / k!`, by scaling and squaring."""


def matrix_norm(x: Tensor, p: Any = 'fro', axis: _int | Sequence[_int] | Tensor = [-2, -1], keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """A norm of the matrices in two axes (the last by default): `fro` (the root of the sum of squares), `nuc` (the sum of
    the singular values), 1 and -1 (the largest and smallest sum of a column's magnitudes), inf and -inf (of a row's), 2
    and -2 (the largest and smallest singular value).
    """


def matrix_power(x: Tensor, n: _int, *args: Any, **kwargs: Any) -> Tensor:
    """The `n`-th power of square matrices; a negative one is a power of the inverse."""


def matrix_rank(x: Tensor, tol: Any = None, hermitian: _bool = False, atol: Any = None, rtol: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """The ranks of matrices: how many singular values exceed `tol`, or the larger of `atol` and `rtol` times the largest one.
    `hermitian` says that the matrices are symmetric.
    """


def matrix_transpose(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The last two axes exchanged."""


def multi_dot(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """The product of a chain of matrices, multiplied in the order that takes the fewest multiplications. The first and the
    last may be vectors.
    """


def norm(x: Tensor, p: Any = None, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The norm over `axis`: of vectors over none, one, or more than two axes, of matrices over two. `p` is a number, `fro`
    (the default: the root of the sum of squares) or `nuc`.
    """


def ormqr(x: Tensor, tau: Tensor, y: Tensor, left: _bool = True, transpose: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """`Q y` or `y Q` (`left=False`), with `Qᵀ` if `transpose`, where `Q` is the full product of the reflections in `x` and `tau`."""


def pca_lowrank(x: Tensor, q: _int | None = None, center: _bool = True, niter: _int = 2, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """The leading `q` principal components of the rows of `x`: `svd_lowrank` of `x`, its columns centred first if `center`."""


def pinv(x: Tensor, rcond: Tensor | _float = 1e-15, hermitian: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The Moore–Penrose inverses of matrices. Singular values up to `rcond` times the largest count as zero; `hermitian`
    says that the matrices are symmetric, and reads their lower triangle.
    """


def qr(x: Tensor, mode: _str = 'reduced', *args: Any, **kwargs: Any) -> Any:
    """The orthonormal `Q` and the upper triangular `R` of `x = Q R`: thin (`"reduced"`), with a square `Q` (`"complete"`), or
    `R` alone (`"r"`). Only a thin `Q` has a gradient.
    """


def slogdet(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The signs of the determinants and the logarithms of their absolute values, stacked: `[2, …]`. A singular matrix has
    sign 0 and logarithm -inf.
    """


def solve(x: Tensor, y: Tensor, left: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The `X` of `x X = y` (or of `X x = y` with `left=False`), where `y` is a matrix or a vector."""


def svd(x: Tensor, full_matrices: _bool = False, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """The factors of `x = U diag(S) VH`: orthonormal columns, singular values in descending order, orthonormal rows. The
    gradients of `U` and `VH` need distinct singular values and, with `full_matrices`, square matrices.
    """


def svd_lowrank(x: Tensor, q: _int | None = None, niter: _int = 2, m: Tensor | None = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """The leading `q` singular triplets `(U, S, V)` of `x - M`, by random projection with `niter` steps of subspace iteration."""


def svdvals(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The singular values, in descending order."""


def triangular_solve(x: Tensor, y: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The `X` of `x X = y` for triangular `x`, of which only one triangle is read."""


def vecdot(x: Tensor, y: Tensor, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of the products along `axis`, with broadcasting; of complex numbers the first is conjugated."""


def vector_norm(x: Tensor, p: _float = 2.0, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The `p`-norm of the elements over `axis` (all axes by default): `(Σ |x|^p)^(1/p)`, the largest for p = inf, the smallest
    for -inf, how many are not zero for 0.
    """


__all__ = ['cholesky', 'cholesky_inverse', 'cholesky_solve', 'cond', 'corrcoef', 'cov', 'cross', 'det', 'diagonal', 'eig', 'eigh', 'eigvals', 'eigvalsh', 'householder_product', 'inv', 'lstsq', 'lu', 'lu_solve', 'lu_unpack', 'matmul', 'matrix_exp', 'matrix_norm', 'matrix_power', 'matrix_rank', 'matrix_transpose', 'multi_dot', 'norm', 'ormqr', 'pca_lowrank', 'pinv', 'qr', 'slogdet', 'solve', 'svd', 'svd_lowrank', 'svdvals', 'triangular_solve', 'vecdot', 'vector_norm']
