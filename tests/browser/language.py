"""Find sentences on a translated page that are still in English."""

from __future__ import annotations

import re
from collections.abc import Sequence

from playwright.sync_api import Page

# Reads the visible text of a page and the names that screen readers announce. Text from outside, such as a run's texts,
# is excluded by its element.
READ = """() => {
  const outside = 'code, pre, .katex, svg, [data-testid=stDataFrame], .text-table td, .token-text, .language, ' +
    '[data-testid=stHeaderLogo], .st-key-data_card';
  const found = new Set();
  const add = (text, node) => {
    if (text?.trim() && node.checkVisibility?.() !== false && !node.closest(outside)) found.add(text.trim());
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) add(walker.currentNode.data, walker.currentNode.parentElement);
  for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
    for (const node of document.querySelectorAll(`[${name}]`)) add(node.getAttribute(name), node);
  }
  return [...found];
}"""
# Text of Streamlit itself, which exists only in English.
STREAMLITS = {
    "Skip to main content",
    "Navigate to home page",
    "Link to heading",
    "Choose an option",
    "Choose or add an option",
    "Copy to clipboard",
    "256MB per file",
}
CITATION = re.compile(r"arXiv:\d{4}")
# Three English words in a row count as a fragment of a sentence.
ENGLISH_WORDS = re.compile(r"[A-Za-z]{2,},? [a-z]{2,},? [a-z]{2,}")
NATIVE = {"zh": re.compile("[一-鿿]"), "ko": re.compile("[가-힣]")}


def left_in_english(page: Page, code: str, texts: Sequence[str]) -> set[str]:
    """Return fragments of English sentences on a page. `texts` are those of the runs."""
    left = {
        text
        for text in page.evaluate(READ)
        if ENGLISH_WORDS.search(text) and not NATIVE[code].search(text) and not CITATION.search(text)
    }
    return {one for one in left - STREAMLITS if not any(text in one for text in texts)}
