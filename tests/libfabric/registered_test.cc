#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"
#include "tests/libfabric/fabric_pair.h"
#include "tests/libfabric/start_program.h"

namespace rnicd::fi {
namespace {

class Registered : public LibfabricTest {};
class Heap : public LibfabricTest {};

TEST_F(Registered, ContentsStayWhereTheyAreAndComeBack) {
  Program program;
  const Pages buffer(8192, 5);
  const Pages same(8192, 5);
  Owned<fid_mr> region = program.Register(buffer.data(), 8192, FI_SEND);
  EXPECT_TRUE(buffer.Equals(same, 8192));
  // A part of it is registered a second time.
  const Owned<fid_mr> part = program.Register(buffer.data() + 4096, 4096, FI_RECV);
  EXPECT_NE(fi_mr_desc(region.get()), fi_mr_desc(part.get()));
  region.reset();
  EXPECT_TRUE(buffer.Equals(same, 8192));
}

TEST_F(Registered, WhatSharesAPageIsRefused) {
  Program program;
  const Pages buffer(16384);
  std::array<unsigned char, 8192> stack = {};
  const std::unique_ptr<unsigned char[]> small(new unsigned char[64]);
  static std::array<unsigned char, 100> fixed = {};
  const std::vector<std::pair<void*, size_t>> refused = {
      {stack.data(), stack.size()}, {small.get(), 64},     {fixed.data(), fixed.size()},
      {buffer.data() + 8, 4088},    {buffer.data(), 4095}, {nullptr, 0},
  };
  for (const auto& [address, bytes] : refused) {
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(program.domain.get(), address, bytes, FI_SEND, 0, 0, 0, &region, nullptr), -FI_EOPNOTSUPP);
  }
}

// Against the rules: another part of the program has the addresses by the time the region is closed.
TEST_F(Registered, PagesThatAreUnmappedMeanwhileStayThoseOfTheirNextOwner) {
  Program program;
  Pages buffer(8192);
  const Pages next(8192, 9);
  Owned<fid_mr> region = program.Register(buffer.data(), 8192, FI_SEND);
  const UniqueFd file(memfd_create("next", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 8192), 0);
  ASSERT_EQ(mmap(buffer.data(), 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0), buffer.data());
  std::memcpy(buffer.data(), next.data(), 8192);
  region.reset();
  EXPECT_TRUE(buffer.Equals(next, 8192));
  // Still a mapping of the file.
  ASSERT_EQ(pwrite(file.get(), "new", 3, 0), 3);
  EXPECT_EQ(std::memcmp(buffer.data(), "new", 3), 0);
  // Nothing is mapped there the second time.
  region = program.Register(next.data(), 4096, FI_SEND);
  munmap(next.data(), 4096);
  region.reset();
}

// The same in pages that are the program's own once more.
TEST_F(Registered, PagesThatAreUnmappedMeanwhileAreRegisteredAnew) {
  Pair pair;
  const Pages buffer(8192);
  const Owned<fid_mr> old = pair.server.Register(buffer.data(), 8192, FI_REMOTE_WRITE);
  ASSERT_EQ(mmap(buffer.data(), 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            buffer.data());
  const Owned<fid_mr> region = pair.server.Register(buffer.data(), 8192, FI_REMOTE_WRITE);
  const Pages source(4096, 3);
  const Owned<fid_mr> from = pair.client.Register(source.data(), 4096, FI_WRITE);
  ASSERT_EQ(fi_write(pair.client_endpoint.get(), source.data(), 4096, fi_mr_desc(from.get()), 0,
                     reinterpret_cast<uintptr_t>(buffer.data()), region->key, nullptr),
            0);
  pair.client.NextCompletion();
  EXPECT_TRUE(buffer.Equals(source, 4096));
}

TEST_F(Registered, WithoutRemoteAccessHasNoKey) {
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> region = pair.server.Register(buffer.data(), 4096, FI_SEND | FI_RECV | FI_READ | FI_WRITE);
  EXPECT_EQ(fi_mr_key(region.get()), FI_KEY_NOTAVAIL);
  const Owned<fid_mr> target = pair.server.Register(buffer.data(), 4096, FI_REMOTE_READ);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  // The second is that of the target, but for a bit that no key has.
  for (const uint64_t key : {FI_KEY_NOTAVAIL, fi_mr_key(target.get()) | uint64_t{1} << 32}) {
    EXPECT_EQ(fi_inject_write(pair.client_endpoint.get(), "x", 1, 0, address, key), -FI_EKEYREJECTED);
    EXPECT_EQ(fi_read(pair.client_endpoint.get(), nullptr, 0, nullptr, 0, address, key, nullptr), -FI_EKEYREJECTED);
  }
}

// Also those that are resized or freed while they are registered.
TEST_F(Heap, OfWhichEachBlockIsAMappingCanBeRegistered) {
  const std::unique_ptr<test::ChildProcess> program = StartProgram({"heap", "0", "0"}, OnThePreloadedHeap());
  ASSERT_NE(program, nullptr);
  const auto end = program->WaitForEnd(test::kTimeout);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0) << "signal " << end->signal << ": " << program->errors().Text();
}

TEST_F(Registered, DomainWithARegionIsNotClosed) {
  Program program;
  const Pages buffer(4096);
  const Owned<fid_mr> region = program.Register(buffer.data(), 4096, FI_SEND);
  program.completions.reset();
  EXPECT_EQ(fi_close(&program.domain->fid), -FI_EBUSY);
}

}  // namespace
}  // namespace rnicd::fi
