"""How a model, its texts and its image tokenizer lie in one .safetensors file.

Tensors of the model have the names of the checkpoint that they came from, so that the family's own loader
reads them. What lay in other files is in the metadata, tensors of the image tokenizer under a prefix.
"""

from __future__ import annotations

FORMAT = "jacobi_ar.format"
VERSION = "1"
FAMILY = "jacobi_ar.family"
GRIDS = "jacobi_ar.grids"  # rows x columns that the model makes, for people
CONFIG = "jacobi_ar.config"  # config.json
TEXT = "jacobi_ar.text."  # followed by a file's name: tokenizer.json
TOKENIZER = "jacobi_ar.vq."  # before each tensor of the image tokenizer
TOKENIZER_METADATA = "jacobi_ar.vq"  # its own metadata, JSON
TOKENIZER_CONFIG = "jacobi_ar.vq_config"  # its config.json
SCALE = ".weight_scale"  # in the place of ".weight": scales of a tensor in float8
