#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "provider/verbs/card/verbs_context.h"
#include "provider/verbs/connection/rdma_cm.h"

namespace rnicd::provider {

// The cards of this machine, of which those that the options allow are offered, port by port.
// Threads: Start, then Look on one thread; the rest is safe.
class OfferedCards {
 public:
  // A reason for each card or port that is left out: "mlx5_0: not in --verbs_devices".
  using Remarks = std::vector<std::string>;

  // `cm`, which may be null, outlives it.
  OfferedCards(std::shared_ptr<VerbsNode> node, RdmaCm* cm) : node_(std::move(node)), cm_(cm) {}

  // Offers what is there. Errors: those of ChooseEngines.
  absl::Status Start(Remarks& remarks);
  // Lets go of the cards that are gone, then offers those that have come, and reports both. True while a card is not
  // ready to be tried.
  bool Look();

  // Also those that are removed, until the kernel says that they are gone.
  std::vector<std::shared_ptr<VerbsDevice>> ports() const;

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Port {
    std::shared_ptr<VerbsDevice> device;
    // The opening that hears the events of the card.
    std::shared_ptr<VerbsContext> monitor;
  };
  struct Card {
    CardId id;
    // Until then it may lack an address or a link.
    Instant patience_ends;
    // Nothing remains to be done for it until it is gone.
    bool is_settled = false;
  };
  struct Inspection {
    std::vector<std::shared_ptr<VerbsDevice>> devices;
    Remarks remarks;
    bool is_ready = true;
  };

  bool IsWanted(const std::string& name) const;
  std::vector<CardId> ListInOrder() const;
  void LetGoOfMissing();
  void LetGo(const CardId& card);
  void Settle(Card& card);
  Inspection Inspect(const CardId& card) const;
  void InspectPorts(ibv_context* context, const CardId& card, Inspection& found) const;
  absl::Status Offer(const Inspection& found, Remarks& remarks);
  absl::Status OfferPort(const std::shared_ptr<VerbsDevice>& device, Remarks& remarks);
  void Report(const Remarks& remarks) const;

  const std::shared_ptr<VerbsNode> node_;
  RdmaCm* const cm_;
  // All that are there.
  std::vector<Card> cards_;
  bool is_started_ = false;
  mutable Mutex mutex_;
  std::vector<Port> ports_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
