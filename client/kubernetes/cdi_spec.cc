#include "client/kubernetes/cdi_spec.h"

#include <optional>
#include <string_view>

#include "base/status.h"
#include "client/kubernetes/node/whole_file.h"
#include "nlohmann/json.hpp"

namespace rnicd::kubernetes {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kFileName[] = "/rnicd.io-socket.json";
constexpr size_t kMaxFileBytes = 64 << 10;
// Readable by every user, because container engines may run as any.
constexpr mode_t kMode = 0644;

// Mounts and variables exist since 0.3.0, and engines refuse versions that they do not know.
constexpr char kVersion[] = "0.3.0";

std::string SpecOf(const MountPoint& socket_directory) {
  constexpr std::string_view kDevice = kCdiDevice;
  const size_t equals = kDevice.find('=');
  const OrderedJson mount = {{"hostPath", socket_directory.host_path},
                             {"containerPath", socket_directory.container_path},
                             {"options", {socket_directory.read_only ? "ro" : "rw", "nosuid", "nodev", "bind"}}};
  const OrderedJson edits = {{"env", {"RNICD_SOCKET_DIR=" + socket_directory.container_path}},
                             {"mounts", OrderedJson::array({mount})}};
  const OrderedJson device = {{"name", kDevice.substr(equals + 1)}, {"containerEdits", edits}};
  const OrderedJson spec = {
      {"cdiVersion", kVersion}, {"kind", kDevice.substr(0, equals)}, {"devices", OrderedJson::array({device})}};
  return spec.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

absl::Status WriteCdiSpec(const std::string& folder, const MountPoint& socket_directory) {
  const std::string path = folder + kFileName;
  const std::string spec = SpecOf(socket_directory);
  // A file that cannot be read is replaced, too.
  const absl::StatusOr<std::optional<std::string>> present = ReadOwnFile(path, kMaxFileBytes);
  return present.ok() && *present == spec ? absl::OkStatus() : ReplaceFile(path, spec, kMode);
}

}  // namespace rnicd::kubernetes
