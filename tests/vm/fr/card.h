#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// Names of the card under test and of its peer: rxa and rxb in the guest, RNICD_FR_CARD and RNICD_FR_PEER elsewhere.
// They may be the same card, connected to itself.
std::string CardName();
std::string PeerName();

// A card with a protection domain of libibverbs. Its port 1 is used.
class Card {
 public:
  explicit Card(const std::string& name);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  // Slot of the link-local GID.
  int gid_slot() const { return gid_slot_; }
  ibv_port_attr port() const;
  union ibv_gid gid() const;
  uint32_t index() const { return index_; }
  // Number of the protection domain; UINT32_MAX if it is not known.
  uint32_t domain_id() const { return domain_id_; }

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  int gid_slot_ = 0;
  uint32_t index_ = 0;
  uint32_t domain_id_ = UINT32_MAX;
};

// A queue pair of user space on a card, with memory of its own to send from and receive into.
class Endpoint {
 public:
  static constexpr size_t kBytes = 65536;

  explicit Endpoint(const Card& card);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void Connect(const Endpoint& peer);
  std::vector<uint8_t>& bytes() { return bytes_; }

  // Each posts one request and returns the status of its completion.
  ibv_wc_status Write(uint64_t address, uint32_t key, size_t length);
  ibv_wc_status Read(uint64_t address, uint32_t key, size_t length);
  ibv_wc_status SendWithInvalidate(uint32_t key);
  void PostReceive();
  // The next completion; waits for it.
  ibv_wc Poll();

 private:
  ibv_wc_status Run(ibv_send_wr& request, size_t length);
  void ToInit();

  const Card& card_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<uint8_t> bytes_;
};

// A queue pair in the domain under test on rxa, and its peer on rxb. A refused access ends both, so Renew makes others.
class Pair {
 public:
  Pair(const Card& owner, const Card& peer) : owner_card_(owner), peer_card_(peer) { Renew(); }
  void Renew();
  Endpoint& owner() { return *owner_; }
  Endpoint& peer() { return *peer_; }

  // Whether the card let the peer in. Renews the queue pairs if it did not.
  bool Writes(uint64_t address, uint32_t key, size_t length);
  bool Reads(uint64_t address, uint32_t key, size_t length);

 private:
  bool Settle(ibv_wc_status status);

  const Card& owner_card_;
  const Card& peer_card_;
  std::unique_ptr<Endpoint> owner_;
  std::unique_ptr<Endpoint> peer_;
};
