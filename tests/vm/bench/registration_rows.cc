// Registering and deregistering, one region at a time and in batches.
#include <optional>
#include <span>
#include <vector>

#include "tests/support/calls/expect.h"
#include "tests/support/test_session.h"
#include "tests/vm/bench/rows.h"

namespace rnicd::vm_bench {
namespace {

using test::MemoryStub;

constexpr uint32_t kRights =
    v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_ALLOW_REMOTE_READ | v1::MR_FLAG_ALLOW_REMOTE_WRITE;

constexpr int kTimesInARow = 10;

struct Shape {
  uint64_t page_bytes;
  // Size of one region.
  uint64_t bytes;
  size_t regions;
};

// Both sides hold their memory at the same time, and the guest has 64 MiB in pages of 2 MiB: each side can use at most
// 32 MiB.
constexpr Shape kShapes[] = {
    {.page_bytes = kSmallPage, .bytes = 4 * kKiB, .regions = 1},
    {.page_bytes = kSmallPage, .bytes = 64 * kKiB, .regions = 1},
    {.page_bytes = kSmallPage, .bytes = kMiB, .regions = 1},
    {.page_bytes = kSmallPage, .bytes = kLargeRegion, .regions = 1},
    {.page_bytes = kHugePage, .bytes = 4 * kKiB, .regions = 1},
    {.page_bytes = kHugePage, .bytes = 64 * kKiB, .regions = 1},
    {.page_bytes = kHugePage, .bytes = kMiB, .regions = 1},
    {.page_bytes = kHugePage, .bytes = 32 * kMiB, .regions = 1},
    {.page_bytes = kSmallPage, .bytes = 4 * kKiB, .regions = 64},
    {.page_bytes = kSmallPage, .bytes = 64 * kKiB, .regions = 64},
    {.page_bytes = kSmallPage, .bytes = kMiB, .regions = 64},
    {.page_bytes = kSmallPage, .bytes = 4 * kKiB, .regions = 1265},
    {.page_bytes = kSmallPage, .bytes = 64 * kKiB, .regions = 1265},
    {.page_bytes = kHugePage, .bytes = 4 * kKiB, .regions = 64},
    {.page_bytes = kHugePage, .bytes = 64 * kKiB, .regions = 64},
    {.page_bytes = kHugePage, .bytes = 4 * kKiB, .regions = 1265},
};

// Size of all regions, rounded up to whole pages.
uint64_t MemoryBytes(const Shape& shape) {
  const uint64_t bytes = shape.bytes * shape.regions;
  return (bytes + shape.page_bytes - 1) / shape.page_bytes * shape.page_bytes;
}

// A session's sealed memory and its regions, all registered by one call and deregistered by another.
class RegisteringClient {
 public:
  RegisteringClient(test::DaemonProcess& daemon, const Shape& shape) : session_(daemon, "bench") {
    v1::AllocateMemoryRequest allocate;
    allocate.set_size(MemoryBytes(shape));
    allocate.set_page_size(shape.page_bytes == kHugePage ? v1::PAGE_SIZE_2MIB : v1::PAGE_SIZE_4KIB);
    const auto memory = session_.Call(&MemoryStub::AllocateMemory, allocate);
    Require(memory.ok(), "AllocateMemory: " + memory.message);
    memory_id_ = memory.response.memory_id();
    session_.Fetch(memory.response.fd_ticket());
    Require(session_.Seal(memory_id_).ok(), "SealMemory was refused");
    for (size_t index = 0; index < shape.regions; ++index) {
      const uint64_t region = session_.CreateMr();
      const uint64_t offset = index * shape.bytes;
      v1::RegisterMrRequest& request = *registers_.add_items();
      request = test::RegisterRequest(region, {test::MdlEntry(memory_id_, offset, shape.bytes, test::kBase + offset)},
                                      shape.bytes);
      request.set_flags(kRights);
      deregisters_.add_items()->set_mr_id(region);
    }
  }

