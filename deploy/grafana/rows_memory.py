"""The rows about memory: amounts, holders, registrations, failures, and release."""

from panels import (BLUE, FILLING, GREEN, RED, YELLOW, ZERO_IS_GOOD, bars, gauge, heatmap, instant, lines,
                    query, stat, steps, table)
from variables import NODE, TENANT

RATE = "[$__rate_interval]"
NO_DAEMON = "no daemon is scraped"
NO_LIMIT = "no limit is set"
NO_TENANT = "no tenant holds anything"
# Without observations a percentile has no value.
NO_REGISTRATION = "no registration in this time range"


def fleet():
    return [
        stat("Daemons up", "Daemons that answered the last scrape. Normal: one for each node. Fewer: see the runbook.",
             "none",
             query(f"sum(up{{{NODE}}})"), no_value=NO_DAEMON, runbooks=["DaemonDown", "DaemonRestarting"],
             thresholds=steps((None, RED), (1, GREEN))),
        stat("Pinned", "Memory that cannot be swapped, each page once for a tenant. Normal: follows the workloads. It "
             "must fall when they end.", "bytes", query(f"sum(rnicd_pinned_bytes{{{TENANT}}})"), no_value=NO_TENANT,
             runbooks=["PinnedLeakSuspected"]),
        gauge("Fullest node", "The node resource that is nearest to its limit, of all nodes and resources. Above 90 % "
              "all tenants of that node will soon be refused: raise the limit, or move work away.", "percentunit",
              query(f"max(rnicd_node_used_bytes{{{NODE}}} / rnicd_node_limit_bytes{{{NODE}}} or "
                    f"rnicd_node_used_objects{{{NODE}}} / rnicd_node_limit_objects{{{NODE}}})"), no_value=NO_LIMIT,
              runbooks=["NodeQuotaNearFull"]),
        stat("Sessions", "Processes with a session. Normal: follows the workloads.", "none",
             query(f"sum(rnicd_sessions{{{TENANT}}})"), no_value=NO_TENANT),
        stat("Registrations", "Registrations a second, good and bad. Normal: follows the workloads; applications that "
             "register for each transfer show here as thousands.", "ops",
             query(f"sum(rate(rnicd_registrations_total{{{TENANT}}}{RATE}))"), no_value=NO_DAEMON),
        gauge("Failing", "Share of registrations that were refused or failed. Normal: below 1 %. Above 5 %: look at "
              "the row Failures for the reason.", "percentunit",
              query(f'sum(rate(rnicd_registrations_total{{{TENANT},result="error"}}{RATE})) / '
                    f"(sum(rate(rnicd_registrations_total{{{TENANT}}}{RATE})) > 0)"), no_value="no registrations",
              thresholds=steps((None, GREEN), (0.01, YELLOW), (0.05, RED)), runbooks=["RegistrationFailureRatioHigh"]),
        stat("Adapters failing",
             "Cards whose last probe did not register memory. Normal: 0. Otherwise see the row Adapter.",
             "none", query(f"sum(1 - rnicd_adapter_healthy{{{NODE}}})"), no_value="no adapter", thresholds=ZERO_IS_GOOD,
             runbooks=["AdapterUnhealthy"]),
        stat("Draining", "Nodes that take nothing new on, because an operator said so. Normal: 0, but for maintenance. "
             "rnicctl drain --resume ends it.", "none", query(f"sum(rnicd_draining{{{NODE}}})"), no_value=NO_DAEMON,
             thresholds=steps((None, GREEN), (1, YELLOW))),
        lines("Pinned memory by node", "What each node has pinned. Normal: follows the workloads. A line that stays up "
              "when they have ended is a leak: see the row Reclaim and leaks.", "bytes",
              query(f"sum by (instance) (rnicd_pinned_bytes{{{NODE}}})", "{{instance}}"), no_value=NO_DAEMON),
        bars("Use of the nodes' limits", "What all tenants together hold of what a node allows. Above 90 % everyone is "
             "soon refused: raise the limit, or move work away.", "percentunit",
             instant(f"topk($topn, rnicd_node_used_bytes{{{NODE}}} / rnicd_node_limit_bytes{{{NODE}}} or "
                     f"rnicd_node_used_objects{{{NODE}}} / rnicd_node_limit_objects{{{NODE}}})",
                     "{{resource}} on {{instance}}"), no_value=NO_LIMIT, runbooks=["NodeQuotaNearFull"]),
    ]


