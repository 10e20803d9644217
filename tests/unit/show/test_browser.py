"""Pages in a browser: no errors, folding, details of equations, search."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from effax import show
from tests.unit.show.pages import long_step, training_step

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for path in map(shutil.which, NAMES) if path), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"needs a browser, and none of {', '.join(NAMES)} was found"
)

ERRORS = "<script>window.wrong = []; onerror = (m) => { window.wrong.push(String(m)); };</script>"

HELPERS = """<script>
const q = (s) => document.querySelector(s);
const svg = q("#program > svg");
const shown = (e) => e.getClientRects().length > 0 && e.getBoundingClientRect().height > 0;
const clashes = (program) => {
  const boxes = [...program.querySelectorAll(":scope > .fx-e > rect")].filter(shown);
  let n = 0;
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
    const [p, r] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
    if (p.left < r.right && r.left < p.right && p.top < r.bottom && r.top < p.bottom) n++;
  }));
  return n;
};
const loose = () => {
  // A wire that is drawn to a box ends on its upper edge.
  const program = svg.querySelector(".fx-p");
  const rects = [...program.querySelectorAll(":scope > .fx-e > rect")];
  const tops = rects.map((e) => e.getBoundingClientRect());
  let n = 0;
  for (const wire of program.querySelectorAll(":scope > .fx-w")) {
    const box = wire.getBoundingClientRect();
    const touches = tops.some((t) => Math.abs(t.top - box.bottom) < 2 &&
      t.left - 2 <= box.right && box.left <= t.right + 2);
    if (!touches) n++;
  }
  return n;
};
"""

# Actions of a user, and the state after each.
ACTIONS = (
    HELPERS
    + """
const state = () => ({
  height: Number(svg.getAttribute("height")),
  clashes: [...svg.querySelectorAll(".fx-p")].reduce((n, p) => n + clashes(p), 0),
  loose: loose(),
  aside: q("#about").textContent,
  lit: svg.querySelectorAll(".fx-w.on").length,
});
const fire = (e, what) => e.dispatchEvent(new Event(what, {bubbles: true}));
const key = (e, k) => e.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
const seen = {start: state()};
const frame = svg.querySelector(".fx-frame");
fire(frame.querySelector(".fx-fold"), "click");
seen.folded = {...state(), expanded: frame.getAttribute("aria-expanded")};
key(frame, "Enter");
seen.again = state();
q("#fold").click();
seen.all = state();
q("#open").click();
seen.open = state();
const box = [...svg.querySelectorAll(".fx-e")].find((e) =>
  e.querySelector("title").textContent.includes("dot_general"));
fire(box, "mouseover");
seen.over = state();
fire(svg.querySelector(".fx-bg"), "mouseover");
seen.away = state();
box.focus();
seen.focus = state();
q("#find").value = "a[...] += d";
fire(q("#find"), "input");
seen.found = {...state(), status: q("#found").textContent};
q("#fold").click();
key(q("#find"), "Enter");
seen.went = state();
q("#closer").click();
seen.closer = state();
document.title = JSON.stringify({...seen, wrong: window.wrong});
</script>"""
)


def seen(page: str, folder: Path, *options: str) -> Any:
    """Return the JSON that the page writes into its title after all scripts have run."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, f"--user-data-dir={folder / 'profile'}", "--dump-dom", *options, file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None
    return json.loads(unescape(title.group(1)))


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Any:
    page = show.html(training_step(), title="x")
    page = page.replace("<head>", f"<head>{ERRORS}").replace("</body>", f"{ACTIONS}</body>")
    return seen(page, tmp_path_factory.mktemp("browser"))


def test_no_errors(states: Any) -> None:
    assert states["wrong"] == []


def test_folding_keeps_boxes_apart_and_wires_attached(states: Any) -> None:
    for name in ("start", "folded", "again", "all", "open"):
        assert (states[name]["clashes"], states[name]["loose"]) == (0, 0), name


def test_boxes_fold_and_open(states: Any) -> None:
    start, folded, everything = (states[k]["height"] for k in ("start", "folded", "all"))
    assert everything < folded < start - 50
    assert states["folded"]["expanded"] == "false"
    assert states["again"]["height"] == states["open"]["height"] == start
    assert states["closer"]["height"] == pytest.approx(1.25 * states["went"]["height"])


