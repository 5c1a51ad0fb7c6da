#include "daemon/core/request/closable.h"

#include <thread>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

class Thing final : public Closable {
 public:
  int finalized = 0;

 private:
  void Finalize() override { ++finalized; }
};

TEST(Closable, WithoutHoldsClosesAtOnceAndNeverCallsTheCompletion) {
  const auto thing = std::make_shared<Thing>();
  bool called = false;
  EXPECT_EQ(*thing->Close([&] { called = true; }), Closable::CloseResult::kClosed);
  EXPECT_EQ(thing->finalized, 1);
  EXPECT_FALSE(called);
}

TEST(Closable, ASecondCloseIsRefused) {
  const auto thing = std::make_shared<Thing>();
  ASSERT_TRUE(thing->Close(nullptr).ok());
  EXPECT_THAT(thing->Close(nullptr).status(), FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_EQ(thing->finalized, 1);
}

TEST(Closable, WaitsForTheLastHold) {
  const auto thing = std::make_shared<Thing>();
  Closable::Hold first = *thing->Acquire();
  Closable::Hold second = *thing->Acquire();
  int called = 0;
  EXPECT_EQ(*thing->Close([&] { called += 1 + 10 * thing->finalized; }), Closable::CloseResult::kPending);
  first.Release();
  EXPECT_EQ(thing->finalized, 0);
  second.Release();
  EXPECT_EQ(called, 11) << "the completion runs once, after the object gave everything back";
}

TEST(Closable, WhileClosingTakesNoNewHolds) {
  const auto thing = std::make_shared<Thing>();
  const Closable::Hold hold = *thing->Acquire();
  ASSERT_TRUE(thing->Close(nullptr).ok());
  EXPECT_TRUE(thing->closing());
  EXPECT_THAT(thing->Acquire().status(), FailsWith(ErrorReason::OBJECT_CLOSING));
}

TEST(Closable, HoldsThatComeAndGoDoNotCloseIt) {
  const auto thing = std::make_shared<Thing>();
  {
    const Closable::Hold hold = *thing->Acquire();
  }
  EXPECT_FALSE(thing->closing());
  EXPECT_EQ(thing->finalized, 0);
}

// The antecedent rule in one example: a parent's completion may come from inside its child's.
TEST(Closable, AHoldReleasedInsideACompletionClosesTheParentThere) {
  const auto parent = std::make_shared<Thing>();
  const auto child = std::make_shared<Thing>();
  auto on_parent = std::make_shared<Closable::Hold>(*parent->Acquire());
  Closable::Hold on_child = *child->Acquire();
  std::vector<std::string> order;
  ASSERT_EQ(*parent->Close([&] { order.emplace_back("parent"); }), Closable::CloseResult::kPending);
  ASSERT_EQ(*child->Close([&, on_parent] {
    order.emplace_back("child");
    on_parent->Release();
  }),
            Closable::CloseResult::kPending);
  on_child.Release();
  EXPECT_EQ(order, (std::vector<std::string>{"child", "parent"}));
}

TEST(Closable, AHoldKeepsTheObjectInMemory) {
  std::weak_ptr<Thing> watched;
  Closable::Hold hold;
  {
    const auto thing = std::make_shared<Thing>();
    watched = thing;
    hold = *thing->Acquire();
    ASSERT_TRUE(thing->Close(nullptr).ok());
  }
  EXPECT_FALSE(watched.expired());
  hold.Release();
  EXPECT_TRUE(watched.expired());
}

TEST(Closable, RacingHoldersCompleteExactlyOnce) {
  for (int round = 0; round < 200; ++round) {
    const auto thing = std::make_shared<Thing>();
    std::atomic<int> called{0};
    std::atomic<int> closed_at_once{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
      threads.emplace_back([&thing] {
        auto hold = thing->Acquire();
        auto second = thing->Acquire();
      });
    }
    threads.emplace_back([&] {
      const auto result = thing->Close([&called] { ++called; });
      closed_at_once = *result == Closable::CloseResult::kClosed ? 1 : 0;
    });
    for (std::thread& thread : threads) {
      thread.join();
    }
    ASSERT_EQ(called + closed_at_once, 1);
    ASSERT_EQ(thing->finalized, 1);
  }
}

}  // namespace
}  // namespace rnicd::core
