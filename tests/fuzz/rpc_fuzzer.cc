// Every RPC through real gRPC and the real services, on two connections of a workload, one of another user, one of an
// operator and one of the device plugin, and entries and any bytes in the memory of rings and mapped completion queues.
// For every input: no call hangs, none is an internal error, and closing all
// connections leaves nothing.
//
// Input: text; see call_script.h. Mutations usually follow the message schema, and sometimes break it.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/fuzz/call_mutator.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/ring_side.h"
#include "tests/fuzz/wire_client.h"
#include "tests/fuzz/wire_pool.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace rnicd::fuzz {
namespace {

// The first line of every script: a session on connection a.
constexpr std::string_view kOpening = "a SessionService.OpenSession label: \"fuzz\"\n";

constexpr uint64_t kReferencesOfAnEntry = 16;

// One run over an input.
class Calls {
 public:
  void Run(const Script& script) {
    for (const Step& step : script) {
      Make(step);
    }
    for (const auto& [name, client] : clients_) {
      client->CloseSession();
    }
    for (const auto& [name, client] : clients_) {
      client->AwaitAll();
    }
    clients_.clear();
    memory_.reset();
    daemon_.CheckNothingLeft(pool_.secrets());
  }

 private:
  void Make(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kAdvance:
        return daemon_.Advance(step.advance);
      case Step::Kind::kDrop:
        clients_.erase(step.connection);
        return;
      case Step::Kind::kCall:
        return ClientOf(step.connection).Call(step);
      case Step::Kind::kSubmit:
        return memory_->Submit(RingOf(step), Resolved(step.bytes));
      case Step::Kind::kPoke:
        return memory_->Poke(RingOf(step), step.offset, step.bytes);
      case Step::Kind::kScribble:
        return memory_->Scribble(CompletionQueueId{pool_.Value("cq_id", step.index)}, step.offset, step.bytes);
    }
  }

  RingId RingOf(const Step& step) const { return RingId{pool_.Value("ring_id", step.index)}; }

  // The object of an entry, and the ids at the begin of its payload: a small number is a reference.
  std::string Resolved(std::string bytes) const {
    ring::Submission entry;
    if (bytes.size() < sizeof(entry)) {
      return bytes;
    }
    std::memcpy(&entry, bytes.data(), sizeof(entry));
    const bool is_post = entry.opcode == ring::Opcode::kPost;
    const char* const object = is_post ? "qp_id" : entry.opcode == ring::Opcode::kArmCq ? "cq_id" : "mr_id";
    ResolveAt(bytes, offsetof(ring::Submission, object), object);
    if (is_post) {
      ResolveAt(bytes, sizeof(entry) + offsetof(ring::RequestRecord, object), "mr_id");
    } else {
      ResolveAt(bytes, sizeof(entry), "memory_id");
    }
    return bytes;
  }

  void ResolveAt(std::string& bytes, size_t offset, const char* pool) const {
    uint64_t id = 0;
    if (bytes.size() < offset + sizeof(id)) {
      return;
    }
    std::memcpy(&id, bytes.data() + offset, sizeof(id));
    if (id < kReferencesOfAnEntry) {
      id = pool_.Value(pool, id);
      std::memcpy(bytes.data() + offset, &id, sizeof(id));
    }
  }

  WireClient& ClientOf(char name) {
    std::unique_ptr<WireClient>& client = clients_[name];
    if (client == nullptr) {
      client = std::make_unique<WireClient>(daemon_, name, pool_);
    }
    return *client;
  }

  WirePool pool_;
  FuzzDaemon daemon_;
  std::optional<RingSide> memory_{daemon_.registry()};
  std::map<char, std::unique_ptr<WireClient>> clients_;
};

size_t CopyTo(uint8_t* data, size_t size_max, const std::string& text) {
  const size_t size = std::min(text.size(), size_max);
  std::copy_n(text.begin(), size, data);
  return size;
}

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::Script script = rnicd::fuzz::ParseScript(rnicd::fuzz::kOpening);
  const rnicd::fuzz::Script rest = rnicd::fuzz::ParseScript(rnicd::fuzz::AsText(data, size));
  if (rest.empty()) {
    return -1;
  }
  script.insert(script.end(), rest.begin(), rest.end());
  rnicd::fuzz::Calls().Run(script);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned int seed) {
  return rnicd::fuzz::CopyTo(
      data, size_max, rnicd::fuzz::MutateScript(rnicd::fuzz::AsText(data, size), size_max, seed, LLVMFuzzerMutate));
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t out_max, unsigned int seed) {
  return rnicd::fuzz::CopyTo(out, out_max,
                             rnicd::fuzz::CrossScripts(rnicd::fuzz::AsText(one, one_size),
                                                       rnicd::fuzz::AsText(other, other_size), out_max, seed));
}
