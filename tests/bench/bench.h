#pragma once

#include <cstdint>
#include <string>

#include "tests/bench/bare_echo.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::bench {

inline constexpr uint64_t kBase = 0x7000'0000'0000;
inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;
// The sizes every registration is measured at.
inline constexpr int64_t kSizes[] = {4 * kKiB, kMiB, 64 * kMiB, kGiB};

// Batch size; users of other stacks report that registering this many one by one is slow.
inline constexpr int kBatchRegions = 1265;
inline constexpr uint64_t kBatchRegionBytes = 40 * kKiB;

// One chain of fast registrations.
inline constexpr int kChain = 64;
// Page counts of one fast registration that are measured.
inline constexpr int64_t kPageCounts[] = {1, 16, 256, 1024};

// Add each file's rows. `daemon` and `echo` must outlive the run.
void AddCoreRows();
void AddLibraryRows(const test::DaemonProcess& daemon, const BareEcho& echo);
void AddConnectRows(const test::DaemonProcess& daemon);
void AddGrpcRows(test::DaemonProcess& daemon);
void AddProvisionRows(const test::DaemonProcess& daemon);
void AddPingPongRow(int echo_socket);
void AddFastRegisterRows();
void AddFastRegisterGrpcRows(test::DaemonProcess& daemon);
void AddLiveRegionRows();
void AddMetricsRows();

// Prints drift, memory per region and the effect of a million live regions, as "name value" lines.
void PrintReport(test::DaemonProcess& daemon);
// Prints the last part of the report.
void PrintLiveReport(test::DaemonProcess& daemon);

}  // namespace rnicd::bench
