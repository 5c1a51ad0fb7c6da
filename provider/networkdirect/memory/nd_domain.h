#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/networkdirect/memory/nd_listener.h"
#include "provider/networkdirect/memory/nd_node.h"
#include "provider/networkdirect/memory/token_table.h"

namespace rnicd::provider {

class NdMappings;

// An opening of a card that belongs to one protection domain. Network Direct has no domains: a token works on every
// queue pair of its IND2Adapter, and only there. So each domain has its own.
// Lifetime: shared by the calls and objects of the domain; outlived by the node's loops.
class NdOpening {
 public:
  // Errors: those of NdStatus.
  static absl::StatusOr<std::shared_ptr<NdOpening>> Open(NdNode& node, const NdDevice& device);
  ~NdOpening();
  NdOpening(const NdOpening&) = delete;
  NdOpening& operator=(const NdOpening&) = delete;

  IND2Adapter& adapter() { return *adapter_; }
  // For completion queues and connections: notified on NdNode::events.
  HANDLE events() const { return events_; }
  // For memory regions: notified on NdNode::registrations.
  HANDLE registrations() const { return registrations_; }

 private:
  NdOpening() = default;
  absl::Status OpenFile(CompletionLoop& loop, HANDLE& file);

  ComPtr<IND2Adapter> adapter_;
  HANDLE events_ = nullptr;
  HANDLE registrations_ = nullptr;
};

// A protection domain: its opening of the card, the tokens in force in it, and where its queue pairs are reached.
// Lifetime: shared by the objects created in it.
// Threads:  safe.
class NdDomain {
 public:
  // Errors: those of NdStatus.
  static absl::StatusOr<std::shared_ptr<NdDomain>> Create(std::shared_ptr<NdNode> node,
                                                          std::shared_ptr<NdDevice> device,
                                                          std::shared_ptr<NdMappings> mappings);
  ~NdDomain();
  NdDomain(const NdDomain&) = delete;
  NdDomain& operator=(const NdDomain&) = delete;

  NdNode& node() { return *node_; }
  NdDevice& device() { return *device_; }
  const std::shared_ptr<NdOpening>& opening() const { return opening_; }
  NdMappings& mappings() { return *mappings_; }
  TokenTable& local_tokens() { return local_tokens_; }
  TokenTable& remote_tokens() { return remote_tokens_; }
  // A local token that reaches nothing, so no other token equals it.
  uint32_t privileged_token() const { return privileged_token_; }
  // Invalidates what is in force under a remote token, as Invalidatable::InvalidateToken.
  bool InvalidateRemote(uint32_t token, std::optional<uint64_t> arrived_at);

  // Where the domain listens; made when it is needed. Errors: those of NdStatus.
  absl::StatusOr<std::shared_ptr<NdListener>> Listener();
  // Takes over a memory region that the card refused to deregister; the destructor retries.
  void Orphan(ComPtr<IND2MemoryRegion> region);

 private:
  NdDomain(std::shared_ptr<NdNode> node, std::shared_ptr<NdDevice> device, std::shared_ptr<NdMappings> mappings,
           std::shared_ptr<NdOpening> opening)
      : node_(std::move(node)),
        device_(std::move(device)),
        mappings_(std::move(mappings)),
        opening_(std::move(opening)),
        local_tokens_(node_->random),
        remote_tokens_(node_->random),
        privileged_token_(local_tokens_.Reserve()) {}

  const std::shared_ptr<NdNode> node_;
  const std::shared_ptr<NdDevice> device_;
  const std::shared_ptr<NdMappings> mappings_;
  const std::shared_ptr<NdOpening> opening_;
  TokenTable local_tokens_;
  TokenTable remote_tokens_;
  const uint32_t privileged_token_;

  Mutex mutex_;
  std::shared_ptr<NdListener> listener_ RNICD_GUARDED_BY(mutex_);
  std::vector<ComPtr<IND2MemoryRegion>> orphans_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
