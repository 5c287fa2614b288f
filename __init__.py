"""ComfyUI-JacobiAR: autoregressive image models in a fraction of the model passes."""

# ComfyUI imports this folder as a package. Test runners import this file on its own, with no package around
# it and no ComfyUI to import from: then there is nothing to register.
if __package__:
    from .nodes import comfy_entrypoint

    # ComfyUI serves this folder and looks there for the help pages of the nodes, in docs/.
    WEB_DIRECTORY = "./web"

    __all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]
