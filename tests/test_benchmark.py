"""tools/bench.py: specs, statistics against numbers computed by hand, going on after a kill, the whole
run."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import Promise
from jacobi_ar.tools.benchmark import closeness, compare, likelihood, memory, timing
from jacobi_ar.tools.benchmark.catalogue import ABLATIONS, MAIN
from jacobi_ar.tools.benchmark.command import run
from jacobi_ar.tools.benchmark.features import features_of_drawings, nearest, pooled
from jacobi_ar.tools.benchmark.likelihood import bits_a_token, peakedness
from jacobi_ar.tools.benchmark.pictures import DECODERS, PictureStore
from jacobi_ar.tools.benchmark.results import Results, time_figures
from jacobi_ar.tools.benchmark.specs import SpecError, canonical, decoder_of
from jacobi_ar.tools.benchmark.subject import Condition, Subject, load_subject
from jacobi_ar.tools.builtin_model.drawings import save
from jacobi_ar.tools.builtin_model.shapes import shapes
from jacobi_ar.tools.problem import Problem

OPEN = Condition(False, 1.0)
SV = "sjd(window=31, draw=maximal coupling)+sv(proportion=0.5)"


@pytest.fixture(scope="module")
def subject() -> Subject:
    return load_subject(temperature=None, top_k=None, top_p=None)


# ---- specs -------------------------------------------------------------------------------------------------


def test_a_spec_makes_the_decoder_that_its_parts_name() -> None:
    decoder = decoder_of("pjd(window=5, threshold=3, only_draft=true, draw=shared noise)+vp(growth=2)")
    assert decoder.name == "PJD-VP"
    assert (decoder.schedule.window, decoder.redrafter.law.growth) == (5, 2)
    assert decoder.promise is Promise.SAME_DISTRIBUTION  # only_draft was read as true


def test_equal_decoders_have_one_canonical_spec() -> None:
    ways = [
        "sjd(draw=maximal coupling,window=31)+sv( proportion = 0.80 )",
        " sjd(window=31, draw=maximal coupling)+sv",
    ]
    assert {canonical(way) for way in ways} == {"sjd(window=31, draw=maximal coupling)+sv"}
    assert canonical("sjd(window=15)") == "sjd" != canonical("sjd(window=16)")
    assert canonical("pjd(only_draft=true)") == "pjd(only_draft=true)"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("jacobi", "known here: autoregressive"),
        ("sv", "no decoder part is called 'sv'"),
        ("sjd+gsd", "known here: sv, vp"),
        ("sjd(windows=3)", "one of window, initialiser, draw"),
        ("sjd(window=3, window=4)", "once"),
        ("sjd(window=many)", "number"),
        ("pjd(only_draft=1)", "true or false"),
        ("sjd(window=3", "form"),
        ("__import__('os')", "no decoder part is called '__import__'"),
        ("block_sjd+sv", "ratio test"),
        ("", "form"),
    ],
)
def test_a_wrong_spec_is_refused_with_what_is_possible(spec: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        decoder_of(spec)


def test_every_spec_of_the_tables_is_a_decoder() -> None:
    for entry in MAIN:
        decoder_of(entry.spec)
    for ablation in ABLATIONS.values():
        for _, value, spec in ablation.rows():
            assert value in spec and decoder_of(spec)


# ---- statistics --------------------------------------------------------------------------------------------


def test_total_variation_by_hand() -> None:
    x, y = np.array([[0, 1], [0, 1], [1, 1], [2, 1]]), np.array([[0, 1], [1, 2]])
    ones = np.ones
    # Cell 0: (1/2, 1/4, 1/4) and (1/2, 1/2, 0): 1/4. Cell 1: (0, 1, 0) and (0, 1/2, 1/2): 1/2.
    assert closeness.total_variation(x, y, ones(4), ones(2), 3) == pytest.approx((0.25 + 0.5) / 2)
    # Counted (0, 0, 1, 1) times, x has (0, 1/2, 1/2) in cell 0: 1/2.
    assert closeness.total_variation(x, y, np.array([0.0, 0, 1, 1]), ones(2), 3) == pytest.approx(0.5)


def test_frechet_of_known_gaussians() -> None:
    """Points with exactly these moments: sample covariances are made to be the wanted ones."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(3, 3))

    def points(mean: list[float], covariance: np.ndarray) -> np.ndarray:
        raw = rng.normal(size=(50, 3))
        raw -= raw.mean(0)
        white = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T))).T
        return white @ np.linalg.cholesky(covariance).T + mean

    even = np.ones(50)
    # Covariances that commute: |m - n|^2 + sum of (sqrt(a) - sqrt(b))^2.
    x, y = points([0, 0, 0], np.diag([1.0, 4.0, 9.0])), points([1, 2, 0], np.diag([4.0, 4.0, 1.0]))
    assert closeness.frechet(x, y, even, even) == pytest.approx(5 + 1 + 0 + 4)
    # They need not commute: y = A x with A symmetric positive has distance tr (1 - A) C (1 - A).
    spread, stretch = mixing @ mixing.T + np.eye(3), np.eye(3) + 0.1 * mixing @ mixing.T
    x = points([0, 0, 0], spread)
    gap = np.eye(3) - stretch
    assert closeness.frechet(x, x @ stretch, even, even) == pytest.approx(np.trace(gap @ spread @ gap))
    # Weights are repetitions.
    twice = np.where(np.arange(50) < 25, 2.0, 1.0)
    repeated = np.concatenate([x, x[:25]])
    assert closeness.frechet(x, y, twice, even) == pytest.approx(
        closeness.frechet(repeated, y, np.ones(75), even)
    )


