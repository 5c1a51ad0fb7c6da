#include "client/ctl/line/command_line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace rnicd::ctl {
namespace {

template <typename Row>
const Row* FindByName(std::span<const Row> rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [name](const Row& row) { return row.name == name; });
  return found != rows.end() ? &*found : nullptr;
}

// Returns "'text'", for messages.
std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// One pass over the arguments. Options of a command are known from the command's name on.
class Parser {
 public:
  Parser(std::span<const std::string> arguments, std::span<const CommandSpec> commands,
         std::span<const OptionSpec> common_options)
      : arguments_(arguments), commands_(commands), common_options_(common_options) {}

  absl::StatusOr<CommandLine> Parse() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--help" || argument == "-h" || argument == "--version") {
        return Standalone(argument == "--version" ? "version" : "help");
      }
      const bool is_option = argument.size() > 1 && argument.starts_with('-');
      RNICD_RETURN_IF_ERROR(is_option ? TakeOption(argument) : TakeWord(argument));
    }
    if (line_.command == nullptr) {
      return UsageError("no command given; 'rnicctl help' lists them");
    }
    return std::move(line_);
  }

 private:
  // "alloc --help" is "help alloc". Later arguments are ignored.
  CommandLine Standalone(std::string_view command) const {
    CommandLine line{.command = FindByName(commands_, command)};
    if (command == "help" && line_.command != nullptr) {
      line.argument = line_.command->name;
    }
    return line;
  }

  absl::Status TakeOption(const std::string& argument) {
    const size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');
    const OptionSpec* option = FindByName(common_options_, name);
    if (option == nullptr && line_.command != nullptr) {
      option = FindByName(line_.command->options, name);
    }
    if (option == nullptr) {
      return UsageError("unknown option " + Quoted(name) +
                        (line_.command == nullptr ? " (options of a command stand behind it)" : ""));
    }
    std::string value;
    if (option->value_name.empty() && equals != std::string::npos) {
      return UsageError("option " + name + " takes no value");
    }
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (!option->value_name.empty()) {
      if (next_ == arguments_.size()) {
        return UsageError("option " + name + " needs a value (" + std::string(option->value_name) + ")");
      }
      value = arguments_[next_++];
    }
    return line_.options.emplace(name, std::move(value)).second ? absl::OkStatus()
                                                                : UsageError("option " + name + " is given twice");
  }

  absl::Status TakeWord(const std::string& word) {
    if (line_.command == nullptr) {
      line_.command = FindByName(commands_, word);
      return line_.command != nullptr ? absl::OkStatus() : UsageError("unknown command " + Quoted(word));
    }
    if (!line_.argument.has_value() && !line_.command->argument_name.empty()) {
      line_.argument = word;
      return absl::OkStatus();
    }
    if (line_.argument.has_value() && !line_.operand.has_value() && !line_.command->operand_name.empty()) {
      line_.operand = word;
      return absl::OkStatus();
    }
    return UsageError("unexpected argument " + Quoted(word));
  }

  const std::span<const std::string> arguments_;
  const std::span<const CommandSpec> commands_;
  const std::span<const OptionSpec> common_options_;
  size_t next_ = 0;
  CommandLine line_;
};

constexpr char kUsagePayload[] = "rnicctl/usage";

}  // namespace

std::optional<std::string> CommandLine::Value(std::string_view option) const {
  const auto found = options.find(option);
  return found != options.end() ? std::optional(found->second) : std::nullopt;
}

absl::Status UsageError(std::string_view message) {
  absl::Status status = absl::InvalidArgumentError(std::string(message));
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

absl::Status BadValue(std::string_view option, std::string_view value, std::string_view expected) {
  return UsageError("option " + std::string(option) + ": " + Quoted(value) + " is not " + std::string(expected));
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsagePayload).has_value(); }

absl::StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                             std::span<const CommandSpec> commands,
                                             std::span<const OptionSpec> common_options) {
  return Parser(arguments, commands, common_options).Parse();
}

}  // namespace rnicd::ctl
