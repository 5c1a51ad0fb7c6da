// Descriptors unsuitable for an import. Each is refused with its own reason, and leaves nothing behind.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kHostileBytes = 16 * kPage;

struct HostileFile {
  std::string name;
  std::function<UniqueFd()> make;
  ErrorReason reason;
};

// How gtest prints the parameter.
void PrintTo(const HostileFile& file, std::ostream* out) { *out << file.name; }

UniqueFd PipeEnd() {
  std::array<int, 2> ends;
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  close(ends[1]);
  return UniqueFd(ends[0]);
}

UniqueFd SocketEnd() {
  std::array<int, 2> ends;
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  close(ends[1]);
  return UniqueFd(ends[0]);
}

// A file in a folder that survives a reboot, which is on a disk on nearly every machine.
UniqueFd DiskFile() {
  std::string path = "/var/tmp/rnicd-disk-file-XXXXXX";
  UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
  unlink(path.c_str());
  EXPECT_EQ(ftruncate(file.get(), kHostileBytes), 0);
  return file;
}

// If even that file system is in memory, its files support the seal query, and allow no seals.
ErrorReason ReasonForDiskFile() {
  return fcntl(DiskFile().get(), F_GET_SEALS) < 0 ? ErrorReason::MEMORY_NOT_MEMORY : ErrorReason::MEMORY_NOT_SEALABLE;
}

UniqueFd Reopened(const UniqueFd& file, int flags) {
  return UniqueFd(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), flags | O_CLOEXEC));
}

UniqueFd Sealed(int seals) {
  UniqueFd file = MakeSealableMemfd(kHostileBytes);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

const std::vector<HostileFile>& HostileFiles() {
  static const std::vector<HostileFile> files = {
      {"Pipe", PipeEnd, ErrorReason::MEMORY_NOT_MEMORY},
      {"Socket", SocketEnd, ErrorReason::MEMORY_NOT_MEMORY},
      {"Directory", [] { return UniqueFd(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); },
       ErrorReason::MEMORY_NOT_MEMORY},
      {"DevNull", [] { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }, ErrorReason::MEMORY_NOT_MEMORY},
      {"DevZero", [] { return UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC)); }, ErrorReason::MEMORY_NOT_MEMORY},
      {"Eventfd", [] { return UniqueFd(eventfd(0, EFD_CLOEXEC)); }, ErrorReason::MEMORY_NOT_MEMORY},
      {"Epoll", [] { return UniqueFd(epoll_create1(EPOLL_CLOEXEC)); }, ErrorReason::MEMORY_NOT_MEMORY},
      {"DiskFile", DiskFile, ReasonForDiskFile()},
      {"PathOnly", [] { return Reopened(MakeSealableMemfd(kHostileBytes), O_PATH); }, ErrorReason::MEMORY_NOT_MEMORY},
      {"ReadOnly", [] { return Reopened(MakeSealableMemfd(kHostileBytes), O_RDONLY); }, ErrorReason::MEMORY_READ_ONLY},
      {"WriteOnly", [] { return Reopened(MakeSealableMemfd(kHostileBytes), O_WRONLY); }, ErrorReason::MEMORY_READ_ONLY},
      {"Unsealable", [] { return MakeMemfd(kHostileBytes, 0); }, ErrorReason::MEMORY_NOT_SEALABLE},
      {"FinallySealed", [] { return Sealed(F_SEAL_SEAL); }, ErrorReason::MEMORY_NOT_SEALABLE},
      {"WriteSealed", [] { return Sealed(F_SEAL_WRITE); }, ErrorReason::MEMORY_WRITE_SEALED},
      {"FutureWriteSealed", [] { return Sealed(F_SEAL_FUTURE_WRITE); }, ErrorReason::MEMORY_WRITE_SEALED},
      {"TooShort", [] { return MakeSealableMemfd(kHostileBytes - kPage); }, ErrorReason::MEMORY_TOO_SHORT},
      {"Empty", [] { return MakeSealableMemfd(0); }, ErrorReason::MEMORY_TOO_SHORT},
  };
  return files;
}

class HostileMemory : public DaemonTest, public testing::WithParamInterface<HostileFile> {};

TEST_P(HostileMemory, IsRefusedAndLeavesNothing) {
  TestSession session(daemon());
  const v1::ImportMemoryResponse memory = session.Import(kHostileBytes);
  const UniqueFd file = GetParam().make();
  ASSERT_TRUE(file.valid());
  ExpectFdRefused(SendFd(daemon().fd_socket(), memory.fd_ticket(), file.get()), GetParam().reason);
  // The refusal removes the memory object and consumes the ticket.
  ExpectRefused(session.Seal(memory.memory_id()), ErrorReason::OBJECT_NOT_FOUND, "memory_id");
  ExpectFdRefused(SendFd(daemon().fd_socket(), memory.fd_ticket(), file.get()), ErrorReason::TICKET_UNKNOWN);
  EXPECT_EQ(session.Use("memory_bytes").used(), 0u);
  EXPECT_EQ(session.Use("memory_objects").used(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Descriptor, HostileMemory, testing::ValuesIn(HostileFiles()),
                         [](const auto& file) { return file.param.name; });

class HostileOwner : public DaemonTest {};

// The client may resize and punch its file until the seal, also while the daemon has it mapped; no one else is
// affected.
TEST_F(HostileOwner, MayPunchBeforeTheSealButNotShrink) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(kHostileBytes);
  const v1::ImportMemoryResponse memory = session.Import(kHostileBytes);
  ExpectFdOk(SendFd(daemon().fd_socket(), memory.fd_ticket(), file.get()));
  EXPECT_NE(ftruncate(file.get(), kPage), 0);
  EXPECT_EQ(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kHostileBytes), 0);
  ExpectOk(session.Seal(memory.memory_id()));
  session.RegisterWhole(session.CreateMr(), memory.memory_id(), kHostileBytes);
}

TEST_F(HostileOwner, SealingTheFileItselfMakesTheSealFail) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(kHostileBytes);
  const v1::ImportMemoryResponse memory = session.Import(kHostileBytes);
  ExpectFdOk(SendFd(daemon().fd_socket(), memory.fd_ticket(), file.get()));
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  const auto sealed = session.Seal(memory.memory_id());
  EXPECT_EQ(sealed.code, grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(sealed.detail.reason(), v1::ERROR_REASON_MEMORY_SEAL_REFUSED);
  ExpectRefused(
      session.Register(RegisterRequest(session.CreateMr(), {MdlEntry(memory.memory_id(), 0, kPage, kBase)}, kPage)),
      ErrorReason::MEMORY_NOT_SEALED, "mdl_chain[0].memory_id");
  ExpectOk(session.Release(memory.memory_id()));
}

TEST_F(HostileOwner, TheSameFileMayBackTwoObjects) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(kHostileBytes);
  const v1::ImportMemoryResponse first = session.Import(kHostileBytes);
  const v1::ImportMemoryResponse second = session.Import(kHostileBytes);
  ExpectFdOk(SendFd(daemon().fd_socket(), first.fd_ticket(), file.get()));
  ExpectFdOk(SendFd(daemon().fd_socket(), second.fd_ticket(), file.get()));
  ExpectOk(session.Seal(first.memory_id()));
  // The first seal was final for the file; the second object can no longer verify its seals.
  EXPECT_FALSE(session.Seal(second.memory_id()).ok());
  ExpectOk(session.Release(second.memory_id()));
  session.RegisterWhole(session.CreateMr(), first.memory_id(), kHostileBytes);
}

}  // namespace
}  // namespace rnicd::test
