// Numbers, amounts and times as people read them. All of it is text; nothing here makes HTML.

const kUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  let unit = 0;
  while (value >= 1024 && unit < kUnits.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${short(value)} ${kUnits[unit]}`;
}

// At most three digits that matter.
function short(value) {
  return value.toLocaleString("en", {maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2});
}

export const count = (value) => value.toLocaleString("en");

export function rate(value) {
  return `${short(value)}/s`;
}

// On Windows there are no uids, and each is the largest number.
export const uid = (number) => number === 4294967295 ? "–" : String(number);

export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [size, name] = parts[first];
  const text = `${Math.floor(seconds / size)} ${name}`;
  if (first === parts.length - 1) return text;
  const [next, nextName] = parts[first + 1];
  const rest = Math.floor((seconds % size) / next);
  return rest > 0 ? `${text} ${rest} ${nextName}` : text;
}

export function clock(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

// "pinned_bytes" is counted in bytes, "sessions" is not.
export const isBytes = (resource) => resource.endsWith("_bytes");

export function amount(resource, value) {
  return isBytes(resource) ? bytes(value) : count(value);
}

export function resourceName(resource) {
  return resource.replace(/_bytes$/, " memory").replace(/^memory memory$/, "memory").replaceAll("_", " ")
    .replace(/\bcq\b/, "CQ");
}
