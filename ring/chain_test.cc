#include "ring/chain.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "ring/layout.h"

namespace rnicd::ring {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

// Every field of a request as text, so that a difference can be read.
struct TextOf {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(const WorkRequest::Send& send) const { return "send" + Text(send.sges); }
  std::string operator()(const WorkRequest::SendAndInvalidate& send) const {
    return "send_and_invalidate " + std::to_string(send.token.value) + Text(send.sges);
  }
  std::string operator()(const WorkRequest::Receive& receive) const { return "receive" + Text(receive.sges); }
  std::string operator()(const WorkRequest::Read& read) const { return "read" + Text(read.remote) + Text(read.sges); }
  std::string operator()(const WorkRequest::Write& write) const {
    return "write" + Text(write.remote) + Text(write.sges);
  }
  std::string operator()(const WorkRequest::FastRegister& operation) const {
    std::string text = "fast_register " + std::to_string(operation.region.value) + " fbo " +
                       std::to_string(operation.fbo) + " length " + std::to_string(operation.length) + " base " +
                       std::to_string(operation.base_address.value) + " pages";
    for (const uint64_t page : operation.pages) {
      text += " " + std::to_string(page);
    }
    return text;
  }
  std::string operator()(const WorkRequest::Invalidate& operation) const {
    if (const auto* region = std::get_if<MemoryRegionId>(&operation.target)) {
      return "invalidate region " + std::to_string(region->value);
    }
    if (const auto* window = std::get_if<MemoryWindowId>(&operation.target)) {
      return "invalidate window " + std::to_string(window->value);
    }
    return "invalidate nothing";
  }
  std::string operator()(const WorkRequest::Bind& operation) const {
    return "bind " + std::to_string(operation.region.value) + " " + std::to_string(operation.window.value) + " at " +
           std::to_string(operation.address.value) + " length " + std::to_string(operation.length);
  }

