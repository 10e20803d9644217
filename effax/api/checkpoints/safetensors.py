"""The container of arrays: safetensors, with checksums of blocks of the elements.

A file is the length of the header as 8 bytes, the header as JSON, and the elements of all arrays,
little-endian and row-major. The header maps the name of each array to its dtype, its shape and its
first and last byte; ``__metadata__`` maps strings to strings. Readers of safetensors read these
files; the checksums, one for each ``BLOCK`` bytes of elements, are in the metadata.

Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Final, NamedTuple, final
from zlib import crc32

import ml_dtypes
import numpy as np

from effax.api.checkpoints.errors import DamagedCheckpoint
from effax.ir.types import Shape

BLOCK: Final = 1 << 20
"""The number of bytes of elements for which there is one checksum."""

_NAMES: Final[dict[np.dtype[np.generic], str]] = {
    **{
        np.dtype(f"{kind}{size}"): f"{name}{8 * size}"
        for kind, name in (("u", "U"), ("i", "I"), ("f", "F"))
        for size in (1, 2, 4, 8)
        if kind + str(size) != "f1"
    },
    np.dtype(bool): "BOOL",
    np.dtype(np.complex64): "C64",
    np.dtype(ml_dtypes.bfloat16): "BF16",
    np.dtype(ml_dtypes.float8_e5m2): "F8_E5M2",
    np.dtype(ml_dtypes.float8_e4m3fn): "F8_E4M3",
}
_DTYPES: Final = {name: dtype for dtype, name in _NAMES.items()}
_CHECKSUMS: Final = "effax.checksums"


class Entry(NamedTuple):
    """The dtype, the shape, and the first and last byte of an array in a file."""

    dtype: np.dtype[np.generic]
    shape: Shape
    begin: int
    end: int


def write_arrays(file: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> int:
    """Write arrays to a new file, synchronized with the disk.

    An array whose dtype the format lacks is written as the bytes of its elements, along a new axis.

    Returns:
        The checksum of the header.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    stored = {name: _of_format(x) for name, x in arrays.items()}
    # Elements of the largest dtype first, so that all are aligned.
    order = sorted(stored, key=lambda name: (-stored[name].dtype.itemsize, name))
    ends = np.cumsum([0, *[stored[name].nbytes for name in order]]).tolist()
    described: dict[str, object] = {
        name: {"dtype": _NAMES[x.dtype], "shape": x.shape, "data_offsets": span}
        for name, span in zip(order, pairwise(ends), strict=True)
        for x in (stored[name],)
    }
    sums = _checksums(_bytes(stored[name]).data for name in order)
    described["__metadata__"] = {**metadata, _CHECKSUMS: " ".join(sums)}
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with file.open("xb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            out.write(_bytes(stored[name]).data)
        out.flush()
        os.fsync(out.fileno())
    return crc32(text)


def _of_format(x: np.ndarray) -> np.ndarray:
    """Return an array, little-endian, contiguous and of a dtype of the format."""
    if x.dtype.byteorder == ">" or (x.dtype.byteorder == "=" and sys.byteorder == "big"):
        x = x.astype(x.dtype.newbyteorder("<"))
    if x.dtype in _NAMES:
        return np.asarray(x, order="C")
    return _bytes(x).reshape(*x.shape, x.dtype.itemsize)


def _bytes(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _checksums(pieces: Iterable[memoryview]) -> list[str]:
    """Return the checksum of each block of the joined pieces."""
    sums: list[str] = []
    sum_, room = 0, BLOCK
    for piece in pieces:
        at = 0
        while at < len(piece):
            taken = piece[at : at + room]
            sum_ = crc32(taken, sum_)
            at, room = at + len(taken), room - len(taken)
            if not room:
                sums.append(f"{sum_:08x}")
                sum_, room = 0, BLOCK
    return sums if room == BLOCK else [*sums, f"{sum_:08x}"]


@final
class Container:
    """A file of arrays, mapped into memory; each block is verified when it is first read.

    Attributes:
        file: its path.
        entries: the arrays by name.
        metadata: the strings of the header.
        checksum: the checksum of the header.
    """

    def __init__(self, file: Path) -> None:
        """Read the header. Raises DamagedCheckpoint."""
        self.file: Final = file
        try:
            with file.open("rb") as opened:
                self._map: Final = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError) as error:
            raise self._damaged("a file of arrays", str(error)) from None
        self._first: Final = 8 + int.from_bytes(self._map[:8], "little")
        text = self._map[8 : self._first]
        self.checksum: Final = crc32(text)
        try:
            found = json.loads(text)
            self.metadata: Final[dict[str, str]] = found.pop("__metadata__", {})
            self.entries: Final = {name: self._entry(x) for name, x in found.items()}
            self._sums: Final = [int(x, 16) for x in self.metadata[_CHECKSUMS].split()]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged("a header of safetensors", f"{error}") from None
        self._size: Final = len(self._map) - self._first
        wanted = max([0, *[entry.end for entry in self.entries.values()]])
        if self._size != wanted or len(self._sums) != -(-wanted // BLOCK):
            raise self._damaged(f"{wanted} bytes of elements", f"{self._size}")
        self._verified: Final = [False] * len(self._sums)

    def _entry(self, found: Mapping[str, object]) -> Entry:
        dtype = _DTYPES[str(found["dtype"])]
        shape, span = found["shape"], found["data_offsets"]
        if not isinstance(shape, list) or not isinstance(span, list):
            raise TypeError("a shape and offsets are lists")
        begin, end = span
        if not 0 <= begin <= end or prod(shape) * dtype.itemsize != end - begin:
            raise ValueError(f"{shape} elements of {dtype} are not bytes {begin} to {end}")
        return Entry(dtype, tuple(shape), begin, end)

    def read(self, name: str, index: tuple[slice, ...], out: np.ndarray) -> None:
        """Copy a part of an array to ``out``, after its blocks are verified.

        Args:
            name: the name of the array.
            index: the part, as slices with bounds.
            out: array of the shape and dtype of the part; of a dtype that the format lacks, the
                elements are read from their bytes.

        Raises:
            DamagedCheckpoint: a block has another checksum.
        """
        entry = self.entries[name]
        if not out.size:
            return
        rows = np.ravel_multi_index([s.start for s in index], entry.shape[: len(index)])
        last = np.ravel_multi_index([s.stop - 1 for s in index], entry.shape[: len(index)])
        size = (entry.end - entry.begin) // prod(entry.shape[: len(index)])
        self._verify(entry.begin + int(rows) * size, entry.begin + int(last) * size + size)
        view = np.ndarray(entry.shape, entry.dtype, self._map, self._first + entry.begin)
        part = view[index]
        if entry.dtype != out.dtype:
            part = np.ascontiguousarray(part).view(out.dtype)[..., 0]
        out[...] = part

    def _verify(self, begin: int, end: int) -> None:
        """Verify the blocks of bytes of elements. Raises DamagedCheckpoint."""
        for i in range(begin // BLOCK, -(-end // BLOCK)):
            if not self._verified[i]:
                at = self._first + i * BLOCK
                with memoryview(self._map) as view:
                    found = crc32(view[at : min(at + BLOCK, self._first + self._size)])
                if found != self._sums[i]:
                    raise self._damaged(
                        f"the checksum {self._sums[i]:08x} of bytes {at} to {at + BLOCK}",
                        f"{found:08x}",
                    )
                self._verified[i] = True

    def _damaged(self, expected: str, found: str) -> DamagedCheckpoint:
        return DamagedCheckpoint.of(self.file, expected, found)
