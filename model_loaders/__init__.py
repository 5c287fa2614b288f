"""From checkpoint files to models that answer decoders: no host, nothing downloaded."""
