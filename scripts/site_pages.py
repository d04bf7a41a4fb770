"""Pages of the documentation site that are made, not written: a hook of mkdocs (see mkdocs.yml).

CONTRIBUTING, CHANGELOG, the examples, the help of every command, the notebooks with the outputs
that are stored in them, and a page for each section of the Python reference. Links between these
files are turned into links between pages.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in ROOT_PAGES.items():
        text = (ROOT / name).read_text().replace("](docs/", "](")
        files.append(File.generated(config, page, content=linked_as_pages(text)))
    files.append(File.generated(config, "examples.md", content=examples_page()))
    files.append(File.generated(config, "commands.md", content=commands_page()))
    for name, text in api_pages():
        if (whole := files.get_file_from_path(name)) is not None:
            files.remove(whole)
        files.append(File.generated(config, name, content=linked_as_pages(text)))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        for name, content in notebook_files(notebook):
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    return linked_as_pages(markdown)


def linked_as_pages(markdown: str) -> str:
    """Files of the repository that have a page are linked to by it."""
    for name, page in {**ROOT_PAGES, "examples": "examples.md"}.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}\)", f"]({page})", markdown)
    markdown = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](examples.md#\1)", markdown)
    return re.sub(r"\]\(([\w./-]+)\.ipynb\)", r"](\1.md)", markdown)


def examples_page() -> str:
    parts = ["# Examples", "Short scripts that run in CI, from `examples/`."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        parts += [f"## {path.stem}", f"```python\n{path.read_text()}```"]
    return "\n\n".join(parts)


def commands_page() -> str:
    from radii.cli import build_parser

    parts = ["# Commands", "What `--help` says, command by command."]
    for name, parser in commands(build_parser()):
        parts.append(f"## {name}\n\n```text\n{parser.format_help()}```")
    return "\n\n".join(parts)


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser and all parsers below it, with the words that lead to each."""
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from commands(below)


def api_pages() -> Iterator[tuple[str, str]]:
    """The sections of `docs/api.md` as pages of their own, and a list of them in its place."""
    start, *sections = re.split(r"^## ", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE)
    start = re.sub(r"\(#([\w-]+)\)", r"(api/\1.md)", start)
    entries = []
    for section in sections:
        title, _, text = section.partition("\n")
        page = f"api/{title.lower().replace(' ', '-')}.md"
        names = re.findall(r"^::: .*\.(\w+)$", text, flags=re.MULTILINE)
        entries.append(f"- [{title}]({page}): {', '.join(f'`{name}`' for name in names)}")
        below = re.sub(r"\]\((?=[a-z])", "](../", text)
        yield page, f"# {title}\n{below}"
    yield "api.md", start + "\n".join(entries) + "\n"


def notebook_files(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """The notebook as a page, and its pictures as files beside it."""
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(parts)}.png"
                yield name, base64.b64decode(data["image/png"])
                parts.append(f"![Figure drawn by the cell above]({name})")
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            elif text := "".join(output.get("text", data.get("text/plain", ""))):
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts.append(f"The notebook itself is `docs/notebooks/{path.name}`; a test runs it.")
    yield f"{path.stem}.md", "\n\n".join(parts)
