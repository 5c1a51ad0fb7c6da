#include <algorithm>
#include <cstring>
#include <span>

#include "provider/verbs/fake/verbs_fake.h"
#include "provider/verbs/fake/verbs_records_fake.h"

namespace rnicd::provider {
namespace {

struct Step {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

// Transitions of a reliable connection. Source: ibv_modify_qp(3); the kernel accepts a few more if no other attribute
// changes.
constexpr Step kSteps[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
};

std::span<const ibv_sge> EntriesOf(const ibv_sge* list, int count) {
  return {list, static_cast<size_t>(std::max(count, 0))};
}

PostedSend Copy(const ibv_send_wr& request, uint32_t qp_num) {
  PostedSend send{.qp_num = qp_num, .wr_id = request.wr_id, .opcode = request.opcode, .send_flags = request.send_flags};
  for (const ibv_sge& entry : EntriesOf(request.sg_list, request.num_sge)) {
    if ((request.send_flags & IBV_SEND_INLINE) == 0) {
      send.entries.push_back(entry);
    } else if (entry.length > 0) {
      const auto* bytes = reinterpret_cast<const std::byte*>(entry.addr);
      send.inline_bytes.insert(send.inline_bytes.end(), bytes, bytes + entry.length);
    }
  }
  switch (request.opcode) {
    case IBV_WR_BIND_MW:
      send.mw = request.bind_mw.mw;
      send.mw_rkey = send.mw == nullptr ? 0 : send.mw->rkey;
      send.bind_rkey = request.bind_mw.rkey;
      send.bind = request.bind_mw.bind_info;
      break;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
      send.invalidate_rkey = request.invalidate_rkey;
      break;
    default:
      send.imm_data = request.imm_data;
      send.remote_addr = request.wr.rdma.remote_addr;
      send.rkey = request.wr.rdma.rkey;
  }
  return send;
}

}  // namespace

// --- Completion queues ---

ibv_comp_channel* FakeVerbs::CreateChannel(ibv_context* context) {
  MutexLock lock(mutex_);
  Context* const found = Find(contexts_, context);
  errno = Begin("CreateChannel", found, Asks::kCard);
  Signal signal;
  if (errno != 0 || !signal.Open()) {
    return nullptr;
  }
  Channel* const channel = Add(channels_, *found);
  channel->signal = std::move(signal);
  channel->verbs.fd = channel->signal.fd();
  return &channel->verbs;
}

int FakeVerbs::DestroyChannel(ibv_comp_channel* channel) {
  MutexLock lock(mutex_);
  const Channel* const found = Find(channels_, channel);
  if (const int error = Begin("DestroyChannel", found == nullptr ? nullptr : found->context, Asks::kNobody);
      error != 0) {
    return error;
  }
  const bool used = std::ranges::any_of(cqs_, [&](const auto& row) { return row.second->channel == found; });
  return used ? EBUSY : End(channels_, *found);
}

ibv_cq* FakeVerbs::NextCqEvent(ibv_comp_channel* channel) {
  MutexLock lock(mutex_);
  Channel* const found = Find(channels_, channel);
  if (Begin("NextCqEvent", found == nullptr ? nullptr : found->context, Asks::kNobody) != 0 || found->pending.empty()) {
    return nullptr;
  }
  ibv_cq* const cq = found->pending.front();
  found->pending.pop_front();
  found->signal.Set(!found->pending.empty());
  if (found->context->removed && found->pending.empty()) {
    found->signal.HangUp();
  }
  return cq;
}

ibv_cq* FakeVerbs::CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) {
  MutexLock lock(mutex_);
  Context* const found = Find(contexts_, context);
  Channel* const its_channel = Find(channels_, channel);
  errno = Begin("CreateCq", found, Asks::kCard);
  if (errno != 0) {
    return nullptr;
  }
  const ibv_device_attr& limits = found->device->shape.attributes;
  const bool strange_channel = channel != nullptr && (its_channel == nullptr || its_channel->context != found);
  if (entries < 1 || entries > limits.max_cqe || strange_channel) {
    errno = EINVAL;
  } else if (CountOf(cqs_, *found->device) >= static_cast<size_t>(limits.max_cq)) {
    errno = ENOMEM;
  }
  if (errno != 0) {
    return nullptr;
  }
  Cq* const cq = Add(cqs_, *found);
  cq->channel = its_channel;
  cq->verbs.channel = channel;
  cq->verbs.cqe = entries;
  return &cq->verbs;
}

int FakeVerbs::DestroyCq(ibv_cq* cq) {
  MutexLock lock(mutex_);
  Cq* const found = Find(cqs_, cq);
  if (const int error = Begin("DestroyCq", found == nullptr ? nullptr : found->context, Asks::kNobody); error != 0) {
    return error;
  }
  if (std::ranges::any_of(
          qps_, [&](const auto& row) { return row.second->verbs.send_cq == cq || row.second->verbs.recv_cq == cq; })) {
    return EBUSY;
  }
  if (found->channel != nullptr) {
    std::erase(found->channel->pending, cq);
    found->channel->signal.Set(!found->channel->pending.empty());
  }
  std::erase_if(found->context->events, [&](const ibv_async_event& event) {
    return event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
  });
  found->context->signal.Set(!found->context->events.empty());
  return End(cqs_, *found);
}

int FakeVerbs::ArmCq(ibv_cq* cq) {
  MutexLock lock(mutex_);
  Cq* const found = Find(cqs_, cq);
  if (const int error = Begin("ArmCq", found == nullptr ? nullptr : found->context, Asks::kCard); error != 0) {
    return error;
  }
  found->armed = true;
  return 0;
}

int FakeVerbs::PollCq(ibv_cq* cq, int max, ibv_wc* completions) {
  MutexLock lock(mutex_);
  Cq* const found = Find(cqs_, cq);
  if (Begin("PollCq", found == nullptr ? nullptr : found->context, Asks::kNobody) != 0) {
    return -1;
  }
  int count = 0;
  for (; count < max && !found->entries.empty(); ++count) {
    const Cq::Entry& entry = found->entries.front();
    completions[count] = entry.completion;
    if (Qp* const qp = FindQp(entry.completion.qp_num); qp != nullptr && qp->generation == entry.generation) {
      (entry.receive ? qp->receives_used : qp->sends_used) -= entry.slots;
    }
    found->entries.pop_front();
  }
  return count;
}

void FakeVerbs::Push(Qp& qp, bool receive, uint64_t slots, const ibv_wc& completion) {
  Cq* const cq = Find(cqs_, receive ? qp.verbs.recv_cq : qp.verbs.send_cq);
  if (cq->entries.size() >= static_cast<size_t>(cq->verbs.cqe)) {
    Violate("a completion queue of " + std::to_string(cq->verbs.cqe) + " overran");
    ibv_async_event event = {};
    event.element.cq = &cq->verbs;
    event.event_type = IBV_EVENT_CQ_ERR;
    Raise(*qp.context, event);
    return;
  }
  cq->entries.push_back({.completion = completion, .generation = qp.generation, .receive = receive, .slots = slots});
  cq->entries.back().completion.qp_num = qp.verbs.qp_num;
  if (cq->armed && cq->channel != nullptr) {
    cq->channel->pending.push_back(&cq->verbs);
    cq->channel->signal.Set(true);
  }
  cq->armed = false;
}

// --- Queue pairs ---

FakeVerbs::Qp* FakeVerbs::FindQp(uint32_t qp_num) const {
  const auto found = std::ranges::find_if(qps_, [&](const auto& row) { return row.second->verbs.qp_num == qp_num; });
  return found == qps_.end() ? nullptr : found->second.get();
}

ibv_qp* FakeVerbs::CreateQp(ibv_pd* pd, ibv_qp_init_attr& attributes) {
  MutexLock lock(mutex_);
  const Pd* const found = Find(pds_, pd);
  errno = Begin("CreateQp", found == nullptr ? nullptr : found->context, Asks::kCard);
  if (errno != 0) {
    return nullptr;
  }
  const FakeDevice& device = found->context->device->shape;
  const ibv_device_attr& limits = device.attributes;
  const ibv_qp_cap& cap = attributes.cap;
  const Cq* const send_cq = Find(cqs_, attributes.send_cq);
  const Cq* const recv_cq = Find(cqs_, attributes.recv_cq);
  const bool strange_queue = send_cq == nullptr || send_cq->context != found->context || recv_cq == nullptr ||
                             recv_cq->context != found->context;
  const auto max_wr = static_cast<uint32_t>(limits.max_qp_wr);
  const auto max_sge = static_cast<uint32_t>(limits.max_sge);
  if (attributes.qp_type != IBV_QPT_RC) {
    errno = EOPNOTSUPP;
  } else if (strange_queue || attributes.srq != nullptr || cap.max_send_wr > max_wr || cap.max_recv_wr > max_wr ||
             cap.max_send_sge > max_sge || cap.max_recv_sge > max_sge ||
             cap.max_inline_data > device.max_inline_bytes) {
    errno = EINVAL;
  } else if (CountOf(qps_, *found->context->device) >= static_cast<size_t>(limits.max_qp)) {
    errno = ENOMEM;
  }
  if (errno != 0) {
    return nullptr;
  }
  Qp* const qp = Add(qps_, *found->context);
  qp->init = attributes;
  qp->verbs.qp_context = attributes.qp_context;
  qp->verbs.pd = pd;
  qp->verbs.send_cq = attributes.send_cq;
  qp->verbs.recv_cq = attributes.recv_cq;
  qp->verbs.qp_num = next_qp_num_++;
  qp->verbs.state = IBV_QPS_RESET;
  qp->verbs.qp_type = attributes.qp_type;
  return &qp->verbs;
}

int FakeVerbs::CheckAddress(const Qp& qp, const ibv_qp_attr& attributes) {
  const FakeDevice& device = qp.context->device->shape;
  const ibv_ah_attr& address = attributes.ah_attr;
  constexpr ibv_gid kNowhere = {};
  if (address.is_global == 0) {
    return device.port.link_layer == IBV_LINK_LAYER_ETHERNET ? EINVAL : 0;
  }
  if (std::memcmp(&address.grh.dgid, &kNowhere, sizeof(kNowhere)) == 0) {
    return EINVAL;
  }
  if (std::ranges::none_of(device.gids, [&](const GidEntry& gid) { return gid.index == address.grh.sgid_index; })) {
    return ENODATA;
  }
  return device.port.state == IBV_PORT_ACTIVE ? 0 : ENETUNREACH;
}

int FakeVerbs::CheckTransition(const Qp& qp, const ibv_qp_attr& attributes, int mask) {
  const ibv_device_attr& limits = qp.context->device->shape.attributes;
  const ibv_port_attr& port = qp.context->device->shape.port;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : qp.state;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    return 0;
  }
  const auto* const step =
      std::ranges::find_if(kSteps, [&](const Step& row) { return row.from == qp.state && row.to == to; });
  if (step == std::end(kSteps) || (mask & step->required) != step->required ||
      (mask & ~(step->required | step->optional | IBV_QP_STATE)) != 0) {
    return EINVAL;
  }
  const auto above = [&](int bit, uint32_t value, uint32_t most) { return (mask & bit) != 0 && value > most; };
  if (((mask & IBV_QP_PORT) != 0 && attributes.port_num != 1) ||
      above(IBV_QP_MAX_QP_RD_ATOMIC, attributes.max_rd_atomic, static_cast<uint32_t>(limits.max_qp_init_rd_atom)) ||
      above(IBV_QP_MAX_DEST_RD_ATOMIC, attributes.max_dest_rd_atomic, static_cast<uint32_t>(limits.max_qp_rd_atom)) ||
      above(IBV_QP_PATH_MTU, attributes.path_mtu, port.active_mtu) || above(IBV_QP_TIMEOUT, attributes.timeout, 31) ||
      above(IBV_QP_RETRY_CNT, attributes.retry_cnt, 7) || above(IBV_QP_RNR_RETRY, attributes.rnr_retry, 7) ||
      above(IBV_QP_MIN_RNR_TIMER, attributes.min_rnr_timer, 31)) {
    return EINVAL;
  }
  return (mask & IBV_QP_AV) != 0 ? CheckAddress(qp, attributes) : 0;
}

