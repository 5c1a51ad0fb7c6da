// What requests do to memory that the card knows under other addresses, and in several pieces.

#include "tests/networkdirect_model/model_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr QueuePairLimits kShallow{
    .receive_depth = 4, .initiator_depth = 4, .receive_entries = 4, .initiator_entries = 4, .inline_bytes = 64};

class Transfers : public OnModel {
 protected:
  ProviderSide near_{provider(), kModelAdapter};
  ProviderSide far_{provider(), kModelAdapter};
};

// A region of every second page, so that its pieces do not lie together.
class ScatteredRegion {
 public:
  ScatteredRegion(ProviderSide& side, size_t pieces) : pages_(2 * pieces) {
    std::vector<std::span<std::byte>> runs;
    for (size_t piece = 0; piece < pieces; ++piece) {
      runs.push_back(this->piece(piece));
    }
    auto region = side.domain().RegisterMemory(
        {.base = {kBase}, .length = pieces * kNdkPageBytes, .runs = runs, .rights = kAllRights});
    EXPECT_TRUE(region.ok()) << region.status();
    region_ = *std::move(region);
  }

  static constexpr uint64_t kBase = 0x700000;
  std::span<std::byte> piece(size_t number) const { return pages_.page(2 * number); }
  DeviceMemoryRegion& region() { return *region_; }

 private:
  SharedPages pages_;
  std::unique_ptr<DeviceMemoryRegion> region_;
};

TEST_F(Transfers, BytesArriveByEveryKindOfRequest) {
  Connect(near_, far_);
  Fill(near_.pages().page(0), 1);
  EXPECT_EQ(StatusOf(near_, Write(1, {near_.Entry(0, 4096)}, far_.region()->remote_token(), 4096)), kOk);
  EXPECT_TRUE(Holds(far_.pages().page(1), 1));
  EXPECT_TRUE(Holds(far_.pages().page(0), 0));
  Fill(far_.pages().page(2), 2);
  EXPECT_EQ(StatusOf(near_, Read(2, {near_.Entry(8192, 4096)}, far_.region()->remote_token(), 8192)), kOk);
  EXPECT_TRUE(Holds(near_.pages().page(2), 2));
  far_.Post(Receive(10, {far_.Entry(12288, 10), far_.Entry(12300, 20)}));
  EXPECT_EQ(StatusOf(near_, Send(3, {near_.Entry(0, 30)})), kOk);
  ASSERT_TRUE(far_.Received(1));
  EXPECT_EQ(far_.listener().completions(WorkQueue::kReceive)[0].bytes, 30u);
  EXPECT_TRUE(Holds(far_.pages().page(3).subspan(0, 10), 1));
  EXPECT_TRUE(Holds(far_.pages().page(3).subspan(12, 20), 1));
  EXPECT_TRUE(Holds(far_.pages().page(3).subspan(10, 2), 0));
}

TEST_F(Transfers, InlineBytesAndBytesOfTheDaemonNeedNoRegionOfTheOwner) {
  Connect(near_, far_);
  WorkRequest inlined = Write(1, {}, far_.region()->remote_token());
  inlined.payload = InlineData(32, std::byte{7});
  EXPECT_EQ(StatusOf(near_, std::move(inlined)), kOk);
  EXPECT_TRUE(Holds(far_.pages().page(0).subspan(0, 32), 7));
  SharedPages own(1);
  Fill(own.page(0), 8);
  const uint64_t before = control().Count().regions;
  EXPECT_EQ(StatusOf(near_, Write(2, {{.host = own.page(0), .length = 4096}}, far_.region()->remote_token(), 4096)),
            kOk);
  EXPECT_TRUE(Holds(far_.pages().page(1), 8));
  EXPECT_EQ(control().Count().regions, before) << "registered for that request only";
}

TEST_F(Transfers, CardsReachEachOther) {
  ProviderSide other(provider(), kOtherModelAdapter);
  Connect(near_, other);
  Fill(near_.pages().page(0), 3);
  EXPECT_EQ(StatusOf(near_, Write(1, {near_.Entry(0, 4096)}, other.region()->remote_token())), kOk);
  EXPECT_TRUE(Holds(other.pages().page(0), 3));
}

TEST_F(Transfers, ATokenOfAnotherDomainReachesNothing) {
  ProviderSide third(provider(), kModelAdapter);
  Connect(near_, far_);
  EXPECT_EQ(StatusOf(near_, Write(1, {near_.Entry(0, 8)}, third.region()->remote_token())), kViolation);
  EXPECT_TRUE(Eventually([this] { return far_.state() == QueuePairState::kError; })) << "as on a card";
}