  static std::string Text(const RemoteMemory& remote) {
    return " " + std::to_string(remote.address.value) + ":" + std::to_string(remote.token.value);
  }
  static std::string Text(const Sges& sges) {
    std::string text;
    for (const Sge& sge : sges) {
      text += " [" + std::to_string(sge.address) + "+" + std::to_string(sge.length) + " " +
              std::to_string(sge.token.value) + " '" +
              std::string(reinterpret_cast<const char*>(sge.inline_data.data()), sge.inline_data.size()) + "']";
    }
    return text;
  }
};

std::string Text(const WorkRequest& request) {
  return std::to_string(request.request_context) + " " + std::to_string(request.flags) + " " +
         std::visit(TextOf(), request.operation);
}

// The payload of a chain.
std::vector<uint64_t> Encoded(std::span<const WorkRequest> chain) {
  std::vector<uint64_t> payload;
  for (const WorkRequest& request : chain) {
    const absl::StatusOr<size_t> bytes = EncodedBytes(request);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(bytes.value_or(0) % kPayloadUnit, 0u);
    const size_t begin = payload.size();
    payload.resize(begin + bytes.value_or(0) / kPayloadUnit);
    EXPECT_EQ(Encode(request, reinterpret_cast<std::byte*>(payload.data() + begin)), bytes.value_or(0));
  }
  return payload;
}

void ExpectRoundTrip(const std::vector<WorkRequest>& chain) {
  const std::vector<uint64_t> payload = Encoded(chain);
  std::vector<WorkRequest> decoded;
  const absl::Status status = DecodeChain(payload, static_cast<uint32_t>(chain.size()), &decoded);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(decoded.size(), chain.size());
  for (size_t index = 0; index < chain.size(); ++index) {
    EXPECT_EQ(Text(decoded[index]), Text(chain[index]));
  }
}

WorkRequest With(WorkRequest::Operation operation, uint32_t flags = kOpFlagDefer) {
  return {.request_context = 0xfedcba9876543210, .flags = flags, .operation = std::move(operation)};
}

Sges TwoSges() {
  return {{.address = UINT64_MAX - 1, .length = 0, .token = {7}},
          {.address = 0x2000, .length = UINT32_MAX, .token = {UINT32_MAX}}};
}

constexpr RemoteMemory kRemote{.address = {0x123456789abcdef0}, .token = {0xabcdef01}};

TEST(Chain, EveryOperationArrivesWithEveryField) {
  const uint64_t pages[] = {0x1000, UINT64_MAX, 0, 0x3000};
  ExpectRoundTrip({With(WorkRequest::Send{TwoSges()})});
  ExpectRoundTrip({With(WorkRequest::SendAndInvalidate{.sges = TwoSges(), .token = RemoteToken{0xabcdef02}})});
  ExpectRoundTrip({With(WorkRequest::Receive{TwoSges()})});
  ExpectRoundTrip({With(WorkRequest::Read{.sges = TwoSges(), .remote = kRemote})});
  ExpectRoundTrip({With(WorkRequest::Write{.sges = TwoSges(), .remote = kRemote})});
  ExpectRoundTrip({With(WorkRequest::FastRegister{.region = MemoryRegionId{0xaaaa0000bbbb1111},
                                                  .pages = pages,
                                                  .fbo = 0xfedcba98,
                                                  .length = 0x123456789,
                                                  .base_address = VirtualAddress{0xfedc000012340000}})});
  ExpectRoundTrip({With(WorkRequest::Invalidate{.target = MemoryRegionId{0xaaaa0000bbbb1112}})});
  ExpectRoundTrip({With(WorkRequest::Invalidate{.target = MemoryWindowId{0xaaaa0000bbbb1113}})});
  ExpectRoundTrip({With(WorkRequest::Bind{.region = MemoryRegionId{0xaaaa0000bbbb1114},
                                          .window = MemoryWindowId{0xaaaa0000bbbb1115},
                                          .address = VirtualAddress{0xaaaa0000bbbb1116},
                                          .length = 0xaaaa0000bbbb1117})});
}

TEST(Chain, EveryFlagArrives) {
  for (uint32_t bit = 0; bit < 32; ++bit) {
    ExpectRoundTrip({With(WorkRequest::Invalidate{.target = MemoryRegionId{1}}, 1U << bit)});
  }
}

TEST(Chain, RequestsWithoutSgesOrPagesArrive) {
  ExpectRoundTrip({With(WorkRequest::Send{}), With(WorkRequest::Read{.sges = {}, .remote = kRemote}),
                   With(WorkRequest::FastRegister{.region = MemoryRegionId{1}}),
                   With(WorkRequest::Send{}, kOpFlagInline), With(WorkRequest::Receive{})});
}

TEST(Chain, InlineDataArrivesBehindItsEntriesAndIsFilledUp) {
  for (size_t first = 0; first < 20; ++first) {
    const std::string text(first, 'a');
    // The next request proves that the reader is at the right place.
    ExpectRoundTrip({With(WorkRequest::Write{.sges = {Sge::Inline(BytesOf(text)), Sge::Inline(BytesOf("behind"))},
                                             .remote = kRemote},
                          kOpFlagInline),
                     With(WorkRequest::Send{TwoSges()})});
  }
}

TEST(Chain, AMixtureArrivesInOrder) {
  const std::vector<uint64_t> pages(256, 0x5000);
  std::vector<WorkRequest> chain;
  for (uint32_t number = 0; number < kChainMax; ++number) {
    switch (number % 3) {
      case 0:
        chain.push_back(With(WorkRequest::FastRegister{.region = MemoryRegionId{number},
                                                       .pages = std::span(pages).first(number % pages.size())}));
        break;
      case 1:
        chain.push_back(With(WorkRequest::Send{{Sge::Inline(BytesOf("seven b"))}}, kOpFlagInline));
        break;
      default:
        chain.push_back(With(WorkRequest::Invalidate{.target = MemoryRegionId{number}}));
    }
  }
  ExpectRoundTrip(chain);
}

TEST(Chain, AChainReplacesAnother) {
  std::vector<WorkRequest> decoded(7, With(WorkRequest::Read{.sges = TwoSges(), .remote = kRemote}));
  const WorkRequest send = With(WorkRequest::Send{});
  ASSERT_TRUE(DecodeChain(Encoded({&send, 1}), 1, &decoded).ok());
  ASSERT_EQ(decoded.size(), 1u);
  EXPECT_EQ(Text(decoded[0]), Text(send));
}

// --- What cannot be written ---

TEST(EncodedBytes, ARequestWithoutAnOperationIsRefused) {
  for (const WorkRequest& request : {With({}), With(WorkRequest::Invalidate{})}) {
    const absl::Status refused = EncodedBytes(request).status();
    EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE)) << refused;
    EXPECT_EQ(ErrorInfoOf(refused).field, "operation");
  }
}

