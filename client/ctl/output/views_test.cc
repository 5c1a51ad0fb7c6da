#include "client/ctl/output/views.h"

#include "client/ctl/output/resource_use_test.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

v1::ListAdaptersResponse SomeAdapters() {
  v1::ListAdaptersResponse adapters;
  v1::AdapterSummary* soft = adapters.add_adapters();
  soft->set_name("soft0");
  soft->set_provider("soft");
  soft->set_numa_node(-1);
  soft->mutable_info()->mutable_version()->set_major(1);
  soft->mutable_info()->mutable_version()->set_minor(2);
  soft->mutable_info()->set_max_registration_size(64ull << 30);
  soft->mutable_info()->set_max_inbound_read_limit(16);
  soft->mutable_info()->set_max_outbound_read_limit(8);
  soft->mutable_info()->set_max_cq_depth(65536);
  v1::AdapterSummary* card = adapters.add_adapters();
  card->set_name("mlx5_0");
  card->set_provider("verbs");
  card->set_numa_node(1);
  card->mutable_info()->set_rdma_technology(v1::RDMA_TECHNOLOGY_ROCE_V2);
  return adapters;
}

std::vector<v1::SessionInfo> SomeSessions() {
  v1::SessionInfo session;
  session.set_session_id(17);
  session.set_label("trainer");
  session.set_pid(4242);
  session.set_uid(65534);
  session.set_gid(65534);
  session.set_tenant("grant/ml");
  session.set_age_ms(65'000);
  session.set_connections(1);
  *session.add_resources() = Use("memory_bytes", 64u << 20, 0);
  *session.add_resources() = Use("pinned_bytes", 32u << 20, 1u << 30);
  *session.add_resources() = Use("regions", 3, 100);
  return {session};
}

std::vector<v1::RegionInfo> SomeRegions() {
  v1::RegionInfo region;
  region.set_session_id(17);
  region.set_mr_id(5);
  region.set_pid(4242);
  region.set_uid(65534);
  region.set_adapter_name("soft0");
  region.set_state("registered");
  region.set_base_virtual_address(0x7f0000000000);
  region.set_length(64u << 20);
  region.set_pages(16384);
  region.set_page_size(v1::PAGE_SIZE_4KIB);
  region.set_flags(5);
  v1::RegionInfo fresh;
  fresh.set_session_id(17);
  fresh.set_mr_id(6);
  fresh.set_pid(4242);
  fresh.set_uid(65534);
  fresh.set_adapter_name("soft0");
  fresh.set_state("created");
  return {region, fresh};
}

OwnMemory SomeMemory() {
  return OwnMemory{.session_id = 17,
                   .memory_id = 3,
                   .address = 0x7f0000000000,
                   .size = 1u << 20,
                   .page_bytes = 4096,
                   .imported = true,
                   .regions = {{.mr_id = 5,
                                .base_virtual_address = 0x7f0000000000,
                                .length = 1u << 20,
                                .local_token = 0xab00,
                                .remote_token = 0xcd01}},
                   .flags = 7};
}

TEST(Views, Adapters) {
  EXPECT_EQ(AdaptersText(SomeAdapters()),
            "NAME    PROVIDER  TECHNOLOGY  NDK  NUMA NODE  MAX REGISTRATION  READ LIMIT IN/OUT  MAX CQ DEPTH  "
            "FAST REGISTRATION\n"
            "soft0   soft      none        1.2          -            64 GiB               16/8         65536  -\n"
            "mlx5_0  verbs     rocev2      0.0          1               0 B                0/0             0  -\n");
  const Json json = AdaptersJson(SomeAdapters());
  EXPECT_EQ(json["adapters"][0]["info"]["max_registration_size"], 64ull << 30);
  EXPECT_EQ(json["adapters"][0]["info"].size(), 22u);
  EXPECT_EQ(json["adapters"][1]["info"]["rdma_technology"], "rocev2");
}

TEST(Views, Sessions) {
  EXPECT_EQ(SessionsText(SomeSessions()),
            "SESSION   PID    UID  TENANT    LABEL        AGE  CONNECTIONS  MEMORY  PINNED  REGIONS  RINGS\n"
            "     17  4242  65534  grant/ml  trainer  1 m 5 s            1  64 MiB  32 MiB        3      0\n");
  EXPECT_EQ(SessionsJson(SomeSessions()).dump(),
            R"({"sessions":[{"session_id":"17","label":"trainer","pid":4242,"uid":65534,"gid":65534,"sid":"",)"
            R"("tenant":"grant/ml","pod_uid":"","container_id":"","age_ms":65000,)"
            R"("connections":1,"ending":false,"resources":{"memory_bytes":{"used":67108864,"limit":0},)"
            R"("pinned_bytes":{"used":33554432,"limit":1073741824},"regions":{"used":3,"limit":100}}}]})");
  EXPECT_EQ(SessionsJson({}).dump(), R"({"sessions":[]})");
}

TEST(Views, GenerationOfEachItemIsShownWhereThereAreSeveral) {
  const std::vector<v1::RegionInfo> regions = SomeRegions();
  const std::vector<uint32_t> generations = {2, 1};
  EXPECT_EQ(RegionsText(regions).find("GENERATION"), std::string::npos);
  EXPECT_NE(RegionsText(regions, generations).find("local-write,remote-write           2\n"), std::string::npos);
  EXPECT_FALSE(RegionsJson(regions)["regions"][1].contains("generation"));
  EXPECT_EQ(RegionsJson(regions, generations)["regions"][1]["generation"], 1);
}

TEST(Views, OlderGenerationHasALineInTheStatus) {
  std::vector<v1::GetStatusResponse> older(1);
  older[0].set_generation(1);
  older[0].set_sessions(3);
  older[0].set_pid(98);
  older[0].set_version("0.0.9");
  EXPECT_NE(StatusText({}, older).find("\ngeneration 1  has handed over; 3 sessions, pid 98, version 0.0.9\n"),
            std::string::npos);
  EXPECT_EQ(StatusJson({}, older)["older_generations"][0]["sessions"], 3);
}

TEST(Views, Regions) {
  EXPECT_EQ(
      RegionsText(SomeRegions()),
      "SESSION  REGION   PID    UID  ADAPTER  KIND    STATE       BASE ADDRESS    LENGTH  PAGES  PAGE SIZE  FLAGS\n"
      "     17       5  4242  65534  soft0    normal  registered  0x7f0000000000  64 MiB  16384      4 KiB  "
      "local-write,remote-write\n"
      "     17       6  4242  65534  soft0    normal  created     -                    -      -          -  -\n");
  EXPECT_EQ(RegionsJson({SomeRegions().front()}).dump(),
            R"({"regions":[{"session_id":"17","mr_id":"5","pid":4242,"uid":65534,"adapter_name":"soft0",)"
            R"("fast_register":false,"state":"registered","base_virtual_address":"0x7f0000000000","length":67108864,)"
            R"("pages":16384,"page_size":4096,"flags":5}]})");
}

TEST(Views, Status) {
  v1::GetStatusResponse status;
  status.set_version("0.1.0");
  status.set_provider("soft");
  status.set_pid(99);
  status.set_uptime_ms(3'000);
  status.set_generation(2);
  status.set_metrics_address("127.0.0.1:9747");
  status.set_sessions(1);
  status.set_tenants(2);
  status.set_grants(1);
  status.set_resident_bytes(20u << 20);
  *status.add_resources() = Use("pinned_bytes", 64u << 20, 0);
  *status.add_resources() = Use("sessions", 1, 4096);
  EXPECT_EQ(StatusText(status),
            "version           0.1.0\n"
            "provider          soft\n"
            "pid               99\n"
            "uptime            3 s\n"
            "generation        2\n"
            "draining          no\n"
            "policy            each uid is a tenant\n"
            "metrics           http://127.0.0.1:9747/metrics\n"
            "connections       0\n"
            "sessions          1\n"
            "sessions ending   0\n"
            "tenants           2\n"
            "grants            1\n"
            "registered pages  0\n"
            "device regions    0\n"
            "fd tickets        0\n"
            "open fds          0\n"
            "threads           0\n"
            "resident memory   20 MiB\n"
            "\n"
            "RESOURCE        USED     LIMIT\n"
            "pinned_bytes  64 MiB  no limit\n"
            "sessions           1      4096\n");
  EXPECT_EQ(StatusJson(status)["resources"]["sessions"]["limit"], 4096);
  EXPECT_EQ(StatusJson(status)["draining"], false);
  status.set_draining(true);
  status.set_policy_file("/etc/rnicd/policy");
  EXPECT_NE(StatusText(status).find("draining          yes\npolicy            /etc/rnicd/policy\n"), std::string::npos);
  EXPECT_EQ(StatusJson(status)["policy_file"], "/etc/rnicd/policy");
  EXPECT_EQ(StatusText(status).find("REFUSED"), std::string::npos);
  status.set_policy_error("/etc/rnicd/policy:1: unknown field");
  EXPECT_NE(StatusText(status).find("REFUSED"), std::string::npos);
  EXPECT_EQ(StatusJson(status)["policy_error"], "/etc/rnicd/policy:1: unknown field");
  status.clear_metrics_address();
  EXPECT_NE(StatusText(status).find("metrics           off\n"), std::string::npos);
}

TEST(Views, OwnMemory) {
  EXPECT_EQ(OwnMemoryText(SomeMemory()),
            "session    17\n"
            "memory     3\n"
            "origin     imported\n"
            "address    0x7f0000000000\n"
            "size       1 MiB\n"
            "page size  4 KiB\n"
            "\n"
            "REGION  BASE ADDRESS    LENGTH  LOCAL TOKEN  REMOTE TOKEN  FLAGS\n"
            "     5  0x7f0000000000   1 MiB  0x0000ab00   0x0000cd01    local-write,remote-read,remote-write\n");
  EXPECT_EQ(
      OwnMemoryJson(SomeMemory()).dump(),
      R"({"session_id":"17","memory":{"memory_id":"3","imported":true,"address":"0x7f0000000000","size":1048576,)"
      R"("page_size":4096,"transparent_huge_pages":false,"from_pool":false},"regions":[{"mr_id":"5","base_virtual_address":"0x7f0000000000","length":1048576,)"
      R"("local_token":43776,"remote_token":52481,"flags":7}]})");
  OwnMemory allocated = SomeMemory();
  allocated.from_pool = true;
  EXPECT_NE(OwnMemoryText(allocated).find("page size  4 KiB, ready in the pool\n"), std::string::npos);
  allocated.regions.clear();
  EXPECT_FALSE(OwnMemoryJson(allocated).contains("regions"));
}

TEST(Views, MemoryPoolIsShownWhereThereIsOne) {
  v1::GetStatusResponse status;
  EXPECT_EQ(StatusText(status).find("POOL"), std::string::npos);
  EXPECT_FALSE(StatusJson(status).contains("memory_pool"));
  v1::MemoryPoolClass& files = *status.mutable_memory_pool()->add_classes();
  files.set_page_bytes(2u << 20);
  files.set_numa_node(1);
  files.set_file_bytes(1u << 30);
  files.set_files(4);
  files.set_ready(3);
  v1::MemoryPoolService& service = *status.mutable_memory_pool()->add_services();
  service.set_page_bytes(2u << 20);
  service.set_hits(7);
  service.set_misses(2);
  status.mutable_memory_pool()->set_blocked("no pages");
  EXPECT_NE(StatusText(status).find("\nPOOL PAGES  NODE   FILE  READY  WANTED\n"
                                    "2 MiB          1  1 GiB      3       4\n"
                                    "\nPOOL PAGES  HITS  MISSES\n"
                                    "2 MiB          7       2\n"
                                    "\nThe pool cannot be refilled: no pages\n"),
            std::string::npos)
      << StatusText(status);
  EXPECT_EQ(StatusJson(status)["memory_pool"]["classes"][0]["ready"], 3);
}

TEST(Views, ProgressIsABarOfFixedWidth) {
  EXPECT_EQ(ProgressLine(1u << 20, 4u << 20), "allocating [##########..............................] 1 MiB of 4 MiB");
  EXPECT_EQ(ProgressLine(0, 0), "allocating [........................................] 0 B of 0 B");
}

TEST(Views, DemoSteps) {
  EXPECT_EQ(DemoStepText({.number = 3, .text = "the owner gets memory"}), " 3. the owner gets memory\n");
  EXPECT_EQ(DemoStepText({.number = 12, .text = "ONE work request", .microseconds = 81}),
            "12. ONE work request (81 us)\n");
}

TEST(Views, FastRegisterReport) {
  const FastRegisterReport report{
      .pages = 2,
      .bytes = 8192,
      .seed = 7,
      .base_virtual_address = 0x7f0000000000,
      .remote_token = 0xcd01,
      .steps = {{.number = 1, .text = "first", .microseconds = 81}, {.number = 2, .text = "second"}},
      .held = true};
  EXPECT_EQ(FastRegisterVerdict(report),
            "It held: 2 pages, one work request, one token; every byte in its page, no access after the "
            "invalidation.\n");
  EXPECT_EQ(FastRegisterJson(report).dump(),
            R"({"demo":"fast-register","pages":2,"bytes":8192,"seed":7,"base_virtual_address":"0x7f0000000000",)"
            R"("remote_token":52481,"steps":[{"number":1,"text":"first","microseconds":81},)"
            R"({"number":2,"text":"second"}],"held":true})");
}

TEST(Views, PingpongReportOfEachSide) {
  PingpongReport report{.bytes = 1u << 20,
                        .rounds = 100,
                        .write_us = 81,
                        .read_us = 92,
                        .steps = {{.number = 1, .text = "first"}},
                        .held = true};
  EXPECT_EQ(PingpongVerdict(report), "It held: 1 MiB of another process were written and read, every byte.\n");
  EXPECT_EQ(PingpongJson(report).dump(),
            R"({"role":"connector","bytes":1048576,"rounds":100,"write_microseconds":81,"read_microseconds":92,)"
            R"("steps":[{"number":1,"text":"first"}],"held":true})");
  report.listened = true;
  EXPECT_EQ(PingpongVerdict(report),
            "It held: another process wrote 1 MiB into this memory, and every byte is as it says.\n");
  EXPECT_EQ(PingpongJson(report).dump(),
            R"({"role":"listener","bytes":1048576,"steps":[{"number":1,"text":"first"}],"held":true})");
}

}  // namespace
}  // namespace rnicd::ctl
