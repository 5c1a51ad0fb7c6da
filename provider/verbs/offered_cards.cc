#include "provider/verbs/offered_cards.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/engine_choice.h"

namespace rnicd::provider {
namespace {

std::string Because(const std::string& card, absl::string_view why) { return absl::StrCat(card, ": ", why); }

}  // namespace

bool OfferedCards::IsWanted(const std::string& name) const {
  const std::vector<std::string>& wanted = node_->options.devices;
  return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
}

// The order of the options.
std::vector<CardId> OfferedCards::ListInOrder() const {
  std::vector<CardId> cards = node_->api.cards().List();
  for (const std::string& name : std::views::reverse(node_->options.devices)) {
    if (const auto found = std::ranges::find(cards, name, &CardId::name); found != cards.end()) {
      std::rotate(cards.begin(), found, found + 1);
    }
  }
  return cards;
}

absl::Status OfferedCards::Start(Remarks& remarks) {
  const std::vector<CardId> listed = ListInOrder();
  for (const std::string& name : node_->options.devices) {
    if (std::ranges::find(listed, name, &CardId::name) == listed.end()) {
      remarks.push_back(Because(name, "not there"));
    }
  }
  for (const CardId& id : listed) {
    cards_.push_back({.id = id, .is_settled = true});
    if (IsWanted(id.name)) {
      RNICD_RETURN_IF_ERROR(Offer(Inspect(id), remarks));
    } else {
      remarks.push_back(Because(id.name, "not in --verbs_devices"));
    }
  }
  is_started_ = true;
  return absl::OkStatus();
}

bool OfferedCards::Look() {
  LetGoOfMissing();
  for (const CardId& id : node_->api.cards().List()) {
    if (std::ranges::find(cards_, id, &Card::id) == cards_.end()) {
      cards_.push_back({.id = id, .patience_ends = std::chrono::steady_clock::now() + node_->options.look_interval});
    }
  }
  for (Card& card : cards_) {
    if (!card.is_settled) {
      Settle(card);
    }
  }
  return !std::ranges::all_of(cards_, &Card::is_settled);
}

void OfferedCards::LetGoOfMissing() {
  std::erase_if(cards_, [this](const Card& card) {
    const bool is_gone = !node_->api.cards().Has(card.id);
    if (is_gone) {
      LetGo(card.id);
    }
    return is_gone;
  });
}

// The openings are closed without the lock, and after the report.
void OfferedCards::LetGo(const CardId& card) {
  std::vector<Port> gone;
  {
    MutexLock lock(mutex_);
    const auto is_gone = [&](const Port& port) { return port.device->card() == card; };
    std::ranges::copy_if(ports_, std::back_inserter(gone), is_gone);
    std::erase_if(ports_, is_gone);
  }
  for (const Port& port : gone) {
    port.device->Remove(*node_);
  }
  if (cm_ != nullptr) {
    cm_->LetGo(card);
  }
}

// A running daemon goes on without a card that lacks what the options require.
void OfferedCards::Settle(Card& card) {
  Remarks remarks;
  card.is_settled = true;
  if (!IsWanted(card.id.name)) {
    remarks.push_back(Because(card.id.name, "not in --verbs_devices"));
  } else {
    const Inspection found = Inspect(card.id);
    card.is_settled = found.is_ready || std::chrono::steady_clock::now() >= card.patience_ends;
    if (!card.is_settled) {
      return;
    }
    if (const absl::Status status = Offer(found, remarks); !status.ok()) {
      remarks.push_back(Because(card.id.name, status.message()));
    }
  }
  Report(remarks);
}

OfferedCards::Inspection OfferedCards::Inspect(const CardId& card) const {
  Inspection found;
  ibv_context* const context = node_->api.Open(card);
  if (context == nullptr) {
    found.remarks.push_back(Because(card.name, VerbStatus(errno, "ibv_open_device").message()));
    found.is_ready = false;
    return found;
  }
  InspectPorts(context, card, found);
  node_->api.Close(context);
  return found;
}

void OfferedCards::InspectPorts(ibv_context* context, const CardId& card, Inspection& found) const {
  ibv_device_attr attributes = {};
  if (const int error = node_->api.QueryDevice(context, attributes); error != 0) {
    found.remarks.push_back(Because(card.name, VerbStatus(error, "ibv_open_device").message()));
    found.is_ready = false;
  }
  for (uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
    const std::string name = attributes.phys_port_cnt == 1 ? card.name : absl::StrCat(card.name, ":", port);
    absl::StatusOr<std::shared_ptr<VerbsDevice>> device = VerbsDevice::Inspect(*node_, context, card, port, name);
    if (!device.ok()) {
      found.remarks.push_back(Because(name, device.status().message()));
      continue;
    }
    found.is_ready =
        found.is_ready && (*device)->PortIsActive(*node_, context) && (*device)->CurrentAddress(*node_, context).ok();
    found.devices.push_back(*std::move(device));
  }
}

absl::Status OfferedCards::Offer(const Inspection& found, Remarks& remarks) {
  remarks.insert(remarks.end(), found.remarks.begin(), found.remarks.end());
  for (const std::shared_ptr<VerbsDevice>& device : found.devices) {
    RNICD_RETURN_IF_ERROR(OfferPort(device, remarks));
  }
  return absl::OkStatus();
}

absl::Status OfferedCards::OfferPort(const std::shared_ptr<VerbsDevice>& device, Remarks& remarks) {
  absl::StatusOr<std::shared_ptr<VerbsContext>> monitor = VerbsContext::Open(node_, device, /*events=*/true);
  if (!monitor.ok()) {
    remarks.push_back(Because(device->name(), monitor.status().message()));
    return absl::OkStatus();
  }
  RNICD_RETURN_IF_ERROR(ChooseEngines(**monitor));
  {
    MutexLock lock(mutex_);
    ports_.push_back({.device = device, .monitor = *std::move(monitor)});
  }
  if (is_started_) {
    node_->Report(device->name(), AdapterEventKind::kAdded);
  }
  return absl::OkStatus();
}

void OfferedCards::Report(const Remarks& remarks) const {
  for (const std::string& remark : remarks) {
    node_->Report(remark, AdapterEventKind::kLeftOut);
  }
}

std::vector<std::shared_ptr<VerbsDevice>> OfferedCards::ports() const {
  std::vector<std::shared_ptr<VerbsDevice>> devices;
  MutexLock lock(mutex_);
  devices.reserve(ports_.size());
  for (const Port& port : ports_) {
    devices.push_back(port.device);
  }
  return devices;
}

}  // namespace rnicd::provider
