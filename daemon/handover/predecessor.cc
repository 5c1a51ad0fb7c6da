#include "daemon/handover/predecessor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "daemon/handover/contents_file.h"

namespace rnicd::handover {
namespace {

constexpr std::chrono::seconds kAnswerTime{30};
constexpr std::chrono::milliseconds kEndTime{2000};
// There are five ticks a second.
constexpr uint64_t kTicksPerCounters = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Predecessor>> Predecessor::Connect(const std::string& directory) {
  RNICD_ASSIGN_OR_RETURN(std::optional<Channel> channel, Channel::Connect(directory));
  if (!channel.has_value()) {
    return nullptr;
  }
  UniqueFd process = OpenProcess(ListeningProcess(channel->fd()));
  return std::make_unique<Predecessor>(*std::move(channel), std::move(process));
}

absl::StatusOr<Predecessor::Taken> Predecessor::Take(const std::string& version) {
  Outgoing take;
  take.message.mutable_take()->set_version(version);
  RNICD_RETURN_IF_ERROR(channel_->Send(std::move(take)));
  Taken taken;
  while (true) {
    RNICD_ASSIGN_OR_RETURN(Packet packet, channel_->WaitForPacket(kAnswerTime));
    if (packet.message.has_refusal()) {
      return absl::FailedPreconditionError("the older generation refuses: " + packet.message.refusal().why());
    }
    if (packet.message.has_files()) {
      std::move(packet.files.begin(), packet.files.end(), std::back_inserter(taken.files));
    } else if (packet.message.has_state() && packet.files.size() == 1) {
      RNICD_ASSIGN_OR_RETURN(const std::string bytes, ReadContentsFile(packet.files.front()));
      if (!taken.contents.ParseFromString(bytes) ||
          static_cast<size_t>(taken.contents.files_size()) != taken.files.size()) {
        return absl::InvalidArgumentError("not the contents of a generation");
      }
      KeepProcesses(taken);
      return taken;
    }
  }
}

void Predecessor::KeepProcesses(Taken& taken) {
  for (int index = 0; index < taken.contents.files_size(); ++index) {
    if (taken.contents.files(index).kind() == v1::HANDOVER_FILE_KIND_PROCESS) {
      older_.push_back(std::move(taken.files[static_cast<size_t>(index)]));
    }
  }
}

bool Predecessor::has_ended() const { return HasEnded(process_) && std::ranges::all_of(older_, HasEnded); }

std::vector<UniqueFd> Predecessor::Processes() const {
  std::vector<UniqueFd> processes;
  const auto add = [&](const UniqueFd& process) {
    if (!HasEnded(process)) {
      processes.emplace_back(dup(process.get()));
    }
  };
  add(process_);
  std::ranges::for_each(older_, add);
  return processes;
}

absl::Status Predecessor::Commit() {
  Outgoing commit;
  commit.message.mutable_commit();
  // It may have ended already, which counts as its consent.
  (void)channel_->Send(std::move(commit));
  absl::StatusOr<Packet> answer = channel_->WaitForPacket(kAnswerTime);
  while (answer.ok() && !answer->message.has_committed()) {
    answer = channel_->WaitForPacket(kAnswerTime);
  }
  // Its descriptors are closed before its end can be seen. It leaves the sockets to one that is older still, if any.
  pollfd ended = {.fd = process_.get(), .events = POLLIN, .revents = 0};
  const bool has_ended = !answer.ok() && older_.empty() && poll(&ended, 1, static_cast<int>(kEndTime.count())) == 1;
  return has_ended ? absl::OkStatus() : answer.status();
}

absl::Status Predecessor::Serve(TakingDaemon& daemon) {
  daemon_ = &daemon;
  return thread_.Start(UniqueFd(), std::exchange(channel_, std::nullopt));
}

void Predecessor::Tell(Outgoing packet) {
  thread_.Post([this, packet = std::move(packet)]() mutable { thread_.Send(std::move(packet)); });
}

bool Predecessor::Route(const v1::HandoverFile& listener, std::shared_ptr<const UniqueSocket> socket) {
  if (!linked_.load()) {
    return false;
  }
  Outgoing routed;
  *routed.message.mutable_socket()->mutable_listener() = listener;
  routed.sockets.push_back(std::move(socket));
  Tell(std::move(routed));
  return true;
}

void Predecessor::NarrowGrant(GrantId grant, const std::string& pod_uid) {
  Outgoing narrowed;
  narrowed.message.mutable_grant_narrowed()->set_grant_id(grant.value);
  narrowed.message.mutable_grant_narrowed()->set_pod_uid(pod_uid);
  Tell(std::move(narrowed));
}

void Predecessor::OnTick() {
  if (!thread_.connected() && !ended_ && has_ended()) {
    ended_ = true;
    daemon_->OnPredecessorEnded();
  }
  if (!thread_.connected() || thread_.stalled() || ticks_++ % kTicksPerCounters != 0) {
    return;
  }
  if (absl::StatusOr<UniqueFd> counters = ContentsFile(daemon_->OwnCounters()); counters.ok()) {
    Outgoing packet;
    packet.message.mutable_counters();
    packet.sockets.push_back(std::make_shared<const UniqueSocket>(counters->Release()));
    thread_.Send(std::move(packet));
  }
}

void Predecessor::OnPacket(Packet packet) {
  const v1::HandoverMessage& message = packet.message;
  if (message.has_process_ended()) {
    daemon_->OnProcessEnded(message.process_ended());
  } else if (message.has_wanted()) {
    Outgoing granted;
    *granted.message.mutable_granted() = daemon_->Grow(message.wanted());
    thread_.Send(std::move(granted));
  } else if (message.has_shrunk()) {
    daemon_->Shrink(message.shrunk());
  } else if (message.has_socket() && packet.files.size() == 1) {
    daemon_->OnHandedBack(message.socket().listener(), UniqueSocket(packet.files.front().Release()));
  } else if (message.has_counters() && packet.files.size() == 1) {
    if (const absl::StatusOr<std::string> text = ReadContentsFile(packet.files.front()); text.ok()) {
      daemon_->OnCounters(*text, message.counters());
    }
  }
}

}  // namespace rnicd::handover
