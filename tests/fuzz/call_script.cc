#include "tests/fuzz/call_script.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <charconv>
#include <optional>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "daemon/core/request/operations.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/split.h"

namespace rnicd::fuzz {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;
using google::protobuf::TextFormat;

constexpr std::string_view kPackage = "rnicd.v1.";
constexpr std::string_view kHealthPackage = "grpc.health.v1.";
constexpr std::chrono::milliseconds kAdvanceMax{std::chrono::hours(24)};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Removes the first word and the blanks after it from the text.
std::string_view TakeWord(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  return word;
}

std::optional<uint64_t> ToNumber(std::string_view digits) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

// Copies the text; at each position outside of quotes `replace` may write a replacement. It returns how many characters
// it consumed, 0 for none.
template <typename Replace>
std::string OutsideQuotes(std::string_view text, Replace replace) {
  std::string result;
  bool quoted = false;
  for (size_t at = 0; at < text.size();) {
    const size_t taken = quoted ? 0 : replace(text, at, result);
    at += taken;
    if (taken != 0) {
      continue;
    }
    if (quoted && text[at] == '\\' && at + 1 < text.size()) {
      result += text[at++];
    } else if (text[at] == '"') {
      quoted = !quoted;
    }
    result += text[at++];
  }
  return result;
}

size_t CountDigits(std::string_view text, size_t at) {
  size_t count = 0;
  while (at + count < text.size() && IsDigit(text[at + count])) {
    ++count;
  }
  return count;
}

// Replaces "&3" by its reference number.
size_t ReferenceToNumber(std::string_view text, size_t at, std::string& result) {
  const size_t digits = text[at] == '&' ? CountDigits(text, at + 1) : 0;
  const std::optional<uint64_t> index = ToNumber(text.substr(at + 1, digits));
  if (digits == 0 || !index.has_value()) {
    return 0;
  }
  result += std::to_string(kFirstReference + *index % kReferences);
  return 1 + digits;
}

size_t NumberToReference(std::string_view text, size_t at, std::string& result) {
  const bool inside = at > 0 && text[at - 1] != ' ' && text[at - 1] != '[';
  const size_t digits = inside ? 0 : CountDigits(text, at);
  const std::optional<uint64_t> number = ToNumber(text.substr(at, digits));
  if (!number.has_value() || *number < kFirstReference || *number >= kFirstReference + kReferences) {
    return 0;
  }
  result += "&" + std::to_string(*number - kFirstReference);
  return digits;
}

class NoErrors final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

bool ReadMessage(std::string_view text, Message& message) {
  NoErrors errors;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  return parser.ParseFromString(OutsideQuotes(text, ReferenceToNumber), &message);
}

std::string WriteMessage(const Message& message) {
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(message, &text);
  while (text.ends_with(' ')) {
    text.pop_back();
  }
  return OutsideQuotes(text, NumberToReference);
}

const MethodDescriptor* FindMethod(std::string_view name) {
  const std::string_view package = name.starts_with("Health.") ? kHealthPackage : kPackage;
  return DescriptorPool::generated_pool()->FindMethodByName(std::string(package) + std::string(name));
}

// The words for steps in memory that is shared with the daemon.
std::optional<Step::Kind> MemoryKind(std::string_view word) {
  return word == "submit"     ? std::optional(Step::Kind::kSubmit)
         : word == "poke"     ? std::optional(Step::Kind::kPoke)
         : word == "scribble" ? std::optional(Step::Kind::kScribble)
                              : std::nullopt;
}

std::string_view WordOf(Step::Kind kind) {
  return kind == Step::Kind::kSubmit ? "submit" : kind == Step::Kind::kPoke ? "poke" : "scribble";
}

std::string FromHex(std::string_view digits) {
  return BytesFromHex(digits.substr(0, digits.size() / 2 * 2)).value_or("");
}

std::optional<Step> ParseMemoryStep(Step::Kind kind, std::string_view line) {
  Step step{.kind = kind};
  const std::optional<uint64_t> index = ToNumber(TakeWord(line));
  const std::optional<uint64_t> offset = kind == Step::Kind::kSubmit ? 0 : ToNumber(TakeWord(line));
  if (!index.has_value() || !offset.has_value() || !line.starts_with('=')) {
    return std::nullopt;
  }
  step.index = static_cast<uint32_t>(*index);
  step.offset = static_cast<uint32_t>(*offset);
  step.bytes = FromHex(line.substr(1));
  return step;
}

std::string PrintMemoryStep(const Step& step) {
  const std::string offset = step.kind == Step::Kind::kSubmit ? "" : std::to_string(step.offset) + " ";
  return std::string(WordOf(step.kind)) + " " + std::to_string(step.index) + " " + offset + "=" +
         absl::BytesToHexString(step.bytes);
}

// Nullopt for a line that is not a step.
std::optional<Step> ParseStep(std::string_view line) {
  Step step;
  const std::string_view who = TakeWord(line);
  if (who == "advance") {
    const std::optional<uint64_t> count = ToNumber(line);
    step.kind = Step::Kind::kAdvance;
    step.advance = std::chrono::milliseconds(count.value_or(0) % static_cast<uint64_t>(kAdvanceMax.count()));
    return count.has_value() ? std::optional(step) : std::nullopt;
  }
  if (const std::optional<Step::Kind> kind = MemoryKind(who); kind.has_value()) {
    return ParseMemoryStep(*kind, line);
  }
  if (who.size() != 1 || kConnections.find(who[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  step.connection = who[0];
  const std::string_view what = TakeWord(line);
  if (what == "drop") {
    step.kind = Step::Kind::kDrop;
    return step;
  }
  step.method = FindMethod(what);
  if (step.method == nullptr) {
    return std::nullopt;
  }
  if (line.starts_with('=')) {
    step.bytes = FromHex(line.substr(1));
    return step;
  }
  step.request = NewMessage(step.method->input_type());
  return ReadMessage(line, *step.request) ? std::optional(step) : std::nullopt;
}

std::string PrintStep(const Step& step) {
  if (step.kind == Step::Kind::kAdvance) {
    return "advance " + std::to_string(step.advance.count());
  }
  if (step.kind == Step::Kind::kSubmit || step.kind == Step::Kind::kPoke || step.kind == Step::Kind::kScribble) {
    return PrintMemoryStep(step);
  }
  const std::string who = std::string(1, step.connection) + " ";
  if (step.kind == Step::Kind::kDrop) {
    return who + "drop";
  }
  const std::string call = who + step.method->service()->name() + "." + step.method->name() + " ";
  return call + (step.request == nullptr ? "=" + absl::BytesToHexString(step.bytes) : WriteMessage(*step.request));
}

std::vector<const MethodDescriptor*> FindAllMethods() {
  std::vector<const MethodDescriptor*> methods;
  for (const core::Operation& row : core::kOperations) {
    methods.push_back(FindMethod(row.name));
    Check(methods.back() != nullptr, "every row of the method table is a method");
  }
  return methods;
}

}  // namespace

const std::vector<const MethodDescriptor*>& AllMethods() {
  static const std::vector<const MethodDescriptor*> methods = FindAllMethods();
  return methods;
}

std::shared_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  return std::shared_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(type)->New());
}

Script ParseScript(std::string_view text) {
  Script script;
  for (const std::string& line : Split(text, '\n')) {
    std::optional<Step> step = ParseStep(line);
    if (step.has_value() && script.size() < kStepsMax) {
      script.push_back(*std::move(step));
    }
  }
  return script;
}

std::string PrintScript(const Script& script) {
  std::string text;
  for (const Step& step : script) {
    text += PrintStep(step) + "\n";
  }
  return text;
}

}  // namespace rnicd::fuzz
