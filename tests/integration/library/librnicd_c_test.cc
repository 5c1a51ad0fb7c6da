// The C interface against the real daemon: sessions, memory, regions and their errors.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/library/librnicd_c_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {
namespace {

TEST_F(RnicdInC, SessionHasItsIdAndSaysWhatItHeld) {
  rnicd_session* session = SessionInC(daemon()).release();
  const std::vector<v1::SessionInfo> sessions = AdminSessions(daemon());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions.front().session_id(), rnicd_session_id(session));
  EXPECT_EQ(sessions.front().label(), "c");
  EXPECT_EQ(sessions.front().tenant(), rnicd_tenant(session));
  rnicd_memory* memory = MemoryInC(session, 8192).release();
  rnicd_mr* mr = MakeInC<rnicd_mr>(rnicd_register_mr, memory, uint64_t{0}, uint64_t{4096}, 0u).release();
  auto reclaimed = RNICD_INIT(rnicd_reclaimed);
  EXPECT_EQ(rnicd_close_session(session, &reclaimed), 0);
  EXPECT_EQ(reclaimed.regions, 1u);
  EXPECT_EQ(reclaimed.pinned_bytes, 4096u);
  EXPECT_EQ(reclaimed.memory_bytes, 8192u);
  // The memory is mapped still, and what was made from the session can be closed.
  EXPECT_EQ(*static_cast<char*>(QueryInC(memory).address), 0);
  EXPECT_EQ(rnicd_deregister_mr(mr), -ECONNRESET);
  EXPECT_EQ(rnicd_close_mr(mr), -ECONNRESET);
  EXPECT_EQ(rnicd_close_memory(memory), -ECONNRESET);
}

TEST_F(RnicdInC, AdaptersAreDescribed) {
  const InC<rnicd_session> session = SessionInC(daemon());
  auto adapter = RNICD_INIT(rnicd_adapter);
  auto listed = RNICD_INIT(rnicd_adapter_info);
  ASSERT_EQ(rnicd_get_adapter(session.get(), 0, &adapter, &listed), 0);
  EXPECT_STRNE(adapter.name, "");
  EXPECT_STRNE(adapter.provider, "");
  auto own = RNICD_INIT(rnicd_adapter_info);
  ASSERT_EQ(rnicd_query_adapter(session.get(), &own), 0);
  EXPECT_EQ(own.version_major, 1u);
  EXPECT_GT(own.max_cq_depth, 0u);
  EXPECT_EQ(own.max_registration_size, listed.max_registration_size);
  EXPECT_EQ(rnicd_get_adapter(session.get(), 10'000, &adapter, nullptr), -ENOENT);
  EXPECT_STREQ(rnicd_reason_name(rnicd_last_error()->reason), "ADAPTER_NOT_FOUND");
  auto options = RNICD_INIT(rnicd_session_options);
  options.adapter_name = "none of this name";
  const InC<rnicd_session> nowhere = SessionInC(daemon(), options);
  EXPECT_EQ(rnicd_query_adapter(nowhere.get(), &own), -ENOENT);
}

TEST_F(RnicdInC, ResultsOfAnOlderProgramAreFilledUpToItsSize) {
  const InC<rnicd_session> session = SessionInC(daemon());
  auto info = RNICD_INIT(rnicd_adapter_info);
  info.size = offsetof(rnicd_adapter_info, max_cq_depth);
  ASSERT_EQ(rnicd_query_adapter(session.get(), &info), 0);
  EXPECT_GT(info.max_registration_size, 0u);
  EXPECT_EQ(info.max_cq_depth, 0u);
}

TEST_F(RnicdInC, MemoryAndRegionAreWhatTheirInfoSays) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const InC<rnicd_memory> memory = MemoryInC(session.get(), 16'384);
  const rnicd_memory_info bytes = QueryInC(memory.get());
  EXPECT_EQ(bytes.bytes, 16'384u);
  EXPECT_EQ(bytes.page_size, 4096u);
  EXPECT_NE(bytes.id, 0u);
  const InC<rnicd_mr> mr =
      MakeInC<rnicd_mr>(rnicd_register_mr, memory.get(), uint64_t{4096}, uint64_t{100}, RNICD_MR_REMOTE_WRITE);
  const rnicd_mr_info info = QueryInC(mr.get());
  EXPECT_EQ(info.address, reinterpret_cast<uintptr_t>(bytes.address) + 4096);
  EXPECT_EQ(info.length, 100u);
  const auto seen = AdminRegion(daemon(), info.id);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->flags(), RNICD_MR_REMOTE_WRITE);
  EXPECT_EQ(rnicd_deregister_mr(mr.get()), 0);
  EXPECT_EQ(QueryInC(mr.get()).remote_token, 0u);
  EXPECT_EQ(rnicd_deregister_mr(mr.get()), -EBADFD);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_REGION_NOT_REGISTERED));
}

