#include "provider/verbs/connection/cm_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {
namespace {

constexpr int kEventsAtATime = 32;
// Each may be held by a host that does not answer.
constexpr int kMostApart = 64;

// What the peer says, in the peer's view: events have the numbers in that of the reader.
ConnectionOffer OfferOf(const rdma_conn_param& parameters) {
  ConnectionOffer offer{.inbound_read_limit = parameters.initiator_depth,
                        .outbound_read_limit = parameters.responder_resources};
  if (parameters.private_data != nullptr) {
    offer.private_data.assign(static_cast<const char*>(parameters.private_data), parameters.private_data_len);
  }
  return offer;
}

}  // namespace

// An id that is not destroyed keeps its context.
CmId::~CmId() {
  if (cm_.DestroyId(raw_) != 0) {
    (void)context_.release();
  }
}

absl::StatusOr<std::shared_ptr<CmChannel>> CmChannel::Open(RdmaCm& cm) {
  rdma_event_channel* const raw = cm.CreateChannel();
  if (raw == nullptr) {
    return VerbStatus(errno, "rdma_create_event_channel");
  }
  std::shared_ptr<CmChannel> channel(new CmChannel(cm, raw));
  if (!channel->wake_.valid()) {
    return VerbStatus(errno, "eventfd");
  }
  channel->loop_.Add(channel->wake_.get(), channel);
  channel->loop_.Add(raw->fd, channel);
  return channel;
}

CmChannel::CmChannel(RdmaCm& cm, rdma_event_channel* channel)
    : cm_(cm), channel_(channel), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

CmChannel::~CmChannel() {
  Stop();
  cm_.DestroyChannel(channel_);
}

absl::StatusOr<std::shared_ptr<CmId>> CmChannel::CreateId(std::weak_ptr<CmSink> sink) {
  auto context = std::make_unique<std::weak_ptr<CmSink>>(std::move(sink));
  rdma_cm_id* const raw = cm_.CreateId(channel_, context.get());
  if (raw == nullptr) {
    return VerbStatus(errno, "rdma_create_id");
  }
  return std::make_shared<CmId>(cm_, raw, std::move(context));
}

void CmChannel::Post(std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

// What the job holds is released before it counts as over.
bool CmChannel::RunApart(std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    if (apart_ == kMostApart) {
      return false;
    }
    ++apart_;
  }
  const auto end = [this] {
    MutexLock lock(mutex_);
    --apart_;
    none_apart_.NotifyAll();
  };
  try {
    std::thread([end, job = std::move(job)]() mutable {
      std::exchange(job, nullptr)();
      end();
    }).detach();
  } catch (const std::system_error&) {
    end();
    return false;
  }
  return true;
}

void CmChannel::Stop() {
  loop_.Stop();
  MutexLock lock(mutex_);
  while (apart_ > 0) {
    none_apart_.Wait(mutex_);
  }
}

void CmChannel::RunJobs() {
  uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof(count));
  std::vector<std::function<void()>> jobs;
  {
    MutexLock lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const std::function<void()>& job : jobs) {
    job();
  }
}

// An event is taken without its sink, because one that destroys the id would wait for the acknowledgement. Peers cannot
// keep the thread from its jobs.
bool CmChannel::OnReadable(int descriptor) {
  if (descriptor == wake_.get()) {
    RunJobs();
    return true;
  }
  int error = 0;
  for (int count = 0; error == 0 && count < kEventsAtATime; ++count) {
    std::shared_ptr<CmSink> sink;
    CmEvent event;
    error = cm_.NextEvent(channel_, [&](const rdma_cm_event& raw) { Dispatch(raw, sink, event); });
    if (sink != nullptr) {
      sink->OnEvent(std::move(event));
    }
  }
  // Any other error stays, and the channel would stay readable.
  return error == 0 || error == EAGAIN || error == ENOMEM;
}

void CmChannel::Dispatch(const rdma_cm_event& raw, std::shared_ptr<CmSink>& sink, CmEvent& event) {
  sink = static_cast<const std::weak_ptr<CmSink>*>(raw.id->context)->lock();
  event = {.type = raw.event, .status = raw.status, .offer = OfferOf(raw.param.conn)};
  // On RoCE all rejections have the same length, also those of the kernel, which say nothing.
  if (raw.event == RDMA_CM_EVENT_REJECTED && event.offer.private_data.find_first_not_of('\0') == std::string::npos) {
    event.offer.private_data.clear();
  }
  if (raw.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    // Its context is that of the listener until now.
    auto context = std::make_unique<std::weak_ptr<CmSink>>();
    raw.id->context = context.get();
    event.requested = std::make_shared<CmId>(cm_, raw.id, std::move(context));
  }
}

}  // namespace rnicd::provider
