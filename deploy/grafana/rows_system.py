"""The rows about everything besides memory: tokens, queue pairs, cards, Kubernetes, the daemon itself."""

from panels import (GREEN, RED, YELLOW, ZERO_IS_GOOD, instant, lines, query, stat, states, steps, table,
                    value_map)
from variables import ADAPTER, NODE, TENANT

RATE = "[$__rate_interval]"
NO_DAEMON = "no daemon is scraped"
NO_ADAPTER = "no adapter"
NO_WORKLOAD = "no device plugin has said which container holds what"
CARDS_ONLY = "only cards of the kernel have this (--provider=verbs)"
HEALTH = value_map((0, "failing", RED), (1, "works", GREEN))


def tokens():
    return [
        lines("Tokens issued", "Local and remote tokens handed to clients. Normal: follows the registrations. Remote "
              "ones let peers write; a client that asks for many is worth a look.", "ops",
              query(f"sum by (kind) (rate(rnicd_tokens_issued_total{{{NODE}}}{RATE}))", "{{kind}}"),
              no_value=NO_DAEMON),
        lines("Tokens revoked by cause", "Pairs of tokens that died. Normal: as many as were issued, over time; "
              "deregister and close are the client's doing, the other causes ends of sessions.", "ops",
              query(f"sum by (cause) (rate(rnicd_tokens_revoked_total{{{NODE}}}{RATE}))", "{{cause}}"),
              no_value=NO_DAEMON, stacked=True),
    ]


def queue_pairs():
    completions = f"rate(rnicd_completions_total{{{NODE}}}{RATE})"
    failed = f'rate(rnicd_completions_total{{{NODE},result="error"}}{RATE})'
    return [
        lines("Queue pairs by state", "Normal: most are ready_to_send. Many in error: peers went away, and clients did "
              "not close theirs.", "none", query(f"sum by (state) (rnicd_queue_pairs{{{ADAPTER}}})", "{{state}}"),
              no_value=NO_ADAPTER, width=8, stacked=True),
        lines("Completions by operation", "Requests that the cards finished, good and bad.", "ops",
              query(f"sum by (operation) ({completions})", "{{operation}}"), no_value=NO_ADAPTER, width=8),
        lines("Requests that failed", "Share of completions that were errors. Cancelled ones, of queue pairs that were "
              "closed, do not count. Normal: 0. Errors of read and write: a token is dead, or the peer is gone.",
              "percentunit",
              query(f"sum by (operation) ({failed}) / (sum by (operation) ({completions}) > 0)", "{{operation}}"),
              no_value="no request in this time range", width=8, high=1),
    ]


def rings():
    per_second = "rate(rnicd_ring_{}_total{{{}}}{})"
    entries = per_second.format("entries", NODE, RATE)
    return [
        lines("Rings", "Rings that clients have open. Normal: one for each session of librnicd.", "none",
              query(f'rnicd_node_used_objects{{{NODE},resource="rings"}}', "{{instance}}"), no_value=NO_DAEMON, width=6),
        lines("Through rings", "Work requests that came through rings, and the entries that brought them. Far apart: "
              "clients post chains, which is cheap.", "ops",
              query(f"sum({per_second.format('work_requests', NODE, RATE)})", "work requests"),
              query(f"sum({entries})", "entries"), no_value=NO_DAEMON, width=6),
        lines("Entries that needed a doorbell", "Share of entries for which a ring's thread had to be woken. Near 1: "
              "clients send one request at a time, or share a processor with the thread.", "percentunit",
              query(f"sum({per_second.format('doorbells', NODE, RATE)}) / (sum({entries}) > 0)", "of entries"),
              no_value="no entry in this time range", width=6),
        lines("Spinning", "Processor time that the ring threads spend looking at empty rings. At most "
              "--ring_spin_percent of one processor.", "percentunit",
              query(f"rate(rnicd_ring_spinning_seconds_total{{{NODE}}}{RATE})", "{{instance}}"), no_value=NO_DAEMON,
              width=6),
        lines("Held back", "Rings that wait because their session is above its rate, rings that their clients woke without "
              "an entry, and entries that were refused (rnicd_refusals_total has the reasons). Normal: near 0.", "ops",
              query(f"sum({per_second.format('pauses', NODE, RATE)})", "rings above their rate"),
              query(f"sum({per_second.format('empty_wakeups', NODE, RATE)})", "woken without an entry"),
              query(f"sum({per_second.format('refused_entries', NODE, RATE)})", "refused entries"), no_value=NO_DAEMON,
              width=6),
        stat("Broken rings", "Rings that ended because their client wrote impossible indices, since the daemon "
                "started. Normal: 0. More: a bug in a client, or an attack; the audit log names it (ring.end).", "none",
             query(f"rnicd_rings_broken_total{{{NODE}}}", "{{instance}}"), no_value=NO_DAEMON),
    ]