def tenants():
    ratio = "rnicd_quota_used_{0}{{{1}}} / rnicd_quota_limit_{0}{{{1}}}"
    by_tenant = "sum by (instance, tenant) ({}{{" + TENANT + "}})"
    held = ("rnicd_pinned_bytes", "rnicd_memory_bytes", "rnicd_lingering_bytes", "rnicd_memory_objects",
            "rnicd_memory_regions", "rnicd_sessions", "rnicd_heap_bytes")
    return [
        stat("Tenants", "Tenants with a connection, a session or a grant. Normal: those of the policy that work now.",
             "none",
             query(f"sum(rnicd_tenants{{{NODE}}})"), no_value=NO_DAEMON, width=4),
        stat("Nearest to its limit", "The tenant and resource with the least room left. Above 90 %: talk to its owner, "
             "or raise the limit in the policy file.", "percentunit",
             query("max(" + ratio.format("bytes", TENANT) + " or " + ratio.format("objects", TENANT) + ")"),
             no_value=NO_LIMIT, width=4, thresholds=FILLING, runbooks=["PinnedNearQuota"]),
        stat("Refused in the window",
             "Calls that were refused or failed, of all tenants. Normal: few. The reasons are below.",
             "none", query(f"sum(increase(rnicd_refusals_total{{{TENANT}}}[$interval])) or vector(0)"), no_value="0",
             width=4),
        stat("Memory objects", "Pieces of memory that clients have, registered or not. Normal: follows the sessions.",
             "none",
             query(f"sum(rnicd_memory_objects{{{TENANT}}})"), no_value=NO_TENANT, width=4),
        stat("Memory", "Bytes of those pieces. More than what is pinned: memory that nobody registered.", "bytes",
             query(f"sum(rnicd_memory_bytes{{{TENANT}}})"), no_value=NO_TENANT, width=4),
        stat("Registered", "Bytes of registered pages, each as often as it is registered. More than what is pinned: "
             "the same memory is registered several times.", "bytes", query(f"sum(rnicd_registered_bytes{{{TENANT}}})"),
             no_value=NO_TENANT, width=4),
        bars("Use of limits in bytes",
             "What a tenant holds of what it may. At 100 % it is refused with QUOTA_ reasons.",
             "percentunit", instant("topk($topn, " + ratio.format("bytes", TENANT) + ")",
                                    "{{tenant}} {{resource}} on {{instance}}"), no_value=NO_LIMIT,
             runbooks=["PinnedNearQuota"]),
        bars("Use of limits in numbers", "The same for what is counted: regions, sessions, queue pairs.", "percentunit",
             instant("topk($topn, " + ratio.format("objects", TENANT) + ")", "{{tenant}} {{resource}} on {{instance}}"),
             no_value=NO_LIMIT),
        lines("Pinned by the biggest tenants",
              "Normal: follows their work. It must fall when a tenant's processes end.",
              "bytes", query(f"topk($topn, sum by (tenant) (rnicd_pinned_bytes{{{TENANT}}}))", "{{tenant}}"),
              no_value=NO_TENANT, stacked=True),
        lines("Refusals by tenant and reason", "Which tenant is refused what. Look a reason up in docs/ERRORS.md; "
              "QUOTA_ and RATE_LIMITED are limits of the policy, all others mistakes of the caller or the card.",
              "ops",
              query(f"topk($topn, sum by (tenant, reason) (rate(rnicd_refusals_total{{{TENANT}}}{RATE})))",
                    "{{tenant}}: {{reason}}"), no_value="nobody was refused"),
        table("What tenants hold", "One row for each tenant and node. Sessions without memory, or memory without "
              "sessions, deserve a look with rnicctl inspect. Lingering: released, but a process still has it. "
              "Daemon: its own memory for them, an estimate.", "none",
              [instant(by_tenant.format(name)) for name in held],
              {"tenant": ("Tenant", None), "instance": ("Node", None), "Value #A": ("Pinned", "bytes"),
               "Value #B": ("Memory", "bytes"), "Value #C": ("Lingering", "bytes"), "Value #D": ("Objects", "none"),
               "Value #E": ("Regions", "none"), "Value #F": ("Sessions", "none"),
               "Value #G": ("Daemon", "bytes")}, no_value=NO_TENANT, width=24),
    ]


