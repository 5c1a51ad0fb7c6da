// Random work requests.

#include <algorithm>

#include "base/ndk/op_flags.h"
#include "tests/simulation/steps/post.h"

namespace rnicd::simulation {
namespace {

using Targets = std::vector<std::shared_ptr<Target>>;

// Live registrations of a domain.
Targets RegistrationsIn(const Client& client, const std::shared_ptr<Domain>& domain) {
  Targets targets;
  for (const auto& region : client.regions) {
    if (region->domain == domain && region->target != nullptr) {
      targets.push_back(region->target);
    }
    if (region->domain == domain && region->key != nullptr && region->key->active()) {
      targets.push_back(region->key->current());
    }
  }
  return targets;
}

// Targets that a peer of `host` may access with this right.
Targets RemoteTargetsOf(const QueuePair& host, bool write) {
  Targets targets = RegistrationsIn(*host.client, host.domain);
  for (const auto& window : host.client->windows) {
    if (window->key->active() && window->key->current()->through == host.number) {
      targets.push_back(window->key->current());
    }
  }
  std::erase_if(targets, [write](const std::shared_ptr<Target>& target) {
    return write ? !target->rights.remote_write : !target->rights.remote_read;
  });
  return targets;
}

// A token that should not work here: dead, another session's, of the wrong kind, or random.
uint32_t WrongToken(const Scene& scene, const Client& client) {
  Dice& dice = scene.dice;
  const Client& other = *dice.Pick(scene.model.clients);
  const std::vector<uint32_t>& dead = dice.Chance(70) ? client.dead_tokens : other.dead_tokens;
  const uint64_t choice = dice.Below(10);
  if (choice < 6 && !dead.empty()) {
    return dice.Pick(dead);
  }
  if (choice < 9 && !other.regions.empty()) {
    const std::shared_ptr<Region>& region = dice.Pick(other.regions);
    const bool remote = dice.Chance(50);
    if (region->target != nullptr) {
      return remote ? region->target->remote.value : region->target->local.value;
    }
    if (region->key != nullptr) {
      return remote ? region->key->issued.value : region->key->local.value;
    }
  }
  return static_cast<uint32_t>(dice.Next());
}

uint64_t WithinOrNot(const Scene& scene, uint64_t base, uint64_t length, uint64_t wanted) {
  const uint64_t inside = base + (length >= wanted ? scene.dice.Below(length - wanted + 1) : 0);
  return scene.Careless() ? base + length - scene.dice.Below(std::min<uint64_t>(length, 64)) : inside;
}

// Draws the requests of one queue pair.
class Drawer {
 public:
  Drawer(const Scene& scene, const QueuePair& pair, Draft& draft)
      : scene_(scene), dice_(scene.dice), pair_(pair), draft_(draft) {}

  void Draw() {
    draft_.request.request_context = dice_.Below(10000);
    const uint64_t choice = dice_.Below(100);
    const bool can_initiate = pair_.state == provider::QueuePairState::kReadyToSend || scene_.Careless();
    // NOLINTNEXTLINE(bugprone-branch-clone): the last row is for what no other could draw.
    if (choice < 28 || !can_initiate) {
      Receive();
    } else if (choice < 50) {
      Send();
    } else if (choice < 62 && Can(!RemoteTargets(false).empty())) {
      Read();
    } else if (choice < 76 && Can(!RemoteTargets(true).empty())) {
      Write();
    } else if (choice < 86 && Can(Any(true, Region::State::kInitialized))) {
      FastRegister();
    } else if (choice < 93 && Can(Any(true, Region::State::kInitialized) || !pair_.client->windows.empty())) {
      Invalidate();
    } else if (choice < 99 && Can(Any(false, Region::State::kRegistered) && !pair_.client->windows.empty())) {
      Bind();
    } else if (!scene_.Careless()) {
      Receive();
    }
    if (scene_.Careless() && scene_.Careless()) {
      draft_.request.flags ^= 1U << dice_.Below(12);
    }
  }

 private:
  // Whether to draw a request that needs something; occasionally true although what it needs is missing.
  bool Can(bool has_what_it_takes) { return has_what_it_takes || scene_.Careless(); }
  bool Any(bool fast, Region::State state) const {
    const auto& regions = pair_.client->regions;
    return std::any_of(regions.begin(), regions.end(), [&](const auto& region) {
      return region->fast == fast && region->state == state && region->domain == pair_.domain;
    });
  }
  Targets RemoteTargets(bool write) const {
    const std::shared_ptr<QueuePair> peer = pair_.peer.lock();
    return peer != nullptr ? RemoteTargetsOf(*peer, write) : Targets();
  }
  void Say(const std::string& text) { draft_.text = text; }

