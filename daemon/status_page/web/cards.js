// The four figures at the top, each with its last quarter of an hour.

import {bytes, clock, count, rate} from "./status-text.js";
import {element, setText} from "./status-table.js";

const kSvg = "http://www.w3.org/2000/svg";
// Points of a full line, and the height of the drawing.
const kPoints = 180;
const kHeight = 44;

function svg(name, className) {
  const made = document.createElementNS(kSvg, name);
  made.setAttribute("class", className);
  return made;
}

class Card {
  // `line` names a list of the history; `show` makes a value text.
  constructor(title, line, show) {
    this.title = title;
    this.line = line;
    this.show = show;
    this.values = [];
    this.element = element("article", "card");
    this.value = element("p", "value");
    this.note = element("p", "note");
    this.peak = element("span", "peak");
    this.element.append(element("h2", "", title), this.value, this.note, this.drawing());
  }

  drawing() {
    const frame = element("div", "spark");
    this.svg = svg("svg", "line");
    this.svg.setAttribute("viewBox", `0 0 ${kPoints - 1} ${kHeight}`);
    this.svg.setAttribute("preserveAspectRatio", "none");
    this.svg.setAttribute("role", "img");
    this.area = svg("path", "area");
    this.stroke = svg("path", "stroke");
    this.mark = svg("path", "mark");
    this.svg.append(this.area, this.stroke, this.mark);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(undefined));
    const axis = element("p", "axis");
    axis.append(element("span", "", "15 min ago"), this.peak, element("span", "", "now"));
    frame.append(this.svg, axis);
    return frame;
  }

  update(state, value, note) {
    this.values = state.history[this.line];
    this.interval = state.history.interval_ms;
    this.time = state.time_ms;
    setText(this.value, value);
    setText(this.note, note);
    this.draw();
  }

  draw() {
    const top = Math.max(...this.values, 0);
    const first = kPoints - this.values.length;
    const y = (value) => top > 0 ? kHeight - 1.5 - (value / top) * (kHeight - 5) : kHeight - 1.5;
    const points = this.values.map((value, index) => `${first + index} ${y(value).toFixed(2)}`);
    const path = points.length > 1 ? `M${points.join("L")}` : "";
    this.stroke.setAttribute("d", path);
    this.area.setAttribute("d", path && `${path}V${kHeight}H${first}Z`);
    this.peakText = top > 0 ? `at most ${this.show(top)}` : "";
    if (!this.pointing) setText(this.peak, this.peakText);
    const last = this.values.at(-1) ?? 0;
    this.svg.setAttribute("aria-label",
      `${this.title}, last 15 minutes: now ${this.show(last)}, at most ${this.show(top)}`);
  }

  // Says the value under the pointer in the place of the greatest one.
  point(event) {
    const box = this.svg.getBoundingClientRect();
    const at = event ? Math.round(((event.clientX - box.left) / box.width) * (kPoints - 1)) : -1;
    const index = at - (kPoints - this.values.length);
    this.pointing = index >= 0 && index < this.values.length;
    this.mark.setAttribute("d", this.pointing ? `M${at} 0V${kHeight}` : "");
    const past = (this.values.length - 1 - index) * this.interval;
    setText(this.peak, this.pointing ? `${clock(this.time - past)}: ${this.show(this.values[index])}` : this.peakText);
  }
}

export class Cards {
  constructor(section) {
    this.pinned = new Card("Pinned memory", "pinned_bytes", bytes);
    this.registrations = new Card("Registrations", "registrations", rate);
    this.failures = new Card("Failures", "failures", rate);
    this.sessions = new Card("Sessions", "sessions", count);
    for (const card of [this.pinned, this.registrations, this.failures, this.sessions]) section.append(card.element);
  }

  update(state) {
    const node = new Map(state.node.quotas.map((quota) => [quota.resource, quota]));
    const last = (line) => state.history[line].at(-1) ?? 0;
    const pinned = node.get("pinned_bytes");
    const sessions = node.get("sessions");
    const of = (quota, show) => quota.limit > 0 ? `of ${show(quota.limit)}` : "no limit for the node";
    const connections = `${count(state.node.connections)} connections`;
    const refused = state.failures.reduce((sum, row) => sum + row.count, 0);
    this.pinned.update(state, bytes(pinned.used), of(pinned, bytes));
    this.registrations.update(state, rate(last("registrations")), `among ${rate(last("calls"))} calls`);
    this.failures.update(state, rate(last("failures")), `${count(refused)} in the list below`);
    this.failures.element.classList.toggle("bad", last("failures") > 0);
    this.sessions.update(state, count(sessions.used),
      sessions.limit > 0 ? `${of(sessions, count)}, ${connections}` : connections);
  }
}