int FakeVerbs::ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) {
  MutexLock lock(mutex_);
  Qp* const found = Find(qps_, qp);
  if (const int error = Begin("ModifyQp", found == nullptr ? nullptr : found->context, Asks::kCard); error != 0) {
    return error;
  }
  if (const int error = CheckTransition(*found, attributes, mask); error != 0) {
    return error;
  }
  if ((mask & IBV_QP_STATE) == 0) {
    return 0;
  }
  found->transitions[attributes.qp_state] = {attributes, mask};
  qp->state = attributes.qp_state;
  if (attributes.qp_state == IBV_QPS_ERR) {
    Flush(*found);
  } else if (attributes.qp_state == IBV_QPS_RESET) {
    found->sends.clear();
    found->receives.clear();
    found->sends_used = found->receives_used = found->unreported = 0;
    ++found->generation;
  }
  found->state = attributes.qp_state;
  return 0;
}

int FakeVerbs::QueryQpState(ibv_qp* qp, ibv_qp_state& state) {
  MutexLock lock(mutex_);
  const Qp* const found = Find(qps_, qp);
  if (const int error = Begin("QueryQpState", found == nullptr ? nullptr : found->context, Asks::kCard); error != 0) {
    return error;
  }
  qp->state = found->state;
  state = found->state;
  return 0;
}

