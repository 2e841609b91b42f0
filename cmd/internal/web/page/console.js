// What the console adds to its pages: the reader's time zone, fragments that change, keys,
// and files that are dropped on a field. Every page works without it.
"use strict";

// Times are in UTC in the page. "5 min ago" stays as the server wrote it.
function localTimes(root) {
  for (const t of root.querySelectorAll("time[datetime]:not([data-done])")) {
    const when = new Date(t.dateTime);
    if (isNaN(when)) continue;
    const two = (n) => String(n).padStart(2, "0");
    const text = when.getFullYear() + "-" + two(when.getMonth() + 1) + "-" + two(when.getDate()) +
      " " + two(when.getHours()) + ":" + two(when.getMinutes()) + ":" + two(when.getSeconds());
    t.dataset.done = "1";
    if (t.classList.contains("ago")) t.title = text;
    else t.textContent = text;
  }
}

localTimes(document);
const zone = document.getElementById("zone");
if (zone) zone.textContent = "of " + (Intl.DateTimeFormat().resolvedOptions().timeZone || "your zone");

// A fragment is replaced as a whole, unless the reader has the focus or a selection in it.
// Details that are open stay open.
function replaceFragments(fragments) {
  for (const [name, html] of Object.entries(fragments)) {
    for (const at of document.querySelectorAll('[data-fragment="' + CSS.escape(name) + '"]')) {
      const selection = getSelection();
      const busy = at.contains(document.activeElement) ||
        (selection && !selection.isCollapsed && at.contains(selection.anchorNode));
      if (busy) { waiting.set(at, html); continue; }
      waiting.delete(at);
      put(at, html);
    }
  }
}

const waiting = new Map();

function put(at, html) {
  const open = [...at.querySelectorAll("details")].map((d) => d.open);
  const scrolled = [...at.querySelectorAll(".scroll, .chart-scroll")].map((s) => [s.scrollLeft, s.scrollTop]);
  at.innerHTML = html; // drawn and escaped by the server
  at.querySelectorAll("details").forEach((d, i) => { if (open[i]) d.open = true; });
  at.querySelectorAll(".scroll, .chart-scroll").forEach((s, i) => { if (scrolled[i]) [s.scrollLeft, s.scrollTop] = scrolled[i]; });
  localTimes(at);
}

document.addEventListener("focusout", () => setTimeout(() => {
  for (const [at, html] of waiting) {
    if (at.contains(document.activeElement)) continue;
    waiting.delete(at);
    put(at, html);
  }
}));

// A browser opens few connections to one server, so only the page that is seen has a stream.
const live = document.querySelector("[data-live]");
let stream = null;
function say(text) {
  const at = document.getElementById("live");
  if (at) at.textContent = text;
}
function follow() {
  if (document.hidden) {
    if (stream) stream.close();
    stream = null;
    return;
  }
  if (stream) return;
  stream = new EventSource(live.dataset.live);
  stream.addEventListener("open", () => say("This page follows."));
  stream.addEventListener("fragments", (e) => replaceFragments(JSON.parse(e.data)));
  stream.addEventListener("error", () => {
    say("This page does not follow at the moment. It shows what it had.");
    if (stream && stream.readyState === EventSource.CLOSED) { // refused: try again later
      stream = null;
      setTimeout(follow, 30000);
    }
  });
}
if (live && "EventSource" in window) {
  document.addEventListener("visibilitychange", follow);
  follow();
}

// A key of a button or link presses it.
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.repeat) return;
  if (e.target.closest("input, textarea, select, [contenteditable]")) return;
  const at = document.querySelector('[data-key="' + CSS.escape(e.key.toLowerCase()) + '"]');
  if (at && !at.disabled) { e.preventDefault(); at.click(); }
});

// A form is sent once.
document.addEventListener("submit", (e) => {
  const form = e.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) { e.preventDefault(); return; }
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, 5000);
});
addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((f) => delete f.dataset.sent));

// A file that is dropped on .drop goes to the file field in it.
for (const area of document.querySelectorAll(".drop")) {
  const field = area.querySelector('input[type="file"]');
  if (!field) continue;
  const over = (on) => (e) => { e.preventDefault(); area.classList.toggle("over", on); };
  area.addEventListener("dragover", over(true));
  area.addEventListener("dragleave", over(false));
  area.addEventListener("drop", (e) => {
    over(false)(e);
    if (e.dataTransfer.files.length > 0) field.files = e.dataTransfer.files;
  });
}