def test_figures_find_a_shift_and_no_difference_where_there_is_none() -> None:
    rng = np.random.default_rng(1)

    def seen(shift: float, names: float = 0.9) -> compare.Seen:
        tokens = rng.integers(0, 8, (200, 6)) if not shift else rng.integers(0, 4, (200, 6))
        return compare.Seen(
            tokens, rng.normal(size=(200, 5)) + shift, rng.normal(5 + shift, 1, 200), rng.random(200) < names
        )

    reference, noise = seen(0), seen(0)
    same = compare.figures(seen(0), noise, reference, 8, paired=False)
    other = compare.figures(seen(0.5, 0.5), noise, reference, 8, paired=False)
    for key in ("variation", "frechet", "bits"):
        assert abs(same[f"{key}_over"]) < 2 * same[f"{key}_error"]
        assert other[f"{key}_over"] > 2 * other[f"{key}_error"]
    assert other["frechet"] == pytest.approx(5 * 0.5**2, abs=0.5)
    assert other["named"] < 0.6 < same["named"]


def test_pooled_features_by_hand_and_the_nearest_drawing() -> None:
    features = np.zeros((1, 4, 4, 1))
    features[0, :2, 2:, 0] = [[1, 3], [1, 3]]
    assert pooled(features).tolist() == [[0, 0, 2, 1, 0, 0, 0, 0]]
    drawings = np.stack([np.zeros((4, 4, 1)), features[0]])
    assert nearest(features + 0.1, drawings).tolist() == [1]
    assert compare.plain("flag: Japan") == compare.plain("flag japan")


def test_bits_are_those_of_one_token_after_the_other(subject: Subject) -> None:
    """Against the model fed token by token, for a prompted and guided picture."""
    condition, cells = Condition(True, 2.0), subject.grid.cells
    tokens = np.random.default_rng(0).integers(0, 1024, (2, cells))
    given = torch.from_numpy(tokens)
    with torch.inference_mode():
        target = subject.target(condition)
        prompts = [subject.model.encode_prompt(text) for text in subject.texts(condition, [5, 6])]
        logits = [target.prefill(prompts, cells)[:, None]]
        for i in range(cells - 1):
            place, visible = torch.full((2, 1), i), torch.ones(2, 1, i + 1, dtype=torch.bool)
            logits.append(target.forward(given[:, i : i + 1], place, place, visible))
    laws = torch.cat(logits, 1).double().log_softmax(-1)
    wanted = -laws.gather(-1, given[..., None])[..., 0].mean(1).numpy() / np.log(2)
    assert bits_a_token(subject, condition, tokens, first=5) == pytest.approx(wanted, abs=1e-4)
    # The number of the first picture says its prompt.
    assert bits_a_token(subject, condition, tokens[1:], first=5) != pytest.approx(wanted[1:], abs=1e-2)


