#pragma once

#include <string>

// Names of pods and containers, as the kubelet writes them, for the tests that read paths of control groups.
namespace rnicd::transport {

inline const std::string kPod = "2c48913c-b29f-11e7-9350-020968147796";
inline const std::string kPodInSlice = "2c48913c_b29f_11e7_9350_020968147796";
inline const std::string kOtherPod = "72f7f152-440c-66ac-9084-e0fc1d8a910c";
inline const std::string kOtherPodInSlice = "72f7f152_440c_66ac_9084_e0fc1d8a910c";
inline const std::string kId(64, 'a');
inline const std::string kOtherId(64, 'b');

}  // namespace rnicd::transport
