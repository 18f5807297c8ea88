"""Layers import downwards only: flows -> tasks -> kohort's mathematics -> numpy, scipy, numba."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATHEMATICS = sorted((ROOT / "kohort").rglob("*.py"))
TASKS = sorted((ROOT / "tasks").rglob("*.py"))
ALLOWED = {"kohort", "numba", "numpy", "scipy", *sys.stdlib_module_names}


def imports(tree: ast.AST, *, deferred: bool = False) -> Iterator[tuple[str, bool]]:
    """Every imported module, and whether `import` of the file leaves it alone.

    That is so inside a function and under `if TYPE_CHECKING:`.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, deferred) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module, deferred
            yield from ((f"{module}.{alias.name}", deferred) for alias in node.names)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        yield from imports(node, deferred=deferred or is_function or for_types)


def imports_of(path: Path) -> list[tuple[str, bool]]:
    return list(imports(ast.parse(path.read_text(encoding="utf-8"))))


def is_in(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_imports_are_found_wherever_they_are() -> None:
    source = (
        "import a.b\nfrom c import d\n"
        "if TYPE_CHECKING:\n    import e\n"
        "class F:\n    import g\n    def h(self):\n        from .i import j\n"
    )
    assert list(imports(ast.parse(source))) == [
        ("a.b", False),
        ("c", False),
        ("c.d", False),
        ("e", True),
        ("g", False),
        (".i", True),
        (".i.j", True),
    ]


def test_there_are_files_to_look_at() -> None:
    assert ROOT / "kohort" / "protect.py" in MATHEMATICS
    assert ROOT / "tasks" / "__init__.py" in TASKS


@pytest.mark.parametrize("path", MATHEMATICS, ids=named)
def test_mathematics_imports_only_numbers(path: Path) -> None:
    for module, deferred in imports_of(path):
        assert not is_in(module, "kohort.tasks", "kohort.flows"), f"{module} is a layer above"
        assert not module.startswith("."), "modules are imported by their full names"
        if is_in(module, "pandas"):
            assert deferred, "pandas only inside functions: arrays do not need it"
        else:
            assert module.split(".")[0] in ALLOWED


@pytest.mark.parametrize("path", [p for p in MATHEMATICS if p.parent.name != "kernels"], ids=named)
def test_kernels_are_imported_on_use(path: Path) -> None:
    for module, deferred in imports_of(path):
        assert deferred or not is_in(module, "kohort.kernels", "kohort.compiled")


@pytest.mark.parametrize("path", TASKS, ids=named)
def test_tasks_import_nothing_of_flows(path: Path) -> None:
    for module, _ in imports_of(path):
        assert not is_in(module, "kohort.flows", "flows", "tasks")


def test_import_of_kohort_is_light() -> None:
    heavy = ("numba", "pandas", "prefect", "pyarrow", "pydantic", "scipy")
    code = f"import sys, kohort; print([m for m in {heavy!r} if m in sys.modules], kohort.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"[] {ROOT / 'kohort' / '__init__.py'}"
