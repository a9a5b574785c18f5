"""Words and their pieces stay together whatever breaks a call off: Ctrl-C, no memory, a failing tokeniser."""

import itertools
import linecache
import sys
import threading

import pytest

from bitextmine import compiled
from bitextmine.encoder import tokenizer as words
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Words

FIRST = ["the cat sat", "le chat est là", ""]
BROKEN = ["a cat and a dog", "der Hund und die Katze, là", "the the the"]
AFTER = ["the dog sat", "die Katze", "a new word", "the cat là Hund und"]


@pytest.fixture(params=["compiled", "plain"])
def way(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    elif compiled.library("encoder") is None:
        pytest.skip("not compiled")
    return str(request.param)


def cut(new):
    """A letter is a piece, so that a word that is taken for another one shows."""
    return Pieces.from_lists([[ord(letter) for letter in word] for word in new])


def encode(table, lines, cutting=cut):
    pieces, _ = table.encode("\n".join(lines), len(lines), 1 << 40, cutting)
    return [pieces.ids[a:b].tolist() for a, b in itertools.pairwise(pieces.offsets.tolist())]


def expected(lines):
    return [[ord(letter) for letter in line if letter != " "] for line in lines]


class Breaking:
    """Raises an exception before the so-manieth step of the interpreter within the module."""

    def __init__(self, step, kind):
        self.left, self.kind = step, kind

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != words.__file__:
            return None
        frame.f_trace_opcodes = True
        # Python 3.12 may leave out opcodes; lines then have to do.
        if event == "opcode" or (event == "line" and sys.version_info[:2] == (3, 12)):
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            # Python takes no signal between entering or leaving a lock and noting that it did.
            if "with self._lock" not in line:
                self.left -= 1
                if not self.left:
                    raise self.kind("planted")
        return self


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("kind", "most"),
    [(KeyboardInterrupt, words.MAX_WORDS), (MemoryError, words.MAX_WORDS), (KeyboardInterrupt, 3)],
)
def test_a_call_may_be_broken_off_at_any_step(kind, most, monkeypatch):
    """Also one that forgets, as there are more words than are to be remembered."""
    monkeypatch.setattr(words, "MAX_WORDS", most)
    steps = 0
    for step in itertools.count(1):
        table = Words()
        assert encode(table, FIRST) == expected(FIRST)
        before = sys.gettrace()
        sys.settrace(Breaking(step, kind))
        try:
            encode(table, BROKEN)
        except kind:
            steps += 1
        else:
            break
        finally:
            sys.settrace(before)
        assert encode(table, AFTER) == expected(AFTER), f"after step {step}"
        assert encode(table, BROKEN) == expected(BROKEN), f"after step {step}"
        assert encode(table, FIRST) == expected(FIRST), f"after step {step}"
    assert steps > 20, "nothing was broken off"


@pytest.mark.usefixtures("way")
def test_a_failing_tokeniser_leaves_no_words_without_pieces():
    def failing(_):
        raise MemoryError("planted")

    def short(new):
        return cut(new[:-1])

    table = Words()
    encode(table, FIRST)
    known = len(table)
    many = [" ".join(f"word{i}" for i in range(5000))]  # for which the table grows
    for wrong, error in ((failing, MemoryError), (short, ValueError)):
        with pytest.raises(error):
            encode(table, many, wrong)
        assert len(table) == known
    assert encode(table, AFTER) == expected(AFTER)
    assert encode(table, [*FIRST, *many]) == expected([*FIRST, *many])


def test_threads_share_a_table(way):
    texts = [[f"{'abcdefg'[i % 7] * (i % 50)} w{i * j % 997} w{i}" for i in range(300)] for j in range(1, 9)]
    table = Words()
    found: list[list[list[int]]] = [[] for _ in texts]
    begin = threading.Barrier(len(texts))

    def work(number):
        begin.wait()
        found[number] = encode(table, texts[number])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected(text) for text in texts], way
