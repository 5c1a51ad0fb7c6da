#pragma once

#include <array>

#include "absl/status/statusor.h"
#include "client/ctl/line/command_line.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::ctl {

// Options of 'grant create'. Each limit can be set by its name in policy.proto; the common ones have separate options.
inline constexpr std::array kGrantOptions = {
    OptionSpec{"--name", "NAME", "what the grant is for; its tenant is 'grant/NAME' (needed by create)", ""},
    OptionSpec{"--pod-uid", "UID", "only callers in this pod may present it (default: whoever has the secret)", ""},
    OptionSpec{"--lifetime", "DURATION", "when it ends by itself: 30m, 1h, 7d (default: not before it is revoked)",
               "30m 1h 7d"},
    OptionSpec{"--pinned", "SIZE", "bytes that all its sessions together may have registered, each page once", ""},
    OptionSpec{"--memory", "SIZE", "bytes of memory objects that they may have", ""},
    OptionSpec{"--regions", "N", "memory regions", ""},
    OptionSpec{"--queue-pairs", "N", "queue pairs", ""},
    OptionSpec{"--sessions", "N", "sessions", ""},
    OptionSpec{"--rate", "N", "calls a second", ""},
    OptionSpec{"--limits", "LIST", "other limits, by their names in policy.proto: cq_entries=4096,windows=16", ""},
    OptionSpec{"--session-limits", "LIST", "limits of each session: pinned_bytes=16MiB,requests_per_second=100", ""},
    OptionSpec{"--listen", "LIST", "where it may listen: 10.98.0.1,10.98.0.0/16@7000-7010 (without ports: from 1024)",
               ""},
    OptionSpec{"--connect", "LIST", "what it may reach, besides itself on this node: 10.98.0.0/16,fd00::/8@7000", ""},
    OptionSpec{"--accept", "LIST", "peers whose requests its listeners get, besides itself: 10.98.0.0/16", ""},
    OptionSpec{"--door", "", "make sockets of its own, whose callers need no secret; not with --secret-only", ""},
    OptionSpec{"--secret-only", "", "print the secret and nothing else, for a script", ""},
};

// The daemon checks whether the limits are consistent. Errors: UsageError.
absl::StatusOr<v1::CreateGrantRequest> GrantRequestFrom(const CommandLine& line);

}  // namespace rnicd::ctl
