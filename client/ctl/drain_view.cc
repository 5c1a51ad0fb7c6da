#include "client/ctl/units.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

std::string DrainText(const v1::DrainResponse& drain) {
  const bool nothing = drain.sessions() == 0 && drain.regions() == 0 && drain.pinned_bytes() == 0;
  const std::string left = nothing ? "nothing is left"
                                   : "left are " + Counted(drain.sessions(), "session") + ", " +
                                         Counted(drain.regions(), "region") + ", " + FormatBytes(drain.pinned_bytes()) +
                                         " pinned";
  return drain.draining() ? "draining: " + left + "\n" : "not draining: the daemon takes things on\n";
}

Json DrainJson(const v1::DrainResponse& drain) {
  return {{"draining", drain.draining()},
          {"sessions", drain.sessions()},
          {"regions", drain.regions()},
          {"pinned_bytes", drain.pinned_bytes()}};
}

}  // namespace rnicd::ctl
