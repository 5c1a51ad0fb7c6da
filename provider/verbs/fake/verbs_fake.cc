#include "provider/verbs/fake/verbs_fake.h"

#include <algorithm>
#include <cstring>

#include "provider/verbs/fake/verbs_records_fake.h"

namespace rnicd::provider {

ibv_device_attr FakeDeviceAttributes() {
  ibv_device_attr attributes = {};
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 0xfffff000;
  attributes.vendor_id = 0xffffff;
  attributes.vendor_part_id = 7;
  attributes.max_qp = 4096;
  attributes.max_qp_wr = 1024;
  attributes.device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes.max_sge = 32;
  attributes.max_sge_rd = 32;
  attributes.max_cq = 4096;
  attributes.max_cqe = 32767;
  attributes.max_mr = 4096;
  attributes.max_pd = 4096;
  attributes.max_qp_rd_atom = 128;
  attributes.max_res_rd_atom = 258048;
  attributes.max_qp_init_rd_atom = 128;
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_mw = 4096;
  attributes.max_pkeys = 64;
  attributes.phys_port_cnt = 1;
  return attributes;
}

ibv_port_attr FakePortAttributes() {
  ibv_port_attr port = {};
  port.state = IBV_PORT_ACTIVE;
  port.max_mtu = IBV_MTU_4096;
  port.active_mtu = IBV_MTU_1024;
  port.gid_tbl_len = 1024;
  port.max_msg_sz = 0x800000;
  port.pkey_tbl_len = 64;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  return port;
}

std::vector<GidEntry> FakeGids() {
  GidEntry link_local{.index = 0, .type = IBV_GID_TYPE_ROCE_V2};
  link_local.gid.raw[0] = 0xfe;
  link_local.gid.raw[1] = 0x80;
  link_local.gid.raw[15] = 1;
  GidEntry ipv4{.index = 1, .type = IBV_GID_TYPE_ROCE_V2};
  ipv4.gid.raw[10] = 0xff;
  ipv4.gid.raw[11] = 0xff;
  ipv4.gid.raw[12] = 10;
  ipv4.gid.raw[15] = 1;
  return {link_local, ipv4};
}

std::ostream& operator<<(std::ostream& out, const FakeLive& live) {
  return out << "contexts " << live.contexts << ", pds " << live.pds << ", mrs " << live.mrs << ", mws " << live.mws
             << ", channels " << live.channels << ", cqs " << live.cqs << ", qps " << live.qps;
}

FakeVerbs::FakeVerbs(std::vector<FakeDevice> devices) {
  for (FakeDevice& device : devices) {
    AddDevice(std::move(device));
  }
}

FakeVerbs::~FakeVerbs() = default;

// --- Helpers ---

int FakeVerbs::TakeFault(const std::string& call) {
  const auto fault = faults_.find(call);
  if (fault == faults_.end() || fault->second.remaining == 0) {
    return 0;
  }
  if (fault->second.skip > 0) {
    --fault->second.skip;
    return 0;
  }
  --fault->second.remaining;
  return fault->second.error;
}

int FakeVerbs::Begin(const char* call, const Context* context, Asks asks) {
  ++calls_[call];
  changes.Add();
  if (context == nullptr) {
    Violate(std::string(call) + " with an object that does not exist");
    return EINVAL;
  }
  if (const int error = TakeFault(call); error != 0) {
    return error;
  }
  return context->removed && asks == Asks::kCard ? EIO : 0;
}

void FakeVerbs::Violate(std::string what) { violations_.push_back(std::move(what)); }

FakeVerbs::Device* FakeVerbs::FindDevice(const std::string& name, uint64_t instance) {
  for (const auto& device : devices_) {
    if (device->id.name == name && (instance == 0 || device->id.instance == instance) && cards_.Has(device->id)) {
      return device.get();
    }
  }
  return nullptr;
}

template <typename Record>
void FakeVerbs::EraseOf(Table<Record>& table, const Context& context) {
  std::erase_if(table, [&](const auto& row) { return row.second->context == &context; });
}

void FakeVerbs::Raise(Context& context, const ibv_async_event& event) {
  context.events.push_back(event);
  context.signal.Set(true);
}

// --- Devices ---

ibv_context* FakeVerbs::Open(const CardId& card) {
  MutexLock lock(mutex_);
  ++calls_["Open"];
  errno = TakeFault("Open");
  if (errno != 0) {
    return nullptr;
  }
  Device* const found = FindDevice(card.name, card.instance);
  if (found == nullptr) {
    errno = ENODEV;
    return nullptr;
  }
  auto context = std::make_shared<Context>();
  if (!context->signal.Open()) {
    return nullptr;
  }
  context->device = found;
  context->verbs.device = &found->verbs;
  context->verbs.cmd_fd = -1;
  context->verbs.async_fd = context->signal.fd();
  context->verbs.num_comp_vectors = 1;
  ibv_context* const answer = &context->verbs;
  contexts_.emplace(answer, std::move(context));
  return answer;
}

int FakeVerbs::Close(ibv_context* context) {
  MutexLock lock(mutex_);
  Context* const found = Find(contexts_, context);
  if (const int error = Begin("Close", found, Asks::kNobody); error != 0) {
    return error;
  }
  const auto of_this = [&](const auto& row) { return row.second->context == found; };
  const bool empty = std::ranges::none_of(pds_, of_this) && std::ranges::none_of(mrs_, of_this) &&
                     std::ranges::none_of(mws_, of_this) && std::ranges::none_of(channels_, of_this) &&
                     std::ranges::none_of(cqs_, of_this) && std::ranges::none_of(qps_, of_this);
  if (!empty && !found->removed) {
    Violate("Close of a context that has objects");
  }
  EraseOf(qps_, *found);
  EraseOf(cqs_, *found);
  EraseOf(channels_, *found);
  EraseOf(mws_, *found);
  EraseOf(mrs_, *found);
  EraseOf(pds_, *found);
  contexts_.erase(context);
  return 0;
}

int FakeVerbs::QueryDevice(ibv_context* context, ibv_device_attr& attributes) {
  MutexLock lock(mutex_);
  const Context* const found = Find(contexts_, context);
  if (const int error = Begin("QueryDevice", found, Asks::kCard); error != 0) {
    return error;
  }
  attributes = found->device->shape.attributes;
  return 0;
}

int FakeVerbs::QueryPort(ibv_context* context, uint8_t port, ibv_port_attr& attributes) {
  MutexLock lock(mutex_);
  const Context* const found = Find(contexts_, context);
  if (const int error = Begin("QueryPort", found, Asks::kNobody); error != 0) {
    return error;
  }
  if (found->removed) {
    return ENODEV;
  }
  if (port != 1) {
    return EINVAL;
  }
  attributes = found->device->shape.port;
  return 0;
}

std::vector<GidEntry> FakeVerbs::QueryGids(ibv_context* context, uint8_t port) {
  MutexLock lock(mutex_);
  const Context* const found = Find(contexts_, context);
  if (Begin("QueryGids", found, Asks::kCard) != 0 || port != 1) {
    return {};
  }
  return found->device->shape.gids;
}

int FakeVerbs::NextAsyncEvent(ibv_context* context, ibv_async_event& event) {
  MutexLock lock(mutex_);
  Context* const found = Find(contexts_, context);
  if (const int error = Begin("NextAsyncEvent", found, Asks::kNobody); error != 0) {
    return error;
  }
  if (found->events.empty()) {
    return found->removed ? EIO : EAGAIN;
  }
  event = found->events.front();
  found->events.pop_front();
  found->signal.Set(!found->events.empty());
  if (found->removed && found->events.empty()) {
    found->signal.HangUp();
  }
  return 0;
}

// --- Memory ---

ibv_pd* FakeVerbs::AllocPd(ibv_context* context) {
  MutexLock lock(mutex_);
  Context* const found = Find(contexts_, context);
  errno = Begin("AllocPd", found, Asks::kCard);
  if (errno != 0) {
    return nullptr;
  }
  if (CountOf(pds_, *found->device) >= static_cast<size_t>(found->device->shape.attributes.max_pd)) {
    errno = ENOMEM;
    return nullptr;
  }
  return &Add(pds_, *found)->verbs;
}

bool FakeVerbs::HasChildren(const Pd& pd) const {
  const auto of_this = [&](const auto& row) { return row.second->verbs.pd == &pd.verbs; };
  return keys.Holds(&pd.verbs) || std::ranges::any_of(mrs_, of_this) || std::ranges::any_of(mws_, of_this) ||
         std::ranges::any_of(qps_, of_this);
}

int FakeVerbs::DeallocPd(ibv_pd* pd) {
  MutexLock lock(mutex_);
  const Pd* const found = Find(pds_, pd);
  if (const int error = Begin("DeallocPd", found == nullptr ? nullptr : found->context, Asks::kNobody); error != 0) {
    return error;
  }
  return HasChildren(*found) ? EBUSY : End(pds_, *found);
}

ibv_mr* FakeVerbs::RegMr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  FakeRegion region{.address = address, .length = length, .iova = iova, .access = access};
  const bool congruent = (reinterpret_cast<uintptr_t>(address) ^ iova) % kernel_page_bytes == 0;
  ibv_mr* const mr = Register("RegMr", pd, region, congruent);
  if (mr != nullptr && on_register) {
    on_register(region);
  }
  return mr;
}

