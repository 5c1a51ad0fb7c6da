#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/event_reader.h"
#include "tests/support/memory_file.h"
#include "tests/support/queue_client.h"
#include "tests/support/test_session.h"
#include "tests/support/tested_provider.h"
#include "tests/vm/faults/bytes.h"
#include "tests/vm/faults/foreign_peer.h"
#include "tests/vm/faults/kernel_state.h"

namespace rnicd::test {

// The most that a message of these tests carries: a card in software takes seconds for megabytes.
inline constexpr size_t kMessageBytes = 64 * 1024;
inline constexpr uint32_t kEveryRight =
    v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_ALLOW_REMOTE_READ | v1::MR_FLAG_ALLOW_REMOTE_WRITE;

// The daemon tries its cards when it starts, and then not again in the time of a test: who asks the kernel what it
// holds would now and then see the registration of a try.
inline constexpr char kNoTriesAfterTheFirst[] = "--health_interval_ms=3600000";

// A test with a daemon of its own that owns the cards of the guest. At its end the daemon holds nothing for anybody,
// the kernel holds no more for the daemon than before, and nothing for any process once the daemon has ended; and the
// kernel has complained of nothing.
class FaultTest : public testing::Test {
 protected:
  explicit FaultTest(const std::vector<std::string>& flags = {});
  // For a daemon that is another user, without capabilities.
  explicit FaultTest(const DaemonOptions& options);
  void TearDown() override;

  DaemonProcess& daemon() { return *daemon_; }
  pid_t daemon_pid() const { return daemon_->process().pid(); }
  // What the kernel holds for the daemon: it alone uses the near card, and foreign peers the far one.
  static KernelObjects Objects() { return KernelObjectsOn(AdapterUnderTest()); }
  const KernelObjects& idle_objects() const { return idle_objects_; }
  // SIGKILL; then the kernel holds nothing for it any more.
  void KillDaemon();
  // Another daemon in the same directory.
  void StartAgain();

 private:
  void Start(DaemonOptions options);

  KernelLog kernel_log_;
  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
  KernelObjects idle_objects_;
};

// A memory object of the daemon's with pages of that size, mapped here, sealed, and its descriptor kept, as a client
// that means harm would. Registered as a whole at kBase when Register is called.
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

  // Must succeed. Where a peer finds the first byte.
  RemoteBytes Register(uint32_t flags = kEveryRight);
  // Of Register; for SGEs.
  v1::Sge Piece(uint64_t offset, uint32_t length) const { return Sge(kBase + offset, length, local_token_); }
  uint64_t mr_id() const { return mr_id_; }
  // All its 4 KiB pages as logical addresses; must succeed.
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

// A queue pair of a session and a foreign peer, connected.
struct ForeignLink {
  explicit ForeignLink(TestSession& session, const PeerOptions& options = {});
  // The daemon's side writes to the peer's memory and reads it back, so that each has heard of the other.
  void Greet();

  TestQueue queue;
  ForeignPeer peer;
};

// True when QpDisconnected of that queue pair comes in time; other events are passed over.
bool HearsOfDisconnect(EventReader& events, uint64_t qp_id);

// Posts the request again and again until the connection is over. Every request that was accepted must complete. The
// status of the first that failed; nothing when the daemon had noticed before one could.
std::optional<uint32_t> ExpectConnectionEnds(TestQueue& queue, const v1::WorkRequest& request);

}  // namespace rnicd::test
