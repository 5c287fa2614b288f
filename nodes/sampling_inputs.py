"""The widgets that say how tokens are drawn, the same on every node that draws some."""

from __future__ import annotations

from comfy_api.latest import io

from .run_settings import MOST_GUIDANCE, MOST_SEED, MOST_SIDE, MOST_TOP_K


def sampling_inputs(seed_tooltip: str) -> list[io.Input]:
    """seed, guidance, temperature, top_k, top_p, rows, columns: what `run_settings.resolve` takes."""
    return [
        io.Int.Input(
            "seed", default=0, min=0, max=MOST_SEED, control_after_generate=True, tooltip=seed_tooltip
        ),
        io.Float.Input(
            "guidance",
            default=-1.0,
            min=-1.0,
            max=MOST_GUIDANCE,
            step=0.1,
            tooltip="How strongly to follow the prompt. -1 (default): the model's own usual value, "
            "shown after the run. 0 to 30: 1 is off and twice as fast; 1.5 to 7.5 is common; too "
            "much gives harsh pictures.",
        ),
        io.Float.Input(
            "temperature",
            default=1.0,
            min=0.0,
            max=10.0,
            step=0.05,
            tooltip="Chance in the choice of tokens (0 to 10, default 1, as the models were "
            "trained). Lower is flatter and safer, 0 always takes the likeliest token.",
        ),
        io.Int.Input(
            "top_k",
            default=-1,
            min=-1,
            max=MOST_TOP_K,
            tooltip="Choose only among so many likeliest tokens. -1 (default): the model's own "
            "usual value, shown after the run. 0 is off. Fewer gives cleaner, plainer pictures.",
        ),
        io.Float.Input(
            "top_p",
            default=1.0,
            min=0.01,
            max=1.0,
            step=0.01,
            tooltip="Choose only among the likeliest tokens that together have this probability "
            "(0.01 to 1, default 1: off). Lower gives cleaner, plainer pictures.",
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
