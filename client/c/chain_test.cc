#include "client/c/chain.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/op_flags.h"

namespace rnicd::c {
namespace {

struct CloseChain {
  void operator()(rnicd_chain* chain) const { rnicd_close_chain(chain); }
};
using OwnedChain = std::unique_ptr<rnicd_chain, CloseChain>;

OwnedChain NewChain() {
  rnicd_chain* chain = nullptr;
  EXPECT_EQ(rnicd_create_chain(&chain), 0);
  return OwnedChain(chain);
}

std::string TextOf(const Sges& sges) {
  const auto bytes = sges.front().inline_data;
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(Chain, HasItsRequestsInOrder) {
  const OwnedChain chain = NewChain();
  const rnicd_sge sges[] = {{1000, 10, 5}, {2000, 20, 6}};
  EXPECT_EQ(rnicd_chain_receive(chain.get(), sges, 2, 1), 0);
  EXPECT_EQ(rnicd_chain_write(chain.get(), sges, 1, 3000, 7, RNICD_OP_SILENT_SUCCESS, 2), 0);
  EXPECT_EQ(rnicd_chain_read(chain.get(), sges + 1, 1, 4000, 8, RNICD_OP_READ_FENCE, 3), 0);
  EXPECT_EQ(rnicd_chain_send_and_invalidate(chain.get(), nullptr, 0, 9, RNICD_OP_SOLICIT, 4), 0);
  ASSERT_EQ(rnicd_chain_length(chain.get()), 4u);
  const std::span<const WorkRequest> all = chain->requests.all();
  EXPECT_EQ(std::get<WorkRequest::Receive>(all[0].operation).sges.size(), 2u);
  const auto& write = std::get<WorkRequest::Write>(all[1].operation);
  EXPECT_EQ(write.sges.front().address, 1000u);
  EXPECT_EQ(write.sges.front().length, 10u);
  EXPECT_EQ(write.sges.front().token, LocalToken{5});
  EXPECT_EQ(write.remote.address, VirtualAddress{3000});
  EXPECT_EQ(write.remote.token, RemoteToken{7});
  EXPECT_EQ(all[1].flags, kOpFlagSilentSuccess);
  EXPECT_EQ(all[1].request_context, 2u);
  EXPECT_EQ(std::get<WorkRequest::Read>(all[2].operation).remote.token, RemoteToken{8});
  const auto& send = std::get<WorkRequest::SendAndInvalidate>(all[3].operation);
  EXPECT_TRUE(send.sges.empty());
  EXPECT_EQ(send.token, RemoteToken{9});
}

TEST(Chain, CopiesInlinePayloads) {
  const OwnedChain chain = NewChain();
  std::string text = "hello";
  for (int number = 0; number < 100; ++number) {
    EXPECT_EQ(rnicd_chain_send_inline(chain.get(), text.data(), text.size(), 0, 0), 0);
  }
  EXPECT_EQ(rnicd_chain_write_inline(chain.get(), nullptr, 0, 1, 2, 0, 0), 0);
  EXPECT_EQ(rnicd_chain_send_inline_and_invalidate(chain.get(), "bye", 3, 4, 0, 0), 0);
  text = "?????";
  const std::span<const WorkRequest> all = chain->requests.all();
  for (int number = 0; number < 100; ++number) {
    EXPECT_EQ(TextOf(std::get<WorkRequest::Send>(all[number].operation).sges), "hello");
    EXPECT_EQ(all[number].flags, kOpFlagInline);
  }
  EXPECT_TRUE(std::get<WorkRequest::Write>(all[100].operation).sges.empty());
  EXPECT_EQ(TextOf(std::get<WorkRequest::SendAndInvalidate>(all[101].operation).sges), "bye");
}

// The lists and payloads are where they were: nothing was allocated for them.
TEST(Chain, UsesItsMemoryAgainAfterAReset) {
  const OwnedChain chain = NewChain();
  const rnicd_sge sges[] = {{1000, 10, 5}, {2000, 20, 6}};
  const auto fill = [&] {
    EXPECT_EQ(rnicd_chain_write(chain.get(), sges, 2, 3000, 7, 0, 2), 0);
    EXPECT_EQ(rnicd_chain_send_inline(chain.get(), "hello", 5, 0, 3), 0);
  };
  fill();
  const WorkRequest* const requests = chain->requests.all().data();
  const Sge* const list = std::get<WorkRequest::Write>(requests[0].operation).sges.data();
  const std::byte* const payload = std::get<WorkRequest::Send>(requests[1].operation).sges.front().inline_data.data();
  EXPECT_EQ(rnicd_reset_chain(chain.get()), 0);
  EXPECT_EQ(rnicd_chain_length(chain.get()), 0u);
  fill();
  EXPECT_EQ(chain->requests.all().data(), requests);
  EXPECT_EQ(std::get<WorkRequest::Write>(requests[0].operation).sges.data(), list);
  EXPECT_EQ(std::get<WorkRequest::Send>(requests[1].operation).sges.front().inline_data.data(), payload);
}

TEST(Chain, ARefusedRequestLeavesItAsItWas) {
  const OwnedChain chain = NewChain();
  EXPECT_EQ(rnicd_chain_send(chain.get(), nullptr, 1, 0, 0), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "sges");
  EXPECT_EQ(rnicd_chain_send_inline(chain.get(), nullptr, 1, 0, 0), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "bytes");
  EXPECT_EQ(rnicd_chain_invalidate_mw(chain.get(), nullptr, 0, 0), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "mw");
  EXPECT_EQ(rnicd_chain_length(chain.get()), 0u);
}

TEST(Chain, NullIsRefusedAndMayBeClosed) {
  EXPECT_EQ(rnicd_create_chain(nullptr), -EINVAL);
  EXPECT_EQ(rnicd_reset_chain(nullptr), -EINVAL);
  EXPECT_EQ(rnicd_chain_receive(nullptr, nullptr, 0, 0), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "chain");
  EXPECT_EQ(rnicd_close_chain(nullptr), 0);
  EXPECT_EQ(rnicd_chain_length(nullptr), 0u);
  EXPECT_EQ(rnicd_chain_posted(nullptr), 0u);
  EXPECT_EQ(rnicd_chain_token(nullptr, 0), 0u);
}

}  // namespace
}  // namespace rnicd::c