TEST_F(Transfers, ARegionOfManyPiecesIsOneRangeOfAddresses) {
  ScatteredRegion scattered(far_, 3);
  Connect(near_, far_);
  Fill(near_.pages().bytes(), 4);
  WorkRequest write = Request(
      1, {near_.Entry(0, 8000)},
      WriteWork{.remote_address = {ScatteredRegion::kBase + 1000}, .remote_token = scattered.region().remote_token()});
  EXPECT_EQ(StatusOf(near_, std::move(write)), kOk);
  EXPECT_TRUE(Holds(scattered.piece(0).subspan(0, 1000), 0));
  EXPECT_TRUE(Holds(scattered.piece(0).subspan(1000), 4));
  EXPECT_TRUE(Holds(scattered.piece(1), 4));
  EXPECT_TRUE(Holds(scattered.piece(2).subspan(0, 808), 4));
  EXPECT_TRUE(Holds(scattered.piece(2).subspan(808), 0));
  // And as the owner's own memory.
  EXPECT_EQ(StatusOf(far_, Write(2,
                                 {{.address = {ScatteredRegion::kBase + 4000},
                                   .length = 200,
                                   .token = scattered.region().local_token()}},
                                 near_.region()->remote_token(), 12288)),
            kOk);
  EXPECT_TRUE(Holds(near_.pages().page(3).subspan(0, 200), 4));
}

TEST_F(Transfers, ATransferOfMorePartsThanTheQueueHoldsIsExecutedInTurns) {
  constexpr size_t kPieces = 11;
  ProviderSide shallow(provider(), kModelAdapter, kShallow);
  ScatteredRegion scattered(far_, kPieces);
  Connect(shallow, far_);
  SharedPages own(kPieces);
  Fill(own.bytes(), 5);
  WorkRequest write =
      Request(1, {{.host = own.bytes(), .length = static_cast<uint32_t>(own.bytes().size())}},
              WriteWork{.remote_address = {ScatteredRegion::kBase}, .remote_token = scattered.region().remote_token()});
  shallow.Post(std::move(write));
  far_.Post(Receive(10));
  shallow.Post(Send(2));
  ASSERT_TRUE(far_.Received(1) && shallow.Initiated(2));
  for (size_t piece = 0; piece < kPieces; ++piece) {
    EXPECT_TRUE(Holds(scattered.piece(piece), 5)) << piece << ": written before the send behind it arrived";
  }
  EXPECT_EQ(shallow.initiated(), (Outcomes{{1, OperationType::kWrite, kOk}, {2, OperationType::kSend, kOk}}));
}

TEST_F(Transfers, ASendOfMorePiecesThanTheCardTakesEndsInItsTurn) {
  ScatteredRegion scattered(near_, 17);
  Connect(near_, far_);
  EXPECT_EQ(StatusOf(near_, Send(1, {{.address = {ScatteredRegion::kBase},
                                      .length = 17 * kNdkPageBytes,
                                      .token = scattered.region().local_token()}})),
            NtStatus::kDataOverrun);
}

TEST_F(Transfers, APieceTooManyIsRefusedAndRegistersNothing) {
  const uint64_t before = control().Count().regions;
  SharedPages pages(size_t{2} * 1025);
  std::vector<std::span<std::byte>> runs;
  for (size_t piece = 0; piece < 1025; ++piece) {
    runs.push_back(pages.page(2 * piece));
  }
  const absl::Status refused =
      near_.domain()
          .RegisterMemory({.base = {0x700000}, .length = 1025 * kNdkPageBytes, .runs = runs, .rights = kAllRights})
          .status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
  EXPECT_EQ(control().Count().regions, before);
}

TEST_F(Transfers, AReceiveThatNamesMemoryItMayNotWriteFailsWithBytes) {
  Connect(near_, far_);
  far_.Post(Receive(10, {{.address = {kSideBase}, .length = 8, .token = {0x1234}}}));
  near_.Post(Send(1, {near_.Entry(0, 8)}));
  ASSERT_TRUE(near_.Initiated(1) && far_.Received(1));
  EXPECT_EQ(far_.received()[0].status, kViolation);
  EXPECT_EQ(near_.initiated()[0].status, NtStatus::kRemoteResources);
}

TEST_F(Transfers, AReceiverLearnsWhetherItWasSolicited) {
  Connect(near_, far_);
  far_.Post(Receive(10));
  far_.Post(Receive(11));
  near_.Post(Send(1));
  near_.Post(Send(2, {}, {.solicit = true}));
  ASSERT_TRUE(far_.Received(2));
  const std::vector<Completion> received = far_.listener().completions(WorkQueue::kReceive);
  EXPECT_FALSE(received[0].solicited);
  EXPECT_TRUE(received[1].solicited);
}

}  // namespace
}  // namespace rnicd::provider
