// Keeps the page up to date. The server sends the live part of the page, and only the differences are applied here, to
// keep the focus, the selection and the scroll position. Without JavaScript, reload the page to update it.
"use strict";

const live = document.getElementById("live");
const said = document.getElementById("said");
const fresh = document.getElementById("fresh");
let source = null;
let lastSaid = null;

function same(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function update(now, next) {
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
    return;
  }
  for (const { name } of [...now.attributes]) if (!next.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of next.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  children(now, next);
}

function children(now, next) {
  const wanted = [...next.childNodes];
  wanted.forEach((node, place) => {
    const there = now.childNodes[place];
    if (!there) now.append(node);
    else if (same(there, node)) update(there, node);
    else there.replaceWith(node);
  });
  while (now.childNodes.length > wanted.length) now.lastChild.remove();
}

function say() {
  const text = [...live.querySelectorAll("[data-said], .away")].map((node) => node.dataset.said || node.textContent.trim());
  const now = text.join("; ");
  if (lastSaid !== null && now !== lastSaid) said.textContent = now || "All health checks are ok.";
  lastSaid = now;
}

function isBusy() {
  const selection = document.getSelection();
  const typing = document.activeElement && document.activeElement.matches("input:not([type=hidden]), select");
  return (typing && live.contains(document.activeElement)) || (selection && !selection.isCollapsed);
}

function show(html) {
  if (isBusy()) return;
  children(live, new DOMParser().parseFromString(`<div>${html}</div>`, "text/html").body.firstChild);
  fresh.textContent = `Updated ${new Date().toLocaleTimeString()}.`;
  say();
}

function watch() {
  if (document.hidden) {
    if (source) source.close();
    source = null;
  } else if (!source && live.dataset.events) {
    source = new EventSource(live.dataset.events);
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.onerror = () => { fresh.textContent = "No connection to the server; reconnecting."; };
  }
}

document.addEventListener("visibilitychange", watch);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.matches("input, select, textarea")) {
    event.preventDefault();
    document.getElementById("find").focus();
  }
});
addEventListener("pagehide", () => { if (source) source.close(); source = null; });
addEventListener("pageshow", watch);
say();
watch();
