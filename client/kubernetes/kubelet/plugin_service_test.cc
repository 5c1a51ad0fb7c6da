#include "client/kubernetes/kubelet/plugin_service.h"

#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace rnicd::kubernetes {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

class Gifts final : public Allocator {
 public:
  absl::StatusOr<ContainerAllocation> Allocate(const std::string& resource,
                                               const std::vector<std::string>& ids) override {
    asked.push_back(ids);
    if (!failure.ok()) {
      return failure;
    }
    return ContainerAllocation{.container_path = "/run/rnicd", .host_path = "/doors/" + resource + "/" + ids.front()};
  }
  absl::Status Prepare(const std::string&, const std::vector<std::string>& ids) override {
    asked.push_back(ids);
    return failure;
  }
  void KubeletConnected() override { ++connections; }
  std::set<std::string> DevicesToAvoid(const std::string&) override { return avoid; }
  void AwaitTurn() override {
    ++turns;
    MutexLock lock(held);
  }

  std::atomic<int> connections{0};
  std::atomic<int> turns{0};
  // An allocation that hangs.
  Mutex held;
  std::set<std::string> avoid;
  absl::Status failure;
  std::vector<std::vector<std::string>> asked;
};

// The service behind a real server, which streams need.
class PluginServiceTest : public testing::Test {
 protected:
  PluginServiceTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1beta1::DevicePlugin::NewStub(server_->InProcessChannel({}));
  }
  ~PluginServiceTest() override {
    service_.Stop();
    server_->Shutdown();
  }

  grpc::Status Allocate(const std::vector<std::vector<std::string>>& containers) {
    v1beta1::AllocateRequest request;
    for (const auto& ids : containers) {
      request.add_container_requests()->mutable_device_ids()->Assign(ids.begin(), ids.end());
    }
    grpc::ClientContext context;
    response_.Clear();
    return stub_->Allocate(&context, request, &response_);
  }
  grpc::Status PreStart(const std::vector<std::string>& ids) {
    v1beta1::PreStartContainerRequest request;
    request.mutable_device_ids()->Assign(ids.begin(), ids.end());
    grpc::ClientContext context;
    v1beta1::PreStartContainerResponse response;
    return stub_->PreStartContainer(&context, request, &response);
  }

  const log::Logger logger_{{.level = log::Level::kError}};
  DeviceBoard board_;
  Gifts gifts_;
  std::atomic<int> ended_{0};
  PluginService service_{"rnicd.io/m", board_, gifts_, logger_, [this] { ++ended_; }};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  v1beta1::AllocateResponse response_;
};

TEST_F(PluginServiceTest, RefusesIdsThatAreNotOnTheBoard) {
  board_.Set({{.id = "a", .healthy = true}, {.id = "b", .healthy = false}});
  const grpc::Status status = Allocate({{"a"}, {"b", "c"}});
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("'c'"));
  EXPECT_EQ(Allocate({{"a", "a"}}).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Allocate({{}}).error_code(), StatusCode::INVALID_ARGUMENT);
  // The valid half of an invalid request was not allocated.
  EXPECT_TRUE(gifts_.asked.empty());
}

TEST_F(PluginServiceTest, AsksForTimeBeforeTheDevicesAreKnown) {
  EXPECT_EQ(Allocate({{"a"}}).error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(PluginServiceTest, AnswersEachContainerInItsPlace) {
  board_.Set({{.id = "a"}, {.id = "b"}});
  ASSERT_TRUE(Allocate({{"b"}, {"a"}}).ok());
  ASSERT_EQ(response_.container_responses_size(), 2);
  EXPECT_EQ(response_.container_responses(0).ShortDebugString(),
            R"(envs { key: "RNICD_SOCKET_DIR" value: "/run/rnicd" } )"
            R"(mounts { container_path: "/run/rnicd" host_path: "/doors/rnicd.io/m/b" read_only: true })");
  EXPECT_EQ(response_.container_responses(1).mounts(0).host_path(), "/doors/rnicd.io/m/a");
  EXPECT_THAT(gifts_.asked, ElementsAre(ElementsAre("b"), ElementsAre("a")));
}

TEST_F(PluginServiceTest, PassesCodeAndTextOfAFailureOn) {
  board_.Set({{.id = "a"}});
  gifts_.failure = absl::ResourceExhaustedError("no room");
  for (const grpc::Status& status : {Allocate({{"a"}}), PreStart({"a"})}) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "no room");
  }
}