TEST_F(RnicdInC, MemoryInUseStaysUntilItsLastRegionIsClosed) {
  const InC<rnicd_session> session = SessionInC(daemon());
  rnicd_memory* memory = MemoryInC(session.get(), 4096).release();
  auto* const byte = static_cast<char*>(QueryInC(memory).address);
  {
    const InC<rnicd_mr> mr = MakeInC<rnicd_mr>(rnicd_register_mr, memory, uint64_t{0}, uint64_t{4096}, 0u);
    EXPECT_EQ(rnicd_close_memory(memory), -EBUSY);
    *byte = 'x';
    EXPECT_EQ(UsedInC(session.get(), "memory_objects"), 1u);
  }
  EXPECT_TRUE(Eventually([&] { return UsedInC(session.get(), "memory_objects") == 0; }));
}

TEST_F(RnicdInC, WrongArgumentsAreRefusedByNameAndLeaveNothing) {
  const InC<rnicd_session> session = SessionInC(daemon());
  auto options = RNICD_INIT(rnicd_memory_options);
  rnicd_memory* none = nullptr;
  options.bytes = 5;
  EXPECT_EQ(rnicd_allocate_memory(session.get(), &options, &none), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_MEMORY_SIZE_UNALIGNED));
  options.page_size = 12345;
  EXPECT_EQ(rnicd_allocate_memory(session.get(), &options, &none), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options.page_size");
  EXPECT_EQ(none, nullptr);
  const InC<rnicd_memory> memory = MemoryInC(session.get(), 8192);
  rnicd_mr* mr = nullptr;
  EXPECT_EQ(rnicd_register_mr(memory.get(), 8193, 0, 0, &mr), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "offset");
  EXPECT_EQ(rnicd_register_mr(memory.get(), 4096, 4097, 0, &mr), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "length");
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_MDL_RANGE_OUTSIDE_MEMORY));
  EXPECT_EQ(rnicd_register_mr(memory.get(), 0, 0, 0, &mr), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_LENGTH_ZERO));
  EXPECT_EQ(rnicd_register_mr(memory.get(), 0, 1, 0x1000, &mr), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->ntstatus, 0xC000000Du);
  rnicd_fast_mr* fast = nullptr;
  EXPECT_EQ(rnicd_create_fast_mr(session.get(), 1, 2, &fast), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "flags");
  EXPECT_EQ(rnicd_create_fast_mr(session.get(), 1u << 20, 0, &fast), -ERANGE);
  EXPECT_EQ(UsedInC(session.get(), "regions"), 0u);
}

