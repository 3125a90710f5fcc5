"""Lines of text as slots with values, the format in which parameter-server programs read data."""

from __future__ import annotations

import sys


class DataGenerator:
    """Turns lines of the standard input into samples; `generate_sample(line)` is the program's, and gives a function that yields
    samples, each a list of `(slot, values)`."""

    def __init__(self):
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """How many samples `generate_batch` gets at once."""
        self.batch_size_ = batch_size

    def generate_sample(self, line):
        """The samples of a line: to be written."""
        raise NotImplementedError("(Unimplemented) DataGenerator: write generate_sample(self, line) in your class.")

    def generate_batch(self, samples):
        """Changes samples together; these are left as they are."""

        def each():
            yield from samples

        return each

    def _lines(self, lines):
        waiting: list = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                waiting.append(sample)
                if len(waiting) == self.batch_size_:
                    yield from map(self._gen_str, self.generate_batch(waiting)())
                    waiting = []
        if waiting:
            yield from map(self._gen_str, self.generate_batch(waiting)())

    def run_from_stdin(self) -> None:
        """Writes the samples of what comes in to the standard output."""
        for text in self._lines(sys.stdin):
            sys.stdout.write(text)

    def run_from_memory(self) -> None:
        """Writes the samples that `generate_sample(None)` yields."""
        for text in self._lines([None]):
            sys.stdout.write(text)

    def _gen_str(self, sample) -> str:
        raise NotImplementedError(
            "(Unimplemented) DataGenerator: use MultiSlotDataGenerator or MultiSlotStringDataGenerator."
        )


class MultiSlotStringDataGenerator(DataGenerator):
    """Samples whose values are texts, written as they are: for each slot how many, and then the values."""

    def _gen_str(self, sample) -> str:
        if not isinstance(sample, (list, tuple)):
            raise ValueError(
                f"(InvalidArgument) generate_sample: a sample is a list of (slot, values), got {type(sample).__name__}."
            )
        for slot, values in sample:
            if not values:
                raise ValueError(
                    f"(InvalidArgument) generate_sample: slot {slot!r} has no values. Hint: put one in for nothing."
                )
        return " ".join(f"{len(values)} {' '.join(map(str, values))}" for _, values in sample) + "\n"


class MultiSlotDataGenerator(MultiSlotStringDataGenerator):
    """Samples whose values are numbers; a slot has whole ones or others, and every sample the same slots."""

    def __init__(self):
        super().__init__()
        self._slots: list[str] | None = None

    def _gen_str(self, sample) -> str:
        text = super()._gen_str(sample)
        slots = [slot for slot, _ in sample]
        if self._slots is None:
            self._slots = slots
        if slots != self._slots:
            raise ValueError(
                f"(InvalidArgument) generate_sample: the slots are {slots}, those of the first sample {self._slots}."
            )
        for slot, values in sample:
            for value in values:
                if not isinstance(value, (int, float)) or isinstance(value, bool):
                    raise ValueError(
                        f"(InvalidArgument) generate_sample: slot {slot!r} has {value!r}, which is no number."
                    )
        return text
