"""Tells when a thread of the sync client waits for a completion, for longer than a moment."""

from rnicd import _call_queue, _mapped_source

PLACES = ((_call_queue.CallSource, "_finish"), (_mapped_source.MappedSource, "wait"))


def announced(kind, name, tell):
    """The method, which calls `tell` first."""
    method = getattr(kind, name)

    def telling(*arguments):
        tell()
        return method(*arguments)

    return telling
