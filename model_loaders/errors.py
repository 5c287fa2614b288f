"""What can be wrong with a file, a prompt or a grid. Each message is a sentence that a user can act on."""


class CheckpointError(ValueError):
    """A model file is missing, damaged, unsafe, or not what it should be."""


class PromptError(ValueError):
    """A prompt that the model cannot take."""


class GridError(ValueError):
    """A token grid or picture of a size or content that the model was not made for."""


class DependencyError(ImportError):
    """A Python package that this model needs is missing or does not import."""
