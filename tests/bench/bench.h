#pragma once

#include <cstdint>

#include "tests/support/daemon_process.h"

namespace rnicd::bench {

inline constexpr uint64_t kBase = 0x7000'0000'0000;
inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;
// The sizes every registration is measured at.
inline constexpr int64_t kSizes[] = {4 * kKiB, kMiB, 64 * kMiB, kGiB};

// A batch that users of other stacks make one by one and complain about.
inline constexpr int kBatchRegions = 1265;
inline constexpr uint64_t kBatchRegionBytes = 40 * kKiB;

// Each file's rows. `daemon` outlives the run.
void AddCoreRows();
void AddGrpcRows(test::DaemonProcess& daemon);
void AddPingPongRow(int echo_socket);

// Prints drift and memory per region as "name value" lines.
void PrintReport(test::DaemonProcess& daemon);

}  // namespace rnicd::bench