TEST_F(PluginServiceTest, PrefersForEachContainerEvenAmongIdsThatAreGone) {
  board_.Set({{.id = "a"}, {.id = "b"}});
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  container.add_available_device_ids("a");
  container.add_available_device_ids("gone");
  container.add_must_include_device_ids("gone");
  container.set_allocation_size(1);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  ASSERT_TRUE(stub_->GetPreferredAllocation(&context, request, &response).ok());
  ASSERT_EQ(response.container_responses_size(), 1);
  EXPECT_THAT(response.container_responses(0).device_ids(), ElementsAre("gone"));
}

TEST_F(PluginServiceTest, PrefersDevicesThatNobodyMayHave) {
  board_.Set({{.id = "a"}, {.id = "b"}});
  gifts_.avoid = {"a"};
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  container.add_available_device_ids("a");
  container.add_available_device_ids("b");
  container.set_allocation_size(1);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  ASSERT_TRUE(stub_->GetPreferredAllocation(&context, request, &response).ok());
  EXPECT_THAT(response.container_responses(0).device_ids(), ElementsAre("b"));
}

TEST_F(PluginServiceTest, AProbeSucceedsWhenAnAllocationCouldBegin) {
  EXPECT_TRUE(Allocate({}).ok());
  EXPECT_EQ(gifts_.turns.load(), 1);
  EXPECT_TRUE(gifts_.asked.empty());
}

TEST_F(PluginServiceTest, OneProbeWaitsForAnAllocationThatHangsAndOthersFail) {
  gifts_.held.Lock();
  std::thread first([this] {
    grpc::ClientContext context;
    v1beta1::AllocateResponse response;
    EXPECT_TRUE(stub_->Allocate(&context, {}, &response).ok());
  });
  while (gifts_.turns.load() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Allocate({}).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(gifts_.turns.load(), 1);
  gifts_.held.Unlock();
  first.join();
  EXPECT_TRUE(Allocate({}).ok());
}

TEST_F(PluginServiceTest, RefusesANegativeSize) {
  v1beta1::PreferredAllocationRequest request;
  request.add_container_requests()->set_allocation_size(-1);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  EXPECT_EQ(stub_->GetPreferredAllocation(&context, request, &response).error_code(), StatusCode::INVALID_ARGUMENT);
}

// An empty list would make the kubelet remove all devices.
TEST_F(PluginServiceTest, SendsNothingBeforeTheFirstSet) {
  grpc::ClientContext context;
  const auto reader = stub_->ListAndWatch(&context, {});
  v1beta1::ListAndWatchResponse told;
  std::thread setter([this] {
    while (service_.watchers() == 0) {
      std::this_thread::yield();
    }
    board_.Set({{.id = "a", .numa_node = 1, .healthy = true}});
  });
  ASSERT_TRUE(reader->Read(&told));
  setter.join();
  ASSERT_EQ(told.devices_size(), 1);
  EXPECT_EQ(told.devices(0).health(), "Healthy");
  context.TryCancel();
  reader->Finish();
}

TEST_F(PluginServiceTest, SaysThatAWatchEndedWhenTheKubeletWent) {
  board_.Set({{.id = "a"}});
  grpc::ClientContext context;
  const auto reader = stub_->ListAndWatch(&context, {});
  v1beta1::ListAndWatchResponse told;
  ASSERT_TRUE(reader->Read(&told));
  EXPECT_EQ(service_.watchers(), 1u);
  EXPECT_EQ(gifts_.connections.load(), 1);
  context.TryCancel();
  reader->Finish();
  while (ended_.load() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(service_.watchers(), 0u);
}

TEST_F(PluginServiceTest, SaysNothingOfWatchesThatItEndsItself) {
  board_.Set({{.id = "a"}});
  grpc::ClientContext context;
  const auto reader = stub_->ListAndWatch(&context, {});
  v1beta1::ListAndWatchResponse told;
  ASSERT_TRUE(reader->Read(&told));
  service_.Stop();
  EXPECT_FALSE(reader->Read(&told));
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(ended_.load(), 0);
}

TEST_F(PluginServiceTest, EndsItsWatchesWhenTheBoardIsClosed) {
  board_.Set({{.id = "a"}});
  grpc::ClientContext context;
  const auto reader = stub_->ListAndWatch(&context, {});
  v1beta1::ListAndWatchResponse told;
  ASSERT_TRUE(reader->Read(&told));
  board_.Close();
  EXPECT_FALSE(reader->Read(&told));
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(ended_.load(), 0);
}

}  // namespace
}  // namespace rnicd::kubernetes
