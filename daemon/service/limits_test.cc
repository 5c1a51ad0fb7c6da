// Each limit of a session, reached by the calls that take of it.
#include "absl/strings/ascii.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/service/service_fixture_test.h"

namespace rnicd::service {
namespace {

struct LimitRow {
  core::Resource resource;
  std::string_view method;
  std::string_view request;
};

constexpr std::string_view kRegisterOnePage =
    "mr_id: $mr mdl_chain { memory_id: $memory byte_offset: 8192 byte_count: 4096 virtual_address: 65536 } "
    "length: 4096";
constexpr std::string_view kMapOnePage =
    "adapter_id: $adapter mdl_chain { memory_id: $memory byte_count: 4096 virtual_address: 65536 } length: 4096";
constexpr std::string_view kTwoRequests =
    "pd_id: $pd receive_cq_id: $cq initiator_cq_id: $cq receive_queue_depth: 1 initiator_queue_depth: 1";

// All but those of a uid (sessions), of what waits (pending_requests) and of work requests (posted_pages).
constexpr LimitRow kLimits[] = {
    {core::Resource::kAdapters, "AdapterService.OpenAdapter", ""},
    {core::Resource::kProtectionDomains, "MemoryService.CreatePd", "adapter_id: $adapter"},
    {core::Resource::kMemoryObjects, "MemoryService.AllocateMemory", "size: 4096"},
    {core::Resource::kMemoryObjects, "MemoryService.ImportMemory", "size: 4096"},
    {core::Resource::kMemoryBytes, "MemoryService.AllocateMemory", "size: 4096"},
    {core::Resource::kMemoryBytes, "MemoryService.ImportMemory", "size: 4096"},
    {core::Resource::kRegions, "MemoryService.CreateMr", "pd_id: $pd"},
    {core::Resource::kPinnedBytes, "MemoryService.RegisterMr", kRegisterOnePage},
    {core::Resource::kRegisteredBytes, "MemoryService.RegisterMr", kRegisterOnePage},
    {core::Resource::kLogicalMappings, "MemoryService.BuildLam", kMapOnePage},
    {core::Resource::kLogicalPages, "MemoryService.BuildLam", kMapOnePage},
    {core::Resource::kFastRegisterPages, "MemoryService.InitializeFastRegisterMr",
     "mr_id: $fast adapter_page_count: 1"},
    {core::Resource::kCompletionQueues, "QueueService.CreateCq", "adapter_id: $adapter cq_depth: 1"},
    {core::Resource::kCqEntries, "QueueService.CreateCq", "adapter_id: $adapter cq_depth: 1"},
    {core::Resource::kCqEntries, "QueueService.ResizeCq", "cq_id: $cq cq_depth: 65"},
    {core::Resource::kQueuePairs, "QueueService.CreateQp", kTwoRequests},
    {core::Resource::kQueueEntries, "QueueService.CreateQp", kTwoRequests},
    {core::Resource::kWindows, "QueueService.CreateMw", "pd_id: $pd"},
    {core::Resource::kListeners, "ConnectionService.CreateListener", "adapter_id: $adapter"},
    {core::Resource::kConnectors, "ConnectionService.CreateConnector", "adapter_id: $adapter"},
    {core::Resource::kConnectors, "ConnectionService.CreateSharedEndpoint", "adapter_id: $adapter"},
    {core::Resource::kRings, "RingService.OpenRing", ""},
    {core::Resource::kHeapBytes, "MemoryService.CreateMr", "pd_id: $pd"},
};

// A service whose sessions have limits, outside of a test of its own.
class LimitedService final : public ServiceTest {
 public:
  explicit LimitedService(const core::Limits& session) : ServiceTest(OptionsWith(session)) {}

  // What the client of a Household uses of each resource.
  core::Limits Used() const {
    core::Limits used;
    for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
      const auto resource = static_cast<core::Resource>(index);
      used[resource] = client_.owner.session->ledger().used(resource);
    }
    return used;
  }
  void ExpectRefused(const LimitRow& row, uint64_t limit) {
    const std::string held = world_.Held();
    const ErrorInfo refused = Ask(client_, row.method, row.request).error;
    const std::string reason = "QUOTA_" + absl::AsciiStrToUpper(std::string(core::ResourceName(row.resource)));
    EXPECT_EQ(ReasonAndField(refused), reason + " of ");
    EXPECT_EQ(refused.limit, limit);
    EXPECT_LE(refused.used, limit);
    EXPECT_GT(refused.used + refused.requested, limit);
    EXPECT_EQ(world_.Held(), held) << "a refused call took something";
  }
  void ExpectTaken(const LimitRow& row) {
    EXPECT_EQ(Ask(client_, row.method, row.request).code, absl::StatusCode::kOk);
  }

 private:
  static core::WorldOptions OptionsWith(const core::Limits& session) {
    core::WorldOptions options;
    options.limits.session = session;
    return options;
  }
  void TestBody() override {}

  const Household client_{world_, 1};
};

TEST(LimitsOfASession, RefuseTheCallThatWouldPassThemAndNoneBefore) {
  const core::Limits used = LimitedService({}).Used();
  for (const LimitRow& row : kLimits) {
    SCOPED_TRACE(std::string(core::ResourceName(row.resource)) + " by " + std::string(row.method));
    core::Limits limits;
    limits[row.resource] = used[row.resource];
    ASSERT_NE(limits[row.resource], 0u) << "0 is no limit";
    LimitedService(limits).ExpectRefused(row, limits[row.resource]);
    limits[row.resource] += core::kPage;  // More than any of the calls uses.
    LimitedService(limits).ExpectTaken(row);
  }
}

}  // namespace
}  // namespace rnicd::service
