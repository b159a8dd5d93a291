"""For the site: the first use of a word of the glossary on a page becomes a link to its entry."""

from __future__ import annotations

import html
import re

ENTRY = re.compile(r"^## (.+)\n\n((?:.+\n)+)", flags=re.MULTILINE)
FORMS = {
    "Action mask": r"action masks?",
    "CCE": r"coarse correlated equilibri(?:um|a)|CCE",
    "CE": r"(?<!coarse\s)correlated equilibri(?:um|a)|CE",
    "Certificate": r"certificates?|certif(?:y|ies)|certified(?=:| as\b)",
    "Deviation": r"(?<!standard\s)deviations?",
    "Discount": r"discount(?:ed|ing)",
    "Exploitability": r"exploitability|regret",
    "Feasible": r"feasible|feasibility|infeasible",
    "History": r"histor(?:y|ies)(?= of positive probability\b)|(?:every|possible|every possible) history",
    "Nash": r"Nash equilibri(?:um|a)",
    "Objective": r"(?<!qualitative\s)objectives?",
    "Outcome": r"(?:every|each|possible)(?: possible)? outcomes?|outcomes? of (?:a|an|the|every|each) (?:joint )?action",
    "Proof": r"proofs?(?= files?\b| for others\b| that (?:others|somebody))",
    "Safe": r"safe deviations?|safe play|safe joint actions?",
    "Subgame perfect": r"subgame[- ]perfect(?:ion)?",
    "Support": r"(?:pair of |pairs of |the )supports?(?= of\b|,|\.)",
    "Utility": r"utilit(?:y|ies)|payoffs?(?!\s+sets?\b)",
    "Value": r"expected total rewards?",
}
"""Words that are not just the title of the entry with an s, as regular expressions."""

COMMON = {"Block", "Bracket", "Digest", "Driver", "Fair", "Floor", "Layer", "Node", "Promise", "Schedule", "Worker"}
"""Entries whose word has other meanings in running text: pages link to them by hand."""

UNLINKED = ("a", "autoref", "button", "code", "h1", "h2", "h3", "h4", "h5", "h6", "label", "math", "pre", "svg", "th")
TAG = re.compile(r"(<[^>]*>)")


def entries(text: str) -> dict[str, tuple[str, str]]:
    """Of each entry whose word is linked, its form in pages, its anchor and its first sentence."""
    found = {}
    for title, meaning in ENTRY.findall(text):
        if title in COMMON:
            continue
        form = FORMS.get(title, re.escape(title) + "s?").replace(r"\ ", " ").replace(" ", r"\s+")
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`$]", r"\1", " ".join(meaning.split()))
        found[form] = (re.sub(r"\W+", "-", title.lower()), re.split(r"(?<=[.:]) ", plain)[0])
    return found


def linked(content: str, words: dict[str, tuple[str, str]], path: str) -> str:
    """The first use of each word in running text, as a link to its entry."""
    parts = TAG.split(content)
    waiting = {re.compile(rf"\b(?:{form})\b", re.IGNORECASE): entry for form, entry in words.items()}
    inside = 0  # tags whose text stays as it is
    for number, part in enumerate(parts):
        if number % 2:
            name = re.match(r"</?([\w-]+)", part)
            if name and name[1] in UNLINKED and not part.endswith("/>"):
                inside += -1 if part.startswith("</") else 1
            continue
        if inside or not part.strip():
            continue
        found = sorted((use.span(), word) for word in waiting if (use := word.search(part)))
        made, end = [], 0
        for (start, stop), word in found:
            if start < end:  # within a longer word, which was linked; a later use will do
                continue
            anchor, meaning = waiting.pop(word)
            made.append(part[end:start])
            made.append(f'<a class="word" href="{path}#{anchor}" title="{html.escape(meaning)}">{part[start:stop]}</a>')
            end = stop
        parts[number] = "".join(made) + part[end:]
    return "".join(parts)
