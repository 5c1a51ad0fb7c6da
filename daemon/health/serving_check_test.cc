#include "daemon/health/serving_check.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <utility>

#include "base/manual_clock_fake.h"
#include "daemon/health/health_board.h"

namespace rnicd::health {
namespace {

using std::chrono::seconds;
using Answer = ServingPart::Answer;

// A check of two parts, whose no-ops the test answers when it likes.
class ServingCheckTest : public ::testing::Test {
 protected:
  void Start() {
    check_.SetParts({PartNamed("loop"), PartNamed("ring")}, [this](const ServingVerdict& verdict, bool changed) {
      ++rounds_;
      changes_ += changed ? 1 : 0;
      told_ = verdict.Text();
    });
  }
  ServingPart PartNamed(const std::string& name) {
    return {.name = name, .ask = [this, name](Answer answer) {
              ++asked_[name];
              if (works_[name]) {
                answer(problem_);
              } else {
                held_.push_back(std::move(answer));
              }
            }};
  }
  void Round(seconds after) {
    clock_.Advance(after);
    check_.RunRound();
  }
  void LetGo() {
    for (const Answer& answer : std::exchange(held_, {})) {
      answer({});
    }
  }

  ManualClock clock_;
  std::map<std::string, int> asked_;
  std::map<std::string, bool> works_ = {{"loop", true}, {"ring", true}};
  std::string problem_;
  std::vector<Answer> held_;
  int rounds_ = 0;
  int changes_ = 0;
  std::string told_;
  ServingCheck check_{clock_};
  HealthBoard board_{check_};
};

TEST_F(ServingCheckTest, BeforeTheFrontDoorIsOpenItIsAliveAndDoesNotServe) {
  EXPECT_TRUE(check_.Read().live());
  EXPECT_FALSE(check_.Read().serves());
  EXPECT_EQ(check_.Read().Text(), "the front door is not open yet\n");
}

TEST_F(ServingCheckTest, ServesWhileEveryPartAnswers) {
  Start();
  for (int round = 1; round <= 20; ++round) {
    Round(seconds(1));
    EXPECT_TRUE(check_.Read().serves());
  }
  EXPECT_EQ(asked_["loop"], 20);
  EXPECT_EQ(rounds_, 20);
  EXPECT_EQ(changes_, 0);
}

TEST_F(ServingCheckTest, APartThatIsHeldIsNamedAndWhenItIsLetGoItServesAgain) {
  Start();
  works_["ring"] = false;
  Round(seconds(1));
  EXPECT_TRUE(check_.Read().serves()) << "it may take its time";
  Round(seconds(6));
  EXPECT_FALSE(check_.Read().live());
  EXPECT_EQ(check_.Read().Text(), "ring has not answered for 6 s\n");
  EXPECT_EQ(told_, check_.Read().Text());
  Round(seconds(1));
  EXPECT_EQ(changes_, 1) << "a hang that lasts is no change";
  works_["ring"] = true;
  LetGo();
  EXPECT_TRUE(check_.Read().serves());
  Round(seconds(1));
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(told_, "");
}

TEST_F(ServingCheckTest, APartThatIsHeldGetsOneNoOp) {
  Start();
  works_["loop"] = false;
  for (int round = 0; round < 100; ++round) {
    Round(seconds(1));
  }
  EXPECT_EQ(asked_["loop"], 1);
  EXPECT_EQ(asked_["ring"], 100) << "the others are asked all the same";
}

TEST_F(ServingCheckTest, AReaderSeesAHangThoughNoRoundFollows) {
  Start();
  works_["loop"] = false;
  Round(seconds(1));
  clock_.Advance(seconds(6));
  EXPECT_FALSE(check_.Read().live());
}

TEST_F(ServingCheckTest, ACheckThatDoesNotGoOnIsAHang) {
  Start();
  Round(seconds(1));
  clock_.Advance(seconds(6));
  EXPECT_TRUE(check_.Read().live());
  clock_.Advance(seconds(1));
  EXPECT_EQ(check_.Read().Text(), "the serving check does not go on\n");
  Round(seconds(1));
  EXPECT_TRUE(check_.Read().serves());
}

TEST_F(ServingCheckTest, APartThatCannotServeIsNoHang) {
  Start();
  problem_ = "rpc.sock was removed";
  Round(seconds(1));
  EXPECT_TRUE(check_.Read().live());
  EXPECT_FALSE(check_.Read().serves());
  EXPECT_EQ(check_.Read().Text(), "rpc.sock was removed\nrpc.sock was removed\n");
  problem_.clear();
  Round(seconds(1));
  EXPECT_TRUE(check_.Read().serves());
}

TEST_F(ServingCheckTest, ReadinessNeedsTheDaemonAndACardAndLivenessTheDaemonOnly) {
  Start();
  EXPECT_FALSE(board_.ready()) << "no card is known";
  EXPECT_TRUE(board_.live());
  board_.SetCards(true);
  EXPECT_TRUE(board_.ready());
  works_["loop"] = false;
  Round(seconds(1));
  clock_.Advance(seconds(6));
  EXPECT_FALSE(board_.ready());
  EXPECT_FALSE(board_.live());
  LetGo();
  EXPECT_TRUE(board_.ready());
}

TEST_F(ServingCheckTest, AfterStopNothingIsHeldAgainstTheDaemonAndLateAnswersAreHarmless) {
  Start();
  works_["loop"] = false;
  Round(seconds(1));
  clock_.Advance(seconds(60));
  check_.Stop();
  EXPECT_TRUE(check_.Read().serves()) << "it ends, and its parts with it";
  LetGo();
}

// With the thread, and the clock that it needs.
TEST(ServingCheckThread, AsksAtOnceAndAnAnswerMayOutliveTheCheck) {
  const SteadyClock clock;
  std::atomic<int> rounds{0};
  Answer late;
  {
    ServingCheck check(clock);
    check.SetParts({{.name = "loop", .ask = [&late](Answer answer) { late = std::move(answer); }}},
                   [&](const ServingVerdict& verdict, bool) {
                     EXPECT_TRUE(verdict.serves());
                     ++rounds;
                   });
    check.Start();
    while (rounds.load() == 0) {
      std::this_thread::yield();
    }
  }
  late({});
}

}  // namespace
}  // namespace rnicd::health
