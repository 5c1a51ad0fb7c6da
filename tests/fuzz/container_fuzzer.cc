// The text of /proc/<pid>/cgroup: a client chooses its deeper names.
//
// Input: the daemon's control groups, a line "%", then the client's; without that line only the client's.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/transport/identity/container.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/split.h"

namespace rnicd::fuzz {
namespace {

// Names that a client might create below its own group to impersonate another one.
constexpr std::string_view kLies[] = {
    "/kubepods/besteffort/pod00000000-0000-4000-8000-00000000feed/"
    "feedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeed",
    "/kubepods.slice/kubepods-pod00000000_0000_4000_8000_00000000feed.slice/"
    "cri-containerd-feedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeed.scope",
    "/docker-feedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeedfeed.scope",
};
constexpr size_t kMaxPathBytes = 4096;

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsPodUid(std::string_view uid) {
  const std::vector<std::string> groups = Split(uid, '-');
  return IsHex(uid, 32) || (groups.size() == 5 && IsHex(groups[0], 8) && IsHex(groups[1], 4) && IsHex(groups[2], 4) &&
                            IsHex(groups[3], 4) && IsHex(groups[4], 12));
}

std::vector<std::string> Lines(std::string_view text) {
  return Split(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text, '\n');
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

void CheckForm(const core::Container& container, std::string_view text) {
  Check(container.pod_uid.empty() || IsPodUid(container.pod_uid), "a pod's UID is well formed");
  Check(container.id.empty() || IsHex(container.id, 64), "a container's id is well formed");
  Check(text.find(container.id) != std::string_view::npos, "the container's id is in the text");
  std::string underscored = container.pod_uid;
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  Check(text.find(container.pod_uid) != std::string_view::npos || text.find(underscored) != std::string_view::npos,
        "the pod stands in the text");
}

// Only the outermost pod and the container directly below it count: no name below a container's own group changes its
// identity.
void CheckLies(const core::Container& container, std::string_view text, std::string_view own) {
  for (const std::string_view lie : kLies) {
    std::vector<std::string> lines = Lines(text);
    for (std::string& line : lines) {
      const absl::StatusOr<core::Container> alone = transport::ParseCgroups(line, own);
      Check(alone.ok(), "each line of a valid text is valid alone");
      const size_t path = line.find('/');
      if (!alone->id.empty() && line.size() - path + lie.size() <= kMaxPathBytes) {
        line += lie;
      }
    }
    const std::string lying = Joined(lines);
    if (lying.size() <= transport::kMaxCgroupsBytes) {
      const absl::StatusOr<core::Container> believed = transport::ParseCgroups(lying, own);
      Check(believed.ok() && *believed == container, "groups below a container do not change its identity");
    }
  }
}

void CheckOrder(const absl::StatusOr<core::Container>& parsed, std::string_view text, std::string_view own) {
  std::vector<std::string> lines = Lines(text);
  std::reverse(lines.begin(), lines.end());
  const std::string reversed = Joined(lines);
  // One more line break may exceed the limit by one byte.
  if (reversed.size() > transport::kMaxCgroupsBytes) {
    return;
  }
  const absl::StatusOr<core::Container> again = transport::ParseCgroups(reversed, own);
  Check(again.ok() == parsed.ok() && (!again.ok() || *again == *parsed),
        "the order of the hierarchies does not matter");
}

void TryContainer(std::string_view input) {
  constexpr std::string_view kSeparator = "\n%\n";
  const size_t end = input.find(kSeparator);
  const bool has_own = end != std::string_view::npos;
  const std::string_view own = has_own ? input.substr(0, end + 1) : std::string_view();
  const std::string_view text = has_own ? input.substr(end + kSeparator.size()) : input;

  const absl::StatusOr<core::Container> container = transport::ParseCgroups(text, own);
  CheckOrder(container, text, own);
  if (container.ok()) {
    CheckForm(*container, text);
    CheckLies(*container, text, own);
  } else {
    Check(absl::IsInvalidArgument(container.status()), "the text is refused as an invalid argument");
  }
}

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::TryContainer(rnicd::fuzz::AsText(data, size));
  return 0;
}
