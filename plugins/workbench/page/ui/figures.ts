/** Numbers of rows, bytes and seconds, for people. */

/** A number of at most four characters: 1.2M. */
export function compact(number: number): string {
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);
}

/** A whole number with commas; a text of digits keeps them all. */
export function whole(number: number | string): string {
  return typeof number === "number" ? number.toLocaleString("en") : number.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function fileSize(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < units.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1_000))} ms`;
  if (seconds < 99.5) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const rest = Math.round(seconds) % 60;
  return minutes < 60 ? `${minutes} min ${rest} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function moment(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
