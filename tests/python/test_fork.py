"""fork, spawn and other programs."""

from __future__ import annotations

import pytest

import programs

# A forked child ends as Python programs do, with everything that is still alive torn down.
_FORK = """
import rnicd
s = rnicd.connect()
m = s.allocate(4096)
r = m.register(remote="rw")
for turn in range(5):
    child = os.fork()
    if child == 0:
        {child}
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0, turn
    s.usage()
{parent}
pair, peer = s.queue_pair(), s.queue_pair()
pair.connect(peer.address); peer.connect(pair.address)
pair.write(b"parent", r.remote)
assert bytes(m[0:6]) == b"parent"
r.close()
s.close()
print("well")
"""


def fork_program(child: str, parent: str = "") -> str:
    lines = child.strip("\n").split("\n")
    return _FORK.format(child="\n        ".join(lines), parent=parent)


def test_a_forked_child_shares_the_bytes(daemon):
    program = fork_program("m[turn] = turn + 1", "assert bytes(m[0:5]) == bytes([1, 2, 3, 4, 5])")
    assert programs.run_well(program) == "well\n"


def test_a_forked_child_cannot_use_its_parents_session(daemon):
    child = """
for use in (s.usage, lambda: s.allocate(4096), lambda: m.register(), s.queue_pair):
    try:
        use()
        sys.exit(1)
    except rnicd.ForkedError:
        pass
r.close(); m.close(); s.close()
"""
    assert programs.run_well(fork_program(child)) == "well\n"


def test_a_forked_child_unmaps_its_own_mapping_only(daemon):
    child = """
before = open("/proc/self/maps").read().count("memfd")
m.close()
assert open("/proc/self/maps").read().count("memfd") == before - 1
try:
    m[0]
    sys.exit(1)
except rnicd.Closed:
    pass
"""
    assert programs.run_well(fork_program(child)) == "well\n"


_REFUSED = """
try:
    rnicd.connect()
    sys.exit(1)
except rnicd.ForkedError as refused:
    assert "spawn" in str(refused)
"""


def test_a_forked_child_that_opens_a_session_is_refused_and_its_parent_unharmed(daemon):
    assert programs.run_well(fork_program(_REFUSED)) == "well\n"


def test_a_child_of_a_process_with_grpcs_default_poller_is_refused(daemon):
    assert programs.run_well("import grpc\n" + fork_program(_REFUSED)) == "well\n"


def test_a_child_forked_before_the_first_session_opens_one(daemon):
    program = """
    import rnicd
    child = os.fork()
    with rnicd.connect() as s, s.allocate(4096):
        pass
    if child:
        assert os.waitpid(child, 0)[1] == 0
    """
    programs.run_well(program)


def test_a_pool_of_forked_workers_fills_a_shared_buffer(daemon):
    program = """
    import multiprocessing, rnicd
    import numpy as np

    def fill(index):
        array[index] = index * index

    with rnicd.connect() as s, s.allocate(4096) as m, m.register(remote="r"):
        array = np.frombuffer(m, np.int64)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(fill, range(16))
        assert [int(one) for one in array[:16]] == [one * one for one in range(16)]
        assert s.usage().session["regions"].used == 1
        del array
    """
    programs.run_well(program)


def test_spawned_workers_have_sessions_of_their_own(daemon, folder):
    (folder / "spawned.py").write_text(
        "import rnicd\n\n\n"
        "def transfer(packed):\n"
        "    with rnicd.connect() as s, s.allocate(4096) as m, m.register(remote='rw') as r, s.queue_pair() as pair:\n"
        "        return len(rnicd.RemoteRegion.from_bytes(packed)) + len(r)\n"
    )
    program = f"""
    sys.path.insert(0, {str(folder)!r})
    import multiprocessing, rnicd, spawned

    if __name__ == "__main__":
        with rnicd.connect() as s, s.allocate(4096) as m, m.register(remote="rw") as r:
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                assert pool.map(spawned.transfer, [r.remote.to_bytes()] * 4) == [8192] * 4
    """
    programs.run_well(program)


def test_another_program_inherits_no_descriptor(daemon):
    program = """
    import rnicd, subprocess
    with rnicd.connect() as s, s.allocate(4096) as m, m.register():
        listed = subprocess.run(["ls", "/proc/self/fd"], close_fds=False, capture_output=True, text=True, check=True)
        assert len(listed.stdout.split()) <= 4, listed.stdout
        s.usage()
    """
    programs.run_well(program)


@pytest.mark.parametrize("implementation", ["cpp", "python"])
def test_the_messages_clash_with_nobodys(daemon, implementation):
    program = """
    from google.protobuf import descriptor_pb2, descriptor_pool
    other = descriptor_pb2.FileDescriptorProto(name="rnicd/v1/types.proto", package="rnicd.v1", syntax="proto3")
    other.message_type.add(name="MdlEntry")
    descriptor_pool.Default().Add(other) if hasattr(descriptor_pool.Default(), "Add") else None
    descriptor_pool.Default().AddSerializedFile(other.SerializeToString())
    import rnicd
    with rnicd.connect() as s, s.allocate(4096) as m, m.register(remote="rw") as r:
        try:
            s.allocate(1)
        except rnicd.InvalidArgument as refused:
            assert refused.reason == "MEMORY_SIZE_UNALIGNED"
    """
    program = "\n".join(line for line in program.splitlines() if "hasattr" not in line)
    programs.run_well(program, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation)
