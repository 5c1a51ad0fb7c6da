#include "daemon/app/observing/card_events.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

#include "base/waiting_fixture.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::app {
namespace {

class CardEventsTest : public ::testing::Test {
 protected:
  void Unplug() {
    world_.plan.Unplug("soft0");
    cards_.OnEvent({.adapter = "soft0", .kind = provider::AdapterEventKind::kRemoved});
  }

  core::World world_;
  core::Owner owner_{world_};
  const AdapterId adapter_ = owner_.Adapter();
  const SteadyClock clock_;
  const std::unique_ptr<health::Prober> prober_ =
      health::Prober::Start(world_.provider, SystemOs(), clock_, health::ProberOptions{});
  const log::Logger logger_{{.level = log::Level::kError}};
  metrics::Metrics metrics_{{}, "1"};
  CardEvents cards_{logger_, metrics_};
};

TEST_F(CardEventsTest, ARemovalReachesProbesAndSessions) {
  cards_.BeginFollowing(
      {.registry = world_.registry, .prober = *prober_, .provider = world_.provider, .executor = *world_.reapers});
  Unplug();
  EXPECT_TRUE(Eventually([&] { return prober_->Read().empty(); }));
  std::optional<core::Event> event;
  EXPECT_TRUE(Eventually([&] { return (event = owner_.session->events().Pop()).has_value(); }));
  EXPECT_EQ(std::get<core::AdapterRemoved>(event->body).adapter, adapter_);
  cards_.EndFollowing();
}

TEST_F(CardEventsTest, WithoutFollowersAnEventIsCounted) {
  Unplug();
  EXPECT_NE(metrics_.Render({}).find("rnicd_adapter_events_total{adapter=\"soft0\",event=\"removed\"} 1"),
            std::string::npos);
  EXPECT_EQ(prober_->Read().size(), 1u);
}

}  // namespace
}  // namespace rnicd::app