TEST_F(RnicdInC, MdlChainNamesPartsOfSeveralMemoriesByOtherAddresses) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const InC<rnicd_memory> one = MemoryInC(session.get(), 8192);
  const InC<rnicd_memory> other = MemoryInC(session.get(), 8192);
  const rnicd_mdl chain[] = {{one.get(), 4096, 4096, 0x10000}, {other.get(), 0, 8192, 0x11000}};
  const InC<rnicd_mr> mr =
      MakeInC<rnicd_mr>(rnicd_register_mdl, session.get(), chain, 2u, uint64_t{10'000}, RNICD_MR_LOCAL_WRITE);
  EXPECT_EQ(QueryInC(mr.get()).address, 0x10000u);
  EXPECT_EQ(QueryInC(mr.get()).length, 10'000u);
  const rnicd_mdl gap[] = {{one.get(), 0, 4096, 0x10000}, {other.get(), 0, 8192, 0x12000}};
  rnicd_mr* none = nullptr;
  EXPECT_EQ(rnicd_register_mdl(session.get(), gap, 2, 10'000, 0, &none), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_MDL_CHAIN_GAP));
  const rnicd_mdl outside[] = {{one.get(), 0, 4096, 0}, {nullptr, 0, 8192, 0}};
  EXPECT_EQ(rnicd_register_mdl(session.get(), outside, 2, 10'000, 0, &none), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "chain[1].memory");
}

TEST_F(RnicdInC, ImportedMemoryIsTheCallersFile) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const int file = memfd_create("c", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 8192), 0);
  ASSERT_EQ(pwrite(file, "mine", 4, 0), 4);
  const InC<rnicd_memory> memory = MakeInC<rnicd_memory>(rnicd_import_memory, session.get(), file, uint64_t{8192});
  close(file);
  EXPECT_EQ(std::string(static_cast<char*>(QueryInC(memory.get()).address), 4), "mine");
  const int plain = memfd_create("c", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(plain, 8192), 0);
  rnicd_memory* none = nullptr;
  EXPECT_EQ(rnicd_import_memory(session.get(), plain, 8192, &none), -EINVAL);
  EXPECT_EQ(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_MEMORY_NOT_SEALABLE));
  close(plain);
}

TEST_F(RnicdInC, MemoryIsWhereTheCallerWantsIt) {
  constexpr uint64_t kBytes = 8192;
  const auto map = [](int flags, int file) { return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, file, 0); };
  const InC<rnicd_session> session = SessionInC(daemon());
  void* const room = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  auto options = RNICD_INIT(rnicd_memory_options);
  options.bytes = kBytes;
  options.address = room;
  rnicd_memory* none = nullptr;
  EXPECT_EQ(rnicd_allocate_memory(session.get(), &options, &none), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "address");
  ASSERT_EQ(munmap(room, kBytes), 0);
  EXPECT_EQ(QueryInC(MakeInC<rnicd_memory>(rnicd_allocate_memory, session.get(), &options).get()).address, room);

  const int file = memfd_create("c", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  void* const mapping = map(MAP_SHARED, file);
  const auto import = [&](void* address) {
    return MakeInC<rnicd_memory>(rnicd_import_mapping, session.get(), file, address, kBytes);
  };
  EXPECT_EQ(QueryInC(import(mapping).get()).address, mapping);
  *static_cast<char*>(mapping) = 'x';
  EXPECT_EQ(rnicd_import_mapping(session.get(), file, &options, kBytes, &none), -EINVAL);
  munmap(mapping, kBytes);
  close(file);
}

TEST_F(RnicdInC, ReplacedPagesKeepTheirAddressAndBytes) {
  constexpr uint64_t kBytes = 8192;
  const InC<rnicd_session> session = SessionInC(daemon());
  auto* const pages =
      static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::strcpy(pages + 100, "mine");
  {
    const InC<rnicd_memory> memory =
        MakeInC<rnicd_memory>(rnicd_replace_memory, session.get(), static_cast<void*>(pages), kBytes);
    EXPECT_EQ(QueryInC(memory.get()).address, pages);
    EXPECT_STREQ(pages + 100, "mine");
    std::strcpy(pages + 100, "ours");
    const InC<rnicd_mr> mr = MakeInC<rnicd_mr>(rnicd_register_mr, memory.get(), uint64_t{0}, kBytes, 0u);
  }
  EXPECT_STREQ(pages + 100, "ours");
  EXPECT_TRUE(Eventually([&] { return UsedInC(session.get(), "memory_objects") == 0; }));
  rnicd_memory* none = nullptr;
  EXPECT_EQ(rnicd_replace_memory(session.get(), pages + 1, 4096, &none), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "pages");
  munmap(pages, kBytes);
}

TEST_F(RnicdInC, BatchesHaveAnOutcomeForEachItem) {
  const InC<rnicd_session> session = SessionInC(daemon());
  rnicd_memory_options options[2] = {RNICD_INIT(rnicd_memory_options), RNICD_INIT(rnicd_memory_options)};
  options[0].bytes = 8192;
  options[1].bytes = 5;
  rnicd_memory* memories[2] = {};
  EXPECT_EQ(rnicd_allocate_batch(session.get(), options, 2, memories), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options[1].size");
  ASSERT_NE(memories[0], nullptr);
  EXPECT_EQ(memories[1], nullptr);
  const InC<rnicd_memory> memory(memories[0]);
  const rnicd_range ranges[] = {{0, 4096, RNICD_MR_LOCAL_WRITE, 0}, {4096, 8192, 0, 0}, {4096, 100, 0, 0}};
  rnicd_mr* mrs[3] = {};
  EXPECT_EQ(rnicd_register_batch(memory.get(), ranges, 3, mrs), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "ranges[1].length");
  EXPECT_EQ(QueryInC(mrs[0]).length, 4096u);
  EXPECT_EQ(mrs[1], nullptr);
  EXPECT_EQ(QueryInC(mrs[2]).length, 100u);
  EXPECT_EQ(rnicd_close_mrs(mrs, 3), 0);
  EXPECT_EQ(mrs[0], nullptr);
  EXPECT_EQ(UsedInC(session.get(), "regions"), 0u);
}

TEST_F(RnicdInC, ProvisionAllocatesAndRegistersAtOnce) {
  const InC<rnicd_session> session = SessionInC(daemon());
  auto options = RNICD_INIT(rnicd_memory_options);
  options.bytes = 8192;
  const rnicd_range ranges[] = {{0, 4096, RNICD_MR_REMOTE_WRITE, 0}, {4096, 4096, 0, 0}};
  rnicd_memory* memory = nullptr;
  rnicd_mr* mrs[2] = {};
  ASSERT_EQ(rnicd_provision(session.get(), &options, ranges, 2, &memory, mrs), 0);
  EXPECT_NE(QueryInC(mrs[0]).remote_token, 0u);
  EXPECT_EQ(QueryInC(mrs[1]).address, reinterpret_cast<uintptr_t>(QueryInC(memory).address) + 4096);
  EXPECT_EQ(rnicd_close_mrs(mrs, 2), 0);
  EXPECT_EQ(rnicd_close_memory(memory), 0);
  options.bytes = 5;
  memory = reinterpret_cast<rnicd_memory*>(&options);
  EXPECT_EQ(rnicd_provision(session.get(), &options, ranges, 2, &memory, mrs), -EINVAL);
  EXPECT_EQ(memory, nullptr);
}

class RnicdInCWithTwoRegions : public RnicdInC {
 protected:
  RnicdInCWithTwoRegions() : RnicdInC({LimitsFlag("session_limits { regions: 2 }")}) {}
};

TEST_F(RnicdInCWithTwoRegions, QuotaIsRefusedWithItsNumbersInTheThreadThatAsked) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const InC<rnicd_memory> memory = MemoryInC(session.get(), 4096);
  const auto make = [&] { return MakeInC<rnicd_mr>(rnicd_register_mr, memory.get(), uint64_t{0}, uint64_t{10}, 0u); };
  const InC<rnicd_mr> one = make();
  const InC<rnicd_mr> two = make();
  std::thread([&] {
    rnicd_mr* none = nullptr;
    EXPECT_EQ(rnicd_register_mr(memory.get(), 0, 10, 0, &none), -EDQUOT);
    const rnicd_error& error = *rnicd_last_error();
    EXPECT_EQ(error.code, EDQUOT);
    EXPECT_EQ(error.reason, static_cast<uint32_t>(RNICD_REASON_QUOTA_REGIONS));
    EXPECT_EQ(error.limit, 2u);
    EXPECT_EQ(error.used, 2u);
    EXPECT_EQ(error.requested, 1u);
    EXPECT_STREQ(error.message, "too many memory regions");
  }).join();
  EXPECT_NE(rnicd_last_error()->reason, static_cast<uint32_t>(RNICD_REASON_QUOTA_REGIONS));
}

}  // namespace
}  // namespace rnicd::test
