"""ComfyUI-JacobiAR: autoregressive image models in a fraction of the model passes."""

# ComfyUI imports this folder as a package. Test runners import this file on its own, with no package around
# it and no ComfyUI to import from: then there is nothing to register.
if __package__:
    from .nodes import comfy_entrypoint

    __all__ = ["comfy_entrypoint"]
