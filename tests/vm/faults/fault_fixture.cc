#include "tests/vm/faults/fault_fixture.h"

#include <cstring>
#include <utility>

#include "tests/support/calls/expect.h"
#include "tests/support/process/wait.h"
#include "tests/support/work_requests.h"

namespace rnicd::test {

FaultTest::FaultTest(const std::vector<std::string>& flags) { Start({.flags = flags}); }

FaultTest::FaultTest(const DaemonOptions& options) { Start(options); }

void FaultTest::Start(DaemonOptions options) {
  options.flags.insert(options.flags.begin(), kNoTriesAfterTheFirst);
  // Some peers are no queue pairs of the daemon.
  options.flags.push_back(LimitsFlag("connections { listen { prefix: '::/0' } connect { prefix: '::/0' } }"));
  auto started = DaemonProcess::Start(options);
  if (!started.ok()) {
    ADD_FAILURE() << started.status();
    std::abort();
  }
  daemon_ = *std::move(started);
  idle_ = MeasureIdle(*daemon_);
  idle_objects_ = Objects();
}

void FaultTest::Restart() {
  const std::shared_ptr<TempDir> directory = daemon_->directory();
  daemon_.reset();
  Start({.directory = directory});
}

void FaultTest::KillDaemon() {
  daemon_->KillHard();
  KernelObjects left;
  EXPECT_TRUE(Eventually([&] {
    left = Objects();
    return left.empty();
  })) << "the kernel still holds of the dead daemon: "
      << Describe(left);
}

void FaultTest::TearDown() {
  ExpectNothingHeld(daemon(), idle_);
  KernelObjects held;
  EXPECT_TRUE(Eventually([&] {
    held = Objects();
    return held == idle_objects_;
  })) << "the kernel holds for the daemon: "
      << Describe(held) << "; at rest it was: " << Describe(idle_objects_);
  const absl::Status stopped = daemon().Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_TRUE(Eventually([&] {
    held = AllKernelObjects();
    return held.empty();
  })) << "the kernel still holds for processes: "
      << Describe(held);
  for (const std::string& error : kernel_log_.NewErrors()) {
    ADD_FAILURE() << "kernel error: " << error;
  }
}

OwnMemory::OwnMemory(TestSession& session, uint64_t size, v1::PageSize page_size) : session_(session), size_(size) {
  v1::AllocateMemoryRequest request;
  request.set_size(size);
  request.set_page_size(page_size);
  const auto allocated = session.Call(&MemoryStub::AllocateMemory, request);
  ExpectOk(allocated);
  id_ = allocated.response.memory_id();
  file_ = session.Fetch(allocated.response.fd_ticket());
  mapping_ = std::make_unique<SharedMapping>(file_.get(), size);
  EXPECT_EQ(mapping_->bytes().size(), size) << "the memory object cannot be mapped";
  ExpectOk(session.Seal(id_));
}

std::string OwnMemory::Text(uint64_t offset, uint64_t count) const {
  const std::span<const std::byte> bytes = mapping_->bytes().subspan(offset, count);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void OwnMemory::SetText(uint64_t offset, const std::string& text) {
  std::memcpy(mapping_->bytes().subspan(offset, text.size()).data(), text.data(), text.size());
}

uint64_t OwnMemory::Counter() const {
  uint64_t counter = 0;
  std::memcpy(&counter, mapping_->bytes().data(), sizeof(counter));
  return counter;
}

RemoteBytes OwnMemory::Register(uint32_t flags) {
  mr_id_ = session_.CreateMr();
  const v1::Registration registration = session_.RegisterWhole(mr_id_, id_, size_, flags);
  local_token_ = registration.local_token();
  return {.address = registration.base_virtual_address(), .token = registration.remote_token()};
}

std::vector<uint64_t> OwnMemory::LogicalPages() {
  v1::BuildLamRequest request;
  request.set_adapter_id(session_.adapter_id());
  *request.add_mdl_chain() = MdlEntry(id_, 0, size_, kBase);
  request.set_length(size_);
  const auto built = session_.Call(&MemoryStub::BuildLam, request);
  ExpectOk(built);
  return {built.response.adapter_page_array().begin(), built.response.adapter_page_array().end()};
}

ForeignLink::ForeignLink(TestSession& session, const PeerOptions& options) : queue(session), peer(options) {
  ExpectOk(Connect(queue, peer.address()));
  peer.Connect(queue.Query().address());
}

void ForeignLink::Greet() {
  const RemoteBytes theirs = peer.memory();
  queue.MustRun(InlineWriteRequest("greetings", theirs.address, theirs.token));
  EXPECT_TRUE(peer.Holds(0, "greetings"));
}

bool ReceivesDisconnect(EventReader& events, uint64_t qp_id) {
  while (const auto event = events.Next()) {
    if (event->has_qp_disconnected() && event->qp_disconnected().qp_id() == qp_id) {
      return true;
    }
  }
  return false;
}

std::optional<uint32_t> ExpectConnectionEnds(TestQueue& queue, const v1::WorkRequest& request) {
  std::optional<uint32_t> status;
  const bool ended = Eventually([&] {
    const auto posted = queue.Post({request});
    if (posted.ok() && posted.response.posted() == 1) {
      status = queue.NextInitiator().result().ntstatus();
      return status != kStatusSuccess;
    }
    ExpectRefused(posted.response.failure(), ErrorReason::QP_NOT_CONNECTED, "requests[0]");
    status.reset();
    return true;
  });
  EXPECT_TRUE(ended) << "requests still succeed";
  EXPECT_TRUE(Eventually([&] { return queue.Query().state() == v1::QP_STATE_ERROR; }));
  return status;
}

}  // namespace rnicd::test