TEST(EncodedBytes, FourGibibytesInOneSgeAreRefused) {
  const Sges sges = {{}, {.address = 1, .length = uint64_t{1} << 32}};
  EXPECT_TRUE(FailedWith(EncodedBytes(With(WorkRequest::Send{sges})).status(), ErrorReason::TRANSFER_TOO_LONG));
}

TEST(EncodedBytes, MoreEntriesThanARecordCountsAreRefused) {
  const size_t most = UINT16_MAX;
  EXPECT_TRUE(EncodedBytes(With(WorkRequest::Send{Sges(most)})).ok());
  EXPECT_TRUE(FailedWith(EncodedBytes(With(WorkRequest::Send{Sges(most + 1)})).status(), ErrorReason::SGE_COUNT));
  const std::vector<uint64_t> pages(most + 1);
  EXPECT_TRUE(
      FailedWith(EncodedBytes(With(WorkRequest::FastRegister{.pages = pages})).status(), ErrorReason::SGE_COUNT));
}

// --- What cannot be read ---

void ExpectRefused(std::span<const uint64_t> payload, uint32_t count, ErrorReason reason, std::string_view field) {
  std::vector<WorkRequest> decoded;
  const absl::Status refused = DecodeChain(payload, count, &decoded);
  EXPECT_TRUE(FailedWith(refused, reason)) << refused;
  EXPECT_EQ(ErrorInfoOf(refused).field, field);
}

// A payload of one record, and some words behind it.
std::vector<uint64_t> PayloadOf(const RequestRecord& record, size_t words_behind = 0) {
  std::vector<uint64_t> payload(sizeof(record) / sizeof(uint64_t) + words_behind);
  std::memcpy(payload.data(), &record, sizeof(record));
  return payload;
}

TEST(DecodeChain, ChainsHaveOneTo1024Requests) {
  const std::vector<uint64_t> payload = PayloadOf({.operation = Operation::kSend});
  ExpectRefused(payload, 0, ErrorReason::BATCH_SIZE, "count");
  ExpectRefused(payload, kChainMax + 1, ErrorReason::BATCH_SIZE, "count");
  ExpectRefused(payload, UINT32_MAX, ErrorReason::BATCH_SIZE, "count");
}

TEST(DecodeChain, ATruncatedRecordIsRefused) {
  const WorkRequest chain[] = {With(WorkRequest::Send{}), With(WorkRequest::Send{})};
  const std::vector<uint64_t> payload = Encoded(chain);
  for (size_t words = payload.size() / 2; words < payload.size(); ++words) {
    ExpectRefused(std::span(payload).first(words), 2, ErrorReason::FIELD_OUT_OF_RANGE, "requests[1].payload_bytes");
  }
  ExpectRefused({}, 1, ErrorReason::FIELD_OUT_OF_RANGE, "requests[0].payload_bytes");
}

TEST(DecodeChain, UnknownOperationsAreRefused) {
  for (uint32_t number = 0; number <= UINT8_MAX; ++number) {
    if (number < 1 || number > 9) {
      ExpectRefused(PayloadOf({.operation = static_cast<Operation>(number)}), 1, ErrorReason::FIELD_OUT_OF_RANGE,
                    "requests[0].operation");
    }
  }
}

TEST(DecodeChain, ReservedBytesMustBeZero) {
  ExpectRefused(PayloadOf({.operation = Operation::kSend, .reserved = 1}), 1, ErrorReason::FIELD_OUT_OF_RANGE,
                "requests[0].reserved");
  ExpectRefused(PayloadOf({.operation = Operation::kSend, .reserved2 = uint64_t{1} << 63}), 1,
                ErrorReason::FIELD_OUT_OF_RANGE, "requests[0].reserved");
}

TEST(DecodeChain, MoreEntriesThanThePayloadHoldsAreRefused) {
  for (const Operation operation : {Operation::kSend, Operation::kSendAndInvalidate, Operation::kReceive,
                                    Operation::kRead, Operation::kWrite, Operation::kFastRegister}) {
    ExpectRefused(PayloadOf({.operation = operation, .count = 1}), 1, ErrorReason::FIELD_OUT_OF_RANGE,
                  "requests[0].count");
    ExpectRefused(PayloadOf({.operation = operation, .count = UINT16_MAX}, 100), 1, ErrorReason::FIELD_OUT_OF_RANGE,
                  "requests[0].count");
  }
  // Half an SGE.
  ExpectRefused(PayloadOf({.operation = Operation::kSend, .count = 2}, 3), 1, ErrorReason::FIELD_OUT_OF_RANGE,
                "requests[0].count");
}

