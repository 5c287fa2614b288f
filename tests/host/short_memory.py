"""Run in a Python with ComfyUI, on Linux: a batch for which the process is given too little memory.

python short_memory.py ROOT        (with ComfyUI's folder in PYTHONPATH)

Prints JSON: the parts that the batch was made in, whether its pictures are those of an undivided run, and the
error of a single picture that does not fit either.
"""

from __future__ import annotations

import json
import resource
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

from comfy_process import start

BATCH = 8


def main(root: str) -> None:
    start(root)
    import_module("utils.extra_config")  # before the server, which brings a module `utils` of its own
    import server
    import torch

    server.PromptServer.instance = SimpleNamespace(client_id=None)  # nobody watches
    from jacobi_ar.decoding import same_picture
    from jacobi_ar.model_loaders.load import BUILTIN_MODEL
    from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER
    from jacobi_ar.nodes.errors import NodeMemoryError
    from jacobi_ar.nodes.generate import decode_batch
    from jacobi_ar.nodes.load_model import load_model, load_tokenizer
    from jacobi_ar.nodes.run_settings import resolve
    from jacobi_ar.nodes.values import ModelValue

    value = ModelValue(load_model(BUILTIN_MODEL, None, "float32"), load_tokenizer(BUILTIN_TOKENIZER))
    prompt, decoder = value.model.encode_prompt("red heart"), same_picture(15)
    usual = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    settings = resolve(value.model, 1, BATCH, 2.0, usual, (0, 0))

    def make() -> tuple[torch.Tensor, list[int]]:
        batch = decode_batch(value, prompt, decoder, settings, None)
        return batch.result.tokens, batch.parts

    def leave(mebibytes: int) -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = used + mebibytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

    def again() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    with torch.inference_mode():
        # First, while the process keeps no freed memory for later.
        leave(4)
        try:
            make()
            message = ""
        except NodeMemoryError as error:
            message = str(error)
        again()
        whole, undivided = make()
        leave(32)  # the cache alone takes more for the whole batch
        divided, parts = make()
        again()
    same = bool(torch.equal(whole, divided))
    print(json.dumps({"undivided": undivided, "parts": parts, "same": same, "message": message}))


main(*sys.argv[1:])
