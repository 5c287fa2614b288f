"""The socket types of this package. Their names are saved in workflows and never change."""

from __future__ import annotations

from comfy_api.latest import io

Model = io.Custom("JACOBI_AR_MODEL")
Tokenizer = io.Custom("JACOBI_AR_TOKENIZER")
Prompt = io.Custom("JACOBI_AR_PROMPT")
Decoder = io.Custom("JACOBI_AR_DECODER")
Tokens = io.Custom("JACOBI_AR_TOKENS")
Trace = io.Custom("JACOBI_AR_TRACE")
