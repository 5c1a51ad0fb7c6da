"""From nothing to 1,265 registered buffers of 40 KiB in two calls, each an array that a peer may write into."""

import numpy as np
import rnicd

BUFFERS, BYTES = 1265, 40 << 10

with rnicd.connect() as s:
    memory, outcomes = s.provision(BUFFERS * BYTES, [(n * BYTES, BYTES) for n in range(BUFFERS)], remote="w")
    regions = [region for region in outcomes if isinstance(region, rnicd.Region)]  # otherwise the reason why not
    arrays = np.frombuffer(memory, np.float32).reshape(BUFFERS, -1)
    tokens = {region.remote.token for region in regions}
    print(len(arrays), "arrays of", arrays[0].nbytes, "bytes with", len(tokens), "tokens")
    s.close_batch(regions)
