#include "client/kubernetes/node/kubelet_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/kubernetes/node/folder_fixture_test.h"
#include "client/kubernetes/resources/names_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class KubeletCheckpoint : public FolderFixture {
 protected:
  static std::string Text(const std::string& devices, const std::string& resource = kMemory) {
    return R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"init","ResourceName":")" + resource +
           R"(","DeviceIDs":)" + devices +
           R"(,"AllocResp":"CgA="}],"RegisteredDevices":{"a":["b"]}},"Checksum":2139290813})";
  }
};

TEST_F(KubeletCheckpoint, NamesTheContainerOfEachDevice) {
  Write("kubelet_internal_checkpoint", Text(R"({"-1":["any-0000"],"0":["numa0-0001","numa0-0000"]})"));
  const auto entries = ReadKubeletCheckpoint(folder_, {kMemory});
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_THAT(*entries, ElementsAre(CheckpointEntry{.pod_uid = "u",
                                                    .container = "init",
                                                    .resource = kMemory,
                                                    .device_ids = {"any-0000", "numa0-0001", "numa0-0000"}}));
}

TEST_F(KubeletCheckpoint, IsReadAsOlderKubeletsWriteIt) {
  EXPECT_THAT(ParseKubeletCheckpoint(Text(R"(["any-0000"])"), {kMemory})->front().device_ids, ElementsAre("any-0000"));
  EXPECT_THAT(*ParseKubeletCheckpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}}})", {kMemory}),
              IsEmpty());
}

TEST_F(KubeletCheckpoint, ResourcesOfOthersAreLeftOut) {
  EXPECT_THAT(*ParseKubeletCheckpoint(Text(R"(["a"])", "example.com/gpu"), {kMemory}), IsEmpty());
}

TEST_F(KubeletCheckpoint, WithoutAFileHasNoEntries) {
  EXPECT_THAT(*ReadKubeletCheckpoint(folder_, {kMemory}), IsEmpty());
}

TEST_F(KubeletCheckpoint, OfAnUnknownFormIsAnErrorAndNotEmpty) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string(R"({"Data":{}})"),
        std::string(R"({"Data":{"PodDeviceEntries":[1]}})"), Text("7"), Text("[7]"), Text(R"({"0":"a"})")}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ParseKubeletCheckpoint(text, {kMemory}).status())) << text;
  }
}

TEST_F(KubeletCheckpoint, ThatOthersCouldHaveWrittenIsRefused) {
  Write("kubelet_internal_checkpoint", Text("[]"));
  std::filesystem::permissions(Path("kubelet_internal_checkpoint"), std::filesystem::perms(0666));
  EXPECT_THAT(ReadKubeletCheckpoint(folder_, {kMemory}).status().message(), HasSubstr("kubelet_internal_checkpoint"));
}

TEST(OtherResource, IsTheSecondKindOfUnitOfTheContainer) {
  const std::vector<CheckpointEntry> entries = {
      {.pod_uid = "u", .container = "main", .resource = kMemory, .device_ids = {"any-0001", "any-0000"}},
      {.pod_uid = "u", .container = "main", .resource = "a/b", .device_ids = {"any-0000"}},
      {.pod_uid = "u", .container = "other", .resource = "a/b", .device_ids = {"any-0001"}},
      {.pod_uid = "v", .container = "main", .resource = kMemory, .device_ids = {"any-0002"}},
      {.pod_uid = "w", .container = "main", .resource = "a/b", .device_ids = {"any-0002"}}};
  EXPECT_EQ(OtherResource(entries, kMemory, {"any-0000", "any-0001"}), "a/b");
  EXPECT_EQ(OtherResource(entries, "a/b", {"any-0000"}), kMemory);
  EXPECT_EQ(OtherResource(entries, "a/b", {"any-0001"}), "") << "another container of the pod has the other kind";
  EXPECT_EQ(OtherResource(entries, kMemory, {"any-0002"}), "") << "a container of that name of another pod has it";
  EXPECT_EQ(OtherResource(entries, kMemory, {"any-0000"}), "") << "allocated to nobody";
}

// An init container and the one after it, which reuses its devices.
TEST(OtherResource, IsNotThatOfAnotherContainerWithTheSameDevices) {
  const std::vector<CheckpointEntry> entries = {
      {.pod_uid = "u", .container = "init", .resource = kMemory, .device_ids = {"any-0000"}},
      {.pod_uid = "u", .container = "init", .resource = "a/b", .device_ids = {"any-0000"}},
      {.pod_uid = "u", .container = "main", .resource = kMemory, .device_ids = {"any-0000"}}};
  EXPECT_EQ(OtherResource(entries, kMemory, {"any-0000"}), "");
  EXPECT_EQ(OtherResource(entries, "a/b", {"any-0000"}), kMemory);
}

TEST(PodUidOf, IsThatOfTheOnlyPodWithExactlyTheseDevices) {
  const std::string pod = "2c48913c-b29f-11e7-9350-020968147796";
  const std::string static_pod = "0123456789abcdef0123456789abcdef";
  const std::vector<CheckpointEntry> entries = {
      {.pod_uid = pod, .container = "init", .resource = kMemory, .device_ids = {"any-0001", "any-0000"}},
      {.pod_uid = pod, .container = "main", .resource = kMemory, .device_ids = {"any-0000", "any-0001"}},
      {.pod_uid = static_pod, .container = "main", .resource = "a/b", .device_ids = {"any-0000", "any-0001"}},
      {.pod_uid = static_pod, .container = "main", .resource = kMemory, .device_ids = {"any-0002"}},
      {.pod_uid = pod, .container = "main", .resource = kMemory, .device_ids = {"any-0003"}},
      {.pod_uid = static_pod, .container = "main", .resource = kMemory, .device_ids = {"any-0003"}},
      {.pod_uid = "u", .container = "main", .resource = kMemory, .device_ids = {"any-0004"}}};
  EXPECT_EQ(PodUidOf(entries, kMemory, {"any-0000", "any-0001"}), pod);
  EXPECT_EQ(PodUidOf(entries, kMemory, {"any-0002"}), static_pod);
  EXPECT_EQ(PodUidOf(entries, kMemory, {"any-0000"}), "") << "allocated to nobody";
  EXPECT_EQ(PodUidOf(entries, kMemory, {"any-0003"}), "") << "two pods";
  EXPECT_EQ(PodUidOf(entries, kMemory, {"any-0004"}), "") << "no pod's UID has this form";
}

}  // namespace
}  // namespace rnicd::kubernetes
