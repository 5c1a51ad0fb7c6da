#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/networkdirect/card/completion_loop.h"
#include "provider/networkdirect/card/nd_device.h"

namespace rnicd::provider {

class NdOpening;

// Accepts connections for the queue pairs of one opening of a card. A connection brings a ticket, a random number that
// only the two queue pairs know, so that nobody on the network can connect to a queue pair of the daemon.
// Lifetime: shared by its domain and its pending call; Close ends the call.
// Threads:  safe.
class NdListener : public std::enable_shared_from_this<NdListener> {
 public:
  // Takes over a connector whose request waits for Accept or Reject. On the loop's thread.
  using OnRequest = std::function<void(ComPtr<IND2Connector>)>;

  // Listens at a port of the card's choice. `loop` outlives the listener. Errors: those of NdStatus.
  static absl::StatusOr<std::shared_ptr<NdListener>> Open(CompletionLoop& loop, std::shared_ptr<NdOpening> opening,
                                                          const NdAddress& address);
  void Close();
  // The card takes no more requests for it.
  bool broken() const;

  const NdAddress& address() const { return address_; }
  // The request that brings the ticket is given to `on_request`, once.
  void Expect(uint64_t ticket, OnRequest on_request);
  void Forget(uint64_t ticket);

 private:
  NdListener(CompletionLoop& loop, std::shared_ptr<NdOpening> opening) : loop_(loop), opening_(std::move(opening)) {}

  absl::Status Listen(const NdAddress& address);
  absl::StatusOr<ComPtr<IND2Connector>> NewConnector();
  void AwaitRequest(const ComPtr<IND2Connector>& connector);
  void OnCompleted(HRESULT result, const ComPtr<IND2Connector>& connector);
  void Admit(const ComPtr<IND2Connector>& connector);

  CompletionLoop& loop_;
  const std::shared_ptr<NdOpening> opening_;
  ComPtr<IND2Listener> listener_;
  NdAddress address_;

  mutable Mutex mutex_;
  bool closed_ RNICD_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, OnRequest> expected_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
