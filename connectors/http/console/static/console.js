// What the pages do in a browser: times in the viewer's zone, and news as they come. Nothing else is
// computed here. Without this script every page and button works, and times are the rulebook's.
"use strict";

const CALM_MS = 1000; // between two refreshes
const LOST_MS = 12000; // a silence of the stream that is no pause
const AGAIN_MS = 3000; // before the stream is asked for again

const mark = document.getElementById("live-mark");
const words = { on: "live", off: "not live", lost: "connection lost", out: "logged out" };
let stream = null;
let heard = 0;
let refreshed = 0;
let waiting = null;
let pressed = false;
let shown = written();

function say(state) {
  if (mark && mark.dataset.state !== state) {
    mark.dataset.state = state === "out" ? "lost" : state;
    mark.textContent = words[state];
  }
}

function local(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime()) || !time.dataset.local) return;
  const two = (number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const here = `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const beside = document.createElement("small");
  if (here === time.dataset.local) {
    beside.textContent = time.dataset.zone;
  } else {
    beside.textContent = `${time.dataset.local} ${time.dataset.zone}`;
  }
  time.replaceChildren(`${here} `, beside);
  delete time.dataset.local;
}

function localise(root) {
  root.querySelectorAll("time[data-local]").forEach(local);
}

// Whether a change of the page would take something out of the viewer's hands
function busy() {
  const chosen = window.getSelection();
  return pressed || (chosen && !chosen.isCollapsed);
}

// What is shown as the server has written it, to tell whether there is news
function written(text) {
  const page = text === undefined ? document : new DOMParser().parseFromString(text, "text/html");
  const live = page.getElementById("live");
  return live === null ? "" : live.outerHTML;
}

function refresh() {
  const left = refreshed + CALM_MS - Date.now();
  if (waiting !== null) return;
  waiting = setTimeout(() => {
    waiting = null;
    refreshed = Date.now();
    if (!document.hidden && !busy()) htmx.trigger(document.body, "tidegate");
  }, Math.max(0, left));
}

function listen() {
  if (stream !== null || document.hidden || !document.getElementById("live")) return;
  stream = new EventSource(document.body.dataset.live);
  heard = Date.now();
  const news = () => {
    heard = Date.now();
    say("on");
    refresh();
  };
  stream.addEventListener("changed", news);
  stream.addEventListener("alive", news);
  stream.onerror = () => lose();
}

function close() {
  if (stream !== null) stream.close();
  stream = null;
}

function lose() {
  close();
  say("lost");
  setTimeout(listen, AGAIN_MS);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else listen();
});
window.addEventListener("pagehide", close);
setInterval(() => {
  if (stream !== null && Date.now() - heard > LOST_MS) lose();
}, CALM_MS);
document.addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => { pressed = false; });
}
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const news = written(event.detail.serverResponse);
  if (news === shown || busy()) event.detail.shouldSwap = false;
  else shown = news;
});
document.body.addEventListener("htmx:afterSwap", () => localise(document));
document.body.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) {
    close();
    say("out");
  }
});
localise(document);
listen();
