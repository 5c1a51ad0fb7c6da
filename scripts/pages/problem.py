"""The one exception of the page generators."""


class Problem(Exception):
    """A source of a page is missing or contradicts another; the text says how to fix it."""
