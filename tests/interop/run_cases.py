"""Runs the cases of a client that is written in Python."""


def run_cases(cases):
    """Calls every public method of `cases`, prints a line for each, and returns the exit status."""
    failed = 0
    for name in [name for name in vars(type(cases)) if not name.startswith("_")]:
        try:
            getattr(cases, name)()
            print(f"{name} ok", flush=True)
        except Exception as failure:  # a case may fail in any way
            failed += 1
            print(f"{name} FAILED {type(failure).__name__}: {failure}".replace("\n", " "), flush=True)
    return 1 if failed else 0
