#include "base/flags/command_line.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/files/safe_file.h"

namespace rnicd {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr absl::string_view kFlagFile = "flagfile";
// absl adds these two to all flags; they would set flags by variables of the environment, unchecked. The third lets
// misspelt flags pass.
constexpr std::array<absl::string_view, 3> kRefused = {"fromenv", "tryfromenv", "undefok"};
// absl answers these, which are no flags, and exits.
constexpr std::array<absl::string_view, 4> kAnswered = {"help", "helpfull", "helpshort", "version"};

template <typename Names>
bool IsAmong(const Names& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A dash in a name is an underscore.
std::string NameOf(absl::string_view text) { return absl::StrReplaceAll(text, {{"-", "_"}}); }

absl::CommandLineFlag* FindFlag(absl::string_view name) {
  const std::string known = NameOf(name);
  return IsAmong(kRefused, known) ? nullptr : absl::FindCommandLineFlag(known);
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::CHexEscape(text), "\""); }

absl::string_view WithoutComment(absl::string_view line) {
  for (size_t hash = line.find('#'); hash != absl::string_view::npos; hash = line.find('#', hash + 1)) {
    if (hash == 0 || absl::ascii_isspace(line[hash - 1])) {
      return line.substr(0, hash);
    }
  }
  return line;
}

// "--max_sessions=5" in its parts.
struct Setting {
  absl::string_view name;
  std::optional<absl::string_view> value;
};

Setting PartsOf(absl::string_view text) {
  text.remove_prefix(absl::StartsWith(text, "--") ? 2 : 1);
  const size_t equals = text.find('=');
  return {.name = text.substr(0, equals),
          .value = equals == absl::string_view::npos ? std::nullopt : std::optional(text.substr(equals + 1))};
}

class FlagsInput {
 public:
  explicit FlagsInput(const ProgramText& program) : program_(program) {}

  // Returns an argument that absl answers; null if there is none.
  char* ReadArguments(std::span<char*> arguments) {
    char* question = nullptr;
    for (size_t index = 0; index < arguments.size(); ++index) {
      const absl::string_view argument = arguments[index];
      if (argument.size() < 2 || argument.front() != '-' || argument == "--") {
        AddMistake("", "unexpected argument: " + Quoted(argument));
        continue;
      }
      Setting setting = PartsOf(argument);
      const absl::CommandLineFlag* const flag = FindFlag(setting.name);
      const bool is_switch = flag != nullptr && flag->IsOfType<bool>();
      if (flag != nullptr && !is_switch && !setting.value.has_value() && index + 1 < arguments.size()) {
        setting.value = arguments[++index];
      }
      if (IsAmong(kAnswered, setting.name)) {
        question = arguments[index];
      } else if (setting.name == kFlagFile) {
        ReadFiles(setting.value.value_or(""));
      } else {
        Apply(setting, "");
      }
    }
    return question;
  }

  const std::vector<std::string>& mistakes() const { return mistakes_; }

 private:
  void ReadFiles(absl::string_view names) {
    for (const absl::string_view name : absl::StrSplit(names, ',')) {
      ReadFile(std::string(name));
    }
  }

  void ReadFile(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadSafeFile(path, {.bytes_max = kFileBytesMax, .follow_link = true});
    if (!text.ok()) {
      AddMistake("", absl::StrCat("--flagfile: ", text.status().message()));
      return;
    }
    size_t number = 0;
    for (const absl::string_view line : absl::StrSplit(absl::StripPrefix(*text, kByteOrderMark), '\n')) {
      ReadLine(absl::StripAsciiWhitespace(WithoutComment(line)), absl::StrCat(path, ":", ++number, ": "));
    }
  }

  void ReadLine(absl::string_view line, const std::string& place) {
    if (line.empty()) {
      return;
    }
    const bool has_control = std::any_of(line.begin(), line.end(), [](char one) { return absl::ascii_iscntrl(one); });
    if (line.size() < 2 || line.front() != '-' || line == "--" || has_control) {
      AddMistake(place, absl::StrCat("must be --FLAG=VALUE, or a comment after #, not ", Quoted(line)));
      return;
    }
    const Setting setting = PartsOf(line);
    if (setting.name == kFlagFile) {
      AddMistake(place, "--flagfile: a file of flags names no other file");
    } else {
      Apply(setting, place);
    }
  }

  void Apply(Setting setting, const std::string& place) {
    absl::CommandLineFlag* flag = FindFlag(setting.name);
    if (flag == nullptr && !setting.value.has_value() && absl::StartsWith(setting.name, "no")) {
      flag = FindFlag(setting.name.substr(2));
      flag = flag != nullptr && flag->IsOfType<bool>() ? flag : nullptr;
      setting.value = "false";
    }
    if (flag == nullptr) {
      const std::string advice = program_.advice == nullptr ? "" : program_.advice(NameOf(setting.name));
      AddMistake(place, absl::StrCat("--", absl::CHexEscape(setting.name), ": there is no such flag",
                                     advice.empty() ? "" : "; ", advice));
      return;
    }
    if (!setting.value.has_value() && !flag->IsOfType<bool>()) {
      AddMistake(place, absl::StrCat("--", flag->Name(), ": must have a value"));
      return;
    }
    std::string ignored;
    if (!flag->ParseFrom(setting.value.value_or("true"), &ignored)) {
      AddMistake(place, absl::StrCat("--", flag->Name(), ": must be ",
                                     flag->IsOfType<bool>() ? "true or false" : "a whole number", ", not ",
                                     Quoted(*setting.value)));
    }
  }

  void AddMistake(const std::string& place, const std::string& what) { mistakes_.push_back(place + what); }

  const ProgramText& program_;
  std::vector<std::string> mistakes_;
};

// Prints the answer and exits.
void Answer(char* name, char* question, const ProgramText& program) {
  absl::SetProgramUsageMessage(
      absl::StrCat(program.purpose, "\nFlags can also stand in a file, one on each line: --flagfile=FILE"));
  // Without this, --help shows only the flags defined in the file of the main function.
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [folder = program.folder](absl::string_view file) {
    return absl::StrContains(file, folder);
  };
  usage.version_string = [version = program.version] { return absl::StrCat(version, "\n"); };
  absl::SetFlagsUsageConfig(usage);
  std::array<char*, 2> arguments = {name, question};
  (void)absl::ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

std::vector<std::string> ReadFlags(int argc, char** argv, const ProgramText& program) {
  FlagsInput input(program);
  char* const question = input.ReadArguments(std::span(argv, static_cast<size_t>(argc)).subspan(1));
  if (question != nullptr && input.mistakes().empty()) {
    Answer(argv[0], question, program);
  }
  return input.mistakes();
}

}  // namespace rnicd
