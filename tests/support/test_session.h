#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

class DataPath;

// A client virtual address for tests that never access the memory.
inline constexpr uint64_t kBase = 0x7000'0000'0000;
inline constexpr uint64_t kPage = 4096;
// Flags of a fast registration or a bind.
inline constexpr uint32_t kRemoteRights = v1::OP_FLAG_ALLOW_REMOTE_READ | v1::OP_FLAG_ALLOW_REMOTE_WRITE;

// A range of an object that its owner knows at kBase, for ProvisionMemory.
v1::ProvisionRange ProvisionRange(uint64_t offset, uint64_t length);

// A connection with an open session, and the setup steps that tests share. A step that must succeed and fails is a test
// failure; the returned id is then 0. With RNICD_TEST_DATA_PATH=rings its posts and what else data_path.h names go
// through shared memory.
class TestSession : public RawClient {
 public:
  // With the secret of a grant the session is its tenant's.
  explicit TestSession(DaemonProcess& daemon, const std::string& label = "test", const std::string& grant = {});
  // For a daemon that another process has started.
  struct Sockets {
    std::string rpc;
    std::string fd;
  };
  explicit TestSession(const Sockets& sockets, const std::string& label = "test", const std::string& grant = {});
  ~TestSession() override;

  uint64_t session_id() const { return session_id_; }
  // The adapter and the protection domain, created at the first call.
  uint64_t adapter_id();
  uint64_t pd_id();

  // Allocates a memory object, fetches its descriptor and seals it.
  uint64_t SealedMemory(uint64_t size);
  // Allocates without fetching or sealing.
  v1::AllocateMemoryResponse Allocate(uint64_t size);
  v1::ImportMemoryResponse Import(uint64_t size);
  UniqueFd Fetch(const std::string& ticket);
  // Allocates and fetches without sealing.
  uint64_t AttachedMemory(uint64_t size);

  CallResult<v1::SealMemoryResponse> Seal(uint64_t memory_id);
  CallResult<v1::ReleaseMemoryResponse> Release(uint64_t memory_id);
  CallResult<v1::CloseSessionResponse> CloseSession();

  // Creates a region in the session's protection domain.
  uint64_t CreateMr(bool fast_register = false);
  CallResult<v1::RegisterMrResponse> Register(const v1::RegisterMrRequest& request);
  // Registers a whole memory object as one entry at kBase; must succeed inline.
  v1::Registration RegisterWhole(uint64_t mr_id, uint64_t memory_id, uint64_t size, uint32_t flags = 0);
  CallResult<v1::DeregisterMrResponse> Deregister(uint64_t mr_id, bool allow_pending = false, uint64_t context = 0);
  CallResult<v1::CloseMrResponse> CloseMr(uint64_t mr_id, bool allow_pending = false, uint64_t context = 0);
  CallResult<v1::ClosePdResponse> ClosePd(uint64_t pd_id, bool allow_pending = false, uint64_t context = 0);
  CallResult<v1::GetLocalTokenResponse> LocalToken(uint64_t mr_id);
  CallResult<v1::GetRemoteTokenResponse> RemoteToken(uint64_t mr_id);

  // The session's use of one resource, as GetSession reports it.
  v1::ResourceUse Use(const std::string& resource);

 protected:
  CallOutcome Carry(const char* path, const google::protobuf::Message& request, google::protobuf::Message* response,
                    std::chrono::milliseconds limit) override;

 private:
  const std::string fd_socket_;
  // Null where everything is a call.
  std::unique_ptr<DataPath> data_path_;
  uint64_t session_id_ = 0;
  uint64_t adapter_id_ = 0;
  uint64_t pd_id_ = 0;
};

}  // namespace rnicd::test
