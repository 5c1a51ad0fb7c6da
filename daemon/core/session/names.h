#pragma once

// The short names of the sockets in their directories. Clients depend on them, so they never change.
namespace rnicd::core {

inline constexpr char kRpcSocketName[] = "rpc.sock";
inline constexpr char kFdSocketName[] = "fd.sock";
inline constexpr char kAdminSocketName[] = "admin.sock";

}  // namespace rnicd::core