def pool():
    per_page = "sum by (page_size) ({})"
    rate = "rate(rnicd_memory_pool_{}_total{{{}}}{})"
    return [
        lines("Ready", "Memory that the daemons keep ready (--memory_pool), and what they would have with full pools. "
              "Normal: full but for moments. Empty for long: rnicctl status says why.", "bytes",
              query(per_page.format(f"rnicd_memory_pool_ready_bytes{{{NODE}}}"), "ready, pages of {{page_size}}"),
              query(per_page.format(f"rnicd_memory_pool_wanted_bytes{{{NODE}}}"), "wanted, pages of {{page_size}}"),
              no_value="no daemon has a pool", width=8),
        lines("Hits and misses", "Allocations that the pool served, and that it did not. Misses while memory is ready: "
              "workloads ask for other sizes than those of its files.", "ops",
              query(per_page.format(rate.format("hits", NODE, RATE)), "hits, pages of {{page_size}}"),
              query(per_page.format(rate.format("misses", NODE, RATE)), "misses, pages of {{page_size}}"),
              no_value="no daemon has a pool", width=8),
        lines("Refilling", "Processor time that refilling takes. At most --memory_pool_cpu_percent of a core.",
              "percentunit", query(f"rate(rnicd_memory_pool_refill_seconds_total{{{NODE}}}{RATE})", "{{instance}}"),
              no_value="no daemon has a pool", width=8),
    ]


def registration():
    duration = "rnicd_registration_duration_seconds"
    return [
        heatmap("How long registrations take", "How many registrations took how long. Normal: a narrow band far below "
                "a second. A second band above it is a card or a worker queue that falls behind.", "s",
                query(f"sum by (le) (increase({duration}_bucket{{{NODE}}}{RATE}))", "{{le}}"), no_value=NO_REGISTRATION,
                runbooks=["RegistrationLatencyHigh"]),
        lines("99th percentile by size", "99 of 100 registrations of that size were faster. Normal: below 100 ms up to "
              "1 MiB, below 5 s above.", "s",
              query(f"histogram_quantile(0.99, sum by (size_class, le) (rate({duration}_bucket{{{NODE}}}{RATE})))",
                    "{{size_class}}"), no_value=NO_REGISTRATION, height=9, runbooks=["RegistrationLatencyHigh"]),
        lines("Registrations by size", "What sizes clients register. Many small ones cost more than few large ones; "
              "fast registration is made for them.", "ops",
              query(f"sum by (size_class) (rate({duration}_count{{{NODE}}}{RATE}))", "{{size_class}}"),
              no_value=NO_REGISTRATION, width=8, stacked=True),
        lines("Mean time", "All the time that registrations took, divided by their number. Compare it with the "
              "percentile: far apart means few very slow ones.", "s",
              query(f"sum(rate({duration}_sum{{{NODE}}}{RATE})) / (sum(rate({duration}_count{{{NODE}}}{RATE})) > 0)",
              "mean"),
              no_value=NO_REGISTRATION, width=8),
        lines("Registrations and deregistrations", "Both by result. Normal: the two are alike over time; what is not "
              "deregistered is taken back when its session ends.", "ops",
              query(f"sum by (result) (rate(rnicd_registrations_total{{{TENANT}}}{RATE}))", "registered: {{result}}"),
              query(f"sum by (result) (rate(rnicd_deregistrations_total{{{TENANT}}}{RATE}))",
              "deregistered: {{result}}"),
              no_value=NO_DAEMON, width=8),
        lines("Registered pages by page size", "4 KiB pages that regions and mappings hold, by the real size of the "
              "pages behind them. Large pages register faster.", "none",
              query(f"sum by (page_size, kind) (rnicd_registered_pages{{{TENANT}}})",
              "{{kind}}, pages of {{page_size}}"),
              no_value=NO_TENANT, width=8, stacked=True),
        lines("Fast registrations", "By the way the card carried them out. Normal: one engine, and no error. compose "
              "costs most (provider/verbs/README.md).", "ops",
              query(f"sum by (engine, result) (rate(rnicd_fast_registrations_total{{{NODE}}}{RATE}))",
                    "{{engine}}: {{result}}"), no_value=NO_DAEMON, width=8),
        lines("Memory regions by adapter",
              "Regions that clients have, registered or not. Normal: follows the sessions.",
              "none", query(f"sum by (adapter, kind) (rnicd_memory_regions{{{TENANT}}})", "{{adapter}}, {{kind}}"),
              no_value=NO_TENANT, width=8),
    ]


