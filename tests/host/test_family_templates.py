"""The templates of other models inside ComfyUI, with tiny random weights under the names that they hold.

JACOBI_AR_EVERY_TEMPLATE=1 takes the two largest too, 8100 and 9216 tokens: minutes each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from jacobi_ar.tests.host.support import LOAD, Host, node_of, read_workflow
from jacobi_ar.tests.toy_published import PUBLISHED
from jacobi_ar.tools import client
from jacobi_ar.tools.demo import GENERATE, facts_of

pytestmark = pytest.mark.host

EVERY = os.environ.get("JACOBI_AR_EVERY_TEMPLATE", "0") != "0"
LARGEST = ("lumina_mgpt_2", "emu3")
DRAWN = [name for name in PUBLISHED if EVERY or name not in LARGEST]
# Template -> side of the token grid, pixels a token of the tiny image tokenizer, and the family's defaults.
EXPECTED = {
    "llamagen_t2i": (32, 2, "auto: guidance 7.5"),
    "llamagen_c2i": (24, 2, "auto: guidance 4"),
    "janus_pro": (24, 2, "auto: guidance 5"),
    "lumina_mgpt": (48, 2, "auto: guidance 4"),
    "lumina_mgpt_2": (96, 2, "auto: guidance 4"),
    "anole": (32, 2, "auto: guidance 3"),
    "emu3": (90, 4, "auto: guidance 3"),
}


@pytest.fixture
def models(test_folder: Path, host: Host) -> Iterator[Path]:
    """ComfyUI's folder of models, afterwards with what was in it before."""
    folder = test_folder / "base" / "models"
    places = [folder / name for name in ("ar_image", "text_encoders")]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    before = {path for place in places for path in place.iterdir()}
    yield folder
    for path in {path for place in places for path in place.iterdir()} - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", DRAWN)
def test_a_template_draws_with_the_files_that_it_names(name: str, host: Host, models: Path) -> None:
    PUBLISHED[name](models)
    prompt = host.api(name)
    # 9216 tokens took 249 seconds on a machine with five times more work than cores.
    run = client.run_prompt(host.url, prompt, workflow=read_workflow(name), timeout=900)
    assert run.status == "success", run.error
    side, pixels, guidance = EXPECTED[name]
    text = "\n".join(run.outputs[node_of(prompt, GENERATE)]["text"])
    assert guidance in text and f"grid {side} x {side} (auto)" in text
    facts = facts_of(run)
    assert facts["promise"] == "same picture" and facts["passes"] < facts["autoregressive_passes"]
    picture = host.picture(run)
    assert picture.shape == (side * pixels, side * pixels, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("name", PUBLISHED)
def test_without_the_files_the_error_says_what_to_download_and_where_it_goes(name: str, host: Host) -> None:
    prompt = host.api(name)
    run = host.run(prompt)
    (data,) = run.data("execution_error")
    assert data["node_type"] == LOAD
    message = data["exception_message"]
    model = prompt[node_of(prompt, LOAD)]["inputs"]["model"]
    assert f'model "{model}" was not found' in message
    assert "huggingface.co/" in message and "into the folder models/ar_image" in message
