// The four tables: their columns, and what is more than text in them.

import {amount, bytes, clock, count, duration, resourceName, uid} from "./status-text.js";
import {drawHeld} from "./status-held.js";
import {Table, element, setText} from "./status-table.js";

// From here on a quota is shown as nearly used up.
const kNear = 0.8;

const share = (quota) => quota.limit > 0 ? quota.used / quota.limit : 0;

function fullness(quota) {
  if (quota.limit === 0) return ["free", ""];
  if (quota.used >= quota.limit) return ["full", "at its limit"];
  return share(quota) >= kNear ? ["near", "near its limit"] : ["free", ""];
}

const quotaText = (quota) => quota.limit > 0
  ? `${amount(quota.resource, quota.used)} of ${amount(quota.resource, quota.limit)}`
  : `${amount(quota.resource, quota.used)}, no limit`;

// The state stands in words beside the bar, so that nothing hangs on colour alone.
function drawQuota(cell, quota, name) {
  if (!cell.firstChild) {
    const track = element("div", "bar");
    track.setAttribute("role", "meter");
    track.append(element("div", "fill"));
    cell.append(element("span", "amount"), element("span", "state"), track);
  }
  const [amountText, state, track] = cell.children;
  const [level, words] = fullness(quota);
  setText(amountText, (name ? `${name}: ` : "") + quotaText(quota));
  setText(state, words);
  cell.classList.remove("free", "near", "full");
  cell.classList.add("quota", level);
  track.hidden = quota.limit === 0;
  track.setAttribute("aria-label", resourceName(quota.resource));
  track.setAttribute("aria-valuemin", "0");
  track.setAttribute("aria-valuemax", String(quota.limit));
  track.setAttribute("aria-valuenow", String(quota.used));
  track.setAttribute("aria-valuetext", quotaText(quota));
  track.firstChild.style.width = `${Math.min(100, share(quota) * 100).toFixed(1)}%`;
}

const quotaOf = (tenant, resource) => tenant.quotas.find((quota) => quota.resource === resource);

// The fullest one that has no column of its own.
function tightest(tenant) {
  const others = tenant.quotas.filter((quota) => quota.limit > 0 &&
    quota.resource !== "pinned_bytes" && quota.resource !== "sessions");
  return others.reduce((most, quota) => share(quota) > share(most) ? quota : most, others[0]);
}

function title(quota) {
  const name = resourceName(quota.resource);
  return name[0].toUpperCase() + name.slice(1);
}

function tightestText(tenant) {
  const quota = tightest(tenant);
  return quota ? `${title(quota)}: ${quotaText(quota)}` : "no other limit";
}

function drawTightest(cell, tenant) {
  const quota = tightest(tenant);
  if (quota) {
    if (cell.children.length === 1) cell.replaceChildren();
    drawQuota(cell, quota, title(quota));
  } else {
    cell.classList.remove("quota");
    cell.replaceChildren(element("span", "muted", tightestText(tenant)));
  }
}

export function adaptersTable(section) {
  return new Table(section, {
    key: (row) => row.name,
    empty: "The provider has no adapter.",
    sortBy: 0,
    columns: [
      {title: "Adapter", text: (row) => row.name, className: "name"},
      {
        title: "Health",
        text: (row) => row.healthy ? "healthy" : "not healthy",
        draw: (cell, row) => {
          const badge = cell.firstChild ?? cell.appendChild(element("span"));
          badge.className = `badge ${row.healthy ? "good" : "bad"}`;
          setText(badge, row.healthy ? "Healthy" : "Not healthy");
        },
      },
      {title: "Remark", text: (row) => row.remark || "–", className: "wide"},
    ],
  });
}

export function poolTable(section) {
  return new Table(section, {
    key: (row) => row.page_bytes,
    empty: "The daemon keeps no memory ready (--memory_pool).",
    sortBy: 0,
    columns: [
      {title: "Pages of", text: (row) => bytes(row.page_bytes), sort: (row) => row.page_bytes, className: "name"},
      {
        title: "Ready", className: "number", down: true,
        sort: (row) => row.ready_bytes,
        text: (row) => `${bytes(row.ready_bytes)} of ${bytes(row.wanted_bytes)}`,
      },
      {title: "Hits", className: "number", down: true, sort: (row) => row.hits, text: (row) => count(row.hits)},
      {title: "Misses", className: "number", down: true, sort: (row) => row.misses, text: (row) => count(row.misses)},
    ],
  });
}

