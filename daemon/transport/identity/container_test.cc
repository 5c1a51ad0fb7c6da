#include "daemon/transport/identity/container.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "daemon/transport/identity/pod_names_test.h"

namespace rnicd::transport {
namespace {

const std::string kStaticPod = "2732ca68f6358eba7703fb6f82a25c94";
const std::string kNode(64, 'd');
const std::string kPodSlices =
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPodInSlice + ".slice";
const std::string kPodFolders = "/kubepods/burstable/pod" + kPod;

std::string Unified(const std::string& path) { return "0::" + path + "\n"; }

// The path in some hierarchies of version 1.
std::string Legacy(const std::string& path) {
  return absl::StrCat("12:memory:", path, "\n11:cpu,cpuacct:", path, "\n1:name=systemd:", path, "\n0::/\n");
}

// One path and the expected container.
struct Form {
  std::string name;
  std::string path;
  core::Container container;
};

void PrintTo(const Form& form, std::ostream* stream) { *stream << form.path; }

class CgroupForm : public ::testing::TestWithParam<Form> {};

TEST_P(CgroupForm, IsUnderstoodInTheUnifiedHierarchy) {
  const auto container = ParseCgroups(Unified(GetParam().path));
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(container->pod_uid, GetParam().container.pod_uid);
  EXPECT_EQ(container->id, GetParam().container.id);
}

TEST_P(CgroupForm, IsUnderstoodInHierarchiesOfVersion1) {
  const auto container = ParseCgroups(Legacy(GetParam().path));
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, GetParam().container);
}

std::vector<Form> PodForms() {
  const std::string none_slices = "/kubepods.slice/kubepods-pod" + kPodInSlice + ".slice";
  const std::string kind =
      "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" +
      kPodInSlice + ".slice";
  return {
      {"SystemdContainerd", kPodSlices + "/cri-containerd-" + kId + ".scope", {kPod, kId}},
      {"SystemdCrio", kPodSlices + "/crio-" + kId + ".scope", {kPod, kId}},
      {"SystemdCrioNested", kPodSlices + "/crio-" + kId + ".scope/container", {kPod, kId}},
      {"SystemdDocker", kPodSlices + "/docker-" + kId + ".scope", {kPod, kId}},
      {"SystemdGuaranteed", none_slices + "/cri-containerd-" + kId + ".scope", {kPod, kId}},
      {"SystemdStaticPod",
       "/kubepods.slice/kubepods-pod" + kStaticPod + ".slice/crio-" + kId + ".scope",
       {kStaticPod, kId}},
      {"SystemdKind", kind + "/cri-containerd-" + kId + ".scope", {kPod, kId}},
      {"SystemdOtherCgroupRoot",
       "/system.slice/system-kubepods.slice/system-kubepods-pod" + kPodInSlice + ".slice/crio-" + kId + ".scope",
       {kPod, kId}},
      {"CgroupfsBurstable", kPodFolders + "/" + kId, {kPod, kId}},
      {"CgroupfsBestEffort", "/kubepods/besteffort/pod" + kPod + "/" + kId, {kPod, kId}},
      {"CgroupfsGuaranteed", "/kubepods/pod" + kPod + "/" + kId, {kPod, kId}},
      {"CgroupfsStaticPod", "/kubepods/burstable/pod" + kStaticPod + "/" + kId, {kStaticPod, kId}},
      {"CgroupfsCrio", kPodFolders + "/crio-" + kId, {kPod, kId}},
      {"CgroupfsDockerDesktop", "/kubepods/kubepods/besteffort/pod" + kPod + "/" + kId, {kPod, kId}},
      {"CgroupfsKind", "/kubelet/kubepods/besteffort/pod" + kPod + "/" + kId, {kPod, kId}},
      {"EngineWithoutSystemd", "/kubepods-burstable-pod" + kPodInSlice + ".slice:cri-containerd:" + kId, {kPod, kId}},
      {"EngineWithoutSystemdGuaranteed", "/kubepods-pod" + kPodInSlice + ".slice:cri-containerd:" + kId, {kPod, kId}},
      {"EngineWithoutSystemdBelowItsService",
       "/system.slice/containerd.service/kubepods-pod" + kPodInSlice + ".slice:cri-containerd:" + kId,
       {kPod, kId}},
      {"EngineWithoutSystemdKind",
       "/system.slice/kubelet-kubepods-besteffort-pod" + kPodInSlice + ".slice:cri-containerd:" + kId,
       {kPod, kId}},
      {"NamespaceSystemdSameClass",
       "/../../kubepods-burstable-pod" + kPodInSlice + ".slice/crio-" + kId + ".scope",
       {kPod, kId}},
      {"NamespaceSystemdOtherClass",
       "/../../../kubepods-besteffort.slice/kubepods-besteffort-pod" + kPodInSlice + ".slice/cri-containerd-" + kId +
           ".scope",
       {kPod, kId}},
      {"NamespaceSystemdFromTheRoot", "/../../../.." + kPodSlices + "/cri-containerd-" + kId + ".scope", {kPod, kId}},
      {"NamespaceCgroupfsSameClass", "/../../pod" + kPod + "/" + kId, {kPod, kId}},
      {"NamespaceCgroupfsOtherClass", "/../../../burstable/pod" + kPod + "/" + kId, {kPod, kId}},
      {"PodWithoutAContainer", kPodSlices, {kPod, ""}},
      {"MonitorInThePod", kPodSlices + "/crio-conmon-" + kId + ".scope", {kPod, ""}},
      {"UnknownNameInThePod", kPodSlices + "/kata_overhead", {kPod, ""}},
  };
}

std::vector<Form> OtherForms() {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  return {
      {"Docker", "/docker/" + kId, {"", kId}},
      {"DockerSystemd", "/system.slice/docker-" + kId + ".scope", {"", kId}},
      {"Podman", "/machine.slice/libpod-" + kId + ".scope", {"", kId}},
      {"PodmanNested", "/machine.slice/libpod-" + kId + ".scope/container", {"", kId}},
      {"PodmanCgroupfs", "/libpod_parent/libpod-" + kId, {"", kId}},
      {"PodmanPod", "/machine.slice/machine-libpod_pod_" + kOtherId + ".slice/libpod-" + kId + ".scope", {"", kId}},
      {"ContainerdOfOldKubelet", "/k8s.io/" + kId, {"", kId}},
      {"NamespaceSiblingContainer", "/../" + kId, {"", kId}},
      {"NamespaceSiblingCrio", "/../crio-" + kId + ".scope", {"", kId}},
      {"Root", "/", {}},
      {"Service", "/system.slice/sshd.service", {}},
      {"Login", "/user.slice/user-1000.slice/session-2.scope", {}},
      {"Engine", "/system.slice/containerd.service", {}},
      {"PodmanMonitor", "/machine.slice/libpod-conmon-" + kId + ".scope", {}},
      {"PodmanServiceBesideUs", "/../podman.service", {}},
      {"NamespaceAncestor", "/../..", {}},
      // The owner of a user's service names the groups below it: an id from there would be chosen by the user.
      {"RootlessPodman", user + "/user.slice/libpod-" + kId + ".scope/container", {}},
      {"RootlessDocker", user + "/app.slice/docker.service/" + kId, {}},
      {"FolderOfNobodyWeKnow", "/process_api/" + kId, {}},
      {"ShortId", "/docker/" + kId.substr(1), {}},
      {"LongId", "/docker/" + kId + "a", {}},
      {"UpperCaseId", "/docker/" + std::string(64, 'A'), {}},
      {"UnknownEngine", "/system.slice/evil-" + kId + ".scope", {}},
      // Not part of Kubernetes in spite of its name, and only root may choose it.
      {"ServiceNamedAfterPods", "/system.slice/kubepods-evil.service", {}},
      {"SliceNamedLikePods", "/kubepodsevil.slice/evil.service", {}},
      {"ColonsInAName", "/system.slice/a:b:c.service", {}},
  };
}

std::vector<Form> HostileForms() {
  const std::string fake = kPodSlices + "/cri-containerd-" + kId + ".scope";
  const std::string real =
      "/kubepods.slice/kubepods-pod" + kOtherPodInSlice + ".slice/cri-containerd-" + kOtherId + ".scope";
  return {
      {"PodBelowAContainerOfAPod", real + fake, {kOtherPod, kOtherId}},
      {"PodBelowAPod", "/kubepods/pod" + kOtherPod + "/pod" + kPod + "/" + kId, {kOtherPod, ""}},
      {"CgroupfsPodBelowAContainerOfAPod",
       "/kubepods/pod" + kOtherPod + "/" + kOtherId + kPodFolders + "/" + kId,
       {kOtherPod, kOtherId}},
      {"EngineFormBelowAContainerOfAPod",
       real + "/kubepods-pod" + kPodInSlice + ".slice:cri-containerd:" + kId,
       {kOtherPod, kOtherId}},
      {"ContainerBelowAContainer", real + "/docker-" + kId + ".scope", {kOtherPod, kOtherId}},
      {"ContainerFurtherDownInAPod", "/kubepods/pod" + kOtherPod + "/x/" + kId, {kOtherPod, ""}},
      {"MalformedPodBelowAContainer", real + "/kubepods.slice/kubepods-podx.slice", {kOtherPod, kOtherId}},
      {"PodBelowAPlainContainer", "/docker/" + kOtherId + fake, {"", kOtherId}},
      {"PodBelowAPodmanContainer", "/machine.slice/libpod-" + kOtherId + ".scope/container" + fake, {"", kOtherId}},
      {"LineOfItsOwnAsAName", real + "/0::" + fake, {kOtherPod, kOtherId}},
  };
}

const auto kFormName = [](const auto& form) { return form.param.name; };
INSTANTIATE_TEST_SUITE_P(Pods, CgroupForm, ::testing::ValuesIn(PodForms()), kFormName);
INSTANTIATE_TEST_SUITE_P(NoPods, CgroupForm, ::testing::ValuesIn(OtherForms()), kFormName);
INSTANTIATE_TEST_SUITE_P(Hostile, CgroupForm, ::testing::ValuesIn(HostileForms()), kFormName);

// Each is refused as a whole, also when the other hierarchies are valid.
class RefusedCgroups : public ::testing::TestWithParam<Form> {};

TEST_P(RefusedCgroups, AreAnError) {
  EXPECT_EQ(ParseCgroups(Unified(GetParam().path)).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string after_a_good_one = Legacy("/") + "13:pids:" + GetParam().path + "\n";
  EXPECT_EQ(ParseCgroups(after_a_good_one).status().code(), absl::StatusCode::kInvalidArgument);
}

std::vector<Form> RefusedForms() {
  const std::string pods = "/kubepods.slice/kubepods-burstable.slice";
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  return {
      {"PodsRootAlone", "/kubepods.slice", {}},
      {"PodsRootAloneCgroupfs", "/kubepods", {}},
      {"ClassAlone", "/kubepods/burstable", {}},
      {"ServiceAmongPods", pods + "/x.service", {}},
      {"ContainerAmongPods", "/kubepods/" + kId, {}},
      {"ShortUid", pods + "/kubepods-burstable-pod2c48913c.slice/" + kId, {}},
      {"EmptyUid", pods + "/kubepods-burstable-pod.slice/" + kId, {}},
      {"UpperCaseUid", "/kubepods/pod2C48913C-b29f-11e7-9350-020968147796/" + kId, {}},
      {"UidWithOtherGroups", "/kubepods/pod2c48913cb-29f-11e7-9350-020968147796/" + kId, {}},
      {"UidWithMixedSeparators", pods + "/kubepods-burstable-pod2c48913c_b29f-11e7_9350_020968147796.slice/" + kId, {}},
      {"UidWithSomethingBehind", pods + "/kubepods-burstable-pod" + kPodInSlice + "x.slice/" + kId, {}},
      {"StaticUidTooLong", "/kubepods/pod" + kStaticPod + "0/" + kId, {}},
      {"UnknownClass", "/kubepods.slice/kubepods-fast-pod" + kPodInSlice + ".slice/" + kId, {}},
      {"SliceWithSomethingBehind", pods + "/kubepods-burstable-pod" + kPodInSlice + ".slice.x/" + kId, {}},
      {"RemovedSlice", pods + "/kubepods-burstable-pod" + kPodInSlice + ".slice (deleted)", {}},
      {"PodWithoutSlice", "/kubepods-burstable-pod" + kPodInSlice + "/" + kId, {}},
      {"EngineFormWithShortId", "/kubepods-pod" + kPodInSlice + ".slice:cri-containerd:abc", {}},
      {"EngineFormWithUnknownEngine", "/kubepods-pod" + kPodInSlice + ".slice:evil:" + kId, {}},
      {"EngineFormWithoutAPod", "/kubepods-burstable.slice:cri-containerd:" + kId, {}},
      {"BadPodBesideUs", "/../../pod1234/" + kId, {}},
      // Places where users make groups.
      {"PodBelowAUsersService", user + kPodSlices + "/cri-containerd-" + kId + ".scope", {}},
      {"CgroupfsPodBelowAUsersService", user + kPodFolders + "/" + kId, {}},
      {"EngineFormBelowAUsersService",
       user + "/containerd.service/kubepods-pod" + kPodInSlice + ".slice:cri-containerd:" + kId,
       {}},
      {"PodBelowAService", "/system.slice/kubepods-evil.service" + kPodFolders + "/" + kId, {}},
      {"PodBelowAServiceBesideUs", "/../evil.service/pod" + kPod + "/" + kId, {}},
      {"PodWithoutPodsRoot", "/something/pod" + kPod + "/" + kId, {}},
      {"PodAtTheRoot", "/pod" + kPod + "/" + kId, {}},
      {"PodBelowAnUnknownFolder", "/lxc.payload.c1" + kPodFolders + "/" + kId, {}},
      // No kernel writes these.
      {"NoSlash", "kubepods", {}},
      {"EmptyPath", "", {}},
      {"EmptyName", "/system.slice//x.service", {}},
      {"SlashAtTheEnd", kPodFolders + "/", {}},
      {"UpInTheMiddle", kPodFolders + "/../pod" + kOtherPod, {}},
      {"UpBehindTheTruth", kPodFolders + "/" + kId + "/..", {}},
      {"Here", "/./kubepods", {}},
      {"PathTooLong", "/" + std::string(4096, 'x'), {}},
  };
}

INSTANTIATE_TEST_SUITE_P(All, RefusedCgroups, ::testing::ValuesIn(RefusedForms()), kFormName);

TEST(Cgroups, HierarchiesThatSayNothingAreNoContradiction) {
  const std::string text = "3:memory:" + kPodFolders + "/" + kId +
                           "\n2:rdma:/\n1:name=systemd:/system.slice/containerd.service\n0::/init.scope\n";
  const auto container = ParseCgroups(text);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{kPod, kId}));
}

