"""Render measured files as Markdown, HTML and JSON. The same facts give the same bytes."""

from __future__ import annotations

import html
import json
from typing import Any

FileFacts = dict[str, Any]

_SHOWN = 25
_BUCKETS = ((0, 0), (1, 10), (11, 25), (26, 50), (51, 100), (101, 200), (201, None))


def summarise(measured: list[FileFacts]) -> dict[str, Any]:
    """Return the totals, the most complex files and the files that could not be measured."""
    good = [facts for facts in measured if "error" not in facts]
    ranked = sorted(good, key=lambda facts: (-facts["complexity"], facts["path"]))
    return {
        "files": len(measured),
        "measured": len(good),
        "lines": sum(facts["lines"] for facts in good),
        "codeLines": sum(facts["code_lines"] for facts in good),
        "functions": sum(facts["functions"] for facts in good),
        "complexity": sum(facts["complexity"] for facts in good),
        "mostComplex": ranked[:_SHOWN],
        "spread": [[_bucket_name(low, high), _count(good, low, high)] for low, high in _BUCKETS],
        "notMeasured": [facts for facts in measured if "error" in facts],
    }


def render_json(name: str, measured: list[FileFacts]) -> str:
    """Return everything, for programs."""
    content = {"schemaVersion": 1, "name": name, **summarise(measured), "allFiles": measured}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def render_markdown(name: str, measured: list[FileFacts]) -> str:
    """Return the report for reading in a terminal or a repository."""
    found = summarise(measured)
    lines = [
        f"# Code report: {name}",
        "",
        _headline(found),
        "",
        "## Most complex files",
        "",
        "| file | lines | functions | complexity | highest in one function |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {_cell(facts['path'])} | {facts['lines']} | {facts['functions']} "
        f"| {facts['complexity']} | {facts['highest']} |"
        for facts in found["mostComplex"]
    ]
    lines += ["", "## Files by complexity", "", "| complexity | files |", "| --- | ---: |"]
    lines += [f"| {bucket} | {count} |" for bucket, count in found["spread"]]
    if found["notMeasured"]:
        lines += ["", "## Not measured", ""]
        lines += [f"- `{facts['path']}`: {facts['error']}" for facts in found["notMeasured"]]
    return "\n".join(lines) + "\n"


def render_html(name: str, measured: list[FileFacts]) -> str:
    """Return one page that needs nothing else: style and chart are inside it."""
    found = summarise(measured)
    rows = "\n".join(
        f"<tr><td>{html.escape(facts['path'])}</td><td>{facts['lines']:,}</td>"
        f"<td>{facts['functions']:,}</td><td>{facts['complexity']:,}</td>"
        f"<td>{facts['highest']:,}</td></tr>"
        for facts in found["mostComplex"]
    )
    failed = "\n".join(
        f"<li><code>{html.escape(facts['path'])}</code> {html.escape(facts['error'])}</li>"
        for facts in found["notMeasured"]
    )
    return _PAGE.format(
        title=html.escape(f"Code report: {name}"),
        headline=html.escape(_headline(found)),
        chart=_chart(found["mostComplex"][:15]),
        spread=_chart([{"path": name, "complexity": count} for name, count in found["spread"]]),
        rows=rows,
        failed=f"<h2>Not measured</h2>\n<ul>\n{failed}\n</ul>" if failed else "",
    )


def _headline(found: dict[str, Any]) -> str:
    text = (
        f"{found['files']:,} files, {found['lines']:,} lines, {found['functions']:,} functions, "
        f"complexity {found['complexity']:,} in total."
    )
    missing = found["files"] - found["measured"]
    return text + (f" {missing:,} files could not be measured." if missing else "")


def _chart(bars: list[FileFacts]) -> str:
    """Return horizontal bars as an SVG picture with a text for screen readers."""
    if not bars:
        return "<p>Nothing to show.</p>"
    highest = max(bar["complexity"] for bar in bars) or 1
    parts = []
    for place, bar in enumerate(bars):
        top = place * 24
        width = round(430 * bar["complexity"] / highest, 1)
        label = html.escape(_shortened(bar["path"]))
        parts.append(
            f'<text x="262" y="{top + 16}" text-anchor="end">{label}</text>'
            f'<rect x="270" y="{top + 4}" width="{width}" height="16" rx="3"/>'
            f'<text x="{276 + width}" y="{top + 16}">{bar["complexity"]:,}</text>'
        )
    height = 24 * len(bars)
    return (
        f'<svg viewBox="0 0 760 {height}" role="img" aria-label="Bar chart">{"".join(parts)}</svg>'
    )


def _shortened(path: str, most: int = 36) -> str:
    return path if len(path) <= most else "…" + path[1 - most :]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _bucket_name(low: int, high: int | None) -> str:
    if high is None:
        return f"above {low - 1}"
    return str(low) if low == high else f"{low} to {high}"


def _count(measured: list[FileFacts], low: int, high: int | None) -> int:
    return sum(
        low <= facts["complexity"] and (high is None or facts["complexity"] <= high)
        for facts in measured
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1d2530; --soft: #667085; --bar: #2f6fde;
  --line: #d8dee8; --paper: #ffffff; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --soft: #9aa4b2;
  --bar: #6ea0ff; --line: #323a46; --paper: #14181f; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ margin-bottom: 0; }} .headline {{ color: var(--soft); margin-top: .25rem; }}
svg {{ width: 100%; height: auto; font: 13px system-ui, sans-serif; }}
svg text {{ fill: var(--ink); }} svg rect {{ fill: var(--bar); }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }}
th:first-child, td:first-child {{ text-align: left; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="headline">{headline}</p>
<h2>Most complex files</h2>
{chart}
<h2>Files by complexity</h2>
{spread}
<h2>Figures</h2>
<table>
<thead><tr><th>file</th><th>lines</th><th>functions</th><th>complexity</th>
<th>highest in one function</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
{failed}
</body>
</html>
"""