export function tenantsTable(section) {
  const door = ({ connections, refused, storms }) =>
    `door: ${connections} connected, ${refused} refused, ${storms} storms`;
  const origin = (row) => row.door ? door(row.door)
    : row.by_grant ? "grant" : row.rule ? `rule ${row.rule}` : "no policy";
  return new Table(section, {
    key: (row) => row.name,
    empty: "No tenant yet. One appears with its first connection or grant.",
    sortBy: 0,
    columns: [
      {title: "Tenant", text: (row) => row.name, className: "name"},
      {title: "By", text: origin, className: "muted"},
      {
        title: "Sessions", className: "number", down: true,
        sort: (row) => quotaOf(row, "sessions").used,
        text: (row) => {
          const {used, limit} = quotaOf(row, "sessions");
          return limit > 0 ? `${count(used)} of ${count(limit)}` : count(used);
        },
      },
      {
        title: "Pinned memory", down: true,
        sort: (row) => share(quotaOf(row, "pinned_bytes")) || quotaOf(row, "pinned_bytes").used / 2 ** 63,
        text: (row) => quotaText(quotaOf(row, "pinned_bytes")),
        draw: (cell, row) => drawQuota(cell, quotaOf(row, "pinned_bytes")),
      },
      {
        title: "Fullest other limit", down: true,
        sort: (row) => tightest(row) ? share(tightest(row)) : -1,
        text: tightestText, draw: drawTightest,
      },
    ],
  });
}

// A column of amounts, of which the greatest matter most.
function figure(title, show, value) {
  return {title, className: "number", down: true, sort: value, text: (row) => show(value(row))};
}

// `state` answers the newest one.
export function sessionsTable(section, state) {
  return new Table(section, {
    key: (row) => row.id,
    empty: "No session yet. Try: rnicctl register --size 64MiB --hold forever",
    sortBy: 6,
    detail: (cell, row) => drawHeld(cell, row, state()),
    columns: [
      {title: "Session", text: (row) => row.id, className: "id"},
      {
        title: "Label", text: (row) => row.ending ? `${row.label} (ending)` : row.label || "–",
        className: "name wide",
      },
      {title: "Tenant", text: (row) => row.tenant},
      {title: "PID", text: (row) => String(row.pid), sort: (row) => row.pid, className: "number"},
      {title: "UID", text: (row) => uid(row.uid), sort: (row) => row.uid, className: "number"},
      {title: "Pod", text: (row) => row.pod ? row.pod.slice(0, 8) : "–", sort: (row) => row.pod, className: "muted"},
      {title: "Age", text: (row) => duration(row.age_ms), sort: (row) => row.age_ms, className: "number"},
      figure("Pinned", bytes, (row) => row.pinned_bytes),
      figure("Registered", bytes, (row) => row.registered_bytes),
      figure("Regions", count, (row) => row.regions),
      figure("Rings", count, (row) => row.rings),
    ],
  });
}

function drawReason(cell, row) {
  if (!cell.firstChild) cell.append(element("code"), element("span", "sentence"));
  setText(cell.children[0], row.reason);
  setText(cell.children[1], row.sentence);
}

// `now` answers the daemon's time, which a browser of another clock shares.
export function failuresTable(section, now) {
  const ago = (row) => `${duration(now() - row.last_ms)} ago`;
  return new Table(section, {
    key: (row) => row.number,
    empty: "Nothing was refused and nothing failed since the daemon started.",
    sortBy: 0,
    down: true,
    columns: [
      {
        title: "Last", text: (row) => `${clock(row.last_ms)} ${ago(row)}`, sort: (row) => row.last_ms, down: true,
        draw: (cell, row) => {
          if (!cell.firstChild) cell.append(element("span"), element("span", "sentence"));
          setText(cell.children[0], clock(row.last_ms));
          setText(cell.children[1], ago(row));
        },
      },
      {title: "Times", text: (row) => `×${count(row.count)}`, sort: (row) => row.count, className: "number", down: true},
      {title: "What", text: (row) => row.what, className: "name"},
      {
        title: "Reason", text: (row) => `${row.reason} ${row.sentence}`, sort: (row) => row.reason, draw: drawReason,
        className: "reason wide",
      },
      {title: "Field or note", text: (row) => [row.field, row.note].filter(Boolean).join("; ") || "–"},
      {title: "Tenant", text: (row) => row.tenant || "–"},
      {title: "PID", text: (row) => row.pid > 0 ? String(row.pid) : "–", sort: (row) => row.pid, className: "number"},
      {title: "UID", text: (row) => row.pid > 0 ? uid(row.uid) : "–", sort: (row) => row.uid, className: "number"},
    ],
  });
}
