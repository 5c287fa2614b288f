"""The benchmark: decoders x settings on a chosen model, passes, seconds, memory, closeness to step by step.

python tools/bench.py time [--pictures 100]         passes and seconds, batch 1, decoders taking turns
python tools/bench.py closeness [--pictures 300]    pictures against step-by-step decoding's, in batches
python tools/bench.py time --ablate [--pictures 24] the same for the varied settings; closeness --ablate too
python tools/bench.py table [--write]               the tables of what is measured; --write: into README, docs

Needs torch and safetensors: run it with ComfyUI's Python, or with the one in .dev/venv (from tools/dev.py).
Everything measured is kept in --out as it comes: stopped at any time, the same command goes on where it was.
Decoders are named by their constructors: "sjd(window=31, draw=maximal coupling)+sv(proportion=0.8)".
"""

import os
import sys
from types import ModuleType

if __name__ == "__main__":
    # The repository as the module `jacobi_ar`: on sys.path its `nodes` would shadow ComfyUI's.
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["jacobi_ar"] = alias
    from jacobi_ar.tools.needs import lack

    # The rest of the help takes the names of decoders from what needs torch.
    if lacking := lack("bench.py", "torch", "safetensors"):
        if {"-h", "--help"}.isdisjoint(sys.argv):
            sys.exit(lacking)
        print(__doc__, lacking, sep="\n")
        sys.exit()
    from jacobi_ar.tools.benchmark.command import run

    run(sys.argv[1:], __doc__)
