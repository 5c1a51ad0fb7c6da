#pragma once

#include <string_view>

namespace rnicd {

// True for the UID of a Kubernetes pod, lower case, in the API server's form: "8-4-4-4-12" hexadecimal digits with
// dashes, or 32 digits for a static pod.
bool IsPodUid(std::string_view text);

}  // namespace rnicd
