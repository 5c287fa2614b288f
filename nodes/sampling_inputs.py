"""The widgets that say how tokens are drawn, the same on every node that draws some."""

from __future__ import annotations

from comfy_api.latest import io

from .run_settings import AUTO, MOST_SEED, MOST_SIDE, RANGES


def sampling_inputs(seed_tooltip: str) -> list[io.Input]:
    """seed, guidance, temperature, top_k, top_p, rows, columns: what `run_settings.resolve` takes."""
    return [
        io.Int.Input(
            "seed", default=0, min=0, max=MOST_SEED, control_after_generate=True, tooltip=seed_tooltip
        ),
        io.Float.Input(
            "guidance",
            default=AUTO,
            min=AUTO,
            max=RANGES["guidance"][1],
            step=0.1,
            tooltip="How strongly to follow the prompt. -1 (default): the model's own usual value, "
            "shown after the run. 0 to 30: 1 is off and twice as fast; 1.5 to 7.5 is common; too "
            "much gives harsh pictures.",
        ),
        io.Float.Input(
            "temperature",
            default=AUTO,
            min=AUTO,
            max=RANGES["temperature"][1],
            step=0.05,
            tooltip="Chance in the choice of tokens. -1 (default): the model's own usual value, shown after "
            "the run; for most it is 1, as they were trained. 0 to 10: lower is flatter and safer, 0 always "
            "takes the likeliest token.",
        ),
        io.Int.Input(
            "top_k",
            default=AUTO,
            min=AUTO,
            max=RANGES["top_k"][1],
            tooltip="Choose only among so many likeliest tokens. -1 (default): the model's own "
            "usual value, shown after the run. 0 is off. Fewer gives cleaner, plainer pictures.",
        ),
        io.Float.Input(
            "top_p",
            default=AUTO,
            min=AUTO,
            max=RANGES["top_p"][1],
            step=0.01,
            tooltip="Choose only among the likeliest tokens that together have this probability. -1 "
            "(default): the model's own usual value, shown after the run; for most it is 1: off. 0.01 to 1: "
            "lower gives cleaner, plainer pictures.",
        ),
        io.Int.Input(
            "rows",
            default=0,
            min=0,
            max=MOST_SIDE,
            tooltip="Rows of tokens. 0 (default): what the model was made for. Other sizes only "
            "where the model allows them; otherwise the error names those that it does.",
        ),
        io.Int.Input(
            "columns",
            default=0,
            min=0,
            max=MOST_SIDE,
            tooltip="Tokens in a row. 0 (default): what the model was made for. Other sizes only "
            "where the model allows them; otherwise the error names those that it does.",
        ),
    ]
