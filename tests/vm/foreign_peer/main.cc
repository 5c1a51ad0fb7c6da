// A peer independent of rnicd: one reliable connection over libibverbs, controlled by lines on stdin.
//
// usage: rnicd_foreign_peer [--device NAME] [--port N] [--gid auto|ipv4|ipv6|link-local|ADDRESS] [--memory BYTES]
//                           [--ack-timeout N] [--patience SECONDS] [--peer QP_ADDRESS]
//
// Prints the address of its queue pair, in rnicd's form, as its first line. Takes the other side's address from --peer
// or from the first line of stdin and connects; the response is "ok" or "error REASON". README.md lists the commands.
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/vm/foreign_peer/address.h"
#include "tests/vm/foreign_peer/connection.h"

namespace foreign_peer {
namespace {

constexpr size_t kShownBytesMax = 64;
constexpr size_t kPageBytes = 4096;

struct Options {
  ConnectionOptions connection;
  std::string peer;
};

[[noreturn]] void UsageError(const std::string& what) {
  std::fprintf(stderr, "rnicd_foreign_peer: %s; the head of main.cc and README.md say how it is used\n", what.c_str());
  std::exit(2);
}

uint64_t FlagNumber(const char* name, const char* text, uint64_t min, uint64_t max) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 0);
  if (end == text || *end != '\0' || value < min || value > max) {
    UsageError(std::string("--") + name + " must be " + std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

Options ReadFlags(int argc, char** argv) {
  constexpr option kFlags[] = {
      {"device", required_argument, nullptr, 'd'},      {"port", required_argument, nullptr, 'o'},
      {"gid", required_argument, nullptr, 'g'},         {"memory", required_argument, nullptr, 'm'},
      {"ack-timeout", required_argument, nullptr, 'a'}, {"patience", required_argument, nullptr, 't'},
      {"peer", required_argument, nullptr, 'p'},        {nullptr, 0, nullptr, 0}};
  Options options;
  ConnectionOptions& connection = options.connection;
  int flag = 0;
  while ((flag = getopt_long(argc, argv, "", kFlags, nullptr)) != -1) {
    switch (flag) {
      case 'd':
        connection.device = optarg;
        break;
      case 'o':
        connection.port = static_cast<uint8_t>(FlagNumber("port", optarg, 1, 255));
        break;
      case 'g':
        connection.gid = optarg;
        break;
      case 'm':
        connection.buffer_bytes = FlagNumber("memory", optarg, 1, uint64_t{1} << 30);
        break;
      case 'a':
        connection.ack_timeout = static_cast<uint8_t>(FlagNumber("ack-timeout", optarg, 1, 31));
        break;
      case 't':
        connection.timeout = std::chrono::seconds(FlagNumber("patience", optarg, 1, 3600));
        break;
      case 'p':
        options.peer = optarg;
        break;
      default:
        UsageError("unknown flag");
    }
  }
  if (optind < argc) {
    UsageError(std::string("unknown argument ") + argv[optind]);
  }
  return options;
}

// FNV-1a, 64 bits.
uint64_t Checksum(const uint8_t* bytes, size_t count) {
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t index = 0; index < count; ++index) {
    sum = (sum ^ bytes[index]) * 0x100000001b3;
  }
  return sum;
}

std::string Hex(uint64_t value, int digits) {
  char text[17];
  std::snprintf(text, sizeof(text), "%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

// "bytes=5 checksum=... hex=68656c6c6f"; hex digits only for few bytes.
std::string Describe(const uint8_t* bytes, size_t count) {
  std::string text = "ok bytes=" + std::to_string(count) + " checksum=" + Hex(Checksum(bytes, count), 16);
  if (count > 0 && count <= kShownBytesMax) {
    text += " hex=";
    for (size_t index = 0; index < count; ++index) {
      text += Hex(bytes[index], 2);
    }
  }
  return text;
}

std::optional<uint64_t> ParseNumber(const std::string& text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 0);
  return text.empty() || *end != '\0' || text[0] == '-' ? std::nullopt : std::optional(value);
}

// "68656c6c6f" or "LENGTH:SEED". Byte i of a seed is (13 i + 5 (i / 4096) + 101 SEED) mod 251: it differs from its
// neighbours, between pages and between seeds.
std::optional<std::vector<uint8_t>> ParseBytes(const std::string& text) {
  std::vector<uint8_t> bytes;
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    const auto length = ParseNumber(text.substr(0, colon));
    const auto seed = ParseNumber(text.substr(colon + 1));
    if (!length.has_value() || !seed.has_value() || *length > (uint64_t{1} << 30)) {
      return std::nullopt;
    }
    for (uint64_t index = 0; index < *length; ++index) {
      bytes.push_back(static_cast<uint8_t>((index * 13 + index / kPageBytes * 5 + *seed % 251 * 101) % 251));
    }
    return bytes;
  }
  for (size_t index = 0; index < text.size(); index += 2) {
    const std::string digits = text.substr(index, 2);
    if (digits.size() != 2 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<uint8_t>(std::strtoul(digits.c_str(), nullptr, 16)));
  }
  return bytes;
}

class Commands {
 public:
  explicit Commands(Connection& connection) : connection_(connection) {}

  std::string Run(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) {
      arguments.push_back(word);
    }
    const auto found = commands_.find(name);
    if (found == commands_.end() || found->second.arguments != arguments.size()) {
      return kUsage;
    }
    return found->second.run(arguments);
  }

 private:
  using Arguments = std::vector<std::string>;
  struct Command {
    size_t arguments;
    std::function<std::string(const Arguments&)> run;
  };
  static constexpr char kUsage[] = "error USAGE";

  static std::string Answer(const Outcome& outcome, const std::string& otherwise) {
    return outcome.ok() ? otherwise : "error " + outcome.error;
  }

  // Loads the bytes into scratch; nullopt if the text is malformed or too long.
  std::optional<uint32_t> Load(const std::string& text) {
    const auto bytes = ParseBytes(text);
    if (!bytes.has_value() || bytes->size() > connection_.scratch().size()) {
      return std::nullopt;
    }
    std::copy(bytes->begin(), bytes->end(), connection_.scratch().begin());
    return static_cast<uint32_t>(bytes->size());
  }

  // A length that fits into scratch.
  std::optional<uint32_t> Length(const std::string& text) const {
    const auto length = ParseNumber(text);
    return length.has_value() && *length <= connection_.scratch().size() ? std::optional(static_cast<uint32_t>(*length))
                                                                         : std::nullopt;
  }

  std::string Write(const Arguments& arguments) {
    const auto address = ParseNumber(arguments[0]);
    const auto rkey = ParseNumber(arguments[1]);
    const auto length = Load(arguments[2]);
    if (!address.has_value() || !rkey.has_value() || !length.has_value()) {
      return kUsage;
    }
    return Answer(connection_.Write(*address, static_cast<uint32_t>(*rkey), *length),
                  "ok bytes=" + std::to_string(*length));
  }

  std::string Read(const Arguments& arguments) {
    const auto address = ParseNumber(arguments[0]);
    const auto rkey = ParseNumber(arguments[1]);
    const auto length = Length(arguments[2]);
    if (!address.has_value() || !rkey.has_value() || !length.has_value()) {
      return kUsage;
    }
    const Outcome outcome = connection_.Read(*address, static_cast<uint32_t>(*rkey), *length);
    return Answer(outcome, Describe(connection_.scratch().data(), *length));
  }

  std::string Send(const Arguments& arguments) {
    const auto length = Load(arguments[0]);
    return length.has_value() ? Answer(connection_.Send(*length), "ok bytes=" + std::to_string(*length)) : kUsage;
  }

  std::string SendInvalidate(const Arguments& arguments) {
    const auto rkey = ParseNumber(arguments[0]);
    return rkey.has_value() ? Answer(connection_.SendInvalidate(static_cast<uint32_t>(*rkey)), "ok") : kUsage;
  }

  std::string Receive(const Arguments&) {
    const Outcome outcome = connection_.Receive();
    return Answer(outcome, Describe(connection_.scratch().data(), outcome.bytes));
  }

  std::string Traffic(const Arguments& arguments) {
    const auto address = ParseNumber(arguments[0]);
    const auto rkey = ParseNumber(arguments[1]);
    const auto length = Length(arguments[2]);
    const auto seconds = ParseNumber(arguments[3]);
    if (!address.has_value() || !rkey.has_value() || !length.has_value() || !seconds.has_value()) {
      return kUsage;
    }
    uint64_t writes = 0;
    const Outcome outcome =
        connection_.WriteFor(std::chrono::seconds(*seconds), *address, static_cast<uint32_t>(*rkey), *length, writes);
    return Answer(outcome, "ok") + " writes=" + std::to_string(writes);
  }

  std::string Mr(const Arguments&) {
    return "ok address=0x" + Hex(connection_.memory_address(), 16) + " rkey=0x" + Hex(connection_.memory_rkey(), 8) +
           " length=" + std::to_string(connection_.memory().size());
  }

  std::string Fill(const Arguments& arguments) {
    const auto offset = ParseNumber(arguments[0]);
    const auto bytes = ParseBytes(arguments[1]);
    std::vector<uint8_t>& memory = connection_.memory();
    if (!offset.has_value() || !bytes.has_value() || *offset > memory.size() ||
        bytes->size() > memory.size() - *offset) {
      return kUsage;
    }
    std::copy(bytes->begin(), bytes->end(), memory.begin() + static_cast<ptrdiff_t>(*offset));
    return "ok bytes=" + std::to_string(bytes->size());
  }

  std::string Peek(const Arguments& arguments) {
    const auto offset = ParseNumber(arguments[0]);
    const auto length = ParseNumber(arguments[1]);
    const std::vector<uint8_t>& memory = connection_.memory();
    if (!offset.has_value() || !length.has_value() || *offset > memory.size() || *length > memory.size() - *offset) {
      return kUsage;
    }
    return Describe(memory.data() + *offset, *length);
  }

  Connection& connection_;
  const std::map<std::string, Command> commands_ = {
      {"write", {3, [this](const Arguments& arguments) { return Write(arguments); }}},
      {"read", {3, [this](const Arguments& arguments) { return Read(arguments); }}},
      {"send", {1, [this](const Arguments& arguments) { return Send(arguments); }}},
      {"invalidate", {1, [this](const Arguments& arguments) { return SendInvalidate(arguments); }}},
      {"recv", {0, [this](const Arguments& arguments) { return Receive(arguments); }}},
      {"traffic", {4, [this](const Arguments& arguments) { return Traffic(arguments); }}},
      {"mr", {0, [this](const Arguments& arguments) { return Mr(arguments); }}},
      {"fill", {2, [this](const Arguments& arguments) { return Fill(arguments); }}},
      {"peek", {2, [this](const Arguments& arguments) { return Peek(arguments); }}},
      {"state", {0, [this](const Arguments&) { return "ok state=" + connection_.State(); }}},
  };
};

int Main(int argc, char** argv) {
  Options options = ReadFlags(argc, argv);
  Connection connection(options.connection);
  std::cout << FormatAddress(connection.address()) << std::endl;
  if (options.peer.empty() && !std::getline(std::cin, options.peer)) {
    return 0;
  }
  const std::optional<Address> peer = ParseAddress(options.peer);
  const std::string failure = peer.has_value() ? connection.Connect(*peer) : "ADDRESS";
  std::cout << (failure.empty() ? "ok" : "error " + failure) << std::endl;
  if (!failure.empty()) {
    return 1;
  }
  Commands commands(connection);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::cout << commands.Run(line) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace foreign_peer

int main(int argc, char** argv) { return foreign_peer::Main(argc, argv); }
