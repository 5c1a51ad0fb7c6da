"""A user's program that mypy --strict must accept: what the package promises about its types. It is not run."""

from typing import List, Optional

import rnicd


def transfer(peer: bytes, address: bytes) -> List[rnicd.Completion]:
    with rnicd.connect(label="typed") as session, session.allocate("1MiB") as memory:
        with memory.register(remote="rw") as region, session.queue_pair() as pair:
            pair.connect(address)
            part: rnicd.RegionPart = region[0:4096]
            pair.write(part, rnicd.RemoteRegion.from_bytes(peer))
            first: int = memory[0]
            view: memoryview = memory[0:first]
            pending: rnicd.Pending = pair.post([rnicd.Read(region, region.remote)])
            assert len(view) <= len(memory)
            return pending.wait(timeout=1.0)


def meet(name: str) -> Optional[rnicd.ConnectionData]:
    with rnicd.connect() as session, session.queue_pair() as pair, session.listen(name) as listener:
        port: int = listener.address[1]
        with listener.next_request(timeout=1.0) as request:
            offered: rnicd.ConnectionData = request.connection_data()
            request.accept(pair, private_data=b"yes")
        with session.connect((listener.address[0], port), pair, outbound_reads=0) as connector:
            return offered if connector.wait_for_disconnect(1.0) else None


def reason(failure: rnicd.Refused) -> Optional[str]:
    return failure.reason if isinstance(failure, MemoryError) else None
