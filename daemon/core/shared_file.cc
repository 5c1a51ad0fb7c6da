#include "daemon/core/shared_file.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/errno_status.h"
#include "base/status.h"
#include "base/units.h"

namespace rnicd::core {
namespace {

absl::Status Unavailable(const absl::Status& cause) {
  return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, std::string(cause.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedFile>> SharedFile::Create(Os& os, LingeringMemory& lingering, uint64_t bytes,
                                                               Charge charge) {
  absl::StatusOr<UniqueFd> file = os.CreateMemoryFile(bytes, kNdkPageBytes);
  if (!file.ok()) {
    return Unavailable(file.status());
  }
  if (const absl::Status sealed = os.AddSeals(file->get(), F_SEAL_SHRINK | F_SEAL_GROW); !sealed.ok()) {
    return Unavailable(sealed);
  }
  const absl::StatusOr<FileWatch::Id> watch = lingering.Watch(file->get());
  if (!watch.ok()) {
    return Unavailable(watch.status());
  }
  const absl::StatusOr<std::span<std::byte>> mapping = os.Map(file->get(), bytes);
  if (!mapping.ok()) {
    return Unavailable(mapping.status());
  }
  std::unique_ptr<SharedFile> shared(
      new SharedFile(os, lingering, *watch, *std::move(file), *mapping, std::move(charge)));
  // A page that cannot be had is an error here, and a signal later.
  if (const absl::Status populated = os.Populate(*mapping); !populated.ok()) {
    return Unavailable(populated);
  }
  return shared;
}

SharedFile::~SharedFile() {
  (void)os_.Unmap(mapping_);
  lingering_.Keep(watch_, std::move(file_), {.object = {}, .bytes = std::move(charge_)});
}

absl::StatusOr<UniqueFd> SharedFile::Duplicate() const {
  UniqueFd duplicate(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, ErrnoDetail("fcntl(F_DUPFD_CLOEXEC)", errno));
  }
  return duplicate;
}

absl::StatusOr<ClientPipe> ClientPipe::Create() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, ErrnoDetail("socketpair", errno));
  }
  ClientPipe pipe;
  pipe.read_.Reset(ends[0]);
  pipe.write_.Reset(ends[1]);
  // What a client would send stays with it; and what it does not read takes little memory.
  const int few_bytes = 1;
  (void)shutdown(ends[1], SHUT_RD);
  (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few_bytes, sizeof(few_bytes));
  return pipe;
}

void ClientPipe::Announce() const {
  const char byte = 1;
  // A client that has closed its end does not want to know.
  [[maybe_unused]] const ssize_t sent = send(write_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace rnicd::core
