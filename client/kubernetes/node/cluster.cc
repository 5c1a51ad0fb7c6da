#include "client/kubernetes/node/cluster.h"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/safe_file.h"
#include "base/status.h"
#include "curl/curl.h"

namespace rnicd::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr long kTimeoutSeconds = 10;
// Enough for some thousand pods; a larger response is an error rather than stored.
constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
constexpr size_t kMaxCredentialBytes = size_t{1} << 20;
// Annotation with a static pod's UID as used by the kubelet and the control groups.
constexpr char kStaticUid[] = "kubernetes.io/config.hash";

// The member's text; empty when the member is missing or not a string.
std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::map<std::string, std::string> Texts(const Json& object, const char* key) {
  std::map<std::string, std::string> texts;
  const auto found = object.find(key);
  if (found != object.end() && found->is_object()) {
    for (const auto& [name, value] : found->items()) {
      if (value.is_string()) {
        texts.emplace(name, value.get<std::string>());
      }
    }
  }
  return texts;
}

bool IsFinished(const Json& pod) {
  const auto status = pod.find("status");
  const std::string phase = status != pod.end() && status->is_object() ? Text(*status, "phase") : "";
  return phase == "Succeeded" || phase == "Failed";
}

// The token, or the certificates that the server's must be signed with. The kubelet mounts both as links, to files of
// root or of the user that the pod runs as.
absl::StatusOr<std::string> ReadCredential(const std::string& path) {
  absl::StatusOr<std::string> content = ReadSafeFile(path, {.bytes_max = kMaxCredentialBytes, .follow_link = true});
  if (!content.ok()) {
    return absl::UnavailableError(content.status().message());
  }
  absl::StripTrailingAsciiWhitespace(&*content);
  if (content->empty()) {
    return absl::UnavailableError(absl::StrCat(path, ": is empty"));
  }
  return content;
}

size_t Append(const char* data, size_t size, size_t count, void* target) {
  auto& answer = *static_cast<std::string*>(target);
  const size_t bytes = size * count;
  if (bytes > kMaxAnswerBytes - answer.size()) {
    return 0;
  }
  answer.append(data, bytes);
  return bytes;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeList>;
using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

// The body of a GET response with status 200.
absl::StatusOr<std::string> Get(const std::string& url, std::string certificates, const std::string& token) {
  const Handle handle(curl_easy_init(), curl_easy_cleanup);
  const std::string authorization = absl::StrCat("Authorization: Bearer ", token);
  const Headers headers(
      curl_slist_append(curl_slist_append(nullptr, authorization.c_str()), "Accept: application/json"));
  if (handle == nullptr || headers == nullptr) {
    return absl::UnavailableError("libcurl has no memory");
  }
  // From memory, so that what is trusted is what was checked.
  curl_blob blob = {.data = certificates.data(), .len = certificates.size(), .flags = CURL_BLOB_NOCOPY};
  if (curl_easy_setopt(handle.get(), CURLOPT_CAINFO_BLOB, &blob) != CURLE_OK) {
    return absl::UnavailableError("libcurl takes no certificates from memory");
  }
  // Otherwise the certificates of the system would be trusted as well.
  curl_easy_setopt(handle.get(), CURLOPT_CAPATH, nullptr);
  std::string answer;
  std::array<char, CURL_ERROR_SIZE> problem{};
  curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle.get(), CURLOPT_TIMEOUT, kTimeoutSeconds);
  curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
  // A cluster's API server is never behind a proxy, so the environment's proxy settings are ignored.
  curl_easy_setopt(handle.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, problem.data());
  const CURLcode outcome = curl_easy_perform(handle.get());
  if (outcome != CURLE_OK) {
    return absl::UnavailableError(
        absl::StrCat("the API server: ", problem[0] != '\0' ? problem.data() : curl_easy_strerror(outcome)));
  }
  long code = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &code);
  if (code == 401 || code == 403) {
    return absl::PermissionDeniedError(
        absl::StrCat("the API server does not let this service account list pods (HTTP ", code, ")"));
  }
  if (code != 200) {
    return absl::UnavailableError(absl::StrCat("the API server answered HTTP ", code));
  }
  return answer;
}

}  // namespace

absl::StatusOr<std::vector<ClusterPod>> ParsePodList(std::string_view json) {
  const Json list = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto items = list.is_object() ? list.find("items") : list.end();
  // Go writes an empty list as null.
  if (!list.is_object() || items == list.end() || !(items->is_array() || items->is_null())) {
    return absl::InternalError("the API server's answer is no list of pods");
  }
  std::vector<ClusterPod> pods;
  for (const Json& item : *items) {
    const auto metadata = item.is_object() ? item.find("metadata") : item.end();
    if (!item.is_object() || metadata == item.end() || !metadata->is_object()) {
      return absl::InternalError("the API server's answer has a pod without metadata");
    }
    if (IsFinished(item)) {
      continue;
    }
    ClusterPod pod{.uid = Text(*metadata, "uid"),
                   .namespace_name = Text(*metadata, "namespace"),
                   .name = Text(*metadata, "name"),
                   .labels = Texts(*metadata, "labels")};
    const std::map<std::string, std::string> annotations = Texts(*metadata, "annotations");
    if (const auto uid = annotations.find(kStaticUid); uid != annotations.end()) {
      pod.uid = uid->second;
    }
    pods.push_back(std::move(pod));
  }
  return pods;
}

absl::StatusOr<std::vector<ClusterPod>> Cluster::Pods() const {
  RNICD_ASSIGN_OR_RETURN(const std::string token, ReadCredential(options_.token_file));
  RNICD_ASSIGN_OR_RETURN(std::string certificates, ReadCredential(options_.ca_file));
  // Version 0: the server's cached list is recent enough.
  RNICD_ASSIGN_OR_RETURN(
      const std::string answer,
      Get(absl::StrCat(options_.server, "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D",
                       options_.node_name),
          std::move(certificates), token));
  return ParsePodList(answer);
}

}  // namespace rnicd::kubernetes
