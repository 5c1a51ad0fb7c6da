// A table that is drawn again and again: rows keep their elements, and with them focus, selection and what is open.

export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Only what changed is touched, so that a selection of text survives.
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

// A column: {title, text(row), sort(row)?, className?, draw(cell, row)?, down?}
//   text  what is filtered by, and shown unless `draw` shows it
//   down  the first click on its head sorts the greatest first
// Options: {columns, key(row), empty, sortBy, down, detail?(cell, row), opener?(cell, row)}
export class Table {
  constructor(section, options) {
    this.options = options;
    this.section = section;
    this.counter = section.querySelector(".count");
    this.sorting = {column: options.sortBy, down: options.down ?? false};
    this.rows = [];
    this.more = 0;
    this.words = [];
    this.kept = new Map();
    this.open = new Set();
    this.build();
  }

  build() {
    this.table = element("table");
    this.table.setAttribute("aria-labelledby", this.section.getAttribute("aria-labelledby"));
    // Roles are said aloud, because a narrow screen shows rows as blocks, which takes a table's own roles away.
    this.table.setAttribute("role", "table");
    const head = this.table.createTHead();
    head.setAttribute("role", "rowgroup");
    const line = head.insertRow();
    line.setAttribute("role", "row");
    this.heads = this.options.columns.map((column, index) => {
      const cell = element("th", column.className);
      cell.scope = "col";
      cell.setAttribute("role", "columnheader");
      const button = element("button", "sort", column.title);
      button.type = "button";
      button.addEventListener("click", () => this.sortBy(index));
      cell.append(button);
      line.append(cell);
      return cell;
    });
    this.body = this.table.createTBody();
    this.body.setAttribute("role", "rowgroup");
    this.empty = element("p", "empty");
    this.rest = element("p", "rest");
    const frame = element("div", "frame");
    frame.append(this.table);
    this.section.append(frame, this.empty, this.rest);
  }

  sortBy(index) {
    const same = this.sorting.column === index;
    this.sorting = {column: index, down: same ? !this.sorting.down : this.options.columns[index].down ?? false};
    this.draw();
  }

  update(rows, more) {
    this.rows = rows;
    this.more = more;
    this.draw();
  }

  filter(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.draw();
  }

  matches(row) {
    if (this.words.length === 0) return true;
    const text = this.options.columns.map((column) => column.text(row)).join("\n").toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  sorted(rows) {
    const column = this.options.columns[this.sorting.column];
    const value = column.sort ?? column.text;
    const sign = this.sorting.down ? -1 : 1;
    const compare = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b, "en", {numeric: true});
    return [...rows].sort((a, b) => sign * compare(value(a), value(b)) ||
      compare(this.options.key(a), this.options.key(b)));
  }

  draw() {
    this.heads.forEach((cell, index) => {
      const here = index === this.sorting.column;
      cell.setAttribute("aria-sort", !here ? "none" : this.sorting.down ? "descending" : "ascending");
    });
    const shown = this.sorted(this.rows.filter((row) => this.matches(row)));
    this.place(shown);
    this.say(shown.length);
  }

  say(shown) {
    const all = this.rows.length + this.more;
    setText(this.counter, shown < this.rows.length ? `${shown} of ${all}` : `${all}`);
    this.table.hidden = shown === 0;
    this.empty.hidden = shown > 0;
    if (shown === 0) {
      const filtered = this.rows.length > 0;
      setText(this.empty, filtered ? "Nothing here matches the filter. Esc clears it." : this.options.empty);
    }
    this.rest.hidden = this.more === 0;
    setText(this.rest, `${this.more} more are not shown; rnicctl shows all.`);
  }

  // Puts the rows in order. Moving an element takes the focus from it, so it is given back.
  place(rows) {
    const focused = document.activeElement;
    const gone = new Set(this.kept.keys());
    let next = this.body.firstChild;
    for (const row of rows) {
      const key = this.options.key(row);
      gone.delete(key);
      const kept = this.kept.get(key) ?? this.make(key);
      this.fill(kept, row);
      for (const line of [kept.line, kept.detail]) {
        if (!line) continue;
        if (line === next) next = next.nextSibling;
        else this.body.insertBefore(line, next);
      }
    }
    for (const key of gone) this.drop(key);
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({preventScroll: true});
  }

  make(key) {
    const line = element("tr");
    line.setAttribute("role", "row");
    const cells = this.options.columns.map((column) => {
      const cell = element("td", column.className);
      cell.setAttribute("role", "cell");
      cell.dataset.label = column.title;
      line.append(cell);
      return cell;
    });
    const kept = {key, line, cells};
    this.kept.set(key, kept);
    if (this.options.detail) this.makeOpener(kept);
    return kept;
  }

  // The whole row answers to a click; the button in it to the keyboard.
  makeOpener(kept) {
    kept.button = element("button", "opener");
    kept.button.type = "button";
    kept.line.classList.add("opens");
    kept.cells[0].append(kept.button);
    kept.line.addEventListener("click", () => {
      if (String(getSelection()) === "") this.toggle(kept.key);
    });
  }

  toggle(key) {
    if (!this.open.delete(key)) this.open.add(key);
    this.draw();
  }

  fill(kept, row) {
    this.options.columns.forEach((column, index) => {
      const cell = kept.cells[index];
      if (column.draw) column.draw(cell, row);
      else setText(kept.button && index === 0 ? kept.button : cell, column.text(row));
    });
    if (this.options.detail) this.fillDetail(kept, row);
  }

  fillDetail(kept, row) {
    const open = this.open.has(kept.key);
    kept.button.setAttribute("aria-expanded", String(open));
    kept.line.classList.toggle("is-open", open);
    if (open && !kept.detail) {
      kept.detail = element("tr", "detail");
      kept.detail.setAttribute("role", "row");
      const cell = element("td");
      cell.setAttribute("role", "cell");
      cell.colSpan = this.options.columns.length;
      kept.detail.append(cell);
    }
    if (!open && kept.detail) {
      kept.detail.remove();
      kept.detail = undefined;
    }
    if (kept.detail) this.options.detail(kept.detail.firstChild, row);
  }

  drop(key) {
    const kept = this.kept.get(key);
    kept.line.remove();
    kept.detail?.remove();
    this.kept.delete(key);
    if (!this.rows.some((row) => this.options.key(row) === key)) this.open.delete(key);
  }
}
