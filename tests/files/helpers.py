"""What the tests of several formats of pairs use."""

from bitextmine.files.formats.table import open_table


def pairs_in(path, columns=None):
    """The pairs of a file, or the reason why a row is none."""
    table = open_table(path, columns)
    found: list[tuple[str, str] | str] = []
    for block in table.rows.blocks(3):
        bad, at = block.bad(), range(len(block))
        sides = (block.texts(side, at) for side in (table.layout.src, table.layout.tgt))
        found += [bad.get(row) or pair for row, pair in enumerate(zip(*sides, strict=True))]
    return found
