// Light and dark, the menu on small screens, and the search: all of it works from the file system.
"use strict";

const root = document.currentScript.dataset.root;
const MOST = 20; // results that are shown
const SHOWN = 180; // characters of each

function remembered() {
  try { return localStorage.getItem("sdckit-theme"); } catch { return null; }
}

function remember(theme) {
  try { localStorage.setItem("sdckit-theme", theme); } catch { /* the choice then holds for this page alone */ }
}

// Before anything is drawn, so that a dark page never flashes.
const system = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = remembered() || (system.matches ? "dark" : "light");

function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  remember(theme);
}

function switchMenu(button) {
  const open = document.getElementById("pages").classList.toggle("open");
  button.setAttribute("aria-expanded", String(open));
}

// The index is a script, as pages from the file system may not read other files.
let loading;
function loaded() {
  loading ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${root}search-index.js`;
    script.onload = resolve;
    document.head.append(script);
  });
  return loading;
}

function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
}

// A row scores by where its words begin with those of the query: heading, title of the page, text. All must be found.
// Pages on how to do something score more; a single letter, as in "total = a + b", counts little and only as a word.
function scoreOf(row, words, phrase) {
  const [page, , title, heading, text] = row.map((part) => part.toLowerCase());
  let score = page.startsWith("how-to/") ? 4 : 0;
  for (const word of words) {
    const letter = word.length === 1;
    const begins = beginnings([letter ? `${word}(?![\\p{L}\\p{N}])` : word], "u");
    const large = letter ? 1 : 8;
    const own = (begins.test(heading) ? large : 0) + (begins.test(title) ? (letter ? 0 : 3) : 0) + (begins.test(text) ? 1 : 0);
    if (own === 0) return 0;
    score += own;
  }
  const plain = (part) => wordsOf(part).join(" ");
  if (plain(heading) === phrase) score += 20;
  else if (words.length > 1 && plain(heading).includes(phrase)) score += 10;
  if (words.length > 1 && plain(text).includes(phrase)) score += 5;
  return score;
}

// Where some word of the query begins in a text.
function beginnings(words, flags) {
  return new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})`, flags);
}

function marked(text, words) {
  const fragment = document.createDocumentFragment();
  const parts = text.split(beginnings(words, "giu"));
  parts.forEach((part, place) => {
    const own = place % 2 ? document.createElement("mark") : document.createElement("span");
    own.textContent = part;
    fragment.append(own);
  });
  return fragment;
}

function excerpt(text, words) {
  const together = text.search(beginnings([words.join("[^\\p{L}\\p{N}]+")], "iu"));
  const first = Math.max(0, (together >= 0 ? together : text.search(beginnings(words, "iu"))) - 60);
  const from = first && text.indexOf(" ", first) + 1;
  const shown = text.slice(from, from + SHOWN);
  return (from ? "… " : "") + (from + SHOWN < text.length ? shown.replace(/\s\S*$/, " …") : shown);
}

function resultOf([page, anchor, title, heading, text], words) {
  const link = document.createElement("a");
  link.href = `${root}${page}#${anchor}`;
  const head = document.createElement("b");
  head.append(marked(heading === title ? title : `${heading} – ${title}`, words));
  const below = document.createElement("small");
  below.append(marked(excerpt(text, words), words));
  link.append(head, below);
  return link;
}

async function search(input, found) {
  const words = wordsOf(input.value);
  if (words.length === 0) {
    found.hidden = true;
    return;
  }
  await loaded();
  const phrase = words.join(" ");
  const rows = window.searchIndex.map((row) => [scoreOf(row, words, phrase), row]).filter(([score]) => score > 0);
  rows.sort((one, other) => other[0] - one[0]);
  const results = rows.slice(0, MOST).map(([, row]) => resultOf(row, words));
  if (results.length === 0) {
    const none = document.createElement("p");
    none.textContent = `No page has "${input.value}".`;
    results.push(none);
  }
  found.replaceChildren(...results);
  found.hidden = false;
}

// Arrows move between results, Enter opens the first or the chosen one, Escape closes them.
function keyed(event, input, found) {
  const stops = [input, ...found.querySelectorAll("a")];
  const place = stops.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && place >= 0 && !found.hidden) {
    event.preventDefault();
    stops[Math.min(Math.max(place + step, 0), stops.length - 1)].focus();
  } else if (event.key === "Enter" && place === 0 && stops[1]) {
    stops[1].click();
  } else if (event.key === "Escape") {
    found.hidden = true;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const [input, found] = ["query", "found"].map((name) => document.getElementById(name));
  document.getElementById("theme").addEventListener("click", switchTheme);
  document.getElementById("menu").addEventListener("click", (event) => switchMenu(event.currentTarget));
  input.addEventListener("focus", loaded);
  input.addEventListener("input", () => search(input, found));
  input.parentElement.addEventListener("keydown", (event) => keyed(event, input, found));
  found.addEventListener("click", () => { found.hidden = true; });
  document.addEventListener("click", (event) => {
    if (!input.parentElement.contains(event.target)) found.hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
  document.querySelector("#pages [aria-current]")?.scrollIntoView({ block: "nearest" });
});