ibv_mr* FakeVerbs::Register(const char* call, ibv_pd* pd, FakeRegion& region, bool is_valid) {
  MutexLock lock(mutex_);
  const Pd* const found = Find(pds_, pd);
  errno = Begin(call, found == nullptr ? nullptr : found->context, Asks::kCard);
  if (errno != 0) {
    return nullptr;
  }
  const Device& device = *found->context->device;
  constexpr int kRemoteWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const bool writes_without_local =
      (region.access & kRemoteWrites) != 0 && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0;
  if (region.length == 0 || region.length > device.shape.attributes.max_mr_size || writes_without_local || !is_valid) {
    errno = EINVAL;
  } else if (CountOf(mrs_, device) >= static_cast<size_t>(device.shape.attributes.max_mr)) {
    errno = ENOMEM;
  }
  if (errno != 0) {
    return nullptr;
  }
  Mr* const mr = Add(mrs_, *found->context);
  const uint32_t key = (next_key_ << 8) | ((next_key_ * 37) & 0xff);
  ++next_key_;
  const bool remote = (region.access & (kRemoteWrites | IBV_ACCESS_REMOTE_READ)) != 0;
  mr->verbs.pd = pd;
  mr->verbs.addr = region.address;
  mr->verbs.length = region.length;
  mr->verbs.lkey = key;
  mr->verbs.rkey = remote ? key : 0;
  region.mr = &mr->verbs;
  region.lkey = mr->verbs.lkey;
  region.rkey = mr->verbs.rkey;
  mr->region = region;
  return region.mr;
}

