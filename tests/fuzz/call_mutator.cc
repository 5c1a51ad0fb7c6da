#include "tests/fuzz/call_mutator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/fuzz/call_script.h"
#include "tests/fuzz/message_dice.h"

namespace rnicd::fuzz {
namespace {

constexpr size_t kRawBytesMax = 512;

class Mutator {
 public:
  Mutator(Script script, uint32_t seed, MutateBytes mutate_bytes)
      : script_(std::move(script)), dice_(seed), mutate_bytes_(mutate_bytes) {}

  Script Run() {
    for (uint32_t count = 1 + dice_.Below(4); count > 0; --count) {
      MutateOnce();
    }
    return std::move(script_);
  }

 private:
  void MutateOnce() {
    const uint32_t choice = dice_.Below(100);
    if (script_.empty() || choice < 20) {
      return Insert(NewCall());
    }
    if (choice < 70) {
      return ChangeRequest(Any());
    }
    if (choice < 78) {
      return Insert(Step(Any()));
    }
    if (choice < 86) {
      script_.erase(script_.begin() + static_cast<std::ptrdiff_t>(AnyIndex()));
      return;
    }
    if (choice < 91) {
      return std::swap(Any(), Any());
    }
    if (choice < 94) {
      Any().connection = AnyConnection();
      return;
    }
    choice < 97 ? ChangeBytes(Any()) : Insert(dice_.Chance(50) ? NewEvent() : NewMemoryStep());
  }

  size_t AnyIndex() { return dice_.Below(static_cast<uint32_t>(script_.size())); }
  Step& Any() { return script_[AnyIndex()]; }

  // Usually the first one: a call on a connection without a session tests little.
  char AnyConnection() {
    return dice_.Chance(60) ? 'a' : kConnections[dice_.Below(static_cast<uint32_t>(kConnections.size()))];
  }

  void Insert(Step step) {
    const size_t index = dice_.Below(static_cast<uint32_t>(script_.size()) + 1);
    script_.insert(script_.begin() + static_cast<std::ptrdiff_t>(index), std::move(step));
  }

  Step NewCall() {
    Step step{.connection = AnyConnection()};
    step.method = AllMethods()[dice_.Below(static_cast<uint32_t>(AllMethods().size()))];
    const std::string& service = step.method->service()->name();
    if ((service == "AdminService" || service == "Health") && dice_.Chance(90)) {
      step.connection = dice_.Chance(80) ? 'o' : 'p';
    }
    step.request = NewMessage(step.method->input_type());
    dice_.Fill(*step.request);
    return step;
  }

  Step NewEvent() {
    if (dice_.Chance(50)) {
      return Step{.kind = Step::Kind::kDrop, .connection = AnyConnection()};
    }
    return Step{.kind = Step::Kind::kAdvance, .advance = std::chrono::milliseconds(1 << dice_.Below(20))};
  }

  // Bytes of which most are 0, as in an entry; or the bytes that were submitted before, changed.
  Step NewMemoryStep() {
    constexpr Step::Kind kKinds[] = {Step::Kind::kSubmit, Step::Kind::kSubmit, Step::Kind::kPoke,
                                     Step::Kind::kScribble};
    Step step{.kind = kKinds[dice_.Below(4)], .index = dice_.Below(2)};
    // A word of the header.
    step.offset = dice_.Below(160) * 4;
    step.bytes.resize(step.kind == Step::Kind::kSubmit ? 192 : 4);
    for (uint32_t changes = dice_.Below(12); changes > 0; --changes) {
      step.bytes[dice_.Below(static_cast<uint32_t>(step.bytes.size()))] = static_cast<char>(dice_.Below(256));
    }
    if (step.kind == Step::Kind::kSubmit) {
      step.bytes[8] = static_cast<char>(dice_.Below(7));
      step.bytes[40] = static_cast<char>(0x80);
    }
    return step;
  }

  // Copied steps share their requests.
  void ChangeRequest(Step& step) {
    if (step.request == nullptr) {
      return ChangeBytes(step);
    }
    std::shared_ptr<google::protobuf::Message> changed = NewMessage(step.request->GetDescriptor());
    changed->CopyFrom(*step.request);
    dice_.Change(*changed);
    step.request = std::move(changed);
  }

  void ChangeBytes(Step& step) {
    if (step.kind == Step::Kind::kDrop || step.kind == Step::Kind::kAdvance) {
      return;
    }
    std::string bytes = step.request != nullptr ? step.request->SerializePartialAsString() : step.bytes;
    bytes.resize(std::min(bytes.size(), kRawBytesMax));
    const size_t size = bytes.size();
    bytes.resize(kRawBytesMax);
    bytes.resize(mutate_bytes_(reinterpret_cast<uint8_t*>(bytes.data()), size, kRawBytesMax));
    step.bytes = std::move(bytes);
    step.request = nullptr;
  }

  Script script_;
  MessageDice dice_;
  const MutateBytes mutate_bytes_;
};

std::string PrintWithin(Script script, size_t size_max) {
  script.resize(std::min(script.size(), kStepsMax));
  std::string text = PrintScript(script);
  while (text.size() > size_max && !script.empty()) {
    script.pop_back();
    text = PrintScript(script);
  }
  return text;
}

}  // namespace

std::string MutateScript(std::string_view text, size_t size_max, uint32_t seed, MutateBytes mutate_bytes) {
  return PrintWithin(Mutator(ParseScript(text), seed, mutate_bytes).Run(), size_max);
}

std::string CrossScripts(std::string_view one, std::string_view other, size_t size_max, uint32_t seed) {
  MessageDice dice(seed);
  Script script = ParseScript(one);
  const Script tail = ParseScript(other);
  script.resize(dice.Below(static_cast<uint32_t>(script.size()) + 1));
  const size_t from = dice.Below(static_cast<uint32_t>(tail.size()) + 1);
  script.insert(script.end(), tail.begin() + static_cast<std::ptrdiff_t>(from), tail.end());
  return PrintWithin(std::move(script), size_max);
}

}  // namespace rnicd::fuzz