def adapters():
    events = f"sum by (adapter, event) (increase(rnicd_adapter_events_total{{{ADAPTER}}}[$interval])) > 0"
    return [
        states("Health", "Whether the last probe registered memory with the card and took it back in time. Normal: "
               "works. Failing: every client of that card fails too.", "none",
               query(f"rnicd_adapter_healthy{{{ADAPTER}}}", "{{adapter}} on {{instance}}"), HEALTH, no_value=NO_ADAPTER,
               runbooks=["AdapterUnhealthy"], thresholds=steps((None, RED), (1, GREEN))),
        states("Port", "Whether the kernel says that the card's port is active. Normal: active. Otherwise nothing "
               "reaches peers: cable, switch, or ip link set up.", "none",
               query(f'rnicd_port_state{{{ADAPTER},state="active"}}', "{{adapter}} on {{instance}}"),
               value_map((0, "not active", RED), (1, "active", GREEN)), no_value=CARDS_ONLY,
               runbooks=["AdapterPortDown"],
               thresholds=steps((None, RED), (1, GREEN))),
        lines("Duration of a probe", "What it took to register a page and take it back. Normal: below a millisecond. "
              "Rising: the card or its driver is busy; at 3 s the card counts as failing.", "s",
              query(f"rnicd_adapter_probe_duration_seconds{{{ADAPTER}}}", "{{adapter}} on {{instance}}"),
              no_value=NO_ADAPTER, width=8),
        lines("Probes", "By result. Normal: one a second for each card, all ok.", "ops",
              query(f"sum by (adapter, result) (rate(rnicd_adapter_probes_total{{{ADAPTER}}}{RATE}))",
                    "{{adapter}}: {{result}}"), no_value=NO_ADAPTER, width=8, runbooks=["AdapterUnhealthy"]),
        lines("What the cards said", "Events in the window: port up and down, address changed, removed. Normal: none.",
              "none",
              query(events, "{{adapter}}: {{event}}"), no_value="no event in this time range", width=8, points="auto",
              runbooks=["AdapterPortDown"]),
        table("Adapters", "The cards of each node. -1: the card belongs to no NUMA node.", "none",
              [instant(f"rnicd_adapter_info{{{ADAPTER}}}")],
              {"instance": ("Node", None), "adapter": ("Adapter", None), "provider": ("Provider", None),
               "numa_node": ("NUMA node", None)}, no_value=NO_ADAPTER, hidden=("Value", "job")),
        lines("The kernel's counters that moved", "Rates of the port's own counters, as the driver names them. Their "
              "units differ. Look for errors, discards and retries.", "cps",
              query(f"topk($topn, rate(rnicd_port_statistics_total{{{ADAPTER}}}{RATE}) > 0)",
              "{{adapter}}: {{statistic}}"),
              no_value=CARDS_ONLY),
    ]


