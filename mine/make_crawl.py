"""Make a small crawl of two sites in English and French, to try `bitextmine split` on.

    python mine/make_crawl.py crawl.warc.gz
    bitextmine split crawl.warc.gz --by-language -o 'crawl.{lang}' &&
        bitextmine mine crawl.en crawl.fr --origin | bitextmine score --src en --tgt fr |
        bitextmine filter --src en --tgt fr -o pairs.tmx

The text is that of mine/samples. Each page has navigation, a cookie banner, a footer and links; one page in four is
there twice, under another address; one site declares a wrong encoding. Images are in between, and the pages are in
random order. Prints the number of sentence pairs in the crawl.
"""

from __future__ import annotations

import argparse
import gzip
import html
import random
import sys
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples" / "source"
EN = "Home|About us|Contact|We use cookies to improve your visit.|Accept all|Legal notice|Read more"
FR = "Accueil|À propos|Nous écrire|Nous utilisons des cookies.|Tout accepter|Mentions légales|Lire la suite"
WORDS = {"en": EN.split("|"), "fr": FR.split("|")}
SITES = {
    "harbour": """<!DOCTYPE html><html lang="{lang}"><head><meta charset="{charset}"><title>{title}</title></head>
<body><header><nav><ul><li><a href="/">{0}</a></li><li><a href="/a">{1}</a></li><li><a href="/c">{2}</a></li></ul></nav>
</header>
<div id="cookie-banner" class="cookie-consent"><p>{3}</p><button>{4}</button></div>
<main><article><h1>{title}</h1>{text}</article></main>
<aside class="sidebar"><ul><li><a href="/x">{6}</a></li><li><a href="/y">{6}</a></li></ul></aside>
<footer><a href="/legal">{5}</a> © 2024</footer></body></html>""",
    "valley": """<html><head><meta http-equiv="Content-Type" content="text/html; charset={charset}">
<title>{title}</title></head><body>
<div class="menu"><a href="/">{0}</a> | <a href="/a">{1}</a> | <a href="/c">{2}</a></div>
<div class="content"><h2>{title}</h2>{text}</div>
<div class="cookies">{3} <a href="#">{4}</a></div><div class="footer"><a href="/legal">{5}</a></div></body></html>""",
}


def response(url: str, body: bytes, kind: str) -> bytes:
    """Return a compressed record of the crawl."""
    http = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode() + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(http)}\r\n"
        "Content-Type: application/http; msgtype=response\r\n\r\n"
    )
    return gzip.compress(head.encode() + http + b"\r\n\r\n", mtime=0)


def pairs() -> list[tuple[str, str]]:
    """Return the English and French sentences of the samples, in the order of their files."""
    files = [path.read_text(encoding="utf-8").splitlines() for path in sorted(SAMPLES.glob("parallel-*.tsv"))]
    rows = [line.split("\t") for _, *lines in files for line in lines]
    return [(en, fr) for _, en, _, _, fr, _ in rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="the crawl, WARC compressed with gzip")
    output = parser.parse_args().output
    rng = random.Random(1)
    sentences = pairs()
    articles = [sentences[i : i + 12] for i in range(0, len(sentences), 12)]
    records = []
    for number, article in enumerate(articles):
        site = list(SITES)[number % 2]
        for side, lang in enumerate(("en", "fr")):
            paragraphs = [article[i : i + 3] for i in range(0, len(article), 3)]
            text = "".join(
                f"<p>{html.escape(' '.join(pair[side] for pair in some))}</p>" for some in paragraphs
            )
            charset = "iso-8859-1" if site == "valley" else "utf-8"
            title = f"{number + 1}"
            page = SITES[site].format(*WORDS[lang], lang=lang, title=title, text=text, charset=charset)
            for copy in range(1 + (number % 4 == 0)):
                url = f"https://{site}.example/{lang}/{number}" + "?print=1" * copy
                records.append(response(url, page.encode(), "text/html"))
        records.append(response(f"https://{site}.example/{number}.png", b"\x89PNG\r\n", "image/png"))
    rng.shuffle(records)
    output.write_bytes(b"".join(records))
    print(f"{len(records)} records, {len(sentences)} sentence pairs", file=sys.stderr)


if __name__ == "__main__":
    main()