int FakeVerbs::DeregMr(ibv_mr* mr) {
  MutexLock lock(mutex_);
  const Mr* const found = Find(mrs_, mr);
  if (const int error = Begin("DeregMr", found == nullptr ? nullptr : found->context, Asks::kNobody); error != 0) {
    return error;
  }
  return std::ranges::any_of(mws_, [&](const auto& row) { return row.second->mr == mr; }) ? EINVAL : End(mrs_, *found);
}

ibv_mw* FakeVerbs::AllocMw(ibv_pd* pd) {
  MutexLock lock(mutex_);
  const Pd* const found = Find(pds_, pd);
  errno = Begin("AllocMw", found == nullptr ? nullptr : found->context, Asks::kCard);
  if (errno != 0) {
    return nullptr;
  }
  const Device& device = *found->context->device;
  if ((device.shape.attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) == 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (CountOf(mws_, device) >= static_cast<size_t>(device.shape.attributes.max_mw)) {
    errno = ENOMEM;
    return nullptr;
  }
  Mw* const mw = Add(mws_, *found->context);
  mw->key = (next_key_ << 8) | ((next_key_ * 37) & 0xff);
  ++next_key_;
  mw->verbs.pd = pd;
  mw->verbs.rkey = mw->key;
  mw->verbs.type = IBV_MW_TYPE_2;
  return &mw->verbs;
}

int FakeVerbs::DeallocMw(ibv_mw* mw) {
  MutexLock lock(mutex_);
  const Mw* const found = Find(mws_, mw);
  const int error = Begin("DeallocMw", found == nullptr ? nullptr : found->context, Asks::kNobody);
  return error != 0 ? error : End(mws_, *found);
}

// --- What a test does and sees ---

void FakeVerbs::FailNext(const std::string& call, int error, uint64_t count, uint64_t skip) {
  MutexLock lock(mutex_);
  faults_[call] = {.error = error, .remaining = count, .skip = skip};
}

void FakeVerbs::RaiseAsync(ibv_event_type type, int port, const std::string& device) {
  MutexLock lock(mutex_);
  ibv_async_event event = {};
  event.element.port_num = port;
  event.event_type = type;
  for (const auto& row : contexts_) {
    if (device.empty() || row.second->device->shape.name == device) {
      Raise(*row.second, event);
    }
  }
}

void FakeVerbs::RemoveDevice(const std::string& name, int destroy_error) {
  MutexLock lock(mutex_);
  Device* const device = FindDevice(name);
  if (device == nullptr) {
    Violate("RemoveDevice of " + name + ", which is not there");
    return;
  }
  cards_.Remove(name);
  ibv_async_event event = {};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  for (const auto& row : contexts_) {
    if (row.second->device == device) {
      row.second->removed = true;
      row.second->destroy_error = destroy_error;
      Raise(*row.second, event);
    }
  }
  for (const auto& row : channels_) {
    if (row.second->context->device == device && row.second->pending.empty()) {
      row.second->signal.HangUp();
    }
  }
}

void FakeVerbs::AddDevice(FakeDevice device) {
  MutexLock lock(mutex_);
  auto record = std::make_unique<Device>();
  record->shape = std::move(device);
  record->id = cards_.Add(record->shape.name, record->shape.numa_node);
  record->verbs.node_type = IBV_NODE_CA;
  record->verbs.transport_type = IBV_TRANSPORT_IB;
  std::strncpy(record->verbs.name, record->shape.name.c_str(), sizeof(record->verbs.name) - 1);
  devices_.push_back(std::move(record));
}

void FakeVerbs::SetPort(const std::string& device, const ibv_port_attr& port) {
  MutexLock lock(mutex_);
  if (Device* const found = FindDevice(device); found != nullptr) {
    found->shape.port = port;
  }
}

void FakeVerbs::SetGids(const std::string& device, std::vector<GidEntry> gids) {
  MutexLock lock(mutex_);
  if (Device* const found = FindDevice(device); found != nullptr) {
    found->shape.gids = std::move(gids);
  }
}

FakeLive FakeVerbs::live() const {
  MutexLock lock(mutex_);
  return {contexts_.size(), pds_.size(), mrs_.size(), mws_.size(), channels_.size(), cqs_.size(), qps_.size()};
}

std::vector<std::string> FakeVerbs::violations() const {
  MutexLock lock(mutex_);
  return violations_;
}

uint64_t FakeVerbs::calls(const std::string& call) const {
  MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<FakeRegion> FakeVerbs::regions() const {
  MutexLock lock(mutex_);
  std::vector<FakeRegion> regions;
  for (const auto& row : mrs_) {
    regions.push_back(row.second->region);
  }
  // Keys only ever grow.
  std::ranges::sort(regions, {}, &FakeRegion::lkey);
  return regions;
}

ibv_mr* FakeVerbs::BoundTo(ibv_mw* mw) const {
  MutexLock lock(mutex_);
  const Mw* const found = Find(mws_, mw);
  return found == nullptr ? nullptr : found->mr;
}

}  // namespace rnicd::provider