int FakeVerbs::DestroyQp(ibv_qp* qp) {
  MutexLock lock(mutex_);
  Qp* const found = Find(qps_, qp);
  if (const int error = Begin("DestroyQp", found == nullptr ? nullptr : found->context, Asks::kNobody); error != 0) {
    return error;
  }
  for (const auto& row : mws_) {
    if (row.second->qp == qp) {
      Violate("DestroyQp of " + std::to_string(qp->qp_num) + " while a window is bound to it");
      row.second->qp = nullptr;
      row.second->mr = nullptr;
    }
  }
  std::erase_if(found->context->events, [&](const ibv_async_event& event) {
    return (event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_ACCESS_ERR ||
            event.event_type == IBV_EVENT_QP_REQ_ERR) &&
           event.element.qp == qp;
  });
  found->context->signal.Set(!found->context->events.empty());
  return End(qps_, *found);
}

// --- Posting ---

int FakeVerbs::AcceptSend(Qp& qp, const ibv_send_wr& request) {
  const ibv_qp_cap& cap = qp.init.cap;
  if ((qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR) || request.num_sge < 0 ||
      static_cast<uint32_t>(request.num_sge) > cap.max_send_sge) {
    return EINVAL;
  }
  PostedSend send = Copy(request, qp.verbs.qp_num);
  if (send.inline_bytes.size() > cap.max_inline_data) {
    return EINVAL;
  }
  if (qp.sends_used >= cap.max_send_wr) {
    return ENOMEM;
  }
  ++qp.sends_used;
  history_[qp.verbs.qp_num].push_back(send);
  qp.sends.push_back(std::move(send));
  if (qp.state == IBV_QPS_ERR) {
    Flush(qp);
  }
  return 0;
}