  void InitiatorFlags() {
    if (dice_.Chance(30)) {
      draft_.request.flags |= kOpFlagSilentSuccess;
    }
    if (dice_.Chance(15)) {
      draft_.request.flags |= kOpFlagReadFence;
    }
    if (dice_.Chance(20)) {
      draft_.request.flags |= kOpFlagDefer;
    }
  }

  Sge Entry(uint64_t most, bool sink) {
    // Often the full length, so that received messages fit.
    const auto length = static_cast<uint32_t>(sink && dice_.Chance(60) ? most : dice_.Below(most + 1));
    if (scene_.Careless()) {
      const uint64_t address = dice_.Next();
      return {.address = address, .length = length, .token = LocalToken{WrongToken(scene_, *pair_.client)}};
    }
    Targets targets = RegistrationsIn(*pair_.client, pair_.domain);
    std::erase_if(targets, [sink](const auto& each) { return sink && !each->rights.local_write; });
    std::vector<std::shared_ptr<Mapping>> mappings;
    for (const auto& mapping : pair_.client->mappings) {
      if (mapping->adapter == pair_.domain->adapter) {
        mappings.push_back(mapping);
      }
    }
    if (!mappings.empty() && (targets.empty() || dice_.Chance(35))) {
      const std::shared_ptr<Mapping>& mapping = dice_.Pick(mappings);
      const uint64_t bytes = mapping->pages->pages.size() * kNdkPageBytes;
      const uint64_t fitting = std::min<uint64_t>(length, bytes);
      const uint64_t address = WithinOrNot(scene_, mapping->first, bytes, fitting);
      return {.address = address, .length = static_cast<uint32_t>(fitting), .token = pair_.domain->privileged};
    }
    if (targets.empty()) {
      return {.address = 0, .length = 0, .token = LocalToken{1}};
    }
    const std::shared_ptr<Target>& target = dice_.Pick(targets);
    const uint64_t fitting = std::min<uint64_t>(length, target->length);
    const uint64_t address = WithinOrNot(scene_, target->base.value, target->length, fitting);
    return {.address = address, .length = static_cast<uint32_t>(fitting), .token = target->local};
  }

  // `most`: total bytes.
  Sges Entries(uint32_t allowed, uint64_t most, bool sink) {
    Sges sges;
    const uint64_t count = scene_.Careless() ? allowed + 1 : dice_.Between(1, std::max<uint32_t>(allowed, 1));
    for (uint64_t index = 0; index < count; ++index) {
      sges.push_back(Entry(most / count, sink));
    }
    return sges;
  }

  Sges Inline() {
    draft_.request.flags |= kOpFlagInline;
    const uint64_t most = pair_.limits.inline_bytes + (scene_.Careless() ? 8 : 0);
    const std::string bytes(dice_.Below(most + 1), static_cast<char>(dice_.Next()));
    const size_t split = bytes.size() / 3;
    Sges sges;
    for (const std::string& part : {bytes.substr(0, split), bytes.substr(split)}) {
      draft_.inline_data.push_back(part);
      const std::string& kept = draft_.inline_data.back();
      const auto length = static_cast<uint32_t>(kept.size() + (scene_.Careless() ? 1 : 0));
      sges.push_back({.address = 0, .length = length, .token = {}, .inline_data = std::as_bytes(std::span(kept))});
    }
    return sges;
  }

  Sges PayloadOrInline(uint64_t most) {
    return pair_.limits.inline_bytes > 0 && dice_.Chance(25) ? Inline()
                                                             : Entries(pair_.limits.initiator_entries, most, false);
  }

  static uint64_t LengthOf(const Sges& sges) {
    uint64_t sum = 0;
    for (const Sge& sge : sges) {
      sum += sge.length;
    }
    return sum;
  }

  void Receive() {
    WorkRequest::Receive receive{.sges = Entries(pair_.limits.receive_entries, 6000, true)};
    Say("Receive " + std::to_string(LengthOf(receive.sges)));
    draft_.request.operation = std::move(receive);
  }

  void Send() {
    InitiatorFlags();
    if (dice_.Chance(25)) {
      draft_.request.flags |= kOpFlagSolicit;
    }
    Sges sges = PayloadOrInline(dice_.Chance(85) ? 300 : 6000);
    const std::string size = std::to_string(LengthOf(sges));
    const std::vector<uint32_t> tokens = TokensToInvalidate();
    const bool wrong = scene_.Careless();
    if (!wrong && (tokens.empty() || !dice_.Chance(25))) {
      Say("Send " + size);
      draft_.request.operation = WorkRequest::Send{.sges = std::move(sges)};
      return;
    }
    const RemoteToken token{wrong ? WrongToken(scene_, *pair_.client) : dice_.Pick(tokens)};
    Say("SendAndInvalidate " + size);
    draft_.request.operation = WorkRequest::SendAndInvalidate{.sges = std::move(sges), .token = token};
  }

