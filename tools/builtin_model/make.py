"""Train the built-in model from drawings: each step one command, run in this order.

python tools/builtin_model/make.py data          fetch the packages by npm, draw them
python tools/builtin_model/make.py tokenizer     train the image tokenizer
python tools/builtin_model/make.py tokens        drawings to tokens, and the words of the model
python tools/builtin_model/make.py transformer   train the transformer
python tools/builtin_model/make.py denoiser      train what reads embeddings under noise, for SJD2
python tools/builtin_model/make.py evaluate      recall, peakedness, closeness of pictures, contact sheet
python tools/builtin_model/make.py install       weights and card into the package; names, pictures, curve
into docs/ python tools/builtin_model/make.py all           all of them but install

Stopped at any moment, the same command goes on where it was. All is kept in --home; `--smoke` runs on a
handful of shapes for a few steps. Needs ComfyUI's Python with tools/builtin_model/requirements.txt.
"""

import os
import sys
from types import ModuleType

if __name__ == "__main__":
    # The repository as the module `jacobi_ar`: on sys.path its `nodes` would shadow ComfyUI's.
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    sys.modules["jacobi_ar"] = alias
    from jacobi_ar.tools.builtin_model.command import run

    sys.exit(run(sys.argv[1:], __doc__))
