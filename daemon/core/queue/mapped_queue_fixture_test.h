#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/system/os.h"
#include "daemon/core/queue/queue_fixture_test.h"
#include "ring/queue_end.h"

namespace rnicd::core {

inline constexpr uint64_t kQueueContext = 77;

// A client's end of a mapped queue.
class MappedClient {
 public:
  MappedClient(const std::shared_ptr<Session>& session, const CreatedMappedCq& created)
      : file(*session->Begin()->queues().Duplicate(created.queue, SharedDescriptor::kMemory)),
        bytes_(*SystemOs().Map(file.get(), created.file_bytes)),
        reader(*ring::QueueReader::Open(bytes_)) {}
  ~MappedClient() { (void)SystemOs().Unmap(bytes_); }
  MappedClient(const MappedClient&) = delete;
  MappedClient& operator=(const MappedClient&) = delete;

  ring::QueueHeader& header() { return *reinterpret_cast<ring::QueueHeader*>(bytes_.data()); }
  // The contexts of all completions that are there.
  std::vector<uint64_t> ReadAll() {
    std::vector<uint64_t> contexts;
    Completion completion;
    while (reader.Poll(&completion)) {
      contexts.push_back(completion.request_context);
    }
    return contexts;
  }

  UniqueFd file;

 private:
  const std::span<std::byte> bytes_;

 public:
  ring::QueueReader reader;
};

class MappedQueueTest : public ::testing::Test {
 protected:
  SessionQueues& queues() { return held_->queues(); }
  absl::StatusOr<CreatedMappedCq> TryCreate(uint32_t depth, uint32_t depth_max = 0) {
    return queues().CreateMapped(
        {.adapter = owner_.adapter, .depth = depth, .context = kQueueContext, .depth_max = depth_max});
  }
  CreatedMappedCq Create(uint32_t depth, uint32_t depth_max = 0) {
    const auto created = TryCreate(depth, depth_max);
    EXPECT_TRUE(created.ok()) << created.status();
    return created.value_or(CreatedMappedCq{});
  }
  void Push(const CreatedMappedCq& created, uint64_t context = 0, NtStatus status = NtStatus::kSuccess,
            bool solicited = false) {
    queues().table().Find(created.queue)->Push({.status = status, .request_context = context}, solicited);
  }
  void Arm(const CreatedMappedCq& created, CqNotifyType type = CqNotifyType::kAny) {
    EXPECT_TRUE(queues().Arm(created.queue, type).ok());
  }
  uint64_t heap() const { return world_.ledger->used(Resource::kHeapBytes); }

  World world_;
  QueueOwner owner_{world_};
  absl::StatusOr<SessionGuard> held_ = owner_.session->Begin();
};

}  // namespace rnicd::core
