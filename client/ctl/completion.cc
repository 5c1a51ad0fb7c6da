#include "client/ctl/commands.h"

#include <map>

#include "client/ctl/line/common_options.h"

namespace rnicd::ctl {
namespace {

constexpr std::string_view kHead = R"(# Bash completion for rnicctl. Load it with: source <(rnicctl completion bash)
_rnicctl() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
  local command="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "${word}" in
)";

std::string OptionNames(std::span<const OptionSpec> options) {
  std::string names;
  for (const OptionSpec& option : options) {
    names += (names.empty() ? "" : " ") + std::string(option.name);
  }
  return names;
}

std::string CommandNames(std::span<const CommandSpec> commands, std::string_view separator) {
  std::string names;
  for (const CommandSpec& command : commands) {
    names += (names.empty() ? "" : std::string(separator)) + std::string(command.name);
  }
  return names;
}

// The values to offer after an option that takes one.
std::string ValueAction(const OptionSpec& option) {
  if (option.choices == "@directory") {
    return R"(mapfile -t COMPREPLY < <(compgen -d -- "${current}"))";
  }
  if (option.choices.empty()) {
    return "COMPREPLY=()";
  }
  return "mapfile -t COMPREPLY < <(compgen -W '" + std::string(option.choices) + R"(' -- "${current}"))";
}

// One case per option name: an option means the same in all commands.
std::string ValueCases(std::span<const CommandSpec> commands, std::span<const OptionSpec> common_options) {
  std::map<std::string_view, std::string> actions;
  const auto add = [&actions](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) {
      if (!option.value_name.empty()) {
        actions.emplace(option.name, ValueAction(option));
      }
    }
  };
  add(common_options);
  for (const CommandSpec& command : commands) {
    add(command.options);
  }
  std::string text;
  for (const auto& [name, action] : actions) {
    text += "    " + std::string(name) + ")\n      " + action + "\n      return\n      ;;\n";
  }
  return text;
}

absl::Status RunCompletion(const CommandLine& line, Output& output) {
  if (line.argument != "bash") {
    return UsageError("completion is written for 'bash' only; say 'rnicctl completion bash'");
  }
  output.Text(BashCompletion(Commands(), CommonOptions()));
  return absl::OkStatus();
}

}  // namespace

std::string BashCompletion(std::span<const CommandSpec> commands, std::span<const OptionSpec> common_options) {
  std::string script(kHead);
  script += "      " + CommandNames(commands, " | ") + ") command=\"${word}\" && break ;;\n    esac\n  done\n";
  script += "  case \"${previous}\" in\n" + ValueCases(commands, common_options) + "  esac\n";
  script += "  local offers=\"" + OptionNames(common_options) + "\"\n  case \"${command}\" in\n";
  script += R"(    "") offers=")" + CommandNames(commands, " ") + " ${offers} --version\" ;;\n";
  for (const CommandSpec& command : commands) {
    std::string own = OptionNames(command.options);
    if (!command.argument_choices.empty()) {
      own += (own.empty() ? "" : " ") + std::string(command.argument_choices);
    }
    if (!own.empty()) {
      script += "    " + std::string(command.name) + ") offers=\"" + own + " ${offers}\" ;;\n";
    }
  }
  return script +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"${offers}\" -- \"${current}\")\n"
         "}\n"
         "complete -F _rnicctl rnicctl\n";
}

constinit const CommandSpec kCompletionCommand = {
    .name = "completion",
    .summary = "print a script that makes bash complete commands and options",
    .examples =
        "source <(rnicctl completion bash)\n"
        "rnicctl completion bash > /etc/bash_completion.d/rnicctl\n",
    .argument_name = "bash",
    .argument_choices = "bash",
    .run = RunCompletion,
};

}  // namespace rnicd::ctl
