"""Models of other families inside ComfyUI: a folder as it is published, found, loaded, drawn and decoded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from jacobi_ar.tests.host.support import LOAD, Host, node_of
from jacobi_ar.tests.toy_families import janus, lumina
from jacobi_ar.tests.toy_published import include, picture_network
from jacobi_ar.tools.demo import GENERATE, facts_of

pytestmark = pytest.mark.host


@pytest.fixture
def models(test_folder: Path, host: Host) -> Iterator[Path]:
    """ComfyUI's folder of models, without the toys afterwards."""
    folder = test_folder / "base" / "models"
    yield folder
    shutil.rmtree(folder / "Janus-Pro" / "toy", ignore_errors=True)
    shutil.rmtree(folder / "ar_image" / "toy-lumina", ignore_errors=True)
    (folder / "ar_image" / "toy-vqgan.ckpt").unlink(missing_ok=True)


def published_janus(models: Path) -> str:
    """With its image tokenizer in the same file, in the folder of another package."""
    (models / "Janus-Pro").mkdir(parents=True, exist_ok=True)
    folder = janus(models / "Janus-Pro" / "toy")
    include(folder, picture_network("llamagen_vq_tiny.pt", "model"), "gen_vision_model.")
    return "Janus-Pro/toy"


def published_lumina(models: Path) -> str:
    """With Chameleon's image tokenizer beside it."""
    (models / "ar_image").mkdir(parents=True, exist_ok=True)
    lumina(models / "ar_image" / "toy-lumina")
    network = picture_network("chameleon_vqgan_tiny.ckpt", "state_dict")
    torch.save({"state_dict": network}, models / "ar_image" / "toy-vqgan.ckpt")
    return "toy-lumina"


@pytest.mark.parametrize(
    ("publish", "sides", "usual"),
    [
        (published_janus, {}, ["auto: guidance 5", "top-k off", "grid 24 x 24 (auto)"]),
        (published_lumina, {"rows": 32}, ["auto: guidance 4", "top-k 2000", "grid 32 x 32"]),
    ],
)
def test_a_published_folder_draws(
    publish: Callable[[Path], str], sides: dict[str, int], usual: list[str], host: Host, models: Path
) -> None:
    prompt = host.quickstart("sjd", seed=3, **sides)
    prompt[node_of(prompt, LOAD)]["inputs"]["model"] = publish(models)
    run = host.run(prompt)
    assert run.status == "success", run.error
    text = "\n".join(run.outputs[node_of(prompt, GENERATE)]["text"])
    assert [part for part in usual if part not in text] == []
    assert facts_of(run)["passes"] > 1
    picture = host.picture(run)
    assert picture.shape[0] == picture.shape[1] and len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