TEST(Cgroups, HierarchiesMayWriteTheSameInBothDriversForms) {
  const std::string text =
      "2:memory:" + kPodFolders + "/" + kId + "\n1:name=systemd:" + kPodSlices + "/crio-" + kId + ".scope\n";
  const auto container = ParseCgroups(text);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{kPod, kId}));
}

TEST(Cgroups, OneHierarchyMayNameThePodAloneAndAnotherTheContainerToo) {
  const auto container = ParseCgroups("2:cpu:" + kPodFolders + "\n1:memory:" + kPodFolders + "/" + kId + "\n");
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{kPod, kId}));
}

TEST(Cgroups, HierarchiesThatNameDifferentPodsAreAnError) {
  const std::string text = "2:cpu:" + kPodFolders + "/" + kId + "\n1:memory:/kubepods/pod" + kOtherPod + "/" + kId;
  EXPECT_EQ(ParseCgroups(text).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Cgroups, HierarchiesThatNameDifferentContainersAreAnError) {
  const std::string text = "2:cpu:" + kPodFolders + "/" + kId + "\n1:memory:" + kPodFolders + "/" + kOtherId;
  EXPECT_EQ(ParseCgroups(text).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string plain = "2:cpu:" + kPodFolders + "/" + kId + "\n1:memory:/docker/" + kOtherId;
  EXPECT_EQ(ParseCgroups(plain).status().code(), absl::StatusCode::kInvalidArgument);
}

// A node that is itself a container, as kind makes them: groups shared by the daemon and its callers are ignored.
TEST(Cgroups, PodsOfANodeInAContainerAreSeenFromInside) {
  const std::string inside = "/docker/" + kNode;
  const std::string pod =
      "2:memory:" + inside + kPodFolders + "/" + kId + "\n0::" + inside + "/system.slice/containerd.service\n";
  const std::string daemon = "2:memory:" + inside + "/kubepods/besteffort/pod" + kOtherPod + "/" + kOtherId +
                             "\n0::" + inside + "/system.slice/containerd.service\n";
  const auto from_inside = ParseCgroups(pod, daemon);
  ASSERT_TRUE(from_inside.ok()) << from_inside.status();
  EXPECT_EQ(*from_inside, (core::Container{kPod, kId}));
  const auto from_outside = ParseCgroups(pod, Legacy("/system.slice/rnicd.service"));
  ASSERT_TRUE(from_outside.ok()) << from_outside.status();
  EXPECT_EQ(*from_outside, (core::Container{"", kNode}));
}

TEST(Cgroups, AProcessOfTheNodeInAContainerIsOutsideOfContainers) {
  const std::string inside = "/system.slice/docker-" + kNode + ".scope";
  const auto container =
      ParseCgroups(Unified(inside + "/system.slice/sshd.service"), Unified(inside + "/system.slice/rnicd.service"));
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, core::Container{});
}

TEST(Cgroups, AContainerInTheNodesContainerIsSeenFromInside) {
  const auto container = ParseCgroups(Unified("/docker/" + kNode + "/docker/" + kId), Unified("/docker/" + kNode));
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{"", kId}));
}

