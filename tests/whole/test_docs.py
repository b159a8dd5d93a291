"""Every page of the documentation: what it shows runs and prints what it says, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

import acegames
import chromium
from acegames.cli import app
from proof_checker import load

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference" / "python"
PAGES = sorted(DOCS.rglob("*.md"))
NAMED = {"ids": lambda page: str(page.relative_to(DOCS))}

ADAPTERS = ["gambit", "gymnasium", "openspiel", "pettingzoo", "safety_gymnasium", "storm"]

BLOCK = re.compile(r"^(?:<!-- (\w+: \S+) -->\n)?```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
"""A code block with its language. `<!-- example: FILE -->` before it makes it also a file that later blocks may read;
`<!-- needs: PACKAGE -->` lets it run only where that package is installed."""


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_what_a_page_shows_runs_in_order_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "examples/models" in page.read_text():
        tmp_path.joinpath("examples").symlink_to(ROOT / "examples")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # a page may import what it wrote
    run_page(page.read_text(), page.name)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def run_page(text, name):
    """Run the blocks of a page. A text block right behind one that runs is what it prints (see `says`)."""
    namespace = {"__name__": "docs"}
    printed, end = None, 0
    for block in BLOCK.finditer(text):
        mark, language, body = block.groups()
        what, _, named = (mark or "").partition(": ")
        if text[end : block.start()].strip():
            printed = None
        end = block.end()
        if what == "example":
            Path(named).write_text(body)
        if what == "needs" and importlib.util.find_spec(named) is None:
            printed = None
        elif language == "python":
            printed = run_python(body, name, namespace)
        elif language == "console":
            printed = "".join(map(run_command, body.splitlines()))
        elif language == "text" and printed is not None:
            assert says(body, printed), f"{name} shows\n{body}\nbut this is printed:\n{printed}"


def run_python(body, name, namespace):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, name, "exec"), namespace)
    return out.getvalue()


def run_command(line):
    words = shlex.split(line, comments=True)
    assert words[0] == "acegames", f"console blocks are run: {line}"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.output


GAIN = re.compile(r"(?<=exploitability )\S+(?=\. )|(?<=a gain is at most )\S+")
"""The gains of a certificate. Tiny ones are rounding, which differs between machines."""


def says(shown, printed):
    """Whether a page shows what is printed: `...` is anything, and tiny gains are alike."""
    shown, printed = (GAIN.sub(lambda gain: "tiny" if tiny(gain[0]) else gain[0], x.strip()) for x in (shown, printed))
    pattern = ".*".join(map(re.escape, shown.split("...")))
    return re.fullmatch(pattern, printed, flags=re.DOTALL) is not None


def tiny(number):
    return re.fullmatch(r"[\d.]+(e-\d+)?", number) is not None and float(number) < 1e-12


def test_tiny_gains_of_a_page_are_alike_and_others_are_not():
    line = "Stable: exploitability {}. No player gains more. As a share, a gain is at most {} (accepted: 1e-08)."
    assert says(line.format("3.6e-15", "0"), line.format("0", "1e-17"))
    assert not says(line.format("3.6e-15", "0"), line.format("3.6e-05", "0"))
    assert not says(line.format("0", "0"), line.format("0", "0.37"))


def test_a_page_that_is_wrong_is_noticed():
    right = "```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n"
    run_page(right, "right")
    with pytest.raises(AssertionError, match="but this is printed"):
        run_page(right.replace("42", "43"), "wrong")
    with pytest.raises(AssertionError, match="nothing_of_this_name"):
        run_page("```console\nacegames solve nothing_of_this_name\n```\n", "wrong")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "wrong")


def test_the_front_page_leaves_nothing_out():
    assert [body for _, language, body in BLOCK.findall((DOCS / "index.md").read_text()) if "..." in body] == []


LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_links_lead_somewhere(page):
    for link in LINK.findall(without_code(page.read_text())):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {link}"
        assert file.is_relative_to(ROOT), f"{page.name}: {link} leads out of the repository"
        if anchor and not anchor.startswith("acegames."):  # those are made from docstrings, and checked by the build
            assert anchor in anchors(file), f"{page.name}: {link}"


ITEM = re.compile(r"([-*]|\d+\.) ")


def swallowed_items(text):
    """List items right behind an indented paragraph, of which Markdown makes a part of that paragraph."""
    for part in BLOCK.sub("", text).split("\n\n"):
        first, *rest = part.split("\n")
        if first.startswith("    ") and not ITEM.match(first.lstrip()):
            yield from filter(ITEM.match, rest)


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_list_items_are_items(page):
    assert list(swallowed_items(page.read_text())) == []


def test_an_item_that_is_swallowed_is_noticed():
    right = "* one\n\n    more of it\n\n* two\n"
    assert list(swallowed_items(right)) == []
    assert list(swallowed_items(right.replace("it\n\n*", "it\n*"))) == ["* two"]


def without_code(text):
    return re.sub(r"`[^`\n]+`", "", BLOCK.sub("", text))


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def nav_files(entry):
    if isinstance(entry, str):
        return [entry]
    return [file for part in (entry if isinstance(entry, list) else entry.values()) for file in nav_files(part)]


def test_the_navigation_leads_to_every_page():
    listed = nav_files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(listed) == len(set(listed))
    sources = [[DOCS / file, ROOT / file, (ROOT / file).with_suffix(".ipynb")] for file in listed]
    missing = [file for file, there in zip(listed, sources, strict=True) if not any(x.is_file() for x in there)]
    assert missing == []
    own = {str(page.relative_to(DOCS)) for page in PAGES}
    assert sorted(own - set(listed)) == [], "pages that the navigation in mkdocs.yml does not list"


PUBLIC = ["", "baselines", "catalog", "learn", "plot", "files.tables", *(f"adapters.{x}" for x in ADAPTERS)]
"""Modules for users: the package itself, and those with names of their own."""


def test_the_reference_lists_every_public_name_once():
    listed = [
        re.sub(r"\b(\w+)\.\1$", r"\1", name)  # a function in a module of the same name
        for page in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: acegames\.([\w.]+)$", page.read_text(), flags=re.MULTILINE)
    ]
    modules = {name: importlib.import_module(f"acegames.{name}".rstrip(".")) for name in PUBLIC}
    names = [f"{module}.{name}".lstrip(".") for module, loaded in modules.items() for name in loaded.__all__]
    assert sorted(listed) == sorted(set(names) - set(modules))


def test_every_public_module_is_in_the_reference():
    adapters = {path.name.removesuffix(".py") for path in (ROOT / "src/acegames/adapters").iterdir()}
    assert {x for x in adapters if not x.startswith("_")} - {"environments", "tables"} == set(ADAPTERS)
    modules = {name for name in acegames.__all__ if inspect.ismodule(getattr(acegames, name))}
    assert modules <= set(PUBLIC)


def load_helper(name):
    return load(DOCS / f"{name}.py")


def test_the_command_line_reference_is_that_of_the_program():
    made = load_helper("_commands")
    assert made.PAGE.read_text() == made.page(), "run: make commands"


def test_every_command_and_option_is_in_the_command_line_reference():
    page = load_helper("_commands").page()
    for name, command in typer.main.get_command(app).commands.items():
        if command.hidden:
            continue
        part = page.split(f"\n## acegames {name}\n")[1].split("\n## ")[0]
        for option in command.params:
            for written in [*option.opts, *option.secondary_opts]:
                assert written in part or (option.metavar or written.upper()) in part, f"{name} {written}"


def test_the_first_use_of_a_word_of_the_glossary_is_linked():
    helper = load_helper("_glossary")
    words = helper.entries("## Stage game\n\nOne situation. More.\n\n## Game\n\nA *game*.\n")
    page = (
        "<h1>Stage games</h1><p>A <code>stage game</code>, two stage\ngames, <a>a game</a>, games and a stage game.</p>"
    )
    found = re.findall(
        r'<a class="word" href="glossary.html#([\w-]+)" title="([^"]*)">([^<]*)</a>', linked(helper, page, words)
    )
    assert found == [("stage-game", "One situation.", "stage\ngames"), ("game", "A game.", "games")]
    assert re.sub(r'<a class="word"[^>]*>([^<]*)</a>', r"\1", linked(helper, page, words)) == page


def linked(helper, page, words):
    return helper.linked(page, words, "glossary.html")


def test_the_glossary_has_an_entry_for_every_form():
    helper = load_helper("_glossary")
    text = (DOCS / "glossary.md").read_text()
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert titles == sorted(titles, key=str.lower) and helper.FORMS.keys() | helper.COMMON <= set(titles)
    by_hand = {"glossary", *map(str.lower, helper.COMMON)}
    assert {anchor for anchor, _ in helper.entries(text).values()} == anchors(DOCS / "glossary.md") - by_hand


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("It is that bad an outcome.", []),
        ("In each outcome of the joint action.", ["each outcome", "joint action"]),
        ("The standard deviation of a safe deviation.", ["safe deviation"]),
        (
            "A coarse correlated equilibrium is no correlated\nequilibrium.",
            ["coarse correlated equilibrium", "correlated\nequilibrium"],
        ),
        ("A fair share on the floor of each layer.", []),
    ],
)
def test_words_are_linked_only_in_the_sense_of_the_glossary(text, marked):
    helper = load_helper("_glossary")
    words = helper.entries((DOCS / "glossary.md").read_text())
    assert re.findall(r'<a class="word"[^>]*>([^<]*)</a>', linked(helper, text, words)) == marked


NAMED_FILE = re.compile(r"`([\w.]+(?:/[\w.]+)+/?|\w+\.(?:py|md|h|toml|yml))`")
NAMED_OBJECT = re.compile(r"`([a-z_]+)\.(?!py\b)(\w+)[^`/]*`")


@pytest.mark.parametrize(
    "page", [*(DOCS / "inside").glob("*.md"), ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_what_the_map_names_exists(page):
    """A path begins at the root of the repository or of the package, or is a test below `tests`; a module has what it is named with."""
    source, text = ROOT / "src" / "acegames", page.read_text()
    for x in NAMED_FILE.findall(text):
        assert any(place.exists() for place in (ROOT / x, source / x, ROOT / "tests" / f"{x}.py")), x
    modules: dict[str, str] = {}
    for path in source.rglob("*.py"):
        modules[path.stem] = modules.get(path.stem, "") + path.read_text()
    for module, name in NAMED_OBJECT.findall(text):
        assert re.search(rf"\b{name}\b", modules.get(module, name)), f"{module}.{name}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("pip install '.[docs]' to build the site")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_needs_no_network(site):
    for page in site.rglob("*.html"):
        fetched = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]*)"', page.read_text())
        fetched += re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(https?:[^"]*)"', page.read_text())
        assert fetched == [], page.name
    assert (site / "benchmarks" / "growth.png").exists()
    assert [*site.rglob("*.py[co]")] == [], "left by the build's own hooks"
    assert "solve" in (site / "search" / "search_index.js").read_text()


@pytest.mark.slow
def test_the_site_has_formulas_the_version_and_links_to_the_glossary(site):
    theory = (site / "in-depth" / "theory.html").read_text()
    assert "<math" in theory and "arithmatex" not in theory
    assert f"acegames {acegames.__version__}" in theory
    tutorial = (site / "tutorial.html").read_text()
    assert tutorial.count('<a class="word" href="glossary.html#situation"') == 1  # at its first use alone
    for part in re.finditer(r"<(h\d|pre|code)\b.*?</\1>", tutorial, flags=re.DOTALL):
        assert 'class="word"' not in part[0]


WIDER = """(() => {
  const right = document.querySelector(".md-content").getBoundingClientRect().right + 1;
  const scrolls = (x) => x.parentElement && x.parentElement !== document.body
    && (["auto", "scroll"].includes(getComputedStyle(x.parentElement).overflowX) || scrolls(x.parentElement));
  const wide = [...document.querySelectorAll(".md-content *")].filter((x) => x.getBoundingClientRect().right > right);
  const cut = wide.filter((x) => x.getBoundingClientRect().width && !scrolls(x) && !x.closest(".md-top"));
  const page = document.documentElement.scrollWidth - innerWidth;
  return [...(page > 0 ? [`the page by ${page} pixels`] : []), ...cut.map((x) => x.outerHTML.slice(0, 100))];
})()"""
"""What reaches beyond the right edge of a page and cannot be scrolled."""


@pytest.mark.slow
@pytest.mark.skipif(chromium.find() is None, reason=chromium.MISSING)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_off_at_the_right(site, width):
    browser = chromium.Chromium(chromium.find())
    for path in sorted(site.rglob("*.html")):
        page = browser.open(path, width=width, ready="document.readyState === 'complete'")
        assert page.get(WIDER) == [], path.relative_to(site)
        page.close()
    browser.close()