TEST(DecodeChain, InlineDataBehindThePayloadIsRefused) {
  const std::string text = "more than a word";
  const WorkRequest request = With(WorkRequest::Send{{Sge::Inline(BytesOf(text))}}, kOpFlagInline);
  const std::vector<uint64_t> payload = Encoded({&request, 1});
  ExpectRefused(std::span(payload).first(payload.size() - 1), 1, ErrorReason::FIELD_OUT_OF_RANGE,
                "requests[0].payload_bytes");
}

TEST(DecodeChain, InlineLengthsDoNotOverflow) {
  std::vector<uint64_t> payload =
      PayloadOf({.flags = kOpFlagInline, .operation = Operation::kWrite, .count = UINT16_MAX}, size_t{2} * UINT16_MAX);
  const SgeRecord longest{.address = 0, .length = UINT32_MAX, .token = 0};
  for (size_t index = 0; index < UINT16_MAX; ++index) {
    std::memcpy(payload.data() + sizeof(RequestRecord) / sizeof(uint64_t) + 2 * index, &longest, sizeof(longest));
  }
  ExpectRefused(payload, 1, ErrorReason::FIELD_OUT_OF_RANGE, "requests[0].payload_bytes");
}

TEST(DecodeChain, BytesBehindTheChainAreIgnored) {
  std::vector<WorkRequest> decoded;
  EXPECT_TRUE(DecodeChain(PayloadOf({.operation = Operation::kSend}, 9), 1, &decoded).ok());
}

// --- MDL chains ---

std::vector<uint64_t> EncodedMdl(std::span<const MdlEntry> chain) {
  std::vector<uint64_t> payload(chain.size() * kMdlBytes / sizeof(uint64_t));
  for (size_t index = 0; index < chain.size(); ++index) {
    Encode(chain[index], reinterpret_cast<std::byte*>(payload.data()) + index * kMdlBytes);
  }
  return payload;
}

TEST(MdlChain, EveryFieldArrives) {
  const std::vector<MdlEntry> chain = {{.memory_id = MemoryObjectId{0xfedcba9876543210},
                                        .byte_offset = 0x1111222233334444,
                                        .byte_count = 0x5555666677778888,
                                        .virtual_address = VirtualAddress{0x9999aaaabbbbcccc}},
                                       {.memory_id = MemoryObjectId{2}, .byte_count = 1}};
  std::vector<MdlEntry> decoded(5);
  ASSERT_TRUE(DecodeMdlChain(EncodedMdl(chain), 2, &decoded).ok());
  ASSERT_EQ(decoded.size(), 2u);
  for (size_t index = 0; index < chain.size(); ++index) {
    EXPECT_EQ(decoded[index].memory_id, chain[index].memory_id);
    EXPECT_EQ(decoded[index].byte_offset, chain[index].byte_offset);
    EXPECT_EQ(decoded[index].byte_count, chain[index].byte_count);
    EXPECT_EQ(decoded[index].virtual_address, chain[index].virtual_address);
    EXPECT_EQ(decoded[index].owner, nullptr);
  }
}

TEST(MdlChain, NoEntriesAreAChain) {
  std::vector<MdlEntry> decoded(1);
  EXPECT_TRUE(DecodeMdlChain({}, 0, &decoded).ok());
  EXPECT_TRUE(decoded.empty());
}

TEST(MdlChain, MoreEntriesThanThePayloadHoldsAreRefused) {
  const std::vector<uint64_t> payload(2 * kMdlBytes / sizeof(uint64_t) - 1);
  std::vector<MdlEntry> decoded;
  for (const uint32_t count : {2U, 1U << 27, UINT32_MAX}) {
    const absl::Status refused = DecodeMdlChain(payload, count, &decoded);
    EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE)) << count;
    EXPECT_EQ(ErrorInfoOf(refused).field, "count");
  }
  EXPECT_TRUE(DecodeMdlChain(payload, 1, &decoded).ok());
}

}  // namespace
}  // namespace rnicd::ring
