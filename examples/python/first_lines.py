"""Registers memory with rnicd, fills it as a numpy array, and prints what a peer needs to write into it."""

import numpy as np
import rnicd

with rnicd.connect() as s, s.allocate("64MiB") as m, m.register(remote="rw") as r:
    array = np.frombuffer(m, np.float32)  # the registered bytes themselves, no copy
    array[:] = 1.0
    print(r.remote, "in", len(r.remote.to_bytes()), "bytes for the peer")
