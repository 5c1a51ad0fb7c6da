#pragma once

#include <memory>

#include "provider/verbs/fake/fast_module_fake.h"
#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {

// A card whose fast registrations are requests of the kernel's module.
class KernelTest : public ::testing::Test {
 protected:
  explicit KernelTest(uint32_t region_pages_max = 512)
      : module_(std::make_shared<FakeFastModule>(fake_, region_pages_max)),
        daemon_(AnsweringTheProbe(fake_), Options(module_)) {
    fake_.set_automatic(false);
    fake_.on_send = nullptr;
    module_->ForgetChains();  // The probe's.
  }
  ~KernelTest() override { EXPECT_THAT(fake_.violations(), ::testing::IsEmpty()); }

  static VerbsOptions Options(std::shared_ptr<FastModule> module, FastEngine engine = FastEngine::kKernel) {
    VerbsOptions options = QuietOptions();
    options.fast_engine = engine;
    options.fast_module = std::move(module);
    return options;
  }
  // Requests complete by themselves, and a message that invalidates a key arrives at the first of the two queue pairs
  // that are connected to each other.
  static FakeVerbs& AnsweringTheProbe(FakeVerbs& fake) {
    fake.set_automatic(true);
    fake.on_send = [&fake](const PostedSend& send) {
      if (send.opcode == IBV_WR_SEND_WITH_INV) {
        fake.Arrive(fake.qp_nums().front(), {.invalidate = send.invalidate_rkey});
      }
    };
    return fake;
  }

  FakeVerbs fake_;
  const std::shared_ptr<FakeFastModule> module_;
  Daemon daemon_;
};

}  // namespace rnicd::provider
