"""A torch tensor over registered memory: what a peer writes is in the tensor."""

import rnicd
import torch

with rnicd.connect() as s, s.allocate("1MiB") as m, m.register(remote="rw") as r:
    tensor = torch.frombuffer(m, dtype=torch.float32).view(512, 512)
    tensor.fill_(0.5)
    print(tuple(tensor.shape), "at the registered address:", tensor.data_ptr() == r.address)