TEST(Cgroups, AFolderThatTheDaemonLivesInIsBelieved) {
  const std::string pod = "/lxc.payload.node" + kPodFolders + "/" + kId;
  const auto container = ParseCgroups(Unified(pod), Unified("/lxc.payload.node/system.slice/rnicd.service"));
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{kPod, kId}));
  EXPECT_FALSE(ParseCgroups(Unified(pod), Unified("/lxc.payload.other")).ok());
  // The same path in another hierarchy proves nothing.
  EXPECT_FALSE(ParseCgroups(Unified(pod), "1:cpu:/lxc.payload.node\n0::/\n").ok());
}

TEST(Cgroups, APodThatTheDaemonSharesIsThePodAllTheSame) {
  const std::string path = Unified(kPodFolders + "/" + kId + "/kubepods/pod" + kOtherPod + "/" + kOtherId);
  const auto container = ParseCgroups(path, path);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{kPod, kId}));
}

TEST(Cgroups, GarbageOfOurOwnIsAnError) {
  EXPECT_EQ(ParseCgroups(Unified("/"), "x").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Cgroups, LinesThatNoKernelWritesAreAnError) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("0:/\n"), std::string("::/\n"), std::string("x::/\n"),
        std::string("0::/\n\n"), std::string("\n0::/\n"), std::string("-1::/\n"), std::string("0::/a\0b\n", 8)}) {
    EXPECT_EQ(ParseCgroups(text).status().code(), absl::StatusCode::kInvalidArgument) << '"' << text << '"';
  }
}