def kubernetes():
    refused = f'rnicd_connections_refused_total{{{NODE},reason=~"no_identity|not_an_operator"}}'
    updated = f"rnicd_pods_updated_timestamp_seconds{{{NODE}}}"
    return [
        stat("Pods known", "Pods of the nodes that the daemons were told of. Normal: those that asked for RDMA. 0 "
             "without Kubernetes.", "none", query(f"sum(rnicd_pods{{{NODE}}})"), no_value=NO_DAEMON, width=6),
        stat("Oldest news of pods", "How long ago a daemon was last told of its pods. Normal: below a minute. Above 5 "
             "minutes new pods are not known, and are turned away or fall into the default tenant.", "s",
             query(f"max(time() - ({updated} > 0))"), no_value="no daemon was told of pods", width=6,
             thresholds=steps((None, GREEN), (120, YELLOW), (300, RED)), runbooks=["KubeletRegistrationLost"]),
        stat("Grants", "Grants that are in force. Normal: one for each pod that was given one.", "none",
             query(f"sum(rnicd_grants{{{NODE}}})"), no_value=NO_DAEMON, width=6),
        stat("Refused attestations in the window", "Callers whose identity could not be told, or who tried the "
             "operators' socket without being one. Normal: 0.", "none", query(f"sum(increase({refused}[$interval]))"),
             no_value=NO_DAEMON,
             width=6, thresholds=ZERO_IS_GOOD, runbooks=["AttestationRefusalsHigh"]),
        lines("Pods known by node", "A line that falls to 0 while pods run: the device plugin lost the kubelet.",
              "none",
              query(f"rnicd_pods{{{NODE}}}", "{{instance}}"), no_value=NO_DAEMON, runbooks=["KubeletRegistrationLost"]),
        lines("Refused attestations",
              "By reason. A steady rate is a program that is set up wrong, or somebody who tries doors.",
              "ops", query(f"sum by (instance, reason) (rate({refused}{RATE}))", "{{instance}}: {{reason}}"),
              no_value=NO_DAEMON, runbooks=["AttestationRefusalsHigh"]),
        lines("Refusals and storms at doors",
              "By tenant. A line that stays up is a container that connects in a loop: it costs itself, not the others.",
              "ops",
              query(f"sum by (instance, tenant) (rate(rnicd_door_refusals_total{{{TENANT}}}{RATE}))",
                    "{{instance}}: {{tenant}} refused"),
              query(f"sum by (instance, tenant) (rate(rnicd_door_storms_total{{{TENANT}}}{RATE}))",
                    "{{instance}}: {{tenant}} storms"), no_value="nobody was refused at a door"),
        *_workloads(),
    ]


def _workloads():
    pinned = (f"rnicd_pinned_bytes{{{TENANT}}} * on (job, instance, tenant) "
              f"group_left (namespace, pod, container) rnicd_tenant_info{{{TENANT}}}")
    return [
        table("Workloads", "Which containers hold pinned memory, and how much. Only tenants with a name of their own "
              "(--metrics_max_tenants), and only those that the device plugin has named.", "none", [instant(pinned)],
              {"namespace": ("Namespace", None), "pod": ("Pod", None), "container": ("Container", None),
               "tenant": ("Tenant", None), "instance": ("Node", None), "Value": ("Pinned", "bytes")},
              no_value=NO_WORKLOAD, hidden=("job",)),
        lines("Allocated devices by resource", "Devices of the kubelet's that grants cover. Normal: follows the pods "
              "that ask for them, and falls within a minute or two of their end. A line that only grows: the plugin "
              "does not learn from the kubelet who is gone.", "none",
              query(f"sum by (resource) (rnicd_tenant_devices{{{TENANT}}})", "{{resource}}"), no_value=NO_WORKLOAD,
              stacked=True),
    ]


