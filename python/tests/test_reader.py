"""Readers of the old kind: functions that give a generator."""

import threading
import time

import pytest

import sampan
from sampan import reader


def numbers(count):
    return lambda: iter(range(count))


def test_batches():
    assert list(sampan.batch(numbers(5), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(sampan.batch(numbers(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="positive"):
        sampan.batch(numbers(5), 0)


def test_what_is_made_of_readers():
    assert list(reader.map_readers(lambda a, b: a * b, numbers(4), numbers(4))()) == [0, 1, 4, 9]
    assert list(reader.chain(numbers(2), numbers(3))()) == [0, 1, 0, 1, 2]
    assert list(reader.firstn(numbers(100), 3)()) == [0, 1, 2]
    assert sorted(reader.shuffle(numbers(10), 4)()) == list(range(10))
    assert list(reader.compose(numbers(2), lambda: iter([(5, 6), (7, 8)]))()) == [(0, 5, 6), (1, 7, 8)]
    with pytest.raises(reader.ComposeNotAligned):
        list(reader.compose(numbers(2), numbers(3))())
    assert len(list(reader.compose(numbers(2), numbers(3), check_alignment=False)())) == 2
    assert list(reader.xmap_readers(lambda x: x + 1, numbers(5), 2, 3, order=True)()) == [1, 2, 3, 4, 5]


def test_a_cache_reads_once():
    reads = []

    def source():
        reads.append(1)
        yield from range(3)

    cached = reader.cache(source)
    assert list(cached()) == list(cached()) == [0, 1, 2] and len(reads) == 1


def test_reading_ahead_keeps_order_and_errors():
    assert list(reader.buffered(numbers(50), 4)()) == list(range(50))

    def broken():
        yield 1
        raise OSError("gone")

    ahead = reader.buffered(broken, 2)()
    assert next(ahead) == 1
    with pytest.raises(OSError, match="gone"):
        next(ahead)


def test_a_reader_that_is_left_early_ends_its_thread():
    before = threading.active_count()
    ahead = reader.buffered(numbers(10**9), 2)()
    assert next(ahead) == 0
    ahead.close()
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before
