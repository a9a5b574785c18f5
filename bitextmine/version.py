"""The version of the package, as signatures and manifests state it."""

__version__ = "0.4.0"