# ---- going on after a kill ---------------------------------------------------------------------------------


def test_pictures_are_kept_and_only_the_missing_ones_made(subject: Subject, tmp_path: Path) -> None:
    spec, first = "lantern(window=15, neighbours=100)+sv", DECODERS
    whole = PictureStore(tmp_path / "whole", subject, batch=3).get(spec, OPEN, first, 3)
    store = PictureStore(tmp_path / "parts", subject, batch=2)
    assert len(store.get(spec, OPEN, first, 1).tokens) == 1
    store.path(spec, OPEN, first).with_suffix(".partial").write_bytes(b"killed while writing")
    made: list[list[int]] = []
    again = PictureStore(tmp_path / "parts", subject, batch=2)
    again.subject = _Watched(subject, made)  # type: ignore[assignment]
    parts = again.get(spec, OPEN, first, 3)
    assert made == [[1, 2]]
    assert np.array_equal(parts.tokens, whole.tokens) and np.array_equal(parts.passes, whole.passes)
    assert again.get(spec, OPEN, first, 2).tokens.shape == (2, 256) and len(made) == 1
    assert len(again.stored("sjd", OPEN, first).tokens) == 0  # another decoder has its own


class _Watched:
    """A subject that notes the pictures it is asked for."""

    def __init__(self, subject: Subject, made: list[list[int]]) -> None:
        self._subject, self._made = subject, made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subject, name)

    def run(self, target: Any, decoder: Any, condition: Any, pictures: Any, *rest: Any, **named: Any) -> Any:
        self._made.append(list(pictures))
        return self._subject.run(target, decoder, condition, pictures, *rest, **named)


def test_time_inside_the_model_counts_every_kind_of_pass(subject: Subject, tmp_path: Path) -> None:
    stopwatch = timing.Stopwatch(tmp_path, subject)
    stopwatch.measure(["sjd2(window=7)"], OPEN, 1, say=lambda line: None)
    assert all(record.inside > 0.4 * record.seconds for record in stopwatch.records)


def test_times_go_on_after_a_kill_with_step_by_step_beside(subject: Subject, tmp_path: Path) -> None:
    fast = "lantern(window=31, neighbours=100)+sv"
    first = timing.Stopwatch(tmp_path, subject)
    first.measure([fast], OPEN, 1, say=lambda line: None)
    with first.path.open("a") as file:
        # Killed twice: in a turn whose step-by-step decode was still to come, and while writing.
        lost = replace(first.records[0], decoder=canonical(fast), run="killed", picture=1, passes=1)
        file.write(json.dumps(asdict(lost)) + '\n{"decoder": "half a li')
    second = timing.Stopwatch(tmp_path, subject)
    assert second.records == first.records and len(first.records) == 2
    second.measure([fast, SV], OPEN, 2, say=lambda line: None)
    assert [r.picture for r, _ in second.of(fast, OPEN)] == [0, 1]
    # Each is paired with a step-by-step decode of its own run and picture.
    for spec, count in ((fast, 2), (SV, 2)):
        pairs = second.of(spec, OPEN)
        assert len(pairs) == count
        for own, base in pairs:
            assert (own.run, own.picture) == (base.run, base.picture) and base.passes == 256
            assert 0 < own.inside < own.seconds
    assert len({r.decoder for r in second.records[2:5]}) == len(second.records[2:5])  # they take turns
    figures = time_figures(second, SV, OPEN)
    assert figures is not None
    passes = [own.passes for own, _ in second.of(SV, OPEN)]
    assert figures["passes"] == np.mean(passes) and 1 < figures["accepted"] < 31
    assert figures["ratio_low"] <= figures["ratio"] <= figures["ratio_high"]
    before = second.path.read_text()
    timing.Stopwatch(tmp_path, subject).measure([fast, SV], OPEN, 2)
    assert second.path.read_text() == before


