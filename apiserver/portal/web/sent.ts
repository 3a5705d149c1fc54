// Keys of calls of which nobody knows what came, over reloads: whoever sends such a call once more
// sends it under the same key, and it is done once.

const place = "shoal-sent";
const most = 100;
const lives = 23 * 3_600_000; // milliseconds; the service knows a key for 24 hours

interface Sent {
  of: string; // a hash of the call
  key: string;
  at: number;
}

// A browser may keep nothing. Then the calls of this page are known.
let sent = read();

function read(): Sent[] {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "[]") as Sent[];
  } catch {
    return [];
  }
}

function keep(next: Sent[]): void {
  sent = next;
  try {
    sessionStorage.setItem(place, JSON.stringify(sent));
  } catch {
    // this tab's storage is full or forbidden
  }
}

/** 64 bits of a text, by FNV-1a twice. */
function hash(text: string): string {
  let a = 0x811c9dc5, b = 0xcbf29ce4;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b);
  }
  return (a >>> 0).toString(36) + "." + (b >>> 0).toString(36);
}

/** The key under which a call goes out: that of the same call before, if nobody knows what came of
 * it, or else the given one. */
export function begin(call: string, key: string): string {
  const of = hash(call), now = Date.now();
  const open = sent.filter((s) => now - s.at < lives);
  const before = open.find((s) => s.of === of);
  if (!before) {
    keep([...open, { of, key, at: now }].slice(-most));
  }
  return before?.key ?? key;
}

/** Forgets a call that was answered. */
export function end(call: string): void {
  const of = hash(call);
  keep(sent.filter((s) => s.of !== of));
}