def _daemon_numbers():
    return [
        stat("Shortest uptime",
             "Of all daemons. Small again and again: one restarts. Its clients lost their memory each time.",
             "s", query(f"min(rnicd_uptime_seconds{{{NODE}}})"), no_value=NO_DAEMON, width=4,
             thresholds=steps((None, YELLOW), (600, GREEN)), runbooks=["DaemonRestarting"]),
        stat("Restarts in the window", "Starts of daemons. Normal: 0, but for updates.", "none",
             query(f"sum(changes(process_start_time_seconds{{{NODE}}}[$interval]))"), no_value=NO_DAEMON, width=4,
             thresholds=steps((None, GREEN), (1, YELLOW), (3, RED)), runbooks=["DaemonRestarting"]),
        stat("Connections", "On the workload and admin sockets. Normal: about one for each session.", "none",
             query(f"sum(rnicd_connections{{{NODE}}})"), no_value=NO_DAEMON, width=4),
        stat("Descriptors", "Open descriptors of the daemon that is nearest to its limit. Above 80 %: see the runbook.",
             "percentunit", query(f"max(process_open_fds{{{NODE}}} / process_max_fds{{{NODE}}})"), no_value=NO_DAEMON,
             width=4, low=0, high=1, thresholds=steps((None, GREEN), (0.6, YELLOW), (0.8, RED)),
             runbooks=["DescriptorsNearLimit"]),
        stat("Lines lost in the window", "Decisions that could not be written down, and lines of the log. Normal: 0. "
             "Otherwise the disk of --audit_log is full or too slow, or nobody reads stderr.", "none",
             query(f"sum(increase(rnicd_audit_lines_lost_total{{{NODE}}}[$interval])"
                   f" + increase(rnicd_log_lines_dropped_total{{{NODE}}}[$interval]))"), no_value=NO_DAEMON, width=4,
             thresholds=ZERO_IS_GOOD, runbooks=["AuditLinesLost"]),
        stat("Versions", "How many versions run at once. Normal: 1, but while an update is rolled out.", "none",
             query(f"count(count by (version) (rnicd_build_info{{{NODE}}}))"), no_value=NO_DAEMON, width=4,
             thresholds=steps((None, GREEN), (2, YELLOW))),
    ]


def _generations():
    legend = "{{instance}}: generation {{generation}}"
    none_older = "no replaced daemon serves sessions"
    return [
        lines("Generations", "Daemons of a node that serve sessions. Normal: 1, and more after an upgrade until the "
              "sessions of before have ended.", "none", query(f"rnicd_generations{{{NODE}}}", "{{instance}}"),
              no_value=NO_DAEMON, width=8),
        lines("Sessions of replaced daemons", "Normal: they fall to 0, and the daemon ends.", "none",
              query(f"rnicd_generation_sessions{{{NODE}}}", legend), no_value=none_older, width=8),
        lines("Time left to replaced daemons", "What has not ended by then is ended.", "s",
              query(f"rnicd_generation_deadline_seconds{{{NODE}}}", legend), no_value=none_older, width=8,
              runbooks=["GenerationEndsSoon"]),
    ]


def daemon():
    return _daemon_numbers() + [
        lines("Processor time",
              "Processors that a daemon uses. Normal: far below 1. All calls in the graph below are paid here.",
              "none", query(f"rate(process_cpu_seconds_total{{{NODE}}}{RATE})", "{{instance}}"), no_value=NO_DAEMON,
              width=8),
        lines("Resident memory", "Of the daemon itself and of the memory files that it fills for clients. Steadily "
              "rising without sessions: a leak, restart it and report it.", "bytes",
              query(f"process_resident_memory_bytes{{{NODE}}}", "{{instance}}"), no_value=NO_DAEMON, width=8),
        lines("Threads", "Normal: a few dozen, and steady.", "none", query(f"process_threads{{{NODE}}}",
              "{{instance}}"),
              no_value=NO_DAEMON, width=8),
        lines("Calls by method", "The methods that are called most. docs/RPCS.md explains them.", "ops",
              query(f"topk($topn, sum by (method) (rate(rnicd_rpcs_total{{{NODE}}}{RATE})) > 0)", "{{method}}"),
              no_value="no call in this time range"),
        lines("99th percentile of calls", "99 of 100 calls of that method were faster; streams do not count. Normal: a "
              "few milliseconds. AllocateMemory takes longer: it fills the memory.", "s",
              query("topk($topn, histogram_quantile(0.99, sum by (method, le) (rate(rnicd_rpc_duration_seconds_bucket"
                    f"{{{NODE}}}{RATE}))) > 0)", "{{method}}"), no_value="no call in this time range"),
        *_generations(),
        table("Daemons", "Which version runs where.", "none", [instant(f"rnicd_build_info{{{NODE}}}")],
              {"instance": ("Node", None), "job": ("Job", None), "version": ("Version", None)}, no_value=NO_DAEMON,
              width=24, height=6, hidden=("Value",)),
    ]
