"""The Markdown tables, made from the figures alone."""

from __future__ import annotations

from collections.abc import Sequence

from ..measure.common import markdown_table
from .catalogue import ABLATIONS, MAIN, OWN_LAW, Ablation
from .results import Figures, Results
from .specs import canonical, decoder_of
from .subject import Condition
from .timing import BASELINE

NOTHING = "–"
_CAPTION_CLOSE = (
    "Bits: what the model itself takes a token for, -log2 of its guided law, beyond step by step's own "
    "(± 95 %); equal laws have equal bits. Fréchet: squared distance of the encoder's features of the "
    "pictures (mean and deviation of each over each quarter), times 100. Variation: total "
    "variation of the token histograms, mean over the cells. Both are of samples, so step by step with other "
    "seeds is not at 0 either: behind the figure, what it has beyond that noise floor (± 95 %). Intervals: "
    "1.96 bootstrap deviations over pictures."
)


class Pages:
    """What each block of the pages says."""

    def __init__(self, time: Results, close: Results, entries: Sequence[tuple[str, str]]) -> None:
        self.time, self.close = time, close
        self.entries = [(label, canonical(spec)) for label, spec in entries]

    def main(self, conditions: Sequence[Condition]) -> str:
        """One table a condition: passes, time, memory, closeness."""
        head = ["decoder", "promise", "passes", "step compression", "seconds", "speed-up"]
        head += ["outside the model", "memory, MiB", "closeness, bits"]
        parts = []
        for condition in conditions:
            rows, counts = [], set()
            for label, spec in self.entries:
                found = self.time.of(spec, condition)
                if found is None:
                    continue
                counts.add(found["pictures"])
                memory = found.get("memory")
                rows.append(
                    [
                        label,
                        found["promise"],
                        _mean(found["passes"], found["passes_error"]),
                        f"{found['compression']:.1f}x",
                        f"{found['seconds']:.3f}",
                        _ratio(spec, found),
                        f"{100 * found['outside']:.0f} %",
                        NOTHING if memory is None else f"{memory:.0f}",
                        _bits(spec, self.close.of(spec, condition)),
                    ]
                )
            if rows:
                pictures = _range(counts)
                title = f"**{_capital(condition.title)}** ({pictures} pictures{self.certainty(condition)})"
                parts.append(f"{title}\n\n{markdown_table(head, rows)}")
        about = self.time.about
        caption = (
            f"{_capital(about['model'])}, {about['cells']} tokens a picture, {about['dtype']}, batch 1; "
            "decoders take turns picture by picture. Passes: mean ± 95 %. Seconds: median. Speed-up: median "
            "over pictures of our own autoregressive decoding's seconds (guided pair in one pass) over "
            "the decoder's [95 %]. Memory: peak above the loaded model, whose weights are "
            f"{about['weights_mib']:g} MiB. Closeness: bits a token beyond step-by-step decoding's (± 95 %; "
            f"below). {about['machine']}."
        )
        return "\n\n".join([*parts, caption])

    def closeness(self, conditions: Sequence[Condition]) -> str:
        head = ["decoder", "promise", "bits", "Fréchet", "variation"]
        parts = []
        for condition in conditions:
            named = condition.prompted
            rows, count = [], 0
            for label, spec in self.entries:
                found = self.close.of(spec, condition)
                if found is None:
                    continue
                count = found["pictures"]
                rows.append([label, str(decoder_of(spec).promise), *_close_cells(spec, found)])
                if named:
                    rows[-1].append(f"{100 * found['named']:.1f} ± {100 * found['named_error']:.1f} %")
            if rows:
                columns = [*head, "name recalled"] if named else head
                title = (
                    f"**{_capital(condition.title)}** ({count} pictures a decoder{self.certainty(condition)})"
                )
                parts.append(f"{title}\n\n{markdown_table(columns, rows)}")
        prompted = any(condition.prompted for condition in conditions)
        names = self.close.about.get("drawings", "") if prompted else ""
        return "\n\n".join([*parts, f"{_CAPTION_CLOSE} {names}".strip()])

    def ablation(self, name: str, condition: Condition) -> str:
        ablation: Ablation = ABLATIONS[name]
        rows, counts = [], set()
        for label, value, spec in ablation.rows():
            found = self.time.of(canonical(spec), condition)
            if found is None:
                continue
            counts.add(found["pictures"])
            close = self.close.of(canonical(spec), condition)
            rows.append(
                [
                    label,
                    value,
                    _mean(found["passes"], found["passes_error"]),
                    f"{found['compression']:.1f}x",
                    f"{found['seconds']:.3f}",
                    _ratio(spec, found),
                    *([NOTHING] * 2 if close is None else _close_cells(spec, close)[:2]),
                ]
            )
        if not rows:
            return "Not measured."
        head = ["decoder", ablation.setting, "passes", "step compression", "seconds", "speed-up"]
        pictures = _range(counts)
        laws = self.certainty(condition)
        caption = f"{_capital(condition.title)}, {pictures} pictures{laws}. {self.time.about['machine']}."
        return f"{markdown_table([*head, 'bits', 'Fréchet'], rows)}\n\n{caption}"

    def readme(self, prompted: Condition, open_laws: Condition) -> str:
        """The decoders in one line each."""
        rows = []
        for entry in MAIN:
            spec = canonical(entry.spec)
            with_prompt, without = (self.time.of(spec, condition) for condition in (prompted, open_laws))
            if not entry.how or with_prompt is None or without is None:
                continue
            promise = "the reference" if spec == BASELINE else without["promise"]
            passes = [f"{f['passes']:.0f} ({f['compression']:.1f}x)" for f in (with_prompt, without)]
            seconds = f"{without['seconds']:.2f} s ({without['ratio']:.1f}x)"
            close = _bits(spec, self.close.of(spec, open_laws))
            rows.append([entry.label, promise, entry.how, *passes, seconds, close])
        head = ["decoder", "promise", "how", "passes, with a prompt", "passes, no prompt"]
        table = markdown_table([*head, "time, no prompt", "closeness, no prompt"], rows)
        shown = [(each.title, self.certainty(each)) for each in (prompted, open_laws)]
        said = " ".join(f"{_capital(title)}{laws}.".replace(";", ":", 1) for title, laws in shown if laws)
        return f"{table}\n\n{said}".rstrip()

    def certainty(self, condition: Condition) -> str:
        """How peaked the laws are that these figures rest on; nothing where it was not measured."""
        found = self.close.of(BASELINE, condition) or {}
        if "entropy" not in found:
            return ""
        return (
            f"; mean entropy of the model's laws {found['entropy']:.2f} bits, "
            f"{100 * found['peaked']:.0f} % of tokens with one choice above 0.9"
        )


def _mean(value: float, error: float) -> str:
    return f"{value:.1f} ± {error:.1f}" if error else f"{value:.0f}"


def _ratio(spec: str, found: Figures) -> str:
    if spec == BASELINE:
        return "1x"
    return f"{found['ratio']:.2f}x [{found['ratio_low']:.2f}, {found['ratio_high']:.2f}]"


def _bits(spec: str, found: Figures | None) -> str:
    if spec in OWN_LAW or found is None:
        return NOTHING
    if spec == BASELINE:
        return f"{found['bits']:.2f} in all"
    return f"{found['bits_over']:+.2f} ± {found['bits_error']:.2f}"


def _close_cells(spec: str, found: Figures) -> list[str]:
    """Bits, Fréchet, variation."""
    cells = [_bits(spec, found)]
    for key, scale, digits in (("frechet", 100, 1), ("variation", 1, 3)):
        value, over, error = (scale * found[key + part] for part in ("", "_over", "_error"))
        beyond = "noise floor" if spec == BASELINE else f"{over:+.{digits}f} ± {error:.{digits}f}"
        cells.append(f"{value:.{digits}f} ({beyond})")
    return cells


def _range(counts: set[int]) -> str:
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
