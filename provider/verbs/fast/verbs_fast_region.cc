#include "provider/verbs/fast/verbs_fast_region.h"

#include <array>
#include <utility>

#include "base/status.h"
#include "provider/verbs/fast/prepared_request.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<Registration>> RegisterPlaceholder(const std::shared_ptr<VerbsDomain>& domain) {
  const std::array<std::span<std::byte>, 1> page = {PlaceholderPage()};
  const VirtualAddress base{reinterpret_cast<uint64_t>(page.front().data())};
  return Registration::Make(domain, base, page, /*access=*/0);
}

absl::StatusOr<std::shared_ptr<GrantFastRegion>> GrantFastRegion::Create(std::shared_ptr<VerbsDomain> domain) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Registration> placeholder, RegisterPlaceholder(domain));
  return std::shared_ptr<GrantFastRegion>(new GrantFastRegion(std::move(domain), std::move(placeholder)));
}

absl::Status GrantFastRegion::Prepare(const FastRegisterWork& work, PreparedRequest& prepared) {
  const Grant::Shape shape{.base = work.base, .length = work.length, .rights = work.rights, .runs = work.runs};
  RNICD_ASSIGN_OR_RETURN(prepared.grant, domain_->registers_over_windows() ? Grant::RegisterForWindow(domain_, shape)
                                                                           : Grant::Register(domain_, shape));
  return absl::OkStatus();
}

void GrantFastRegion::Count(const EngineGrant& grant) {
  const auto& own = static_cast<const Grant&>(grant);
  const FastEngineUsed composed = own.composed() ? FastEngineUsed::kComposed : FastEngineUsed::kDirect;
  domain_->context().node().CountFastRegistration(own.needs_bind() ? FastEngineUsed::kWindowed : composed);
}

}  // namespace rnicd::provider