def test_pointing_shows_details_and_highlights_wires(states: Any) -> None:
    for how in ("over", "focus"):
        about = states[how]["aside"]
        assert "dot_general" in about and "pages.py:" in about and "jnp.tanh(x @ w)" in about
        assert states[how]["lit"] >= 2
    assert states["away"]["lit"] == 0
    assert "Reading the picture" in states["away"]["aside"]


def test_equations_are_found_in_folded_boxes_too(states: Any) -> None:
    assert states["found"]["status"] == "1 found"
    assert states["all"]["height"] < states["went"]["height"] <= states["start"]["height"]
    assert "a[...] += d" in states["went"]["aside"] and "row * c" in states["went"]["aside"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_text(scheme: str, tmp_path: Path) -> None:
    """The contrast of text is at least 4.5, as WCAG requires."""
    measure = """<script>
const light = (c) => {
  const [r, g, b] = c.match(/[\\d.]+/g).map((v) => v / 255).map((v) =>
    v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const fill = (e) => getComputedStyle(e).fill;
const back = fill(document.querySelector(".fx-bg"));
let worst = 99, n = 0;
for (const t of document.querySelectorAll("svg.fx text")) {
  const holder = t.parentNode.closest(".fx-e,.fx-b");
  const rect = holder && holder.querySelector(":scope > rect");
  const inside = rect && t.parentNode === holder && !t.matches(".fx-sign");
  const [a, b] = [light(fill(t)), light(inside ? fill(rect) : back)];
  worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  n++;
}
document.title = JSON.stringify({worst, n, back});
</script>"""
    page = show.html(training_step()).replace("</body>", f"{measure}</body>")
    option = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    found = seen(page, tmp_path, option)
    assert found["n"] > 50
    assert found["back"] == ("rgb(20, 24, 29)" if scheme == "dark" else "rgb(255, 255, 255)")
    assert found["worst"] >= 4.5


SCREEN = (
    HELPERS
    + """
const all = [...svg.querySelectorAll(".fx-e")];
const inside = (e) => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && r.top >= 0 && r.left >= 0 &&
    r.bottom <= innerHeight && r.right <= innerWidth;
};
const boxes = () => all.filter((e) => shown(e) && !e.parentNode.closest(".shut"));
const wide = () => boxes().every((e) => inside(e.querySelector(":scope > rect")));
const clash = () => [...svg.querySelectorAll(".fx-p")].filter(shown)
  .reduce((n, p) => n + clashes(p), 0);
const state = () => ({
  boxes: boxes().length,
  closed: svg.querySelectorAll(".fx-frame.shut").length,
  inside: wide(),
  rails: [...svg.querySelectorAll(":scope > g > .fx-p > text[class*=fx-k]")].filter(inside).length,
  clashes: clash(),
  height: svg.getBoundingClientRect().height,
  sideways: document.querySelector("#program").scrollWidth >
    document.querySelector("#program").clientWidth + 1,
});
const seen = {window: [innerWidth, innerHeight], start: state(), n: all.length};
const run = [...svg.querySelectorAll(".fx-frame.shut")].find((e) => shown(e));
run.dispatchEvent(new Event("mouseover", {bubbles: true}));
seen.about = q("#about").textContent;
seen.lit = svg.querySelectorAll(".fx-frame.on").length;
run.querySelector(":scope > .fx-fold").dispatchEvent(new Event("click", {bubbles: true}));
seen.opened = state();
q("#find").value = "state['v']['h3']['w']";
q("#find").dispatchEvent(new Event("input", {bubbles: true}));
seen.found = q("#found").textContent;
document.title = JSON.stringify({...seen, wrong: window.wrong});
</script>"""
)


def test_a_long_step_opens_folded_in_the_window(tmp_path: Path) -> None:
    page = show.html(long_step(), title="a step of 2,000 equations")
    page = page.replace("<head>", f"<head>{ERRORS}").replace("</body>", f"{SCREEN}</body>")
    found = seen(page, tmp_path, "--window-size=1600,1200")
    start, opened = found["start"], found["opened"]
    assert found["wrong"] == [] and found["window"][0] >= 1500
    assert found["n"] > 2000 and 8 < start["boxes"] < 120 and start["closed"] > 5
    # The first screen has every box that is not folded, and the rails of all references.
    assert start["inside"] and start["rails"] == 3 and not start["sideways"]
    assert start["clashes"] == opened["clashes"] == 0
    assert opened["boxes"] > start["boxes"] and opened["height"] > start["height"]
    assert "equations" in found["about"] and found["lit"] >= 2
    assert found["found"] not in ("", "0 found")
