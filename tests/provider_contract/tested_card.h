#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
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
  std::function<std::unique_ptr<TestedCard>()> make;
};
inline std::ostream& operator<<(std::ostream& out, const CardKind& kind) { return out << kind.name; }

// One for each provider, and the test card.
std::vector<CardKind> CardKinds();
// The same, with what a provider does besides at its busiest: reads take their time, connections are probed.
std::vector<CardKind> BusyCardKinds();

// Looks until `holds` does; false when it never does.
inline bool HoldsSoon(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace rnicd::provider
