"""The main text of web pages."""

import time

import pytest

from bitextmine.documents.pages import page

PIECES = ["<option>a", "<rt/>x ", "<a><b><a>", "<b><p>", "<font><i>", "</option><optgroup ", "&amp;"]


@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear(piece):
    many = piece * (300_000 // len(piece))
    html = f"<html><body><p>The boats came in.</p>{many}<p>Nobody spoke of it.</p></body></html>"
    started = time.process_time()
    text = page(html.encode())
    assert time.process_time() - started < 2  # seconds
    assert text[0].startswith("The boats came in.")
