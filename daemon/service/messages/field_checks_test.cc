// Which field each bad request is refused for.
#include "daemon/service/messages/field_checks.h"

#include "daemon/service/service_fixture_test.h"
#include "rnicd/v1/adapter_service.pb.h"

namespace rnicd::service {
namespace {

std::string Repeated(std::string_view text, int times) {
  std::string repeated;
  for (int count = 0; count < times; ++count) {
    repeated += text;
  }
  return repeated;
}

// `text`, this often, with its number in place of "#".
std::string Numbered(const std::string& text, int times) {
  std::string numbered;
  for (int count = 0; count < times; ++count) {
    numbered += absl::StrReplaceAll(text, {{"#", std::to_string(count)}});
  }
  return numbered;
}

// Values that are out of range by one character, and UIDs.
const std::map<std::string, std::string>& Values() {
  static const auto* const values =
      new std::map<std::string, std::string>{{"$x64", std::string(64, 'x')},
                                             {"$x65", std::string(65, 'x')},
                                             {"$x254", std::string(254, 'x')},
                                             {"$x318", std::string(318, 'x')},
                                             {"$x31", std::string(31, 'x')},
                                             {"$x33", std::string(33, 'x')},
                                             {"$x32", std::string(32, 'x')},
                                             {"$uid", "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11"},
                                             {"$upper", "0D9E1B5C-90A4-4A3C-8F0E-6D7D5B3F2C11"},
                                             {"$static", std::string(32, 'a')}};
  return *values;
}

struct RefusedRow {
  std::string_view method;
  std::string request;
  std::string_view field;
  ErrorReason reason = ErrorReason::FIELD_OUT_OF_RANGE;
};

std::string PodWith(const std::string& fields) {
  return "pods { uid: '$uid' namespace: 'training' name: 'pod-7' " + fields + " }";
}
std::string HolderWith(const std::string& container) {
  return "pods { namespace: 'ml' name: 'train-0' containers { " + container + " } }";
}
std::string GrantWith(const std::string& fields) { return "name: '$name' " + fields; }
std::string DevicesWith(const std::string& fields) { return GrantWith("devices { " + fields + " }"); }

std::vector<RefusedRow> PodRows() {
  constexpr std::string_view kSetPods = "AdminService.SetPods";
  std::vector<RefusedRow> rows;
  for (const std::string uid : {"pod-7", "$upper", "0d9e1b5c090a4-4a3c-8f0e-6d7d5b3f2c11", "$x31", "$uid"}) {
    rows.push_back({kSetPods, PodWith("") + " pods { uid: '" + uid + "' namespace: 'n' name: 'b' }", "pods[1].uid"});
  }
  rows.insert(rows.end(),
              {{kSetPods, PodWith("") + " pods { uid: '$static' namespace: 'training' name: 'pod-7' }", "pods[1].name"},
               {kSetPods, "pods { uid: '$uid' namespace: '$x64' name: 'a' }", "pods[0].namespace"},
               {kSetPods, "pods { uid: '$uid' name: 'a' }", "pods[0].namespace"},
               {kSetPods, "pods { uid: '$uid' namespace: 'n' name: '$x254' }", "pods[0].name"},
               {kSetPods, "pods { uid: '$uid' namespace: 'n' name: 'two\\nlines' }", "pods[0].name"},
               {kSetPods, "pods { uid: '$uid' namespace: 'n' }", "pods[0].name"},
               {kSetPods, "pods { }", "pods[0].uid"},
               {kSetPods, PodWith("labels { value: 'v' }"), "pods[0].labels[0].key"},
               {kSetPods, PodWith("labels { key: '$x318' }"), "pods[0].labels[0].key"},
               {kSetPods, PodWith("labels { key: 'k' } labels { key: 'k' }"), "pods[0].labels[1].key"},
               {kSetPods, PodWith("labels { key: 'k' value: '$x64' }"), "pods[0].labels[0].value"},
               {kSetPods, PodWith(Numbered("labels { key: '#' } ", 65)), "pods[0].labels"},
               {kSetPods, Repeated("pods { } ", 10'001), "pods"},
               {kSetPods, HolderWith(""), "pods[0].containers[0].name"},
               {kSetPods, HolderWith("name: '$x64'"), "pods[0].containers[0].name"},
               {kSetPods, HolderWith("name: 'c' devices { resource_name: 'r' device_ids: '' }"),
                "pods[0].containers[0].devices[0].device_ids[0]"},
               {kSetPods, HolderWith("name: 'c' " + Repeated("devices { resource_name: 'r' } ", 65)),
                "pods[0].containers[0].devices"},
               {kSetPods, PodWith(Repeated("containers { name: 'c' } ", 1001)), "pods[0].containers"}});
  return rows;
}

std::vector<RefusedRow> GrantRows() {
  constexpr std::string_view kCreate = "AdminService.CreateGrant";
  std::vector<RefusedRow> rows;
  for (const std::string name : {"", "$x64", "two words", "a\\nb"}) {
    rows.push_back({kCreate, "name: '" + name + "'", "name"});
  }
  for (const std::string uid : {"pod-7", "$upper"}) {
    rows.push_back({kCreate, GrantWith("pod_uid: '" + uid + "'"), "pod_uid"});
    rows.push_back({"AdminService.BindGrant", "grant_id: $grant pod_uid: '" + uid + "'", "pod_uid"});
  }
  for (const std::string digest : {"", "$x31", "$x33", "$x64"}) {
    rows.push_back(
        {kCreate, GrantWith("renewal { grant_id: 7 secret_sha256: '" + digest + "' }"), "renewal.secret_sha256"});
  }
  rows.insert(
      rows.end(),
      {{"AdminService.BindGrant", "grant_id: $grant", "pod_uid"},
       {kCreate, GrantWith("lifetime_ms: 346896000000"), "lifetime_ms"},
       {kCreate, GrantWith("limits { pinned_bytes: 5000 }"), "limits.pinned_bytes"},
       {kCreate, GrantWith("limits { memory_bytes: 18446744073709551615 }"), "limits.memory_bytes"},
       {kCreate, GrantWith("limits { requests_per_second: 1000000001 }"), "limits.requests_per_second"},
       {kCreate, GrantWith("limits { regions: 3 } session_limits { regions: 4 }"), "session_limits.regions"},
       {kCreate, GrantWith("session_limits { sessions: 1 }"), "session_limits.sessions"},
       {kCreate, GrantWith("connections { connect { prefix: '::1' } connect { prefix: '::1/0' } }"),
        "connections.connect[1].prefix"},
       {kCreate, GrantWith("connections { listen { prefix: '::1' first_port: 80 last_port: 90 } }"),
        "connections.listen[0].first_port"},
       {kCreate, GrantWith("renewal { secret_sha256: '$x32' }"), "renewal.grant_id"},
       {kCreate, GrantWith("renewal { grant_id: $grant secret_sha256: '$x32' }"), "renewal.grant_id",
        ErrorReason::GRANT_NAME_TAKEN},
       {kCreate, DevicesWith(""), "devices.resource_name"},
       {kCreate, DevicesWith("resource_name: '$x318'"), "devices.resource_name"},
       {kCreate, DevicesWith("resource_name: 'two\\nlines'"), "devices.resource_name"},
       {kCreate, DevicesWith("resource_name: 'r' device_ids: 'm' device_ids: 'm'"), "devices.device_ids[1]"},
       {kCreate, DevicesWith("resource_name: 'r' device_ids: ''"), "devices.device_ids[0]"},
       {kCreate, DevicesWith("resource_name: 'r' device_ids: '$x64'"), "devices.device_ids[0]"},
       {kCreate, DevicesWith("resource_name: 'r' " + Numbered("device_ids: '#' ", 10'001)), "devices.device_ids"}});
  return rows;
}

std::vector<RefusedRow> OtherRows() {
  constexpr ErrorReason kVersion = ErrorReason::NDK_VERSION_UNSUPPORTED;
  const std::string open = "adapter_name: 'soft0' version ";
  return {
      {"SessionService.OpenSession", "label: '$x65'", "label"},
      {"SessionService.OpenSession", "label: 'two\\nlines'", "label"},
      {"SessionService.OpenSession", "grant: 'x'", "grant", ErrorReason::GRANT_REFUSED},
      {"AdapterService.OpenAdapter", "adapter_name: 'soft9'", "adapter_name", ErrorReason::ADAPTER_NOT_FOUND},
      {"AdapterService.OpenAdapter", "adapter_name: '../soft0'", "adapter_name", ErrorReason::ADAPTER_NOT_FOUND},
      {"AdapterService.OpenAdapter", open + "{ }", "version", kVersion},
      {"AdapterService.OpenAdapter", open + "{ major: 1 minor: 3 }", "version", kVersion},
      {"AdapterService.OpenAdapter", open + "{ major: 2 }", "version", kVersion},
      {"AdapterService.OpenAdapter", open + "{ major: 65536 }", "version"},
      {"MemoryService.AllocateMemory", "", "size"},
      {"MemoryService.AllocateMemory", "size: 4097", "size", ErrorReason::MEMORY_SIZE_UNALIGNED},
      {"MemoryService.AllocateMemory", "size: 2101248 page_size: PAGE_SIZE_2MIB", "size",
       ErrorReason::MEMORY_SIZE_UNALIGNED},
      {"MemoryService.AllocateMemory", "size: 4096 numa_node: 1000", "numa_node", ErrorReason::NUMA_NODE_UNKNOWN},
      {"MemoryService.ImportMemory", "size: 9223372036854775808", "size"},
      {"MemoryService.RegisterMr",
       "mr_id: $mr mdl_chain { memory_id: $memory byte_count: 4096 virtual_address: 65536 } length: 4096 flags: 16",
       "flags", ErrorReason::FLAGS_UNKNOWN},
      {"MemoryService.RegisterMr",
       "mr_id: $mr mdl_chain { memory_id: $memory byte_count: 4096 virtual_address: 65536 } length: 4096 flags: 4",
       "flags", ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE},
      {"MemoryService.RegisterMr", "mr_id: $mr length: 1", "mdl_chain", ErrorReason::MDL_CHAIN_EMPTY},
      {"MemoryService.RegisterMr",
       "mr_id: $mr length: 1" + Repeated(" mdl_chain { memory_id: $memory byte_count: 1 virtual_address: 1 }", 8193),
       "mdl_chain", ErrorReason::MDL_CHAIN_TOO_LONG},
      {"MemoryService.BuildLam",
       "adapter_id: $adapter mdl_chain { memory_id: $memory byte_count: 8 virtual_address: 65536 } length: 8 lam_size: "
       "0",
       "lam_size", ErrorReason::BUFFER_TOO_SMALL},
      {"QueueService.GetCqResults", "cq_id: $cq max_results: 1 wait_ms: 60001", "wait_ms"},
      {"QueueService.GetCqResultsEx", "cq_id: $cq max_results: 1 wait_ms: 60001", "wait_ms"},
      {"QueueService.ConnectQp", "qp_id: $qp peer_address: 'nobody'", "peer_address", ErrorReason::QP_ADDRESS_UNKNOWN},
      {"QueueService.Post", "qp_id: $qp", "requests", ErrorReason::BATCH_SIZE},
      {"QueueService.Post", "qp_id: $qp" + Repeated(" requests { receive { } }", 1025), "requests",
       ErrorReason::BATCH_SIZE},
      {"RingService.OpenRing", "entries: 3", "entries"},
      {"AdminService.ListSessions", "page_size: 10001", "page_size"},
      {"AdminService.ListRegions", "page_size: 10001", "page_size"},
      {"AdminService.ListRegions", "page_token: 'not a token'", "page_token"},
      {"AdminService.ListRegions", "page_token: '7'", "page_token"},
      {"AdminService.ListSessions", "page_token: '7.'", "page_token"},
      {"AdminService.ListSessions", "page_token: '7.0.0'", "page_token"},
      {"AdminService.SetLogLevel", "level: 'loud'", "level"},
      {"Health.Check", "service: 'rnicd.dead'", "service", ErrorReason::HEALTH_SERVICE_UNKNOWN},
  };
}

std::vector<RefusedRow> ConnectionRows() {
  constexpr std::string_view kListen = "ConnectionService.Listen";
  constexpr std::string_view kConnect = "ConnectionService.Connect";
  const auto listen = [](const std::string& fields) { return "listener_id: $spare_listener " + fields; };
  const auto connect = [](const std::string& fields) { return "connector_id: $idle qp_id: $idle_qp " + fields; };
  return {
      {kListen, listen("local { address: 'host' }"), "local.address", ErrorReason::ADDRESS_INVALID},
      {kListen, listen("local { port: 65536 }"), "local.port"},
      {kListen, listen("name: 'a/b'"), "name"},
      {kListen, "listener_id: $listener", "listener_id", ErrorReason::LISTENER_STATE},
      {"ConnectionService.ControlConnectEvents", "listener_id: $spare_listener", "listener_id",
       ErrorReason::LISTENER_STATE},
      {kConnect, connect(""), "peer"},
      {kConnect, connect("peer { address: '198.18.0.1' port: 7 } peer_name: 'x'"), "peer"},
      {kConnect, connect("peer { address: '198.18.0.1' }"), "peer.port"},
      {kConnect, connect("peer { address: '198.18.0.1' port: 65536 }"), "peer.port"},
      {kConnect, connect("peer { port: 7 }"), "peer.address", ErrorReason::ADDRESS_INVALID},
      {kConnect, connect("peer_name: 'nobody'"), "peer_name", ErrorReason::NAME_NOT_FOUND},
      {kConnect, connect("peer_name: '$name' shared_endpoint_id: $endpoint local { port: 50000 }"), "local"},
      {kConnect, connect("peer_name: '$name' private_data: '$x64'"), "private_data",
       ErrorReason::PRIVATE_DATA_TOO_LONG},
      {"ConnectionService.Accept", "connector_id: $idle qp_id: $idle_qp", "connector_id", ErrorReason::CONNECTOR_STATE},
      {"ConnectionService.Reject", "connector_id: $requested private_data: '$x254'", "private_data",
       ErrorReason::PRIVATE_DATA_TOO_LONG},
      {"ConnectionService.GetConnectionData", "connector_id: $linked", "connector_id", ErrorReason::CONNECTOR_STATE},
      {"AdminService.ListListeners", "page_size: 10001", "page_size"},
      {"AdminService.ListConnections", "page_token: '7'", "page_token"},
  };
}

class FieldChecks : public ServiceTest {
 protected:
  void ExpectRefused(const std::vector<RefusedRow>& rows) {
    const std::string held = world_.Held();
    for (const RefusedRow& row : rows) {
      SCOPED_TRACE(std::string(row.method) + " " + row.request.substr(0, 200));
      const core::Operation& rules = *MethodNamed(row.method).row;
      const auto connection = rules.needs == core::Needs::kSession  ? client_.connection
                              : rules.Allows(core::Role::kWorkload) ? Connect(client_.process())
                                                                    : Operator();
      ExpectRefusal(Ask(connection, row.method, client_.Text(row.request, Values())), row.reason,
                    std::string(row.field));
    }
    EXPECT_EQ(world_.Held(), held);
    EXPECT_TRUE(world_.tenants.Pods().empty());
    EXPECT_EQ(world_.tenants.Grants().size(), 1u) << "that of the client";
  }

  const Household client_{world_, 1};
};

TEST_F(FieldChecks, NameTheFieldOfAPod) { ExpectRefused(PodRows()); }
TEST_F(FieldChecks, NameTheFieldOfAGrant) { ExpectRefused(GrantRows()); }
TEST_F(FieldChecks, NameTheFieldOfAConnection) { ExpectRefused(ConnectionRows()); }
TEST_F(FieldChecks, NameTheFieldOfAnyOtherRequest) { ExpectRefused(OtherRows()); }

TEST_F(FieldChecks, TakeWhatIsJustInRange) {
  const auto opened = Must<v1::OpenAdapterResponse>(client_, "AdapterService.OpenAdapter",
                                                    "adapter_name: 'soft0' version { major: 1 }");
  EXPECT_EQ(opened.version().minor(), 2u) << "that of the daemon";
  EXPECT_EQ(Ask(Connect(1), "SessionService.OpenSession", "label: '" + std::string(64, '~') + "'").code,
            absl::StatusCode::kOk);
  EXPECT_EQ(Ask(Operator(), "AdminService.SetPods", "pods { uid: '" + std::string(32, 'a') + "' }").code,
            absl::StatusCode::kOk);
  EXPECT_EQ(Ask(Operator(), "AdminService.CreateGrant", "name: 'n' lifetime_ms: 315360000000").code,
            absl::StatusCode::kOk);
}

TEST(IsText, IsPrintableAsciiOfALimitedLength) {
  EXPECT_TRUE(IsText("", 0));
  EXPECT_TRUE(IsText(" ~", 2));
  EXPECT_FALSE(IsText("abc", 2));
  for (const std::string_view wrong :
       std::initializer_list<std::string_view>{"a\nb", "\x7f", "caf\xc3\xa9", std::string_view("\0", 1)}) {
    EXPECT_FALSE(IsText(wrong, 100));
  }
}

TEST(At, NamesAnItem) { EXPECT_EQ(At("pods[1].labels", 3), "pods[1].labels[3]"); }

}  // namespace
}  // namespace rnicd::service
