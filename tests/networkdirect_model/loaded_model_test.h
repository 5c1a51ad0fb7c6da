#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "provider/networkdirect/card/nd_library.h"
#include "tests/networkdirect_model/model_control.h"

namespace rnicd::provider {

inline constexpr char kModelAdapter[] = "nd-10.83.0.5";
inline constexpr char kOtherModelAdapter[] = "nd-10.83.0.6";
inline constexpr UINT64 kModelCard = 0x5E00;

// The model, loaded as the library of a manufacturer is. Its destructor fails the test if a client has left an object
// or broken a rule of the interface.
// Lifetime: outlives every provider made from it.
class LoadedModel {
 public:
  LoadedModel() {
    absl::StatusOr<NdSource> source = LoadNdSource(RNICD_NETWORKDIRECT_MODEL);
    EXPECT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    const auto find = reinterpret_cast<ModelControlFunction>(source_.library->Find(kModelControlName));
    control_ = find(source_.provider.get());
  }
  ~LoadedModel() {
    EXPECT_EQ(violation(), "");
    const ModelCounts counts = control_->Count();
    EXPECT_EQ(counts.objects, 1u) << "only the provider object itself";
    EXPECT_EQ(counts.regions, 0u);
    EXPECT_EQ(counts.bound_windows, 0u);
    EXPECT_EQ(counts.pending_calls, 0u);
  }
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const NdSource& source() const { return source_; }
  ModelControl& control() const { return *control_; }
  std::string violation() const {
    char text[256];
    control_->FirstViolation(text, sizeof(text));
    return text;
  }

 private:
  NdSource source_;
  ModelControl* control_ = nullptr;
};

}  // namespace rnicd::provider
