#include "base/status.h"
#include "daemon/app/generation/succession.h"

namespace rnicd::app {
namespace {

// Pipes and sections belong to their process, so a daemon ends before the next one starts.
class NoSuccession final : public Succession {
 public:
  bool takes_over() const override { return false; }
  absl::StatusOr<DoorNames*> TakeNames(const Config& config, const SuccessionParts& /*parts*/) override {
    RNICD_ASSIGN_OR_RETURN(names_, ClaimDoorNames(config));
    return names_.get();
  }
  absl::Status Commit() override { return absl::OkStatus(); }
  absl::Status Offer(SystemDoor& /*door*/) override { return absl::OkStatus(); }
  void Stop() override {}
  void NarrowGrant(GrantId /*grant*/, const std::string& /*pod_uid*/) override {}
  uint32_t generation() const override { return 1; }
  bool retired() const override { return false; }
  std::vector<core::OlderGeneration> older() const override { return {}; }

 private:
  std::unique_ptr<DoorNames> names_;
};

}  // namespace

std::unique_ptr<Succession> MakeSuccession(const Config& /*config*/, const Clock& /*clock*/) {
  return std::make_unique<NoSuccession>();
}

}  // namespace rnicd::app
