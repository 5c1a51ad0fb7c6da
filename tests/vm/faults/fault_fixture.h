#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/queue_client.h"
#include "tests/support/test_session.h"
#include "tests/vm/faults/bytes.h"
#include "tests/vm/faults/foreign_peer.h"
#include "tests/vm/faults/kernel_state.h"

namespace rnicd::test {

// Maximum size of a message in these tests: a software card takes seconds for megabytes.
inline constexpr size_t kMessageBytes = size_t{64} << 10;
inline constexpr uint64_t kHugePage = uint64_t{2} << 20;
// Address of fast registrations.
inline constexpr uint64_t kFastBase = 0x1000'0000'0000;
inline constexpr uint32_t kEveryRight =
    v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_ALLOW_REMOTE_READ | v1::MR_FLAG_ALLOW_REMOTE_WRITE;

// The daemon probes its cards when it starts and not again during a test: a query of the kernel's objects could
// otherwise see the registration of a probe.
inline constexpr char kNoTriesAfterTheFirst[] = "--health_interval_ms=3600000";

// A test with its own daemon that owns the guest's cards. At its end it asserts that the daemon holds nothing for any
// client, that the kernel holds no more for the daemon than before, and nothing for any process once the daemon has
// ended, and that the kernel has logged no errors.
class FaultTest : public testing::Test {
 protected:
  explicit FaultTest(const std::vector<std::string>& flags = {});
  // For a daemon that runs as another user, without capabilities.
  explicit FaultTest(const DaemonOptions& options);
  void TearDown() override;

  DaemonProcess& daemon() { return *daemon_; }
  pid_t daemon_pid() const { return daemon_->process().pid(); }
  // The kernel's objects of the daemon: only the daemon uses the near card, and only foreign peers the far one.
  static KernelObjects Objects() { return KernelObjectsOn(AdapterUnderTest()); }
  const KernelObjects& idle_objects() const { return idle_objects_; }
  // Kills the daemon by SIGKILL and asserts that the kernel then holds nothing for it.
  void KillDaemon();
  // The daemon has so many more at the end.
  void ExpectMoreDescriptors(uint64_t count) { idle_.open_fds += count; }
  // Starts another daemon in the same directory.
  void Restart();

 private:
  void Start(DaemonOptions options);

  KernelLog kernel_log_;
  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
  KernelObjects idle_objects_;
};

// A sealed memory object of the daemon with pages of this size, mapped here. Keeps its descriptor, as a malicious
// client would. Register registers the whole object at kBase.
class OwnMemory {
 public:
  OwnMemory(TestSession& session, uint64_t size, v1::PageSize page_size = v1::PAGE_SIZE_4KIB);

  uint64_t id() const { return id_; }
  uint64_t size() const { return size_; }
  const UniqueFd& file() const { return file_; }
  std::span<std::byte> bytes() { return mapping_->bytes(); }
  std::string Text(uint64_t offset, uint64_t count) const;
  void SetText(uint64_t offset, const std::string& text);
  // The counter of ForeignPeer::BeginTraffic.
  uint64_t Counter() const;

  // Must succeed. Returns the remote address of the first byte.
  RemoteBytes Register(uint32_t flags = kEveryRight);
  // An SGE of the registered memory.
  v1::Sge Piece(uint64_t offset, uint32_t length) const { return Sge(kBase + offset, length, local_token_); }
  uint64_t mr_id() const { return mr_id_; }
  // The logical addresses of all its 4 KiB pages; must succeed.
  std::vector<uint64_t> LogicalPages();

 private:
  TestSession& session_;
  const uint64_t size_;
  uint64_t id_ = 0;
  UniqueFd file_;
  std::unique_ptr<SharedMapping> mapping_;
  uint64_t mr_id_ = 0;
  uint32_t local_token_ = 0;
};

// A session's queue pair, connected to a foreign peer.
struct ForeignLink {
  explicit ForeignLink(TestSession& session, const PeerOptions& options = {});
  // Writes to the peer's memory and reads it back, so that each side has received packets from the other.
  void Greet();

  TestQueue queue;
  ForeignPeer peer;
};

// True if QpDisconnected of this queue pair comes within the timeout; other events are skipped.
bool ReceivesDisconnect(EventReader& events, uint64_t qp_id);

// Posts the request in a loop until the connection ends. Every accepted request must complete. Returns the status of
// the first failed one; nullopt if the daemon noticed the end before a request failed.
std::optional<uint32_t> ExpectConnectionEnds(TestQueue& queue, const v1::WorkRequest& request);

}  // namespace rnicd::test
