#include "provider/verbs/fake/fast_module_fake.h"

#include <algorithm>

#include "base/units.h"

namespace rnicd::provider {

int FakeFastModule::TakeFault(const std::string& call) {
  const auto fault = faults_.find(call);
  if (fault == faults_.end()) {
    return 0;
  }
  if (fault->second.second > 0) {
    --fault->second.second;
    return 0;
  }
  const int error = fault->second.first;
  faults_.erase(fault);
  return error;
}

FakeFastModule::Domain* FakeFastModule::Find(int domain) {
  const auto found = domains_.find(domain);
  return found != domains_.end() ? &found->second : nullptr;
}

int FakeFastModule::Take(ibv_pd* pd, uint8_t /*port*/, uint8_t /*gid_index*/, rnicd_fr_take& out) {
  MutexLock lock(mutex_);
  if (const int error = TakeFault("Take"); error != 0) {
    return error;
  }
  for (const auto& [file, domain] : domains_) {
    if (domain.pd == pd) {
      return EBUSY;
    }
  }
  out.domain_fd = next_file_++;
  out.region_pages_max = region_pages_max_;
  domains_[out.domain_fd].pd = pd;
  card_.keys.Hold(pd);
  return 0;
}

void FakeFastModule::Close(int domain) {
  MutexLock lock(mutex_);
  Domain& closed = domains_.at(domain);
  for (auto& [id, region] : closed.regions) {
    Break(closed, region);
  }
  card_.keys.Release(closed.pd);
  domains_.erase(domain);
}

int FakeFastModule::Map(int domain, std::span<std::byte> pages, uint32_t& mapping) {
  MutexLock lock(mutex_);
  if (const int error = TakeFault("Map"); error != 0) {
    return error;
  }
  if (pages.empty() || pages.size() % kNdkPageBytes != 0 ||
      reinterpret_cast<uint64_t>(pages.data()) % kNdkPageBytes != 0) {
    return EINVAL;
  }
  mapping = next_id_++;
  Find(domain)->mappings[mapping].bytes = pages;
  return 0;
}

int FakeFastModule::Unmap(int domain, uint32_t mapping) {
  MutexLock lock(mutex_);
  std::map<uint32_t, Mapping>& mappings = Find(domain)->mappings;
  const auto found = mappings.find(mapping);
  if (found == mappings.end()) {
    return ENOENT;
  }
  if (found->second.uses > 0) {
    return EBUSY;
  }
  mappings.erase(found);
  return 0;
}

int FakeFastModule::CreateRegion(int domain, uint32_t pages, rnicd_fr_create_region& region) {
  MutexLock lock(mutex_);
  if (const int error = TakeFault("CreateRegion"); error != 0) {
    return error;
  }
  if (pages == 0 || pages > region_pages_max_) {
    return EINVAL;
  }
  region = {.pages = pages, .region = next_id_++, .keys = {}};
  Region& made = Find(domain)->regions[region.region];
  made.pages = pages;
  for (size_t slot = 0; slot < RNICD_FR_SLOTS; ++slot) {
    made.slots[slot].key = region.keys[slot] = next_key_++ << 16;
    card_.keys.Reserve(region.keys[slot]);
  }
  return 0;
}

int FakeFastModule::DestroyRegion(int domain, uint32_t region) {
  MutexLock lock(mutex_);
  if (const int error = TakeFault("DestroyRegion"); error != 0) {
    return error;
  }
  Domain& owner = *Find(domain);
  const auto found = owner.regions.find(region);
  if (found == owner.regions.end()) {
    return ENOENT;
  }
  Break(owner, found->second);
  owner.regions.erase(found);
  return 0;
}

void FakeFastModule::End(Domain& domain, Slot& slot) {
  if (slot.live.has_value()) {
    card_.keys.Remove(domain.pd, slot.live->token);
  }
  for (const uint32_t mapping : slot.holds) {
    --domain.mappings.at(mapping).uses;
  }
  slot.holds.clear();
  slot.live.reset();
}

void FakeFastModule::Break(Domain& domain, Region& region) {
  for (Slot& slot : region.slots) {
    End(domain, slot);
    slot.key = 0;
  }
}

int FakeFastModule::Check(Domain& domain, const rnicd_fr_op& op, std::span<const rnicd_fr_run> runs,
                          const std::vector<Slot*>& ending, InForce& made, std::vector<uint32_t>& holds) {
  Slot& slot = domain.regions.at(op.region).slots[op.slot];
  if (slot.live.has_value() || std::ranges::find(ending, &slot) != ending.end()) {
    return EBUSY;
  }
  if (op.base % kNdkPageBytes != op.offset || op.length == 0 || size_t{op.first_run} + op.run_count > runs.size()) {
    return EINVAL;
  }
  made = {.token = slot.key | op.key, .base = op.base, .length = op.length, .access = op.access, .pages = {}};
  for (const rnicd_fr_run& run : runs.subspan(op.first_run, op.run_count)) {
    const auto mapping = domain.mappings.find(run.mapping);
    if (mapping == domain.mappings.end()) {
      return ENOENT;
    }
    if (size_t{run.page} + run.count > mapping->second.bytes.size() / kNdkPageBytes) {
      return EINVAL;
    }
    holds.push_back(run.mapping);
    for (uint32_t page = 0; page < run.count; ++page) {
      made.pages.push_back(mapping->second.bytes.data() + (run.page + page) * kNdkPageBytes);
    }
  }
  const uint64_t needed = (op.offset + op.length + kNdkPageBytes - 1) / kNdkPageBytes;
  return made.pages.size() == needed && needed <= domain.regions.at(op.region).pages ? 0 : EINVAL;
}

int FakeFastModule::Execute(Domain& domain, const rnicd_fr_op& op, std::span<const rnicd_fr_run> runs,
                            std::vector<Slot*>& ending) {
  if (!domain.regions.contains(op.region)) {
    return ENOENT;
  }
  Slot& slot = domain.regions.at(op.region).slots[op.slot];
  if (op.kind == RNICD_FR_INVALIDATE) {
    if (!slot.live.has_value() || slot.live->token != (slot.key | op.key)) {
      return ENOENT;
    }
    ending.push_back(&slot);
    End(domain, slot);
    return 0;
  }
  InForce made;
  std::vector<uint32_t> holds;
  const int error = Check(domain, op, runs, ending, made, holds);
  if (error != 0) {
    return error;
  }
  for (const uint32_t mapping : holds) {
    ++domain.mappings.at(mapping).uses;
  }
  slot.holds = std::move(holds);
  card_.keys.Add({.pd = domain.pd,
                  .key = made.token,
                  .base = made.base,
                  .length = made.length,
                  .local_write = (op.access & RNICD_FR_LOCAL_WRITE) != 0,
                  .remote_write = (op.access & RNICD_FR_REMOTE_WRITE) != 0,
                  .pages = made.pages});
  slot.live = std::move(made);
  return 0;
}

int FakeFastModule::Submit(int domain, std::span<rnicd_fr_op> ops, std::span<const rnicd_fr_run> runs) {
  MutexLock lock(mutex_);
  if (const int error = TakeFault("Submit"); error != 0) {
    return error;
  }
  Domain& owner = *Find(domain);
  chains_.push_back(ops.size());
  std::vector<Slot*> ending;
  bool failed = false;
  for (size_t index = 0; index < ops.size(); ++index) {
    rnicd_fr_op& op = ops[index];
    if (failed) {
      op.result = -ECANCELED;
    } else if (refused_ == index) {
      Break(owner, owner.regions.at(op.region));
      op.result = -EIO;
    } else {
      op.result = -Execute(owner, op, runs, ending);
    }
    failed = failed || op.result != 0;
    op.slot_key = owner.regions.contains(op.region) ? owner.regions.at(op.region).slots[op.slot].key : 0;
  }
  refused_.reset();
  return 0;
}

void FakeFastModule::FailNext(const std::string& call, int error, uint64_t skip) {
  MutexLock lock(mutex_);
  faults_[call] = {error, skip};
}

void FakeFastModule::RefuseNext(size_t index) {
  MutexLock lock(mutex_);
  refused_ = index;
}

std::vector<FakeFastModule::InForce> FakeFastModule::in_force() const {
  MutexLock lock(mutex_);
  std::vector<InForce> all;
  for (const auto& [file, domain] : domains_) {
    for (const auto& [id, region] : domain.regions) {
      for (const Slot& slot : region.slots) {
        if (slot.live.has_value()) {
          all.push_back(*slot.live);
        }
      }
    }
  }
  return all;
}

size_t FakeFastModule::domains() const {
  MutexLock lock(mutex_);
  return domains_.size();
}

size_t FakeFastModule::regions() const {
  MutexLock lock(mutex_);
  size_t count = 0;
  for (const auto& [file, domain] : domains_) {
    count += domain.regions.size();
  }
  return count;
}

size_t FakeFastModule::mappings() const {
  MutexLock lock(mutex_);
  size_t count = 0;
  for (const auto& [file, domain] : domains_) {
    count += domain.mappings.size();
  }
  return count;
}

uint64_t FakeFastModule::mapped_pages() const {
  MutexLock lock(mutex_);
  uint64_t count = 0;
  for (const auto& [file, domain] : domains_) {
    for (const auto& [id, mapping] : domain.mappings) {
      count += mapping.bytes.size() / kNdkPageBytes;
    }
  }
  return count;
}

void FakeFastModule::ForgetChains() {
  MutexLock lock(mutex_);
  chains_.clear();
}

std::vector<size_t> FakeFastModule::chains() const {
  MutexLock lock(mutex_);
  return chains_;
}

}  // namespace rnicd::provider
