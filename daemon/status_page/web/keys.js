// What the keyboard, the buttons and the filter do.

const kThemes = ["auto", "light", "dark"];
const kThemeKey = "rnicd-theme";

// A browser may forbid to remember; then the theme lasts as long as the page.
function remembered() {
  try {
    const theme = localStorage.getItem(kThemeKey);
    return kThemes.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}

function remember(theme) {
  try {
    localStorage.setItem(kThemeKey, theme);
  } catch {
    // See above.
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = `Theme: ${theme}`;
}

function nextTheme() {
  const theme = kThemes[(kThemes.indexOf(document.documentElement.dataset.theme) + 1) % kThemes.length];
  setTheme(theme);
  remember(theme);
}

function connectFilter(filter) {
  const input = document.getElementById("filter");
  input.addEventListener("input", () => filter(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    // The browser clears a search field by itself, but does not say so everywhere.
    event.preventDefault();
    if (input.value === "") input.blur();
    input.value = "";
    filter("");
  });
  return input;
}

// `refresh`, `pause` and `filter(text)` are the page's.
export function connectKeys({refresh, pause, filter}) {
  const input = connectFilter(filter);
  const help = document.getElementById("keys");
  setTheme(remembered());
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.getElementById("pause").addEventListener("click", pause);
  document.getElementById("help").addEventListener("click", () => help.showModal());
  document.getElementById("keys-close").addEventListener("click", () => help.close());
  const clear = () => {
    input.value = "";
    filter("");
  };
  const go = () => {
    input.focus();
    input.select();
  };
  const keys = {"/": go, "r": refresh, "p": pause, "t": nextTheme, "?": () => help.showModal(), "Escape": clear};
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target === input || help.open) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