int FakeVerbs::PostSend(ibv_qp* qp, ibv_send_wr& request) {
  for (const ibv_send_wr* next = &request; next != nullptr; next = next->next) {
    uint32_t qp_num = 0;
    {
      MutexLock lock(mutex_);
      Qp* const found = Find(qps_, qp);
      if (const int error = Begin("PostSend", found == nullptr ? nullptr : found->context, Asks::kCard); error != 0) {
        return error;
      }
      if (const int error = AcceptSend(*found, *next); error != 0) {
        return error;
      }
      qp_num = found->verbs.qp_num;
    }
    if (on_send) {
      on_send(Copy(*next, qp_num));
    }
    MutexLock lock(mutex_);
    if (Qp* const found = FindQp(qp_num); automatic_ && found != nullptr && !found->sends.empty()) {
      Finish(*found, IBV_WC_SUCCESS);
    }
  }
  return 0;
}

int FakeVerbs::AcceptReceive(Qp& qp, const ibv_recv_wr& request) {
  if (qp.state == IBV_QPS_RESET || request.num_sge < 0 ||
      static_cast<uint32_t>(request.num_sge) > qp.init.cap.max_recv_sge) {
    return EINVAL;
  }
  if (qp.receives_used >= qp.init.cap.max_recv_wr) {
    return ENOMEM;
  }
  ++qp.receives_used;
  const auto entries = EntriesOf(request.sg_list, request.num_sge);
  qp.receives.push_back(
      {.qp_num = qp.verbs.qp_num, .wr_id = request.wr_id, .entries = {entries.begin(), entries.end()}});
  if (qp.state == IBV_QPS_ERR) {
    Flush(qp);
  }
  return 0;
}

int FakeVerbs::PostRecv(ibv_qp* qp, ibv_recv_wr& request) {
  MutexLock lock(mutex_);
  Qp* const found = Find(qps_, qp);
  for (const ibv_recv_wr* next = &request; next != nullptr; next = next->next) {
    if (const int error = Begin("PostRecv", found == nullptr ? nullptr : found->context, Asks::kCard); error != 0) {
      return error;
    }
    if (const int error = AcceptReceive(*found, *next); error != 0) {
      return error;
    }
  }
  return 0;
}

}  // namespace rnicd::provider
