#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "provider/api/device.h"

namespace rnicd::provider {

// A provider with one card that executes what is posted to it.
// Lifetime: outlives everything that was made on it. Its destructor fails the test if the card was left with anything.
class TestedCard {
 public:
  virtual ~TestedCard() = default;
  virtual Provider& provider() = 0;
  virtual std::string adapter() const = 0;
  // Registrations that the card has.
  virtual size_t registrations() const = 0;
  // Returns when the card has done all it can with what was posted so far.
  virtual void Settle() = 0;
};

struct CardKind {
  std::string name;
  // It has connections by address.
  bool connects = false;
  std::function<std::unique_ptr<TestedCard>()> make;
};
inline std::ostream& operator<<(std::ostream& out, const CardKind& kind) { return out << kind.name; }

// One for each provider, and the test card.
std::vector<CardKind> CardKinds();
// Those of them that have connections by address.
std::vector<CardKind> ConnectingCardKinds();
// The same, with what a provider does besides at its busiest: reads take their time, connections are probed.
std::vector<CardKind> BusyCardKinds();

}  // namespace rnicd::provider
