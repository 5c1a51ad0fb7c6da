#include "daemon/handover/giver.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/status.h"
#include "daemon/handover/contents_file.h"

namespace rnicd::handover {
namespace {

// Nobody is accepted while it gives, so the newer generation has prepared everything before.
constexpr std::chrono::seconds kGivingTime{20};
// For all that comes before.
constexpr std::chrono::minutes kPreparingTime{10};

std::shared_ptr<const UniqueSocket> Shared(UniqueFd file) {
  return std::make_shared<const UniqueSocket>(file.Release());
}

}  // namespace

void Giver::Tell(Outgoing packet) {
  thread_.Post([this, packet = std::move(packet)]() mutable {
    if (state_ == State::kRetired) {
      TellNow(std::move(packet));
    } else if (state_ == State::kGiving) {
      untold_.push_back(std::move(packet));
    }
  });
}

// What the sessions of a process had is free before the process may open one there.
void Giver::TellNow(Outgoing packet) {
  if (packet.message.has_process_ended()) {
    Report();
  }
  thread_.Send(std::move(packet));
}

// Counters are files, and soon out of date: none waits for a newer generation that does not read.
void Giver::Report() {
  for (Outgoing& report : daemon_.Report()) {
    if (!report.message.has_counters() || !thread_.stalled()) {
      thread_.Send(std::move(report));
    }
  }
}

// One at a time: others wait in the queue.
void Giver::OnConnect(Channel channel) {
  thread_.SetListening(false);
  thread_.SetChannel(std::move(channel));
  deadline_ = clock_.Now() + kPreparingTime;
}

void Giver::OnPacket(Packet packet) {
  const v1::HandoverMessage& message = packet.message;
  if (message.has_take() && state_ == State::kServing) {
    return Give(message.take().version());
  }
  if (message.has_commit() && state_ == State::kGiving) {
    return Commit();
  }
  if (state_ == State::kRetired) {
    OnPacketOfNewer(std::move(packet));
  }
}

void Giver::OnPacketOfNewer(Packet packet) {
  const v1::HandoverMessage& message = packet.message;
  if (message.has_socket() && packet.files.size() == 1) {
    daemon_.Receive(message.socket().listener(), UniqueSocket(packet.files.front().Release()));
  } else if (message.has_granted()) {
    daemon_.Granted(message.granted());
  } else if (message.has_grant_narrowed()) {
    daemon_.NarrowGrant(GrantId{message.grant_narrowed().grant_id()}, message.grant_narrowed().pod_uid());
  } else if (message.has_counters() && packet.files.size() == 1) {
    if (const absl::StatusOr<std::string> text = ReadContentsFile(packet.files.front()); text.ok()) {
      daemon_.OnCounters(*text);
    }
  }
}

void Giver::Give(const std::string& version) {
  absl::StatusOr<GivingDaemon::Given> given = daemon_.Give();
  if (!given.ok()) {
    logger_.Error("a newer generation cannot take over", {{"error", std::string(given.status().message())}});
    deadline_ = clock_.Now() + kGivingTime;
    Outgoing refusal;
    refusal.message.mutable_refusal()->set_why(std::string(given.status().message()));
    return thread_.Send(std::move(refusal));
  }
  logger_.Info("a newer generation takes over", {{"version", version}});
  state_ = State::kGiving;
  deadline_ = clock_.Now() + kGivingTime;
  given->contents.add_files()->set_kind(v1::HANDOVER_FILE_KIND_HANDOVER);
  given->files.emplace_back(dup(thread_.listener()));
  Send(*std::move(given));
}

void Giver::Send(GivingDaemon::Given given) {
  absl::StatusOr<UniqueFd> contents = ContentsFile(given.contents.SerializeAsString());
  if (!contents.ok()) {
    return TakeBack(std::string(contents.status().message()));
  }
  for (size_t first = 0; first < given.files.size(); first += kMaxFilesInPacket) {
    Outgoing files;
    files.message.mutable_files();
    for (size_t index = first; index < std::min(first + kMaxFilesInPacket, given.files.size()); ++index) {
      files.sockets.push_back(Shared(std::move(given.files[index])));
    }
    thread_.Send(std::move(files));
  }
  Outgoing state;
  state.message.mutable_state();
  state.sockets.push_back(Shared(*std::move(contents)));
  thread_.Send(std::move(state));
}

void Giver::Commit() {
  state_ = State::kRetired;
  daemon_.Retire();
  Outgoing committed;
  committed.message.mutable_committed();
  thread_.Send(std::move(committed));
  for (Outgoing& packet : std::exchange(untold_, {})) {
    TellNow(std::move(packet));
  }
}

// A connection that broke, or the end of one of several newer generations, must not make two that serve.
void Giver::OnEnd() {
  if (state_ == State::kRetired) {
    state_ = State::kLost;
    thread_.TickAtEndOf(OpenProcess(ListeningProcess(thread_.listener())));
  } else {
    TakeBack("the connection is over");
  }
}

bool Giver::IsAlone() const {
  const int pid = ListeningProcess(thread_.listener());
  return pid == getpid() || HasEnded(OpenProcess(pid));
}

void Giver::TakeBack(const std::string& why) {
  thread_.Disconnect();
  thread_.SetListening(true);
  untold_.clear();
  if (std::exchange(state_, State::kServing) != State::kServing) {
    // SO_PEERCRED names this process now, and not one that has ended.
    listen(thread_.listener(), SOMAXCONN);
    logger_.Warning("the newer generation is gone; this one serves again", {{"because", why}});
    daemon_.TakeBack();
  }
}

void Giver::OnTick() {
  if (state_ == State::kRetired || state_ == State::kLost) {
    Report();
  }
  if (state_ == State::kLost && IsAlone()) {
    TakeBack("it has ended");
  } else if (state_ != State::kRetired && thread_.connected() && clock_.Now() >= deadline_) {
    TakeBack("it did not answer in time");
  }
}

}  // namespace rnicd::handover
