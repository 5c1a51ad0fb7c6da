#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/kubernetes/grants/fake_daemon_test.h"
#include "client/kubernetes/grants/grant_keeper.h"
#include "client/kubernetes/grants/node_view.h"
#include "client/kubernetes/node/folder_fixture_test.h"

namespace rnicd::kubernetes {

class CountingRandom final : public RandomSource {
 public:
  uint64_t Next() override { return ++count_; }

 private:
  uint64_t count_ = 0x3f2a91bb;
};

inline const std::string kResource = "rnicd.io/memory-64mi";

inline Holder HeldBy(const std::string& pod, std::vector<std::string> device_ids, const std::string& container = "c") {
  return Holder{.namespace_name = "default",
                .pod = pod,
                .container = container,
                .resource = kResource,
                .device_ids = std::move(device_ids)};
}

// A keeper over a fake daemon and a real file. Time stands still unless a test moves it.
class GrantFixture : public FolderFixture {
 protected:
  using Ms = std::chrono::milliseconds;

  GrantFixture() { StartPlugin(); }

  // Creates another keeper over the same file, as after a restart of the plugin.
  void StartPlugin() {
    keeper_ = std::make_unique<GrantKeeper>(daemon_, file_, random_, logger_, options_);
    load_ = keeper_->Load();
  }

  // Returns the id of the grant; 0 on failure.
  uint64_t Allocate(const std::vector<std::string>& device_ids) {
    const auto id = keeper_->Allocate(resource_, device_ids, now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }

  // As the kubelet reports these holders, and nothing else of their pods.
  absl::Status Reconcile(const std::vector<Holder>& holders) {
    Observation observation{.holders = holders};
    for (const Holder& holder : holders) {
      observation.listed_pods.insert(holder.namespace_name + "/" + holder.pod);
    }
    return Observe(observation);
  }
  absl::Status Observe(const Observation& observation) { return keeper_->Reconcile(NodeView(observation), now_); }
  void ReconcileOnce(const std::vector<Holder>& holders) { EXPECT_TRUE(Reconcile(holders).ok()); }
  // Reconciles every quarter of the grace until `time` has passed, the last time at its end.
  void ReconcileFor(Ms time, const std::vector<Holder>& holders) {
    for (const Ms step = options_.grace / 4; time > Ms(0); time -= step) {
      now_ += std::min(step, time);
      ReconcileOnce(holders);
    }
  }

  // The container of these devices starts. An empty UID is unknown.
  absl::Status Start(const std::vector<std::string>& device_ids, const std::string& pod_uid = "") {
    return keeper_->Prepare(kResource, device_ids, pod_uid, now_);
  }

  std::vector<uint64_t> KeptIds() const {
    std::vector<uint64_t> ids;
    for (const GrantRecord& record : keeper_->records()) {
      ids.push_back(record.grant_id);
    }
    return ids;
  }
  std::vector<uint64_t> DaemonIds() const {
    std::vector<uint64_t> ids;
    for (const auto& [id, kept] : daemon_.grants()) {
      ids.push_back(id);
    }
    return ids;
  }

  const ResourceSpec resource_{.name = kResource, .unit_bytes = 64 << 20};
  GrantOptions options_{.resources = {kResource}, .grace = Ms(60'000)};
  FakeDaemon daemon_;
  GrantFile file_{folder_};
  CountingRandom random_;
  const log::Logger logger_{{.level = log::Level::kError}};
  WallTime now_{std::chrono::seconds(1'800'000'000)};
  std::unique_ptr<GrantKeeper> keeper_;
  absl::Status load_;
};

}  // namespace rnicd::kubernetes
