#include "client/libfabric/info/hint_rules.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "client/libfabric/info/address.h"
#include "client/libfabric/info/attributes.h"

namespace rnicd::fi {
namespace {

// How what is asked compares with what is offered.
struct Comparison {
  bool (*holds)(uint64_t asked, uint64_t offered);
  // Printed with what is asked and what is offered.
  const char* format;
};

constexpr Comparison kAtMost{[](uint64_t asked, uint64_t offered) { return asked <= offered; },
                             "%" PRIu64 ", but at most %" PRIu64};
constexpr Comparison kEqual{[](uint64_t asked, uint64_t offered) { return asked == 0 || asked == offered; },
                            "%" PRIu64 ", but only %" PRIu64};
constexpr Comparison kAmong{[](uint64_t asked, uint64_t offered) { return (asked & ~offered) == 0; },
                            "0x%" PRIx64 ", but only bits of 0x%" PRIx64};
constexpr Comparison kIncludes{[](uint64_t asked, uint64_t offered) { return (asked & offered) == offered; },
                               "0x%" PRIx64 ", but 0x%" PRIx64 " is needed"};
constexpr Comparison kAddress{
    [](uint64_t asked, uint64_t offered) {
      return asked == FI_FORMAT_UNSPEC || (asked != FI_SOCKADDR && (offered <= FI_SOCKADDR || asked == offered));
    },
    "format %" PRIu64 ", but only FI_SOCKADDR_IN and FI_SOCKADDR_IN6, as addr_format %" PRIu64 " says"};

struct Rule {
  const char* field;
  uint64_t (*asked)(const Hints&);
  const Comparison& comparison;
  uint64_t (*offered)(const Hints&);
};

// FI_LOCAL_MR is what applications say that do not know FI_MR_LOCAL.
uint64_t NeededMode(const Hints& hints) {
  const bool is_old = FI_VERSION_LT(hints.api_version, FI_VERSION(1, 5));
  const bool lacks_local = hints.has_domain && (hints.domain.mr_mode & FI_MR_LOCAL) == 0;
  return is_old || lacks_local ? kLocalMr : 0;
}

// Zero says nothing about registration, unless peers shall have access.
uint64_t NeededMrModeOf(const Hints& hints) {
  const bool says_nothing = hints.domain.mr_mode == 0 && !IsRmaTarget(hints.info.caps);
  if (!hints.has_domain || HasOldMrMode(hints) || says_nothing) {
    return 0;
  }
  return static_cast<uint64_t>(NeededMrMode(hints.info.caps, kMrMode));
}

uint64_t OldMrMode(const Hints& hints) { return HasOldMrMode(hints) ? static_cast<uint64_t>(hints.domain.mr_mode) : 0; }

#define RNICD_ASKED(expression) [](const Hints& hints) -> uint64_t { return hints.expression; }
#define RNICD_OFFERED(expression) [](const Hints&) -> uint64_t { return expression; }

constexpr Rule kRules[] = {
    {"ep_attr->type", RNICD_ASKED(endpoint.type), kEqual, RNICD_OFFERED(FI_EP_MSG)},
    {"caps", RNICD_ASKED(info.caps), kAmong, RNICD_OFFERED(kCaps)},
    {"mode", RNICD_ASKED(info.mode), kIncludes, NeededMode},
    {"addr_format", RNICD_ASKED(info.addr_format), kAtMost, RNICD_OFFERED(FI_SOCKADDR_IN6)},
    {"src_addr", [](const Hints& hints) { return FormatOf(hints.info.src_addr, hints.info.src_addrlen); }, kAddress,
     RNICD_ASKED(info.addr_format)},
    {"dest_addr", [](const Hints& hints) { return FormatOf(hints.info.dest_addr, hints.info.dest_addrlen); }, kAddress,
     RNICD_ASKED(info.addr_format)},
    {"fabric_attr->prov_version", RNICD_ASKED(fabric.prov_version), kAtMost, RNICD_OFFERED(kProviderVersion)},

    {"domain_attr->threading", RNICD_ASKED(domain.threading), kAtMost, RNICD_OFFERED(FI_THREAD_ENDPOINT)},
    {"domain_attr->control_progress", RNICD_ASKED(domain.control_progress), kEqual, RNICD_OFFERED(FI_PROGRESS_MANUAL)},
    {"domain_attr->data_progress", RNICD_ASKED(domain.data_progress), kAtMost, RNICD_OFFERED(FI_PROGRESS_MANUAL)},
    {"domain_attr->resource_mgmt", RNICD_ASKED(domain.resource_mgmt), kAtMost, RNICD_OFFERED(FI_RM_ENABLED)},
    {"domain_attr->av_type", RNICD_ASKED(domain.av_type), kAtMost, RNICD_OFFERED(FI_AV_TABLE)},
    {"domain_attr->mr_mode", OldMrMode, kEqual, RNICD_OFFERED(kMrBasic)},
    {"domain_attr->mr_mode", RNICD_ASKED(domain.mr_mode), kIncludes, NeededMrModeOf},
    {"domain_attr->mr_key_size", RNICD_ASKED(domain.mr_key_size), kAtMost, RNICD_OFFERED(kMrKeyBytes)},
    {"domain_attr->cq_data_size", RNICD_ASKED(domain.cq_data_size), kAtMost,
     [](const Hints& hints) { return AcceptsCqData(hints) ? kCqDataBytes : 0; }},
    {"domain_attr->cntr_cnt", RNICD_ASKED(domain.cntr_cnt), kAtMost, RNICD_OFFERED(0)},
    {"domain_attr->mr_iov_limit", RNICD_ASKED(domain.mr_iov_limit), kAtMost, RNICD_OFFERED(1)},
    {"domain_attr->caps", RNICD_ASKED(domain.caps), kAmong, RNICD_OFFERED(kDomainCaps)},
    {"domain_attr->auth_key_size", RNICD_ASKED(domain.auth_key_size), kAtMost, RNICD_OFFERED(0)},
    {"domain_attr->max_err_data", RNICD_ASKED(domain.max_err_data), kAtMost, RNICD_OFFERED(0)},
    {"domain_attr->mr_cnt", RNICD_ASKED(domain.mr_cnt), kAtMost, RNICD_OFFERED(kMrCount)},

    {"ep_attr->protocol", RNICD_ASKED(endpoint.protocol), kEqual, RNICD_OFFERED(kProtocol)},
    {"ep_attr->protocol_version", RNICD_ASKED(endpoint.protocol_version), kAtMost, RNICD_OFFERED(kProtocolVersion)},
    {"ep_attr->max_msg_size", RNICD_ASKED(endpoint.max_msg_size), kAtMost, RNICD_OFFERED(kMessageBytesMax)},
    {"ep_attr->max_order_raw_size", RNICD_ASKED(endpoint.max_order_raw_size), kAtMost, RNICD_OFFERED(kMessageBytesMax)},
    {"ep_attr->max_order_war_size", RNICD_ASKED(endpoint.max_order_war_size), kAtMost, RNICD_OFFERED(0)},
    {"ep_attr->max_order_waw_size", RNICD_ASKED(endpoint.max_order_waw_size), kAtMost, RNICD_OFFERED(kMessageBytesMax)},
    {"ep_attr->tx_ctx_cnt", RNICD_ASKED(endpoint.tx_ctx_cnt), kAtMost, RNICD_OFFERED(1)},
    {"ep_attr->rx_ctx_cnt", RNICD_ASKED(endpoint.rx_ctx_cnt), kAtMost, RNICD_OFFERED(1)},
    {"ep_attr->auth_key_size", RNICD_ASKED(endpoint.auth_key_size), kAtMost, RNICD_OFFERED(0)},

    // Old applications repeat capabilities of the other direction in each context.
    {"tx_attr->caps", RNICD_ASKED(transmit.caps), kAmong, RNICD_OFFERED(kCaps)},
    {"tx_attr->op_flags", RNICD_ASKED(transmit.op_flags), kAmong, RNICD_OFFERED(kTransmitFlags)},
    {"tx_attr->msg_order", RNICD_ASKED(transmit.msg_order), kAmong, RNICD_OFFERED(kMessageOrder)},
    {"tx_attr->comp_order", RNICD_ASKED(transmit.comp_order), kAmong, RNICD_OFFERED(kCompletionOrder)},
    {"tx_attr->inject_size", RNICD_ASKED(transmit.inject_size), kAtMost, RNICD_OFFERED(kInjectBytesMax)},
    {"tx_attr->size", RNICD_ASKED(transmit.size), kAtMost, RNICD_OFFERED(kQueueSizeMax)},
    {"tx_attr->iov_limit", RNICD_ASKED(transmit.iov_limit), kAtMost, RNICD_OFFERED(kBuffersMax)},
    {"tx_attr->rma_iov_limit", RNICD_ASKED(transmit.rma_iov_limit), kAtMost, RNICD_OFFERED(1)},

    {"rx_attr->caps", RNICD_ASKED(receive.caps), kAmong, RNICD_OFFERED(kCaps)},
    {"rx_attr->op_flags", RNICD_ASKED(receive.op_flags), kAmong, RNICD_OFFERED(kReceiveFlags)},
    {"rx_attr->msg_order", RNICD_ASKED(receive.msg_order), kAmong, RNICD_OFFERED(kMessageOrder)},
    {"rx_attr->comp_order", RNICD_ASKED(receive.comp_order), kAmong, RNICD_OFFERED(kCompletionOrder)},
    {"rx_attr->total_buffered_recv", RNICD_ASKED(receive.total_buffered_recv), kAtMost, RNICD_OFFERED(0)},
    {"rx_attr->size", RNICD_ASKED(receive.size), kAtMost, RNICD_OFFERED(kQueueSizeMax)},
    {"rx_attr->iov_limit", RNICD_ASKED(receive.iov_limit), kAtMost, RNICD_OFFERED(kBuffersMax)},
};

#undef RNICD_ASKED
#undef RNICD_OFFERED

std::optional<Refusal> CheckName(const char* field, const char* asked, const char* offered) {
  if (asked == nullptr || std::strcmp(asked, offered) == 0) {
    return std::nullopt;
  }
  return Refusal{.field = field, .reason = std::string(asked) + ", but only " + offered};
}

Refusal RefusalOf(const Rule& rule, const Hints& hints) {
  char reason[160];
  std::snprintf(reason, sizeof(reason), rule.comparison.format, rule.asked(hints), rule.offered(hints));
  return {.field = rule.field, .reason = reason};
}

}  // namespace

std::optional<Refusal> CheckHints(const Hints& hints, const char* domain) {
  for (const Rule& rule : kRules) {
    if (!rule.comparison.holds(rule.asked(hints), rule.offered(hints))) {
      return RefusalOf(rule, hints);
    }
  }
  if (auto refusal = CheckName("fabric_attr->name", hints.fabric.name, kName)) {
    return refusal;
  }
  return CheckName("domain_attr->name", hints.domain.name, domain);
}

}  // namespace rnicd::fi
