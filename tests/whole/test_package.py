"""What the package says of itself: one version, one place of the documentation, links that lead there, one list of what it needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import acegames

ROOT = Path(__file__).parents[2]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = WHOLE["project"]
SITE = PROJECT["urls"]["Documentation"]
README = (ROOT / "README.md").read_text()
RECIPE = yaml.safe_load(re.sub(r"\$\{\{ (\w+) \}\}", r"<\1>", (ROOT / "conda" / "recipe.yaml").read_text()))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
BIBTEX = re.compile(r"^```bibtex\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def packaged_readme():
    """The README as hatch-fancy-pypi-readme writes it into the package's metadata."""
    text = README
    for change in WHOLE["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    return text


def test_there_is_one_version():
    assert PROJECT["version"] == acegames.__version__ == CITATION["version"] == RECIPE["context"]["version"]
    assert f"version = {{{acegames.__version__}}}" in README


def test_there_is_one_place_of_the_documentation():
    site = re.search(r"^site_url: (.*)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    about = RECIPE["about"]
    assert site and site[1] == CITATION["url"] == about["homepage"] == about["documentation"] == SITE
    assert all(url.startswith(SITE) for url in PROJECT["urls"].values())
    assert f"{{{SITE}}}" in README


def test_readme_and_front_page_cite_alike():
    (ours,) = BIBTEX.findall(README)
    assert BIBTEX.findall((ROOT / "docs" / "index.md").read_text()) == [ours]
    paper = CITATION["preferred-citation"]
    assert all(f"{{{word}}}" in ours for word in (paper["title"], paper["doi"], f"{paper['start']}--{paper['end']}"))


LINKS = re.findall(r"\]\(([^)\s]+)\)", README)


def test_no_link_of_the_packaged_readme_is_relative():
    links = re.findall(r"\]\(([^)\s]+)\)", packaged_readme())
    assert len(links) == len(LINKS) > 40
    assert all(re.match(r"https?://", link) for link in links)
    assert f"{SITE}gallery/index.html" in links and f"{SITE}glossary.html#situation" in links


@pytest.mark.parametrize("link", sorted({link for link in LINKS if "://" not in link}))
def test_links_of_the_packaged_readme_lead_to_pages_of_the_site(link):
    """Pages are the files of docs/ and what a page links to; see docs/_hooks.py."""
    target = link.partition("#")[0]
    if target.startswith("docs/"):
        assert (ROOT / target).is_file()
    else:
        pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
        assert re.search(rf"\]\((\.\./)+{re.escape(target)}[)#]", pages), f"no page links to {target}"


def test_the_recipe_needs_what_the_package_needs():
    def bounds(lines):
        needs = map(Requirement, lines)
        return {(need.name, frozenset(map(str, need.specifier))) for need in needs}

    run = [line for line in RECIPE["requirements"]["run"] if not line.startswith("python ")]
    assert bounds(run) == bounds(PROJECT["dependencies"])
    host = [line for line in RECIPE["requirements"]["host"] if line.split()[0] not in ("python", "pip")]
    assert bounds(host) == bounds(WHOLE["build-system"]["requires"])
    (script,) = (f"{name} = {place}" for name, place in PROJECT["scripts"].items())
    assert RECIPE["build"]["python"]["entry_points"] == [script]
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]


def test_the_workflow_runs_what_ci_runs_on_every_named_system_and_python():
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["test"]
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]
    matrix = job["strategy"]["matrix"]
    pythons = {*matrix["python"], *(case["python"] for case in matrix["include"])}
    promised = {word.rpartition(" ")[2] for word in PROJECT["classifiers"] if re.search(r"Python :: 3\.", word)}
    assert pythons == promised
    systems = {"ubuntu-latest": "Linux", "macos-latest": "MacOS", "windows-latest": "Windows"}
    named = {word.rpartition(" ")[2] for word in PROJECT["classifiers"] if word.startswith("Operating System")}
    assert {systems[name] for name in matrix["system"]} == named
