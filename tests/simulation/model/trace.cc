#include "tests/simulation/model/trace.h"

#include <cstdio>

namespace rnicd::simulation {
namespace {

constexpr size_t kKeptSteps = 50;

}  // namespace

// FNV-1a: differences are accidents, not attacks.
void Trace::Take(const std::string& text) {
  for (const char c : text) {
    digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  if (live_) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
}

void Trace::BeginStep(const std::string& what) {
  ++steps_;
  last_.push_back(std::to_string(steps_) + " " + what);
  if (last_.size() > kKeptSteps) {
    last_.pop_front();
  }
  Take(last_.back());
}

void Trace::Add(const std::string& what) {
  if (last_.empty()) {
    BeginStep("begin");
  }
  last_.back() += what;
  Take(what);
}

void Trace::EndStep() { Take("\n"); }

}  // namespace rnicd::simulation
