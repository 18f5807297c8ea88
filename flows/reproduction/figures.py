"""The figures of statistical dependence, drawn anew with matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kohort.flows.reproduction.claims import curves, surface
from kohort.flows.reproduction.statistical_dependence import (
    BLOCKS,
    DISTORTION_OF_BLOCKS,
    GAUSSIAN,
    K_OF_BLOCKS,
    LAMBDAS,
    LINKAGE_OF_BLOCKS,
    SIZES,
    TITLES,
)
from kohort.methods import Floats
from kohort.tasks.reference import Place

ADVICE = "the figures are not drawn: they need matplotlib; install kohort[plots]"
STYLE = {
    "font.size": 8,
    "svg.fonttype": "none",  # text stays text: small, and the same everywhere
    "svg.hashsalt": "kohort",  # the same bytes in every run
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(figures: Mapping[Place, float], folder: Path) -> list[str]:
    """Draw the paper's figures as SVG into a folder, and return the files' names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawings = {
        "statistical-dependence-k.svg": (_against_k, 2, 4),
        "statistical-dependence-trade-off.svg": (_trade_off, 2, 2),
        "statistical-dependence-increments.svg": (_increments, 2, 2),
        "statistical-dependence-diversity.svg": (_diversity, 1, 2),
        "statistical-dependence-blocks.svg": (_blocks, 1, 2),
    }
    with mpl.rc_context(STYLE):
        for name, (drawing, rows, columns) in drawings.items():
            canvas = Figure(figsize=(2.5 * columns + 1, 2.3 * rows), layout="constrained")
            drawing(canvas.subplots(rows, columns, squeeze=False), figures)
            canvas.savefig(folder / name, metadata={"Date": None})
    return list(drawings)


def _against_k(axes: Any, figures: Mapping[Place, float]) -> None:
    """Both distortions against k for the extreme lambdas."""
    for j, source in enumerate(TITLES):
        for i, (at, weight) in enumerate(((0, 0), (-1, 1))):
            panel = axes[i, j]
            for measure, marker in (("D_X", "o"), ("D_Y", "s")):
                values = surface(figures, measure, source)[:, at]
                panel.plot(SIZES[source], values, marker=marker, markersize=3, label=measure)
            panel.set(xscale="log", xlabel="k", ylim=(0, 1), title=f"{TITLES[source]}, λ = {weight}")
            panel.set_xticks(SIZES[source], labels=map(str, SIZES[source]), minor=False)
            panel.minorticks_off()
    axes[0, 0].legend(frameon=False)


def _trade_off(axes: Any, figures: Mapping[Place, float]) -> None:
    """D_Y against D_X, a curve a k."""
    for panel, source in zip(axes.flat, TITLES, strict=True):
        x, y = surface(figures, "D_X", source), surface(figures, "D_Y", source)
        _curves(panel, SIZES[source], x, y)
        panel.set(xlabel="D_X", ylabel="D_Y", title=TITLES[source])


def _increments(axes: Any, figures: Mapping[Place, float]) -> None:
    """The same relative to lambda = 0; on the dotted line, what is gained is what is lost."""
    for panel, source in zip(axes.flat, TITLES, strict=True):
        x, y = surface(figures, "D_X", source), surface(figures, "D_Y", source)
        _curves(panel, SIZES[source], x / x[:, :1] - 1, y / y[:, :1] - 1)
        panel.plot([0, 1], [0, -1], color="0.6", linewidth=0.8, linestyle=":")
        panel.set(xlim=(-0.1, 2), xlabel="increment of D_X", ylabel="increment of D_Y")
        panel.set_title(TITLES[source])


def _curves(panel: Any, sizes: Sequence[int], x: Floats, y: Floats) -> None:
    for k, along, up in zip(sizes, x, y, strict=True):
        panel.plot(along, up, marker="o", markersize=2, linewidth=1, label=f"k = {k}")
    panel.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _diversity(axes: Any, figures: Mapping[Place, float]) -> None:
    """The diversity of confidential values against lambda, a curve a k."""
    for panel, source in zip(axes.flat, (each for each in TITLES if each not in GAUSSIAN), strict=True):
        for k, values in zip(SIZES[source], surface(figures, "ℓ_avg", source), strict=True):
            panel.plot(LAMBDAS, values, marker="o", markersize=2, linewidth=1, label=f"k = {k}")
        panel.set(xlabel="λ", ylabel="ℓ_avg", ylim=(0, None), title=TITLES[source])
        panel.legend(frameon=False)


def _blocks(axes: Any, figures: Mapping[Place, float]) -> None:
    """Distortion and linkage against lambda, a curve a size of blocks."""
    tables = (("D_X", DISTORTION_OF_BLOCKS), ("DLD", LINKAGE_OF_BLOCKS))
    for panel, (measure, table) in zip(axes.flat, tables, strict=True):
        for b, values in zip(BLOCKS, curves(figures, table), strict=True):
            panel.plot(LAMBDAS, values, marker="o", markersize=2, linewidth=1, label=f"b = {b}")
        panel.set(xlabel="λ", ylabel=measure, ylim=(0, None), title=f"Census, k = {K_OF_BLOCKS}")
        panel.legend(frameon=False)
    axes[0, 1].axhline(1 / K_OF_BLOCKS, color="0.6", linewidth=0.8, linestyle=":")