TEST(Cgroups, TheLastLineNeedsNoLineBreak) { EXPECT_TRUE(ParseCgroups("0::/").ok()); }

TEST(Cgroups, ATextAboveTheBoundIsAnError) {
  std::string text;
  while (text.size() + 5 <= kMaxCgroupsBytes) {
    text += "0::/\n";
  }
  EXPECT_TRUE(ParseCgroups(text).ok());
  text.resize(kMaxCgroupsBytes + 1, '\n');
  EXPECT_FALSE(ParseCgroups(text).ok());
}

// Whatever a corrupted text contains, a pod in the result has the form of one.
TEST(Cgroups, BrokenTextsNeverMakeABrokenContainer) {
  std::mt19937 random(1);
  const std::vector<Form> forms = PodForms();
  uint64_t understood = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = Legacy(forms[random() % forms.size()].path);
    for (uint32_t left = random() % 4; left > 0; --left) {
      const char with[] = {'/', ':', '\n', '.', '-', '_', 'a', '0', 'p', '\0'};
      text[random() % text.size()] = with[random() % sizeof(with)];
    }
    const auto container = ParseCgroups(text.substr(0, text.size() - random() % 2 * (random() % text.size())));
    if (!container.ok()) {
      continue;
    }
    ++understood;
    const size_t uid_size = container->pod_uid.size();
    EXPECT_TRUE(uid_size == 0 || uid_size == 32 || uid_size == 36) << container->pod_uid;
    EXPECT_EQ(container->pod_uid.find_first_not_of("0123456789abcdef-"), std::string::npos) << container->pod_uid;
    EXPECT_TRUE(container->id.empty() || container->id.size() == 64) << container->id;
    EXPECT_EQ(container->id.find_first_not_of("0123456789abcdef"), std::string::npos) << container->id;
  }
  EXPECT_GT(understood, 1000U);
}

}  // namespace
}  // namespace rnicd::transport