def failures():
    return [
        lines("Failed registrations by reason", "Reasons are those of docs/ERRORS.md. quota_ is a limit, device_ the "
              "card, everything else a mistake of the caller.", "ops",
              query(f"topk($topn, sum by (reason) (rate(rnicd_registration_failures_total{{{NODE}}}{RATE})) > 0)",
                    "{{reason}}"), no_value="no registration failed", stacked=True,
              runbooks=["RegistrationFailureRatioHigh"]),
        lines("Failure ratio by tenant", "Share of each tenant's registrations that failed. One tenant high: its own "
              "program or its limits. All high: the card or the node's limits.", "percentunit",
              query(f'topk($topn, sum by (tenant) (rate(rnicd_registrations_total{{{TENANT},result="error"}}{RATE})) / '
                    f"(sum by (tenant) (rate(rnicd_registrations_total{{{TENANT}}}{RATE})) > 0))", "{{tenant}}"),
              no_value=NO_REGISTRATION, high=1, limit=0.05, runbooks=["RegistrationFailureRatioHigh"]),
        lines("Calls that failed, by code", "gRPC codes of docs/RPCS.md's calls. INTERNAL or UNAVAILABLE are ours or "
              "the card's; the others are the caller's.", "ops",
              query(f'sum by (code) (rate(rnicd_rpcs_total{{{NODE},code!="OK"}}{RATE})) > 0', "{{code}}"),
              no_value="no call failed"),
        lines("Connections turned away", "By reason. Normal: none. Limits: see the runbook. no_identity and "
              "not_an_operator are callers that may not do what they try.", "ops",
              query(f"sum by (reason) (rate(rnicd_connections_refused_total{{{NODE}}}{RATE}))", "{{reason}}"),
              no_value=NO_DAEMON, runbooks=["ConnectionsRefused", "AttestationRefusalsHigh"]),
    ]


def reclaim():
    return [
        stat("Not taken back", "Objects that could not be taken back when their session ended, in the window. Normal: "
             "0. Otherwise memory stays pinned until the daemon restarts.", "none",
             query(f"sum(increase(rnicd_reclaim_failures_total{{{NODE}}}[$interval]))"), no_value=NO_DAEMON, width=6,
             thresholds=ZERO_IS_GOOD, runbooks=["ReclaimFailed"]),
        stat("Nodes with a suspected leak",
             "Nodes whose card holds registrations although no session is there. Normal: 0.",
             "none", query(f"count(rnicd_device_regions{{{NODE}}} > 0 unless on (job, instance) "
                           f"sum by (job, instance) (rnicd_sessions{{{NODE}}}) > 0) "
                           f"or 0 * count(rnicd_device_regions{{{NODE}}})"),
             no_value=NO_DAEMON, width=6, thresholds=ZERO_IS_GOOD, runbooks=["PinnedLeakSuspected"]),
        stat("Taken back in the window", "Pinned bytes that sessions still held when they ended. Normal: some, as "
             "processes that exit leave it to the daemon.", "bytes",
             query(f"sum(increase(rnicd_reclaimed_bytes_total{{{NODE}}}[$interval]))"), no_value=NO_DAEMON, width=6,
             thresholds=steps((None, BLUE))),
        stat("Sessions lost in the window", "Sessions whose process died or whose connection broke. Normal: few beside "
             "those that closed.", "none",
             query(f'sum(increase(rnicd_sessions_ended_total{{{NODE},cause=~"process_exited|connection_lost"}}'
                   "[$interval]))"),
             no_value=NO_DAEMON, width=6),
        lines("Registrations in the cards, and regions", "What lives in the cards beside what clients have. Normal: "
              "not more in the cards than regions and mappings, and 0 when no session is there.", "none",
              query(f"sum(rnicd_device_regions{{{NODE}}})", "in the cards"),
              query(f"sum(rnicd_memory_regions{{{NODE}}})", "regions of clients"), no_value=NO_DAEMON,
              runbooks=["PinnedLeakSuspected"]),
        lines("Sessions opened and ended", "By cause of the end. Many process_exited: clients crash or do not close. "
              "evicted and grant_ are operators.", "ops",
              query(f"sum(rate(rnicd_sessions_opened_total{{{NODE}}}{RATE}))", "opened"),
              query(f"sum by (cause) (rate(rnicd_sessions_ended_total{{{NODE}}}{RATE}))", "ended: {{cause}}"),
              no_value=NO_DAEMON),
        lines("Bytes taken back by cause", "Pinned bytes that sessions left behind. A steady flow by process_exited is "
              "work that clients could do themselves by closing.", "Bps",
              query(f"sum by (cause) (rate(rnicd_reclaimed_bytes_total{{{NODE}}}{RATE}))", "{{cause}}"),
              no_value=NO_DAEMON, stacked=True),
        lines("Regions taken back by cause", "The same in memory regions.", "ops",
              query(f"sum by (cause) (rate(rnicd_reclaimed_regions_total{{{NODE}}}{RATE}))", "{{cause}}"),
              no_value=NO_DAEMON, stacked=True),
    ]
