"""Nested structures: lists, tuples and dicts of each other, with anything else as their leaves."""

import copy
from collections.abc import Sequence


def is_sequence(seq):
    """Whether `seq` is a node of a structure and not a leaf.

    >>> from sampan.utils import is_sequence
    >>> is_sequence([1]), is_sequence({"a": 1}), is_sequence("text")
    (True, True, False)
    """
    return isinstance(seq, dict) or (isinstance(seq, Sequence) and not isinstance(seq, (str, bytes)))


def to_sequence(nest):
    """`nest` itself if it is a node, else a list of it alone."""
    return nest if is_sequence(nest) else [nest]


def _keys(nest):
    try:
        return sorted(nest)
    except TypeError:
        raise TypeError(f"the keys of a dict in a structure must have an order, but received {list(nest)}") from None


def _children(nest):
    return [nest[key] for key in _keys(nest)] if isinstance(nest, dict) else nest


def flatten(nest):
    """All leaves in order; those of a dict in the order of its sorted keys.

    >>> from sampan.utils import flatten
    >>> flatten({"b": [1, (2, 3)], "a": 0})
    [0, 1, 2, 3]
    """
    if not is_sequence(nest):
        return [nest]
    return [leaf for child in _children(nest) for leaf in flatten(child)]


def pack_sequence_as(structure, flat_sequence):
    """A structure like `structure` with other leaves: the opposite of `flatten`.

    >>> from sampan.utils import pack_sequence_as
    >>> pack_sequence_as({"b": [0, (0, 0)], "a": 0}, [0, 1, 2, 3])
    {'b': [1, (2, 3)], 'a': 0}
    """
    if not is_sequence(flat_sequence):
        raise TypeError(f"pack_sequence_as: flat_sequence must be a sequence, but received {flat_sequence!r}")
    leaves = list(flat_sequence.values() if isinstance(flat_sequence, dict) else flat_sequence)
    wanted = len(flatten(structure))
    if wanted != len(leaves):
        raise ValueError(
            f"pack_sequence_as: structure has {wanted} leaves, but flat_sequence has {len(leaves)}. "
            f"Received structure={structure}, flat_sequence={flat_sequence}"
        )
    return _pack(structure, iter(leaves))


def _pack(structure, leaves):
    if not is_sequence(structure):
        return next(leaves)
    children = [_pack(child, leaves) for child in _children(structure)]
    if isinstance(structure, dict):
        packed = copy.copy(structure)  # Which keeps the order of its keys, and a default factory.
        packed.update(zip(_keys(structure), children))
        return packed
    return type(structure)(*children) if hasattr(structure, "_fields") else type(structure)(children)


def map_structure(func, *structure):
    """The structure of func(leaf of the first structure, leaf of the second, …).

    >>> from sampan.utils import map_structure
    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": [2, 3]}, {"a": 10, "b": [20, 30]})
    {'a': 11, 'b': [22, 33]}
    """
    if not structure:
        raise TypeError("map_structure: at least one structure is needed after func")
    leaves = [flatten(one) for one in structure]
    if len({len(one) for one in leaves}) > 1:
        raise ValueError(
            f"map_structure: all structures must have as many leaves, but received {[len(one) for one in leaves]}"
        )
    return pack_sequence_as(structure[0], [func(*each) for each in zip(*leaves)])


def assert_same_structure(nest1, nest2, check_types=True, skip_if=None):
    """Raises an error where two structures differ in more than their leaves.

    `check_types` compares the types of nodes and the keys of dicts too; where `skip_if` holds, nothing is compared.

    >>> from sampan.utils import assert_same_structure
    >>> assert_same_structure([1, (2, 3)], [4, (5, 6)])
    """
    if skip_if is not None and (skip_if(nest1) or skip_if(nest2)):
        return
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError(f"one structure has a node where the other has a leaf: {nest1!r} and {nest2!r}")
    if not is_sequence(nest1):
        return
    if check_types:
        if type(nest1) is not type(nest2):
            raise TypeError(f"nodes must have one type, but are {type(nest1).__name__} and {type(nest2).__name__}")
        if isinstance(nest1, dict) and set(nest1) != set(nest2):
            raise ValueError(f"dicts must have the same keys, but have {list(nest1)} and {list(nest2)}")
    if len(nest1) != len(nest2):
        raise ValueError(f"nodes must have as many children, but have {len(nest1)} and {len(nest2)}: {nest1}, {nest2}")
    for child1, child2 in zip(_children(nest1), _children(nest2)):
        assert_same_structure(child1, child2, check_types, skip_if)


def convert_to_list(value, n, name, dtype=int):
    """A list of `n` numbers, from `n` of them or one for all.

    >>> from sampan.utils import convert_to_list
    >>> convert_to_list(3, 2, "stride"), convert_to_list((3, 4), 2, "stride")
    ([3, 3], [3, 4])
    """
    if isinstance(value, dtype):
        return [value] * n
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else None
    if numbers is None or len(numbers) != n or not all(isinstance(number, dtype) for number in numbers):
        raise ValueError(f"{name} must be one {dtype.__name__} or {n} of them, but received {value!r}")
    return numbers
