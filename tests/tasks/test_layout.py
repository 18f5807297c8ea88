"""Honest files pass the check of their layout, and any damage at all is one sentence."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.tasks.wave import layout_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wave.parquet"


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_honest_files(path, version, pages, compression, dictionary):
    rows = 5000
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "x": rng.normal(size=rows),
            "small": pa.array(rng.integers(0, 9, rows), pa.int8()),
            "truth": rng.integers(0, 2, rows) == 1,
            "missing": pa.array([None, 1.0] * (rows // 2)),
            "text": [f"text {i % 300}" for i in range(rows)],
            "category": pa.array([f"c{i % 7}" for i in range(rows)]).dictionary_encode(),
            "list": [[1, 2, 3], [], None, [4], [5]] * (rows // 5),
            "struct": [{"a": i, "b": [{"c": str(i)}]} for i in range(rows)],
            "decimal": pa.array([None] * rows, pa.decimal128(30, 2)),
            "fixed": pa.array([b"abcd"] * rows, pa.binary(4)),
            "nothing": pa.nulls(rows),
        }
    )
    pq.write_table(
        table,
        path,
        version=version,
        data_page_version=pages,
        compression=compression,
        use_dictionary=dictionary,
        row_group_size=1700,
        data_page_size=2000,
        write_page_index=dictionary,
        write_page_checksum=dictionary,
    )
    layout = layout_of(path)
    assert layout.rows == rows
    assert list(layout.columns) == table.column_names
    for name in ("x", "small", "truth", "missing", "text", "list", "fixed"):
        column = pq.read_table(path, columns=[name]).column(0)
        assert layout.columns[name].bytes >= 0.5 * column.nbytes or layout.columns[name].may_expand_to


@pytest.mark.parametrize("encoding", ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"])
def test_honest_encodings(path, encoding):
    table = pa.table({"x": pa.array(range(10_000), pa.int64())})
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    assert layout_of(path).columns["x"].bytes == 80_000


# Any damage at all: one sentence, never a crash, never another exception

FUZZ = """
import resource, sys
from pathlib import Path
import numpy as np
from kohort.errors import WaveError
from kohort.tasks.roles import Roles
from kohort.tasks.wave import check_keys, inspect_wave, read_codes, read_values
path, content = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
rng, refused = np.random.default_rng(int(sys.argv[2])), 0
length = int.from_bytes(content[-8:-4], "little") + 8
for trial in range(400):
    damaged = bytearray(content)
    low = len(content) - length if trial % 2 else 0  # every second one in the footer
    for place in rng.integers(low, len(content), rng.integers(1, 6)):
        damaged[place] = rng.integers(0, 256)
    path = path.with_name(f"{trial}.parquet")
    path.write_bytes(damaged)
    try:
        inspect_wave(path, Roles(quasi_identifiers=("x", "n"), key="id", other="keep"))
        read_values(path, ("x", "n"))
        check_keys(path, "id")
        read_codes(path, ["c"])
    except WaveError:
        refused += 1
    path.unlink()
print(refused)
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_random_damage_is_one_sentence(path, seed):
    table = pa.table(
        {
            "x": np.random.default_rng(0).normal(size=300),
            "n": np.arange(300),
            "id": [f"p{i}" for i in range(300)],
            "c": ["red", "green", None] * 100,
        }
    )
    pq.write_table(table, path, row_group_size=100)
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, path, str(seed)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
