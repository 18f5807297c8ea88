"""A wave whose every cell is found again wherever it gets to, and the search for it."""

import datetime
import re
import stat
import struct
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

N = 30
FEW = np.arange(N)
TEXTS = {"id": "SENTINELKEY", "name": "SENTINELNAME", "house": "SENTINELUNIT", "note": "SENTINELNOTE"}
NOTES = {"pandas": '{"columns": ["SENTINELPANDAS"]}', "comment": "SENTINELMETA"}
NUMBERS = {
    "age": 71930451,
    "income": 52817.4639,
    "rent": 83610.7529,
    "cost": 60429.1837,
    "weight": 9.4716283,
    "kept": 3817.562914,
}
PROTECTED = ("age", "income", "rent")
FIRST_DAY = datetime.date(1871, 3, 19)
TOO_LARGE = 2**64 - 5  # as a float it is 2**64, which Arrow refuses by quoting it


def cells(name):
    """The numbers of a column; of no three or more neighbours is the mean one of them."""
    return NUMBERS[name] + FEW**2 * (1 if name == "age" else 1e-6)


def planted(**changes):
    """A wave whose every cell is a sentinel; columns are replaced by the changes."""
    columns = {name: [f"{text}{i}" for i in FEW] for name, text in TEXTS.items()}
    columns |= {name: cells(name) for name in NUMBERS}
    columns["born"] = [FIRST_DAY + datetime.timedelta(days=int(i)) for i in FEW]
    table = pa.table({**columns, **changes})
    fields = [field.with_metadata({"label": "SENTINELMETA"}) for field in table.schema]
    return table.cast(pa.schema(fields, metadata=NOTES))


def with_cell(name, cell):
    """A column in which one cell is another."""
    values = cells(name).tolist()
    values[7] = cell
    return {name: pa.array(values, pa.float64())}


def spellings(number):
    """How a number may be written: its digits in full or cut, rounded to six, with an exponent."""
    value = float(number)
    cut = repr(number)[:7] if isinstance(number, float) else str(number)
    return {cut, f"{value:.6g}", f"{value:.5e}", f"{value:.6e}"[:8], f"{value:.3f}", f"{value:,.2f}"}


ALL = [number for name in NUMBERS for number in cells(name).tolist()] + [2**64]
WORDS = "SENTINEL[A-Z]+"
DATES = "|".join(str(FIRST_DAY + datetime.timedelta(days=int(i))) for i in FEW)
DIGITS = "|".join(sorted({re.escape(text) for number in ALL for text in spellings(number)}))
WRITTEN = re.compile(rf"{WORDS}|{DATES}|(?<![0-9A-Za-z.])(?:{DIGITS})".encode())
PACKED = re.compile(
    b"|".join(
        re.escape(pattern)
        for number in ALL[:-1]
        for pattern in {
            struct.pack("<d", number),
            struct.pack(">d", number),
            struct.pack("<q", number) if isinstance(number, int) else struct.pack("<d", number),
        }
    )
)


def sentinels_in(content):
    """Every sentinel in a text or in bytes, however it is written."""
    data = content.encode() if isinstance(content, str) else content
    return [*WRITTEN.findall(data), *PACKED.findall(data)]


def is_data(path):
    """Whether a file may hold values: what is released, and the store's objects."""
    return path.name == "protected.parquet" or path.parent.parent.name == "objects"


def search(folder, *but):
    """Look into every file that may not hold a value; how many there were."""
    count = 0
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file() or path in but or path.suffix in (".nbi", ".nbc"):
            continue
        assert sentinels_in(str(path)) == []
        if path.name == "protected.parquet":
            check_release(path)
        elif is_data(path):
            folders = {stat.S_IMODE(each.stat().st_mode) for each in path.parents[:3]}
            assert (stat.S_IMODE(path.stat().st_mode), folders) == (0o600, {0o700})
        else:
            assert sentinels_in(path.read_bytes()) == [], path.name
            count += 1
    return count


def check_release(path):
    """A released file has no key, name, unit or weight, no note, no original of what is protected."""
    forbidden = re.compile(b"SENTINEL(?!NOTE)[A-Z]+")
    assert forbidden.findall(path.read_bytes()) == []
    table = pq.read_table(path)
    assert table.schema.metadata is None
    assert not set(table.column_names) & {"id", "name", "house", "weight"}
    for name in set(PROTECTED) & set(table.column_names):
        released = set(table.column(name).to_pylist())
        assert not released & set(cells(name).tolist()), name
        if len(released) > 1:  # not the number of a case that replaces the column
            assert pq.read_metadata(path).row_group(0).column(0).statistics is not None
    assert forbidden.findall(str(table.to_pydict()).encode()) == []


def chain_of(error):
    """The text of an exception and of all that led to it, suppressed or not."""
    seen, left = [], [error]
    while left:
        each = left.pop()
        if each is not None and each not in seen:
            seen.append(each)
            left += [each.__cause__, each.__context__]
    told = ("".join(traceback.format_exception(each)) for each in seen)
    return "\n".join([*map(repr, seen), *map(str, seen), *told])


# Exceptions that quote a cell, as the libraries raise them.


def numpy_quotes(*_, **__):
    return np.array([f"{TEXTS['note']}7"]).astype(float)


def pandas_quotes(*_, **__):
    return pd.to_numeric(pd.Series([f"{TEXTS['id']}7"]))


def pyarrow_quotes(*_, **__):
    return pa.array([f"{TEXTS['name']}7"]).cast(pa.float64())


def key_quotes(*_, **__):
    return {}[cells("income")[7].item()]


def memory_quotes(*_, **__):
    raise MemoryError(f"no room for {cells('rent')[7]}")


def input_output_quotes(*_, **__):
    raise OSError(5, f"Arrow's words on {cells('rent')[7]}")


def content_quotes(*_, **__):
    raise OSError(f"Arrow's words on {cells('cost')[7]}")


QUOTING = {
    "numpy": numpy_quotes,
    "pandas": pandas_quotes,
    "pyarrow": pyarrow_quotes,
    "a key": key_quotes,
    "memory": memory_quotes,
    "content": content_quotes,
}


def write(table, path: Path) -> Path:
    """Write a wave with statistics of every column in its footer."""
    pq.write_table(table, path)
    return path
