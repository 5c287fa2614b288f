"""Two plots: passes and seconds against closeness, and tokens accepted a pass against the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from PIL import Image  # noqa: E402

from .catalogue import ABLATIONS, OWN_LAW  # noqa: E402
from .results import Results  # noqa: E402
from .specs import canonical  # noqa: E402
from .subject import Condition  # noqa: E402

_COLOURS = {"same picture": "#1b7837", "same distribution": "#2166ac", "approximate": "#b2182b"}
_MARKERS = {"same picture": "s", "same distribution": "o", "approximate": "^"}
_FORM = {"dpi": 110, "metadata": {"Software": ""}}


def plot_closeness(
    time: Results, close: Results, entries: Sequence[tuple[str, str]], condition: Condition, path: Path
) -> bool:
    """False, and no file, where nothing is measured."""
    points = []
    for label, spec in entries:
        spec = canonical(spec)
        timed, seen = time.of(spec, condition), close.of(spec, condition)
        if timed and seen and spec not in OWN_LAW:
            points.append((label, timed, seen))
    if not points:
        return False
    figure, panels = plt.subplots(1, 2, figsize=(13.5, 6.2))
    for axes, key, title in zip(
        panels, ("passes", "seconds"), ("passes a picture", "seconds a picture"), strict=True
    ):
        for _, timed, seen in points:
            promise = timed["promise"]
            axes.errorbar(
                seen["bits_over"],
                timed[key],
                xerr=seen["bits_error"],
                fmt=_MARKERS[promise],
                color=_COLOURS[promise],
                markersize=6,
                elinewidth=0.8,
            )
        axes.set_yscale("log")
        axes.set_xlabel("closeness: bits a token beyond step-by-step decoding's (0 is equal)")
        axes.set_ylabel(title)
        axes.axvline(0, color="#888888", linewidth=0.8, zorder=0)
        axes.grid(True, which="both", alpha=0.2)
        axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        ticks = _round_ticks([timed[key] for _, timed, _ in points])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        _label(axes, [(seen["bits_over"], timed[key], label) for label, timed, seen in points])
    handles = [
        plt.Line2D([], [], linestyle="", marker=_MARKERS[promise], color=_COLOURS[promise], label=promise)
        for promise in _COLOURS
    ]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), bbox_to_anchor=(0.5, -0.04))
    figure.suptitle(f"{close.about['model']}, {condition.title}")
    _save(figure, path)
    return True


def plot_windows(time: Results, condition: Condition, path: Path) -> bool:
    figure, axes = plt.subplots(figsize=(9, 5))
    ablation, ends = ABLATIONS["window"], []
    for colour, (label, template) in zip(plt.get_cmap("tab20").colors, ablation.series.items(), strict=False):
        found = [(int(v), time.of(canonical(template.format(v)), condition)) for v in ablation.values]
        line = [(window, figures["tokens_a_pass"]) for window, figures in found if figures]
        if line:
            axes.plot(*zip(*line, strict=True), marker="o", markersize=4, color=colour)
            ends.append((*line[-1], label))
    if ends:
        axes.set_xticks([int(v) for v in ablation.values])
        axes.set_xlabel("window (drafts a pass)")
        axes.set_ylabel("tokens accepted a pass")
        axes.set_ylim(bottom=0)
        axes.grid(True, alpha=0.2)
        axes.set_title(f"{time.about['model']}, {condition.title}")
        _label(axes, ends)
        _save(figure, path)
    plt.close(figure)
    return bool(ends)


def _label(axes: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Names in a column on the right, in the order of their points and apart, with a line to each."""
    axes.figure.canvas.draw()
    to_axes = axes.transData + axes.transAxes.inverted()
    placed = sorted((to_axes.transform((x, y))[1], label, x, y) for x, y, label in points)
    heights = _apart([height for height, *_ in placed], 0.047)
    for height, (_, label, x, y) in zip(heights, placed, strict=True):
        axes.annotate(
            label,
            (x, y),
            xytext=(1.03, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            arrowprops={
                "arrowstyle": "-",
                "color": "#999999",
                "linewidth": 0.5,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights in 0 to 1, moved as little as keeps neighbours `gap` apart."""
    # Groups that touch share the moving: each is centred on what its members wanted.
    groups: list[tuple[float, int]] = []  # lowest height, members
    for wanted in heights:
        groups.append((wanted, 1))
        while len(groups) > 1 and groups[-2][0] + groups[-2][1] * gap > groups[-1][0]:
            (low, few), (high, more) = groups[-2:]
            centre = (few * (low + (few - 1) / 2 * gap) + more * (high + (more - 1) / 2 * gap)) / (few + more)
            start = centre - (few + more - 1) / 2 * gap
            groups[-2:] = [(min(max(start, 0.0), 1.0 - (few + more - 1) * gap), few + more)]
    return [low + i * gap for low, members in groups for i in range(members)]


def _round_ticks(values: Sequence[float]) -> list[float]:
    steps = [m * 10.0**e for e in range(-3, 4) for m in (1, 1.5, 2, 3, 5, 7)]
    return [step for step in steps if min(values) * 0.9 <= step <= max(values) * 1.1]


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, bbox_inches="tight", **_FORM)
    plt.close(figure)
    with Image.open(path) as drawn:
        few = drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True)  # a third of the size
