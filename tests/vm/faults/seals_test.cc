// A client that tries to remove registered pages: the kernel refuses, and peers' writes keep arriving in its mapping.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/process/memory_file.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

struct Trick {
  std::string name;
  // Returns 0 or the errno.
  std::function<int(OwnMemory&)> attempt;
};

int ErrnoOf(int result) { return result == 0 ? 0 : errno; }

UniqueFd Reopened(OwnMemory& memory, int flags) {
  return UniqueFd(open(("/proc/self/fd/" + std::to_string(memory.file().get())).c_str(), flags | O_CLOEXEC));
}

int PunchHole(int fd, uint64_t size) {
  return ErrnoOf(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)));
}

int MapWritable(int fd, uint64_t size) {
  void* const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) {
    return errno;
  }
  munmap(mapping, size);
  return 0;
}

// Makes a read-only mapping writable.
int MakeMappingWritable(int fd, uint64_t size) {
  void* const mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) {
    ADD_FAILURE() << "a sealed file can be mapped for reading";
    return 0;
  }
  const int error = ErrnoOf(mprotect(mapping, size, PROT_READ | PROT_WRITE));
  munmap(mapping, size);
  return error;
}

std::vector<Trick> Tricks() {
  return {
      {"truncate", [](OwnMemory& memory) { return ErrnoOf(ftruncate(memory.file().get(), 0)); }},
      {"punch a hole", [](OwnMemory& memory) { return PunchHole(memory.file().get(), memory.size()); }},
      {"MADV_REMOVE",
       [](OwnMemory& memory) { return ErrnoOf(madvise(memory.bytes().data(), memory.size(), MADV_REMOVE)); }},
      {"map it writable again", [](OwnMemory& memory) { return MapWritable(memory.file().get(), memory.size()); }},
      {"make a mapping writable",
       [](OwnMemory& memory) { return MakeMappingWritable(memory.file().get(), memory.size()); }},
      {"write(2)", [](OwnMemory& memory) { return pwrite(memory.file().get(), "x", 1, 0) == 1 ? 0 : errno; }},
      {"another seal",
       [](OwnMemory& memory) { return ErrnoOf(fcntl(memory.file().get(), F_ADD_SEALS, F_SEAL_WRITE)); }},
      {"truncate through another descriptor",
       [](OwnMemory& memory) { return ErrnoOf(ftruncate(Reopened(memory, O_RDWR).get(), 0)); }},
      {"punch a hole through another descriptor",
       [](OwnMemory& memory) { return PunchHole(Reopened(memory, O_RDWR).get(), memory.size()); }},
      {"open it truncated", [](OwnMemory& memory) { return Reopened(memory, O_RDWR | O_TRUNC).valid() ? 0 : errno; }},
  };
}

struct SealedPages {
  std::string name;
  v1::PageSize page_size;
  uint64_t size;
};

void PrintTo(const SealedPages& pages, std::ostream* out) { *out << pages.name; }

class Seals : public FaultTest, public testing::WithParamInterface<SealedPages> {};

TEST_P(Seals, KeepPagesUnderThePeersWrites) {
  TestSession session(daemon());
  OwnMemory memory(session, GetParam().size, GetParam().page_size);
  const RemoteBytes remote = memory.Register();
  ForeignLink link(session);
  uint32_t seed = 1;
  for (const Trick& trick : Tricks()) {
    EXPECT_NE(trick.attempt(memory), 0) << trick.name << " is allowed";
    link.peer.MustWrite(remote, ++seed, kMessageBytes);
    EXPECT_TRUE(memory.Text(0, kMessageBytes) == Pattern(seed, kMessageBytes))
        << "after the attempt to " << trick.name << " the client does not see what the peer writes";
    memory.SetText(0, Pattern(++seed, kMessageBytes));
    link.peer.MustRead(remote, Pattern(seed, kMessageBytes));
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, Seals,
                         testing::Values(SealedPages{"Small", v1::PAGE_SIZE_4KIB, kMessageBytes},
                                         SealedPages{"Huge", v1::PAGE_SIZE_2MIB, uint64_t{2} << 20}),
                         [](const auto& pages) { return pages.param.name; });

}  // namespace
}  // namespace rnicd::test
