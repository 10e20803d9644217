"use strict";
(() => {
  const svg = document.querySelector("#program > svg");
  const root = svg.querySelector(".fx-p");
  const aside = document.querySelector("#about");
  const first = aside.innerHTML;
  const own = (p, what) => p.querySelectorAll(":scope > " + what);
  const kept = new WeakMap();
  const original = (el, name) => {
    if (!kept.has(el)) kept.set(el, el.getAttribute(name));
    return kept.get(el);
  };

  // Heights change where a box is folded; everything below moves up, and nothing moves sideways.
  const mapped = (y, cuts) => {
    let moved = y;
    for (const [from, to] of cuts) if (y > from) moved -= Math.min(y, to) - from;
    return moved;
  };
  // The width that the open boxes of a listed program need; other programs keep their width.
  const extent = (program) => {
    let width = Number(program.dataset.m || program.dataset.w);
    if (program.dataset.m) for (const box of own(program, ".fx-frame")) {
      width = Math.max(width, original(box, "transform").match(/-?[\d.]+/g)[0] * 1 + widen(box));
    }
    return width;
  };
  const widen = (box) => {
    const rect = box.querySelector(":scope > rect");
    if (!box.dataset.w) return Number(original(rect, "width"));
    let width = Number(box.dataset.w);
    if (!box.classList.contains("shut")) {
      for (const inner of box.querySelectorAll(":scope > .fx-body > g")) {
        const x = inner.getAttribute("transform").match(/-?[\d.]+/g)[0] * 1;
        width = Math.max(width, x + extent(inner.querySelector(":scope > .fx-p")) + 12);
      }
    }
    rect.setAttribute("width", width);
    return width;
  };
  const place = (program) => {
    const cuts = [];
    for (const box of own(program, ".fx-frame")) {
      const [top, low] = box.dataset.y.split(" ").map(Number);
      const rect = box.querySelector(":scope > rect");
      const bottom = top + Number(original(rect, "height"));
      const shut = box.classList.contains("shut");
      let shrunk = Infinity;
      if (!shut) for (const inner of box.querySelectorAll(":scope > .fx-body > g > .fx-p")) {
        shrunk = Math.min(shrunk, Number(inner.dataset.h) - place(inner));
      }
      cuts.push([shut ? Math.min(low, bottom) : bottom - Math.max(0, shrunk), bottom]);
    }
    const move = (y) => Math.round(mapped(y, cuts) * 10) / 10;
    for (const el of own(program, "path")) {
      el.setAttribute("d", original(el, "d").replace(/(-?[\d.]+) (-?[\d.]+)/g,
        (_, x, y) => x + " " + move(Number(y))));
    }
    for (const el of own(program, "text")) el.setAttribute("y", move(Number(original(el, "y"))));
    for (const el of own(program, "g")) {
      const [x, y] = original(el, "transform").match(/-?[\d.]+/g).map(Number);
      el.setAttribute("transform", "translate(" + x + "," + move(y) + ")");
      if (el.classList.contains("fx-frame")) {
        const rect = el.querySelector(":scope > rect");
        rect.setAttribute("height", move(y + Number(original(rect, "height"))) - move(y));
      }
    }
    return move(Number(program.dataset.h));
  };
  const size = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const margin = size[1] - Number(root.dataset.h);
  let zoom = 1;
  const redraw = () => {
    const height = place(root) + margin;
    size[0] = extent(root) + margin;
    svg.querySelector(".fx-bg").setAttribute("width", size[0]);
    svg.setAttribute("viewBox", "0 0 " + size[0] + " " + height);
    svg.querySelector(".fx-bg").setAttribute("height", height);
    svg.setAttribute("width", size[0] * zoom);
    svg.setAttribute("height", height * zoom);
  };
  const shut = (box, yes) => {
    box.classList.toggle("shut", yes);
    box.setAttribute("aria-expanded", String(!yes));
    box.querySelector(":scope > .fx-fold").textContent = yes ? "▸" : "▾";
  };

  const light = (box) => {
    for (const el of svg.querySelectorAll(".on")) el.classList.remove("on");
    if (!box) { aside.innerHTML = first; return; }
    const program = box.parentNode;
    const vars = ((box.dataset.i || "") + " " + (box.dataset.o || "")).trim().split(" ");
    for (const v of new Set(vars)) {
      if (v) for (const el of own(program, '[data-v="' + v + '"]')) el.classList.add("on");
    }
    // A run is highlighted with those that it gets values from, and those that use its results.
    const [ins, outs] = [box.dataset.i, box.dataset.o].map((v) => new Set((v || "").split(" ")));
    if (program.dataset.m) for (const other of own(program, ".fx-frame")) {
      const meets = (mine, its) => (its || "").split(" ").some((v) => v && mine.has(v));
      if (meets(ins, other.dataset.o) || meets(outs, other.dataset.i)) other.classList.add("on");
    }
    box.classList.add("on");
    const [equation, place] = box.querySelector(":scope > title").textContent.split("\n");
    aside.replaceChildren();
    const add = (name, value, tag) => {
      if (!value) return;
      const head = aside.appendChild(document.createElement("h2"));
      head.textContent = name;
      aside.appendChild(document.createElement(tag)).textContent = value;
    };
    add("Equation", equation, "pre");
    add("From", place, "p");
    add("Line", box.dataset.c, "pre");
    add("Effects", box.dataset.e, "p");
    add("Names", box.dataset.n, "p");
    add("Memory of results", box.dataset.b, "p");
  };
  let pinned = null;
  const over = (event) => {
    if (!pinned) light(event.target.closest(".fx-e"));
  };
  svg.addEventListener("mouseover", over);
  svg.addEventListener("focusin", over);
  const toggle = (box) => { shut(box, !box.classList.contains("shut")); redraw(); };
  svg.addEventListener("click", (event) => {
    const box = event.target.closest(".fx-e");
    if (box && event.target.matches(".fx-fold, .fx-head, .fx-d") &&
        event.target.parentNode === box && box.classList.contains("fx-frame")) {
      toggle(box);
      return;
    }
    pinned = box === pinned ? null : box;
    light(box);
  });
  svg.addEventListener("keydown", (event) => {
    const box = event.target.closest(".fx-e");
    if (event.key === "Escape") { pinned = null; light(null); }
    if (box && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      if (box.classList.contains("fx-frame")) toggle(box);
      else { pinned = pinned === box ? null : box; light(box); }
    }
  });

  const fitting = () => Math.min(1, (svg.parentNode.clientWidth - 4) / size[0]);
  const tools = {
    fold: () => { for (const box of svg.querySelectorAll(".fx-frame")) shut(box, true); },
    open: () => { for (const box of svg.querySelectorAll(".fx-frame")) shut(box, false); },
    closer: () => { zoom *= 1.25; },
    farther: () => { zoom /= 1.25; },
    fit: () => { zoom = fitting(); },
  };
  for (const [name, act] of Object.entries(tools)) {
    document.getElementById(name).addEventListener("click", () => { act(); redraw(); });
  }
  let at = -1;
  const find = document.getElementById("find");
  const hits = () => {
    const words = find.value.trim().toLowerCase();
    const boxes = [...svg.querySelectorAll(".fx-e")];
    for (const box of boxes) box.classList.remove("hit");
    if (!words) return [];
    const found = boxes.filter((box) =>
      [box.querySelector(":scope > title").textContent, box.dataset.n, box.dataset.e]
        .some((v) => (v || "").toLowerCase().includes(words)));
    for (const box of found) box.classList.add("hit");
    return found;
  };
  find.addEventListener("input", () => {
    at = -1;
    const n = hits().length;
    document.getElementById("found").textContent = find.value.trim() ? n + " found" : "";
  });
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const found = hits();
    if (!found.length) return;
    at = (at + (event.shiftKey ? found.length - 1 : 1)) % found.length;
    for (let box = found[at].parentNode.closest(".fx-frame"); box;
         box = box.parentNode.closest(".fx-frame")) shut(box, false);
    redraw();
    found[at].scrollIntoView({block: "center", inline: "center"});
    light(found[at]);
  });
  document.body.classList.add("alive");
  // A long program opens folded, with as many boxes open as the window has room for.
  const room = window.innerHeight - svg.getBoundingClientRect().top - 30;
  const wide = svg.parentNode.clientWidth / 0.7;
  const fits = () => place(root) + margin <= room && extent(root) + margin <= wide;
  const frames = [...svg.querySelectorAll(".fx-frame")];
  const depth = (box) => {
    let n = 0;
    for (let up = box; up; up = up.parentNode.closest(".fx-frame")) n++;
    return n;
  };
  const open = () => {
    let tries = 24;
    for (let level = 1; level <= 3; level++) {
      for (const box of frames) {
        if (depth(box) !== level || box.parentNode.closest(".shut")) continue;
        if (!tries--) return;
        shut(box, false);
        if (!fits()) shut(box, true);
      }
    }
  };
  if (svg.querySelectorAll(".fx-e").length > 80 && !fits()) {
    tools.fold();
    open();
  }
  redraw();
  zoom = Math.max(fitting(), 0.7);
  redraw();
  // A wide picture begins with its first box in view.
  const [panel, start] = [svg.parentNode, svg.querySelector(".fx-e")];
  if (start) {
    const past = start.getBoundingClientRect().right - panel.getBoundingClientRect().right;
    if (past > 0) panel.scrollLeft = past + 40;
  }
})();
