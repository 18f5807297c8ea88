"""Thrift's compact protocol, as much of it as Parquet's footer and page headers need.

Parquet's own reader believes a header and allocates what it says. This one reads the same bytes with a
bound on how many values there are and how deep they nest, and keeps only the fields that are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Wanted = Mapping[int, Any]
"""Field number to what is kept of it: None the value itself, a mapping a struct, [mapping] a list."""

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
INTEGERS = (4, 5, 6)
DEEPEST = 16


class Damaged(Exception):
    """The bytes are not what the protocol allows, or more than a header may hold."""


class Compact:
    """A reader of one header in `data`, from `position` on."""

    def __init__(self, data: bytes, *, values: int) -> None:
        self._data = data
        self._left = values
        self.position = 0

    def struct(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        """The wanted fields of a struct by number; those that are not there are left out."""
        if depth > DEEPEST:
            raise Damaged
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return found
            kind, step = head & 15, head >> 4
            number = number + step if step else self._integer()
            self._count(1)
            if number in wanted:
                found[number] = self._wanted(kind, wanted[number], depth)
            else:
                self._skip(kind, depth)

    def _wanted(self, kind: int, what: Any, depth: int) -> Any:
        if isinstance(what, Mapping):
            self._expect(kind, STRUCT)
            return self.struct(what, depth + 1)
        if isinstance(what, list):
            self._expect(kind, LIST)
            of, size = self._list()
            self._expect(of, STRUCT)
            return [self.struct(what[0], depth + 1) for _ in range(size)]
        if kind in INTEGERS:
            return self._integer()
        self._expect(kind, BINARY)
        return self._bytes(self._varint())

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):
            return
        if kind == BYTE:
            self._byte()
        elif kind in INTEGERS:
            self._varint()
        elif kind == DOUBLE:
            self._bytes(8)
        elif kind == BINARY:
            self._bytes(self._varint())
        elif kind in (LIST, SET):
            of, size = self._list()
            for _ in range(size):
                self._skip_element(of, depth)
        elif kind == MAP:
            size = self._count(self._varint())
            kinds = self._byte() if size else 0
            for _ in range(size):
                self._skip_element(kinds >> 4, depth)
                self._skip_element(kinds & 15, depth)
        elif kind == STRUCT:
            self.struct({}, depth + 1)
        elif kind == UUID:
            self._bytes(16)
        else:
            raise Damaged

    def _skip_element(self, kind: int, depth: int) -> None:
        """In a list a truth value takes a byte; in a struct it is in the field's head."""
        if depth >= DEEPEST:
            raise Damaged
        self._skip(BYTE if kind in (TRUE, FALSE) else kind, depth + 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        size = head >> 4
        return head & 15, self._count(self._varint() if size == 15 else size)

    def _count(self, values: int) -> int:
        self._left -= values
        if self._left < 0:
            raise Damaged
        return values

    def _expect(self, kind: int, expected: int) -> None:
        if kind != expected:
            raise Damaged

    def _byte(self) -> int:
        if self.position >= len(self._data):
            raise Damaged
        self.position += 1
        return self._data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self._data):
            raise Damaged
        return self._data[start : self.position]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise Damaged

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