  // Tokens of the peer's fast registrations and bound windows.
  std::vector<uint32_t> TokensToInvalidate() const {
    std::vector<uint32_t> tokens;
    const std::shared_ptr<QueuePair> peer = pair_.peer.lock();
    const auto add = [&](const auto& each) {
      if (each->key != nullptr && each->key->active() && each->domain == peer->domain) {
        tokens.push_back(each->key->current()->remote.value);
      }
    };
    if (peer != nullptr) {
      std::for_each(peer->client->regions.begin(), peer->client->regions.end(), add);
      std::for_each(peer->client->windows.begin(), peer->client->windows.end(), add);
    }
    return tokens;
  }

  // Draws a remote range to read or write; an invalid one if there is no valid one.
  void Remote(uint64_t length, bool write, RemoteMemory& remote) {
    const std::shared_ptr<QueuePair> peer = pair_.peer.lock();
    const Targets targets = RemoteTargets(write);
    if (targets.empty() || scene_.Careless()) {
      remote.address = VirtualAddress{targets.empty() ? dice_.Next() : dice_.Pick(targets)->base.value};
      remote.token = RemoteToken{WrongToken(scene_, peer != nullptr ? *peer->client : *pair_.client)};
      return;
    }
    const std::shared_ptr<Target>& target = dice_.Pick(targets);
    remote.address = VirtualAddress{WithinOrNot(scene_, target->base.value, target->length, length)};
    remote.token = target->remote;
  }

  // A size that fits into most remote targets, so that not every transfer fails.
  uint64_t RemoteSize(bool write) {
    uint64_t least = 9000;
    for (const std::shared_ptr<Target>& target : RemoteTargets(write)) {
      least = std::min(least, target->length);
    }
    return least;
  }

  void Read() {
    InitiatorFlags();
    if (dice_.Chance(15)) {
      draft_.request.flags |= kOpFlagReadLocalInvalidate;
    }
    WorkRequest::Read read{.sges = Entries(3, RemoteSize(false), true)};
    Remote(LengthOf(read.sges), false, read.remote);
    Say("Read " + std::to_string(LengthOf(read.sges)));
    draft_.request.operation = std::move(read);
  }

  void Write() {
    InitiatorFlags();
    WorkRequest::Write write{.sges = PayloadOrInline(RemoteSize(true))};
    Remote(LengthOf(write.sges), true, write.remote);
    Say("Write " + std::to_string(LengthOf(write.sges)));
    draft_.request.operation = std::move(write);
  }

  // Usually a region of this kind in the pair's domain.
  MemoryRegionId PickRegion(bool fast, Region::State state) {
    std::vector<MemoryRegionId> fitting;
    for (const auto& region : pair_.client->regions) {
      if (region->fast == fast && region->state == state && region->domain == pair_.domain && !region->closing.begun) {
        fitting.push_back(region->id);
      }
    }
    return fitting.empty() || scene_.Careless() ? PickId(scene_, *pair_.client, &Client::regions) : dice_.Pick(fitting);
  }

  void Pages(uint64_t most) {
    std::vector<uint64_t> all;
    for (const auto& mapping : pair_.client->mappings) {
      if (mapping->adapter == pair_.domain->adapter || scene_.Careless()) {
        for (size_t page = 0; page < mapping->pages->pages.size(); ++page) {
          all.push_back(mapping->first + page * kNdkPageBytes);
        }
      }
    }
    if (all.empty()) {
      all.push_back(dice_.Next());
    }
    const uint64_t count = dice_.Between(1, std::max<uint64_t>(most, 1)) + (scene_.Careless() ? 8 : 0);
    for (uint64_t index = 0; index < count; ++index) {
      const uint64_t page = dice_.Pick(all);
      draft_.pages.push_back(scene_.Careless() ? page + dice_.Between(1, 5000) : page);
    }
  }

