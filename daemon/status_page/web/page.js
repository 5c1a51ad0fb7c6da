// Asks the daemon every two seconds and shows what it says. Whatever a client chose, its label for one, is set as text
// and never as HTML.

import {Cards} from "./status-cards.js";
import {clock, count, duration} from "./status-text.js";
import {setText} from "./status-table.js";
import {adaptersTable, failuresTable, poolTable, sessionsTable, tenantsTable} from "./status-tables.js";
import {connectKeys} from "./status-keys.js";

const kInterval = 2000;
// An answer that takes longer is none.
const kTimeoutMs = 5000;

const byId = (id) => document.getElementById(id);
let state;
let paused = false;
let asking = false;
let timer;

const cards = new Cards(byId("cards"));
const tables = {
  adapters: adaptersTable(byId("adapters")),
  pool: poolTable(byId("pool")),
  tenants: tenantsTable(byId("tenants")),
  sessions: sessionsTable(byId("sessions"), () => state),
  failures: failuresTable(byId("failures"), () => state.time_ms),
};

// For people who do not see the page: said once, when it changes.
function say(text) {
  byId("said").textContent = text;
}

function showHealth({healthy, draining}) {
  const badge = byId("health");
  const text = healthy ? "Healthy" : "Not healthy";
  badge.className = `badge ${healthy ? "good" : "bad"}`;
  if (badge.hidden || badge.textContent !== text) say(`The node is ${text.toLowerCase()}.`);
  badge.hidden = false;
  setText(badge, text);
  if (byId("draining").hidden === draining) say(draining ? "The daemon is draining." : "The daemon drains no more.");
  byId("draining").hidden = !draining;
}

function showOlder(older) {
  byId("older").hidden = older.length === 0;
  setText(byId("older"), older.map(({generation, sessions, left_ms: left}) =>
    `generation ${generation} ends in ${duration(left)} at most, sessions: ${count(sessions)}`).join(" · "));
}

function show() {
  const {node} = state;
  setText(byId("node"), node.name || location.host);
  document.title = `${node.healthy ? "" : "Not healthy: "}${node.name || location.host} – rnicd`;
  setText(byId("facts"), [`rnicd ${node.version}`, `${node.provider} provider`, `up ${duration(node.uptime_ms)}`,
    node.policy_file ? `policy ${node.policy_file}${node.policy_refused ? " (the file as it is now is refused)" : ""}`
      : "no policy file"].join(" · "));
  showHealth(node);
  showOlder(state.older_generations);
  cards.update(state);
  tables.adapters.update(state.adapters, 0);
  byId("pool").hidden = state.memory_pool.length === 0;
  tables.pool.update(state.memory_pool, 0);
  tables.tenants.update(state.tenants.rows, state.tenants.more);
  tables.sessions.update(state.sessions.rows, state.sessions.more);
  tables.failures.update(state.failures, 0);
  setText(byId("updated"), `Updated at ${clock(state.time_ms)}${paused ? ", paused" : ", every 2 s"}`);
}

function showAnswered(answered) {
  const banner = byId("banner");
  document.body.classList.toggle("stale", !answered);
  if (answered && !banner.hidden) say("The daemon answers again.");
  banner.hidden = answered;
  if (!answered) {
    const since = state ? `No answer since ${clock(state.time_ms)}.` : "No answer yet.";
    setText(banner, `${since} Is rnicd running? What you see is old; asking again every 2 s.`);
  }
}

async function ask() {
  const answer = await fetch("/status.json", {cache: "no-store", signal: AbortSignal.timeout(kTimeoutMs)});
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

async function refresh() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  let answered = true;
  try {
    state = await ask();
  } catch {
    answered = false;
  }
  asking = false;
  if (answered) show();
  showAnswered(answered);
  if (!paused && !document.hidden) timer = setTimeout(refresh, kInterval);
}

function pause() {
  paused = !paused;
  byId("paused").hidden = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  setText(byId("pause"), paused ? "Go on" : "Pause");
  say(paused ? "Paused." : "Goes on.");
  if (paused) clearTimeout(timer);
  else refresh();
}

function filter(text) {
  if (!state) return;
  for (const table of Object.values(tables)) table.filter(text);
}

connectKeys({refresh, pause, filter});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused) refresh();
});
refresh();
