// What a session holds, below its row: regions, listeners and connectors.

import {element} from "./status-table.js";
import {bytes, count, duration} from "./status-text.js";

const kRegionTitles = ["Region", "Adapter", "Kind", "State", "Length", "Pages", "Page size", "Rights"];

function regionCells(region) {
  const registered = region.length > 0;
  return [region.id, region.adapter, region.kind, region.state, registered ? bytes(region.length) : "–",
    registered ? count(region.pages) : "–", region.page_bytes > 0 ? bytes(region.page_bytes) : "–",
    region.rights || (registered ? "local read" : "–")];
}

const kEndTitles = ["Connection", "Adapter", "Side", "State", "For", "Local", "Peer or name", "Private data or requests"];

function endCells(end) {
  const own = [end.id, end.adapter, end.side, end.state];
  return end.side === "listener"
    ? [...own, "–", end.local, end.listener || "–", `${count(end.reported)} reported, ${count(end.refused)} refused`]
    : [...own, duration(end.state_ms), end.local, end.peer,
      `${bytes(end.sent_bytes)} sent, ${bytes(end.received_bytes)} received`];
}

function tableOf(name, titles, rows) {
  const table = element("table", `held ${name}`);
  const head = table.createTHead().insertRow();
  for (const title of titles) {
    const cell = element("th", "", title);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((text, index) => {
      const cell = line.insertCell();
      cell.textContent = text;
      cell.dataset.label = titles[index];
    });
  }
  return table;
}

// Drawn anew only when something in it changed.
function draw(part, facts, make) {
  const drawn = JSON.stringify(facts);
  if (part.dataset.drawn === drawn) return;
  part.dataset.drawn = drawn;
  part.replaceChildren(...make());
}

function regionParts(session, regions) {
  const parts = [];
  if (session.pod) parts.push(element("p", "note", `Pod ${session.pod}`));
  if (regions.length > 0) parts.push(tableOf("regions", kRegionTitles, regions.map(regionCells)));
  if (regions.length === 0 && session.regions === 0) parts.push(element("p", "note", "This session has no region."));
  if (regions.length < session.regions) {
    parts.push(element("p", "note", `${count(regions.length)} of ${count(session.regions)} regions are shown; ` +
      `rnicctl inspect ${session.id} shows all.`));
  }
  return parts;
}

function endParts(ends, more) {
  const parts = ends.length > 0 ? [tableOf("ends", kEndTitles, ends.map(endCells))] : [];
  if (more > 0) {
    parts.push(element("p", "note", "Not all connections are shown; rnicctl listeners and rnicctl connections do."));
  }
  return parts;
}

// `state` is the newest one.
export function drawHeld(cell, session, state) {
  if (!cell.firstChild) cell.append(element("div"), element("div"));
  const ofSession = (list) => list.rows.filter((row) => row.session === session.id);
  const [regions, ends] = [ofSession(state.regions), ofSession(state.ends)];
  draw(cell.children[0], [regions, session.regions, session.pod], () => regionParts(session, regions));
  draw(cell.children[1], [ends, state.ends.more], () => endParts(ends, state.ends.more));
}
