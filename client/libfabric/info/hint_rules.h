#pragma once

#include <optional>
#include <string>

#include "client/libfabric/info/hints.h"

namespace rnicd::fi {

// A hint that the provider does not satisfy.
struct Refusal {
  // Name of the field, as in "domain_attr->mr_mode".
  const char* field;
  // What was asked, and what is offered: "9000, but at most 4096".
  std::string reason;
};

// The first hint that is not satisfied; nullopt if all are. `domain` is the name of the domain on offer.
// Source: fi_getinfo(3); the fields that libfabric's own providers check, and how.
std::optional<Refusal> CheckHints(const Hints& hints, const char* domain);

}  // namespace rnicd::fi
