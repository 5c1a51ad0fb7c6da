#include "daemon/transport/identity/container.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pod_uid.h"
#include "base/status.h"

namespace rnicd::transport {
namespace {

constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kContainerIdDigits = 64;
constexpr std::string_view kPodsWord = "kubepods";

using Names = std::vector<std::string_view>;

// Prefixes that the engines put before a container's id. Their monitors, such as "crio-conmon-<id>.scope", are not
// containers.
constexpr std::string_view kEngines[] = {"cri-containerd", "crio", "docker", "libpod", "nerdctl"};
// Groups besides slices that only the node's administrators write into.
constexpr std::string_view kNodeFolders[] = {"docker",
                                             "kubelet",
                                             "k8s.io",
                                             "libpod_parent",
                                             "containerd.service",
                                             "crio.service",
                                             "docker.service",
                                             "k3s.service",
                                             "kubelet.service",
                                             "k3s-agent.service",
                                             "rke2-server.service",
                                             "rke2-agent.service"};

absl::Status Malformed(const char* what) { return absl::InvalidArgumentError(what); }

// At least one piece; at most `most`, of which the last keeps its separators.
Names Split(std::string_view text, char separator, size_t most = SIZE_MAX) {
  Names pieces;
  size_t end = 0;
  while (pieces.size() + 1 < most && (end = text.find(separator)) != std::string_view::npos) {
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  pieces.push_back(text);
  return pieces;
}

bool ConsumePrefix(std::string_view& text, std::string_view prefix) {
  const bool found = text.starts_with(prefix);
  text.remove_prefix(found ? prefix.size() : 0);
  return found;
}

void StripSuffix(std::string_view& text, std::string_view suffix) {
  text.remove_suffix(text.ends_with(suffix) ? suffix.size() : 0);
}

template <size_t kCount>
bool IsOneOf(std::string_view name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The UID in the API server's form; the systemd driver writes underscores for its dashes. Empty if it is not a pod UID.
std::optional<std::string> PodUid(std::string_view text) {
  std::string uid(text);
  if (text.find('-') == std::string_view::npos) {
    std::replace(uid.begin(), uid.end(), '_', '-');
  }
  return IsPodUid(uid) ? std::optional(uid) : std::nullopt;
}

// The id in "<id>", "crio-<id>" and "cri-containerd-<id>.scope"; empty when the name is not a container's.
std::string_view ContainerId(std::string_view name) {
  StripSuffix(name, ".scope");
  if (name.size() > kContainerIdDigits) {
    const size_t dash = name.size() - kContainerIdDigits - 1;
    if (name[dash] != '-' || !IsOneOf(name.substr(0, dash), kEngines)) {
      return {};
    }
    name.remove_prefix(dash + 1);
  }
  return IsHex(name, kContainerIdDigits) ? name : std::string_view();
}

// The meaning of one name in a path.
enum class Kind : uint8_t {
  // Belongs to the node.
  kNode,
  // The root of all pods, or of the pods of one quality of service.
  kPods,
  kPod,
  kContainer,
  // Belongs to Kubernetes, but not in a form that Kubernetes writes.
  kMalformed,
  kOther,
};

struct Meaning {
  Kind kind = Kind::kOther;
  std::string pod_uid;
  std::string container_id;
};

Meaning PodMeaning(std::string_view uid, std::string_view container_id = {}) {
  const std::optional<std::string> pod_uid = PodUid(uid);
  return pod_uid ? Meaning{Kind::kPod, *pod_uid, std::string(container_id)} : Meaning{Kind::kMalformed, {}, {}};
}

// Position of the word between dashes or at the end; npos when there is none.
size_t FindPodsWord(std::string_view stem) {
  for (size_t at = stem.find(kPodsWord); at != std::string_view::npos; at = stem.find(kPodsWord, at + 1)) {
    const size_t end = at + kPodsWord.size();
    if ((at == 0 || stem[at - 1] == '-') && (end == stem.size() || stem[end] == '-')) {
      return at;
    }
  }
  return std::string_view::npos;
}

// "kubepods.slice", "kubepods-burstable-pod<uid>.slice", and from an engine without slices
// "kubepods-pod<uid>.slice:cri-containerd:<id>". A prefix is allowed, as in "kubelet-kubepods.slice".
Meaning MeaningOfSlice(std::string_view stem, std::string_view behind) {
  const size_t word = FindPodsWord(stem);
  if (word == std::string_view::npos) {
    return Meaning{behind.empty() ? Kind::kNode : Kind::kOther, {}, {}};
  }
  std::string_view rest = stem.substr(word + kPodsWord.size());
  if (!ConsumePrefix(rest, "-burstable")) {
    ConsumePrefix(rest, "-besteffort");
  }
  if (rest.empty() && behind.empty()) {
    return Meaning{Kind::kPods, {}, {}};
  }
  if (!ConsumePrefix(rest, "-pod")) {
    return Meaning{Kind::kMalformed, {}, {}};
  }
  if (behind.empty()) {
    return PodMeaning(rest);
  }
  const Names parts = Split(behind, ':');
  const bool sound =
      parts.size() == 3 && parts[0].empty() && IsOneOf(parts[1], kEngines) && IsHex(parts[2], kContainerIdDigits);
  return sound ? PodMeaning(rest, parts[2]) : Meaning{Kind::kMalformed, {}, {}};
}

Meaning MeaningOf(std::string_view name) {
  constexpr std::string_view kSlice = ".slice";
  if (const size_t slice = name.find(kSlice); slice != std::string_view::npos) {
    return MeaningOfSlice(name.substr(0, slice), name.substr(slice + kSlice.size()));
  }
  if (name == kPodsWord) {
    return Meaning{Kind::kPods, {}, {}};
  }
  // Services and scopes have names chosen by others and are not pods.
  if (name.starts_with(kPodsWord) && !name.ends_with(".service") && !name.ends_with(".scope")) {
    return Meaning{Kind::kMalformed, {}, {}};
  }
  if (const std::string_view id = ContainerId(name); !id.empty()) {
    return Meaning{Kind::kContainer, {}, std::string(id)};
  }
  return Meaning{IsOneOf(name, kNodeFolders) ? Kind::kNode : Kind::kOther, {}, {}};
}

// Meaning of the cgroupfs driver's names, which are significant only between the root of all pods and a container.
Meaning MeaningAmongPods(std::string_view name) {
  if (name == "burstable" || name == "besteffort") {
    return Meaning{Kind::kPods, {}, {}};
  }
  // A pod's name has no dot; "podman.service" has one.
  return name.starts_with("pod") && name.find('.') == std::string_view::npos ? PodMeaning(name.substr(3))
                                                                             : MeaningOf(name);
}

bool LooksLikePods(std::string_view name) {
  const Kind kind = MeaningOf(name).kind;
  return kind == Kind::kPods || kind == Kind::kPod || kind == Kind::kMalformed ||
         (name.starts_with("pod") && PodUid(name.substr(3)).has_value());
}

// The names of a path, and how many of them are "..": how far above the root of the daemon's control group namespace it
// begins. No group can have that name, so it comes from the kernel, and the groups above contain the daemon itself.
struct Path {
  Names names;
  size_t climbs = 0;
};

absl::StatusOr<Path> SplitPath(std::string_view text) {
  if (text.empty() || text.front() != '/' || text.size() > kMaxPathBytes) {
    return Malformed("no path of a control group");
  }
  Path path;
  if (text.size() > 1) {
    path.names = Split(text.substr(1), '/');
  }
  while (path.climbs < path.names.size() && path.names[path.climbs] == "..") {
    ++path.climbs;
  }
  for (size_t index = path.climbs; index < path.names.size(); ++index) {
    const std::string_view name = path.names[index];
    if (name.empty() || name == "." || name == "..") {
      return Malformed("no path of a control group");
    }
  }
  return path;
}

// Reads one hierarchy, see ParseCgroups; `own` is the daemon's path in the same hierarchy.
absl::StatusOr<core::Container> ReadPath(const Path& path, const Path& own) {
  bool among_pods = false;
  bool is_ours = path.climbs == 0;
  for (size_t index = path.climbs; index < path.names.size(); ++index) {
    const std::string_view name = path.names[index];
    is_ours = is_ours && index < own.names.size() && own.names[index] == name;
    // A sibling of the daemon's group may be a pod, whose root is then above the visible part of the path.
    const bool beside_us = path.climbs != 0 && index == path.climbs;
    Meaning meaning = among_pods || beside_us ? MeaningAmongPods(name) : MeaningOf(name);
    if (meaning.kind == Kind::kPod) {
      if (meaning.container_id.empty() && index + 1 < path.names.size()) {
        meaning.container_id = ContainerId(path.names[index + 1]);
      }
      return core::Container{std::move(meaning.pod_uid), std::move(meaning.container_id)};
    }
    if (meaning.kind == Kind::kMalformed || (among_pods && meaning.kind != Kind::kPods)) {
      return Malformed("a control group of Kubernetes without a sound pod");
    }
    among_pods = meaning.kind == Kind::kPods;
    if (is_ours) {
      continue;
    }
    if (meaning.kind == Kind::kContainer) {
      return core::Container{{}, std::move(meaning.container_id)};
    }
    if (meaning.kind == Kind::kOther) {
      if (std::any_of(path.names.begin() + static_cast<ptrdiff_t>(index), path.names.end(), LooksLikePods)) {
        return Malformed("a pod's control group where anybody may make one");
      }
      return core::Container{};
    }
  }
  return among_pods ? absl::StatusOr<core::Container>(Malformed("a control group of Kubernetes without a pod"))
                    : core::Container{};
}

struct Hierarchy {
  // Controllers or name of the hierarchy; empty for the unified one.
  std::string_view name;
  Path path;
};

// Splits lines of "number:name:path". A path may contain colons, but no line break: the kernel refuses such a name.
absl::StatusOr<std::vector<Hierarchy>> SplitLines(std::string_view text) {
  if (text.size() > kMaxCgroupsBytes || text.find('\0') != std::string_view::npos) {
    return Malformed("too long for the control groups of a process, or not text");
  }
  std::vector<Hierarchy> hierarchies;
  StripSuffix(text, "\n");
  for (const std::string_view line : Split(text, '\n')) {
    const Names parts = Split(line, ':', 3);
    if (parts.size() != 3 || parts[0].empty() || parts[0].find_first_not_of("0123456789") != std::string_view::npos) {
      return Malformed("no line about a control group");
    }
    RNICD_ASSIGN_OR_RETURN(Path path, SplitPath(parts[2]));
    hierarchies.push_back({parts[1], std::move(path)});
  }
  return hierarchies;
}

// False when both are set and differ.
bool Agree(std::string& known, std::string& found) {
  if (known.empty()) {
    known.swap(found);
    return true;
  }
  return found.empty() || found == known;
}

}  // namespace

absl::StatusOr<core::Container> ParseCgroups(std::string_view text, std::string_view own) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<Hierarchy> hierarchies, SplitLines(text));
  std::vector<Hierarchy> ours;
  if (!own.empty()) {
    RNICD_ASSIGN_OR_RETURN(ours, SplitLines(own));
  }
  core::Container container;
  for (const Hierarchy& hierarchy : hierarchies) {
    const auto same =
        std::find_if(ours.begin(), ours.end(), [&](const Hierarchy& our) { return our.name == hierarchy.name; });
    RNICD_ASSIGN_OR_RETURN(core::Container found, ReadPath(hierarchy.path, same == ours.end() ? Path() : same->path));
    if (!Agree(container.pod_uid, found.pod_uid) || !Agree(container.id, found.id)) {
      return Malformed("two hierarchies of control groups name different pods or containers");
    }
  }
  return container;
}

}  // namespace rnicd::transport
