"""The one HTML skeleton: a page that needs nothing but itself, for light and dark."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--card:#f6f8fb;--ink:#1b2330;--soft:#5d687a;--line:#dfe4ec;--bad:#c9451c;
--good:#0f7f93;--bar:#dbe7ea}
@media (prefers-color-scheme:dark){:root{--ground:#12171f;--card:#1a212c;--ink:#e8ecf2;--soft:#9aa6b8;--line:#2c3646;
--bad:#ff7d52;--good:#3cc3d8;--bar:#21414a}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:2rem;line-height:1.2;margin:0 0 .4rem;letter-spacing:-.02em}
h2{font-size:1.15rem;margin:2.6rem 0 .6rem}
p{max-width:46rem;margin:.5rem 0}
.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
img,svg{display:block;max-width:100%;height:auto}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.45rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600;color:var(--soft);font-size:.85rem}
th:first-child,td:first-child{text-align:left;padding-left:0}
code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.9em;background:var(--card);
padding:.1em .35em;border-radius:.3em}
footer{margin-top:3rem;color:var(--soft);font-size:.85rem}
"""
"""What all pages share; colours are variables, so that a page's own style follows light and dark."""

escape = html.escape
"""Text as it may stand in a page, also within quotes."""


def page(title: str, body: str, style: str = "") -> str:
    """A whole page.

    Args:
        title: plain text.
        body: HTML; whatever came from outside must have been escaped.
        style: further rules of this page.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def data_address(kind: str, data: bytes) -> str:
    """A file's content as an address within the page, such as of kind "image/png"."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def figure_image(figure: Figure, alt: str) -> str:
    """A Matplotlib figure as an image within the page."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return f'<img alt="{escape(alt)}" src="{data_address("image/png", picture.getvalue())}">'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain texts."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