  void FastRegister() {
    InitiatorFlags();
    const std::vector<uint32_t> rights = {kOpFlagRemoteWrite | kOpFlagRemoteRead | kOpFlagReadSink,
                                          kOpFlagRemoteWrite | kOpFlagRemoteRead,
                                          kOpFlagRemoteRead,
                                          kOpFlagLocalWrite,
                                          kOpFlagRemoteWrite,
                                          0};
    draft_.request.flags |= dice_.Chance(60) ? rights.front() : dice_.Pick(rights);
    const MemoryRegionId id = PickRegion(true, Region::State::kInitialized);
    const std::shared_ptr<Region> region = FindRegion(*pair_.client, id);
    Pages(region != nullptr && region->fast_pages > 0 ? std::min<uint64_t>(region->fast_pages, 4) : 1);
    WorkRequest::FastRegister operation{.region = id};
    operation.fbo = dice_.Chance(60) ? 0 : static_cast<uint32_t>(dice_.Below(kNdkPageBytes));
    operation.length = dice_.Between(1, draft_.pages.size() * kNdkPageBytes - operation.fbo);
    operation.base_address = VirtualAddress{(dice_.Below(1 << 20) << 12) + operation.fbo};
    if (scene_.Careless()) {
      SpoilNumbers(operation);
    }
    if (scene_.Careless() && scene_.Careless()) {
      draft_.pages.clear();
    }
    operation.pages = draft_.pages;
    Say("FastRegister " + Name("mr", region, id.value) + " " + std::to_string(operation.pages.size()) + " pages");
    draft_.request.operation = operation;
  }

  void SpoilNumbers(WorkRequest::FastRegister& operation) {
    const uint64_t choice = dice_.Below(5);
    if (choice == 0) {
      operation.fbo = kNdkPageBytes;
    } else if (choice == 1) {
      operation.length = 0;
    } else if (choice == 2) {
      operation.length += 5 * kNdkPageBytes;
    } else if (choice == 3) {
      operation.base_address.value += 1;
    } else {
      operation.base_address.value += UINT64_MAX - UINT64_MAX % kNdkPageBytes - kNdkPageBytes * dice_.Below(3);
    }
  }

  void Invalidate() {
    InitiatorFlags();
    WorkRequest::Invalidate operation;
    const auto& windows = pair_.client->windows;
    const auto is_bound = [](const Window& window) { return window.key->active(); };
    const bool any_bound =
        std::any_of(windows.begin(), windows.end(), [&](const auto& window) { return is_bound(*window); });
    if (!windows.empty() && dice_.Chance(any_bound ? 60 : 10)) {
      const MemoryWindowId id = PickFitting(scene_, *pair_.client, &Client::windows, is_bound);
      Say("Invalidate " + Name("mw", FindById(windows, id), id.value));
      operation.target = id;
    } else if (!scene_.Careless()) {
      const MemoryRegionId id = PickActive();
      Say("Invalidate " + Name("mr", FindRegion(*pair_.client, id), id.value));
      operation.target = id;
    }
    draft_.request.operation = operation;
  }

  // Usually a region with a fast registration.
  MemoryRegionId PickActive() {
    for (const auto& region : pair_.client->regions) {
      if (region->key != nullptr && region->key->active() && region->domain == pair_.domain && dice_.Chance(60)) {
        return region->id;
      }
    }
    return PickRegion(true, Region::State::kInitialized);
  }

  void Bind() {
    InitiatorFlags();
    const std::vector<uint32_t> rights = {kOpFlagRemoteWrite | kOpFlagRemoteRead, kOpFlagRemoteRead, kOpFlagRemoteWrite,
                                          0};
    draft_.request.flags |= dice_.Chance(70) ? rights.front() : dice_.Pick(rights);
    WorkRequest::Bind operation;
    operation.region = PickRegion(false, Region::State::kRegistered);
    operation.window = PickWindow();
    const std::shared_ptr<Region> region = FindRegion(*pair_.client, operation.region);
    if (region != nullptr && region->target != nullptr) {
      operation.length = dice_.Between(scene_.Careless() ? 0 : 1, region->target->length);
      operation.address =
          VirtualAddress{WithinOrNot(scene_, region->target->base.value, region->target->length, operation.length)};
    } else {
      operation.length = dice_.Below(5000);
      operation.address = VirtualAddress{dice_.Next()};
    }
    Say("Bind " + Name("mw", FindById(pair_.client->windows, operation.window), operation.window.value) + " to " +
        Name("mr", region, operation.region.value));
    draft_.request.operation = operation;
  }

  // Usually a window that is not bound.
  MemoryWindowId PickWindow() {
    for (const auto& window : pair_.client->windows) {
      if (!window->key->active() && window->domain == pair_.domain && dice_.Chance(60)) {
        return window->id;
      }
    }
    return PickId(scene_, *pair_.client, &Client::windows);
  }

  const Scene& scene_;
  Dice& dice_;
  const QueuePair& pair_;
  Draft& draft_;
};

}  // namespace

void DrawRequest(const Scene& scene, const QueuePair& pair, Draft& draft) {
  draft.text = "nothing";
  Drawer(scene, pair, draft).Draw();
}

}  // namespace rnicd::simulation