  void RegisterAndDeregister() {
    if (registers_.items_size() == 1) {
      Require(session_.Call(&MemoryStub::RegisterMr, registers_.items(0)).ok(), "RegisterMr was refused");
      Require(session_.Call(&MemoryStub::DeregisterMr, deregisters_.items(0)).ok(), "DeregisterMr was refused");
      return;
    }
    const auto registered = session_.Call(&MemoryStub::BatchRegisterMr, registers_);
    const auto deregistered = session_.Call(&MemoryStub::BatchDeregisterMr, deregisters_);
    Require(AllDone(registered) && AllDone(deregistered), "an item of a batch was refused");
  }

  // Makes as many calls as registration does, for comparison.
  void CallForNothing() {
    for (int call = 0; call < 2; ++call) {
      Require(session_.Call(&test::SessionStub::GetSession, v1::GetSessionRequest()).ok(), "GetSession was refused");
    }
  }

 private:
  template <typename Result>
  static bool AllDone(const Result& result) {
    for (const auto& outcome : result.response.outcomes()) {
      if (!outcome.has_response()) {
        return false;
      }
    }
    return result.ok();
  }

  test::TestSession session_;
  uint64_t memory_id_ = 0;
  v1::BatchRegisterMrRequest registers_;
  v1::BatchDeregisterMrRequest deregisters_;
};

Medians MeasureShape(DirectCard& card, const RegistrationDaemons& daemons, const Shape& shape) {
  const bool huge = shape.page_bytes == kHugePage;
  const uint64_t size = MemoryBytes(shape);
  const double regions = static_cast<double>(shape.regions);
  // An operation of microseconds is repeated several times in a row, like a program with much to register.
  const int times = shape.bytes * shape.regions <= kMiB ? kTimesInARow : 1;
  OwnMemory own(huge ? Source::kHugePages : Source::kSmallPages, size);
  own.Populate();
  RegisteringClient client(daemons.usual, shape);
  const auto register_own = [&card, &shape](std::span<std::byte> memory, int repetitions) {
    for (int time = 0; time < repetitions; ++time) {
      RegisterAndDeregister(card, memory, shape.bytes, shape.regions);
    }
  };
  std::vector<Contender> contenders = {
      {.name = "direct", .run = [&] { register_own(own.bytes(), times); }, .operations = regions * times},
      {.name = "rnicd", .run = [&] { client.RegisterAndDeregister(); }, .operations = regions},
      {.name = "empty_calls", .run = [&] { client.CallForNothing(); }, .operations = regions},
  };
  // Too few 2 MiB pages for a second memory on one side.
  std::optional<RegisteringClient> in_turn_client;
  OwnMemory file(Source::kFile, size);
  if (!huge) {
    // What rnicd gives out is a shared file.
    file.Populate();
    contenders.push_back(
        {.name = "direct_file", .run = [&] { register_own(file.bytes(), times); }, .operations = regions * times});
    if (shape.bytes == kLargeRegion) {
      contenders.push_back({.name = "asked", .run = [&] { daemons.asked_for_large.RegisterAndDeregister(); }});
      contenders.push_back({.name = "asked_for_page", .run = [&] { daemons.asked_for_page.RegisterAndDeregister(); }});
    }
    if (shape.regions > 1) {
      in_turn_client.emplace(daemons.in_turn, shape);
      contenders.push_back(
          {.name = "rnicd_in_turn", .run = [&] { in_turn_client->RegisterAndDeregister(); }, .operations = regions});
    }
    const auto register_fresh = [&register_own, size] {
      OwnMemory fresh(Source::kSmallPages, size);
      fresh.Populate();
      register_own(fresh.bytes(), 1);
    };
    contenders.push_back({.name = "direct_fresh", .run = register_fresh, .operations = regions});
  }
  return Measure(contenders);
}

}  // namespace

nlohmann::json RegistrationRows(DirectCard& card, const RegistrationDaemons& daemons) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Shape& shape : kShapes) {
    rows.push_back(Row("registration",
                       {{"page_bytes", shape.page_bytes}, {"bytes", shape.bytes}, {"regions", shape.regions}},
                       MeasureShape(card, daemons, shape)));
  }
  return rows;
}

}  // namespace rnicd::vm_bench