def test_figures_of_an_earlier_command_stay_those_of_another_subject_go(
    subject: Subject, tmp_path: Path
) -> None:
    path = tmp_path / "closeness.json"
    first = Results(path, subject)
    first.about["drawings"] = "told beside"
    first.put("sjd", OPEN, {"bits": 1.0})
    second = Results(path, subject)
    assert second.of("sjd", OPEN) == {"bits": 1.0} and second.about["drawings"] == "told beside"
    other = load_subject(temperature=0.5, top_k=None, top_p=None)
    assert Results(path, other).of("sjd", OPEN) is None


# ---- the whole ---------------------------------------------------------------------------------------------


def test_memory_counts_what_the_decode_takes(subject: Subject) -> None:
    if not memory.LINUX:
        pytest.skip("peaks of resident memory are known on Linux alone")
    held: list[torch.Tensor] = []

    class Greedy(_Watched):
        def target(self, condition: Condition) -> Any:
            held.append(torch.ones(2**26))  # 256 MiB a decode: once in the warm-up, once in what is measured
            return self._subject.target(condition)

    peak = memory.peak_mib(Greedy(subject, []), "sjd(window=31)+sv", OPEN)  # type: ignore[arg-type]
    assert peak is not None and 256 < peak < 400


def test_how_peaked_laws_are_is_their_mean_entropy(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the cells certain, half open between four tokens: 1 bit, and half above 0.9."""

    def logits(subject: Subject, condition: Condition, tokens: np.ndarray, pictures: range) -> torch.Tensor:
        laws = torch.full((len(tokens), 256, 8), -torch.inf)
        laws[:, :128, 0] = 0.0
        laws[:, 128:, :4] = 0.0
        return laws

    monkeypatch.setattr(likelihood, "guided_logits", logits)
    assert peakedness(subject, OPEN, np.zeros((11, 256), np.int32)) == {"entropy": 1.0, "peaked": 0.5}


def test_pictures_are_named_by_the_nearest_drawing(subject: Subject, tmp_path: Path) -> None:
    drawn = [
        (about, picture) for about, picture in shapes(128) if about.name in ("red circle", "blue square")
    ]
    folder = tmp_path / "drawings"
    save(folder, [picture for _, picture in drawn], [about for about, _ in drawn], 128)
    assert subject.tokenizer is not None
    names, features = features_of_drawings(subject.tokenizer, folder)
    assert names == [about.name for about, _ in drawn] and features.shape[1:3] == (16, 16)
    assert [names[i] for i in nearest(features + 0.01, features)] == names
    small = list(shapes(32))[:2]
    save(tmp_path / "small", [picture for _, picture in small], [about for about, _ in small], 32)
    for wrong in ("small", "nowhere"):
        with pytest.raises(Problem, match="drawings"):
            _ = compare.Comparison(PictureStore(tmp_path, subject), tmp_path / wrong).drawings


def test_the_tool_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times, closeness, tables and plots of two pictures, a prompted condition among them."""
    pytest.importorskip("matplotlib")
    where = ["--out", str(tmp_path), "--pictures", "2", "--decoders", "lantern(window=31, neighbours=100)+sv"]
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("red heart\nflag: japan\n")
    where += ["--conditions", "prompts@1", "--prompts", str(prompts)]
    run(["closeness", *where], "")
    run(["time", *where, "--no-memory"], "")
    run(["table", *where], "")
    close = json.loads((tmp_path / "closeness.json").read_text())
    assert close["about"]["cells"] == 256 and set(close["figures"]) == {"prompts@1"}
    named = close["figures"]["prompts@1"]["autoregressive"]["named"]
    assert named == 1.0  # two greedy pictures to choose from
    assert (tmp_path / "closeness.png").stat().st_size < 150_000
    printed = capsys.readouterr().out
    for block in ("main", "closeness", "decoders", *(f"ablation {name}" for name in ABLATIONS)):
        assert f"<!-- {block} -->" in printed
    table = printed.split("<!-- main -->")[1].split("<!-- closeness -->")[0]
    assert (
        "| lantern(window=31, neighbours=100)+sv | approximate | " in table
        and "**Prompts, guidance 1** (2 pictures; mean entropy of the model's laws 0." in table
    )
