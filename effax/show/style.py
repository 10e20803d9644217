"""The look of pictures: plain CSS without variables, which tools for paper understand too."""

from __future__ import annotations

from typing import Final

LIGHT: Final = (
    "#0b62a8",
    "#c2410c",
    "#067a57",
    "#9d2f8a",
    "#8a6100",
    "#0e7490",
    "#b0183d",
    "#5b4bb7",
)
"""Colours of rails on white; white letters can be read on each."""

DARK: Final = (
    "#6cb2f5",
    "#fb9a6b",
    "#4fd1a0",
    "#e58ad6",
    "#e0b84c",
    "#5cc9dd",
    "#f78da7",
    "#a99cf5",
)
"""The same on black; black letters can be read on each."""

FONT: Final = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'


def _theme(
    hues: tuple[str, ...], back: str, ink: str, soft: str, wire: str, shades: tuple[str, ...]
) -> str:
    plain, shape, product, call, frame, gone, new = shades
    rules = [
        f".fx-bg{{fill:{back}}}",
        f".fx text{{fill:{ink}}}",
        f".fx .fx-l,.fx .fx-d{{fill:{soft}}}",
        f".fx .fx-l{{stroke:{back}}}",
        f".fx-w{{stroke:{wire}}}.fx-dot{{fill:{wire}}}",
        f".fx-plain>rect{{fill:{plain};stroke:{soft}}}",
        f".fx-shape>rect{{fill:{shape};stroke:{wire}}}",
        f".fx-product>rect{{fill:{product};stroke:{soft}}}",
        f".fx-call>rect{{fill:{call};stroke:{soft}}}",
        f".fx-frame>rect{{fill:{frame};stroke:{soft}}}",
        f".fx-in>rect,.fx-out>rect{{fill:{back};stroke:{ink}}}",
        f".fx-gone>rect{{stroke:{gone}}}.fx .fx-gone>.fx-sign{{fill:{gone}}}",
        f".fx-new>rect{{stroke:{new}}}.fx .fx-new>.fx-sign{{fill:{new}}}",
        f".fx .fx-b>text{{fill:{back}}}.fx-plus{{stroke:{back}}}",
        f".fx-tap{{stroke:{ink}}}",
        f".fx-base{{fill:{shape};stroke:none}}.fx-live{{fill:{product};stroke:{soft}}}",
        f".fx-span{{fill:{call};stroke:{wire}}}.fx-grid{{stroke:{wire}}}",
        f".fx-peak{{fill:{ink}}}.fx .fx-top{{fill:{ink}}}.fx-step:hover{{fill:{ink}}}",
        f".fx-k-1 rect,.fx-dot-1{{fill:{soft}}}.fx-rail.fx-k-1{{stroke:{soft}}}",
    ]
    for k, hue in enumerate(hues):
        rules.append(f".fx-rail.fx-k{k}{{stroke:{hue}}}")
        rules.append(f".fx-ring.fx-k{k}{{stroke:{hue};fill:{back}}}.fx-bar.fx-k{k}{{fill:{hue}}}")
        rules.append(f".fx-b.fx-k{k}>rect,.fx text.fx-k{k}{{fill:{hue}}}")
    return "".join(rules)


_SHAPE: Final = (
    f".fx text{{font:12px {FONT}}}"
    ".fx .fx-l,.fx .fx-d,.fx .fx-far{font-size:10.5px}"
    ".fx .fx-l,.fx .fx-far{stroke-width:3px;stroke-linejoin:round;paint-order:stroke}"
    ".fx .fx-b>text{font-size:9.5px;font-weight:700}"
    ".fx .fx-head{font-weight:600}"
    ".fx .fx-sign{font-weight:700;font-size:14px}"
    ".fx-w,.fx-tap,.fx-rail{fill:none}"
    ".fx-w{stroke-width:1.3px}.fx-tap{stroke-width:1px;stroke-dasharray:1.5 2.5}"
    ".fx-rail{stroke-width:3px;stroke-linecap:round}"
    ".fx-span{fill-opacity:.55;stroke-opacity:.5}.fx-live{fill-opacity:.85;stroke-width:1px}"
    ".fx-grid{stroke-dasharray:2 3;stroke-width:1px}.fx-ring{stroke-width:1.5px}"
    ".fx-plus{stroke-width:1.4px}"
    ".fx-step{fill-opacity:0}.fx-step:hover{fill-opacity:.08}"
    ".fx-e>rect{stroke-width:1px}"
    ".fx-gone>rect{stroke-dasharray:4 3;stroke-width:2px!important}"
    ".fx-new>rect{stroke-width:2px!important}"
)

_LIGHT: Final = _theme(
    LIGHT,
    "#ffffff",
    "#1b1f24",
    "#59636e",
    "#98a2ad",
    ("#ffffff", "#f1f3f5", "#dcecfb", "#f7f4ea", "#fafbfc", "#b42318", "#1a7f37"),
)
_DARK: Final = _theme(
    DARK,
    "#14181d",
    "#e6edf3",
    "#9aa7b4",
    "#6a7683",
    ("#1d232a", "#171b20", "#14324d", "#2b2818", "#181d23", "#ff8f85", "#56d27a"),
)

STYLE: Final = f"{_SHAPE}{_LIGHT}@media (prefers-color-scheme:dark){{{_DARK}}}"
"""The style sheet of every picture."""
