"""What is learned of a teacher: every loss against a slow float64 oracle, and trainings that follow one."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns import COLUMNS
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.training import teacher as lessons_module
from bitextmine.training.objectives import teaching
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.registry import Views
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.pairs import pair_chunks
from bitextmine.training.recipe import Training
from bitextmine.training.teacher import VectorStore, chosen_lines, shares, text_key
from bitextmine.training.trainer import train


def units(seed, n, d):
    rows = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


SIZES = [(2, 3, 5), (7, 4, 4), (33, 8, 3)]  # pairs, the student's numbers, the teacher's


def eq_2(s, t):
    n = len(s) // 2
    return sum(((t[i] - s[i]) ** 2).sum() + ((t[n + i] - s[n + i]) ** 2).sum() for i in range(n)) / n


def eq_5(s, t):
    n = len(s) // 2
    return sum((t[i] @ t[j] - s[i] @ s[n + j]) ** 2 for i in range(n) for j in range(n)) / n**2


def eq_8(s, t, same=None):
    n = len(s) // 2
    same = np.eye(n) if same is None else same
    return sum((same[i, j] - s[i] @ s[n + j]) ** 2 for i in range(n) for j in range(n)) / n**2


def eq_9(s, t):
    n, total = len(s) // 2, 0.0
    for i in range(n):
        below = sum(math.exp(s[i] @ s[n + k] / 0.05) for k in range(n))
        for j in range(n):
            total -= (t[i] @ t[j]) * math.log(math.exp(s[i] @ s[n + j] / 0.05) / below)
    return total / n


def all_squares(s, t):
    m = len(s)
    return sum((t[i] @ t[j] - s[i] @ s[j]) ** 2 for i in range(m) for j in range(m)) / m**2


ORACLES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "mcl": eq_5,
    "mcl_bool": eq_8,
    "mcl_ce": eq_9,
    "structure": all_squares,
}


def loss_of(name, student, teacher, keys):
    from bitextmine.encoder.config import EncoderConfig
    from bitextmine.training.objectives.registry import Setup, objective_class
    from bitextmine.training.recipe.keys import Teacher, Training

    torch.manual_seed(3)
    config = EncoderConfig(9, student.shape[1], 0)
    part = objective_class(name)(Setup(Training(), config, Teacher("x"), teacher.shape[1]))
    assert isinstance(part, teaching.Taught)
    return part._loss(student, torch.tensor(teacher, dtype=student.dtype), keys)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("size", SIZES)
def test_each_loss_is_that_of_its_oracle_and_so_is_its_gradient(name, size):
    n, d, e = size
    student, teacher = units(1, 2 * n, d), units(2, 2 * n, e)
    keys = np.arange(2 * n, dtype=np.uint64).reshape(2, n)
    tensor = torch.tensor(student, dtype=torch.float32, requires_grad=True)
    loss = loss_of(name, tensor, teacher.astype(np.float32), keys)
    assert float(loss.detach()) == pytest.approx(ORACLES[name](student, teacher), rel=2e-4, abs=2e-6)
    loss.backward()
    rng = np.random.default_rng(5)
    for _ in range(4):
        at = int(rng.integers(2 * n)), int(rng.integers(d))
        up, down = student.copy(), student.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        slope = (ORACLES[name](up, teacher) - ORACLES[name](down, teacher)) / 2e-5
        # The correlation of off-diagonal cosines is the oracle's for any rows, not for rows of length 1 only.
        assert float(tensor.grad[at]) == pytest.approx(slope, rel=5e-3, abs=2e-3)


def test_distil_is_eq_2_with_a_map_where_the_numbers_differ():
    student, teacher = units(1, 14, 6), units(2, 14, 6)
    keys = np.arange(14, dtype=np.uint64).reshape(2, 7)
    loss = loss_of("distil", torch.tensor(student), teacher, keys)
    assert float(loss) == pytest.approx(eq_2(student, teacher), rel=1e-6)
    for d in (4, 9):
        small = units(1, 14, d)
        torch.manual_seed(3)
        linear = torch.nn.Linear(d, 6, bias=False)
        torch.nn.init.orthogonal_(linear.weight)
        mapped = small @ linear.weight.detach().double().numpy().T
        if d < 6:
            np.testing.assert_allclose(mapped @ mapped.T, small @ small.T, atol=1e-5)  # it changes no cosine
        found = loss_of("distil", torch.tensor(small, dtype=torch.float32), teacher, keys)
        assert float(found.detach()) == pytest.approx(eq_2(mapped, teacher), rel=1e-4)


def test_eq_8_counts_pairs_that_share_a_sentence_as_the_same():
    student = units(1, 10, 4)
    keys = np.array([[1, 2, 1, 4, 5], [6, 7, 8, 9, 9]], dtype=np.uint64)
    same = np.eye(5)
    same[0, 2] = same[2, 0] = same[3, 4] = same[4, 3] = 1
    found = loss_of("mcl_bool", torch.tensor(student), student, keys)
    assert float(found) == pytest.approx(eq_8(student, student, same), rel=1e-6)


def test_a_lesson_is_of_vectors_as_the_finished_model_has_them():
    """Of their squared length the columns that tell the sentence's have model.length_share, whatever training on
    translations has meanwhile."""
    torch.manual_seed(1)
    model = SentenceModel(EncoderConfig(23, 6 + COLUMNS, 0, length_share=0.2)).train()
    model.initialise(0.5)
    model.length_share_in_training = 0.4
    sides = [Pieces.from_lists([[1, 2, 3], [4, 5]]) for _ in "st"]
    keys = np.arange(4, dtype=np.uint64).reshape(2, 2)
    for teacher, share in ((units(1, 4, 3).astype(np.float32).reshape(2, 2, 3), 0.2), (None, 0.4)):
        batch = TokenPairs(sides[0], sides[1], keys, teacher=teacher)
        vectors = Views(model, batch, Training(piece_dropout=0.0), np.ones(23, dtype=bool), step=1).vectors
        found = vectors.detach()[:, -COLUMNS:].square().sum(1) / vectors.detach().square().sum(1)
        np.testing.assert_allclose(found, share, rtol=1e-5)
    assert model.length_share_in_training == 0.4


def test_a_student_like_its_teacher_has_nothing_to_learn():
    rows = units(1, 12, 5)
    turned = rows @ np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    keys = np.arange(12, dtype=np.uint64).reshape(2, 6)
    assert float(loss_of("structure", torch.tensor(turned), rows, keys)) == pytest.approx(0, abs=1e-6)
    assert float(loss_of("distil", torch.tensor(rows), rows, keys)) == 0


def test_shares_follow_sizes_and_weights_and_no_corpus_gives_more_than_it_has():
    assert shares([100, 300], [1, 1], 40) == [10, 30]
    assert shares([100, 300], [3, 1], 40) == [20, 20]
    assert shares([10, 300], [30, 1], 60) == [10, 50]
    assert shares([10, 20], [1, 1], 1000) == [10, 20]
    assert shares([0, 20], [1, 1], 10) == [0, 10]


def test_the_lines_chosen_are_those_of_the_smallest_keys_each_once(make_recipe, sentence_pairs):
    rows = [f"{en}\t{fr}" for en, fr in sentence_pairs[:300]]
    recipe = make_recipe([*rows, *rows[:50]])
    (corpus,) = recipe.data.corpora
    lines = chosen_lines(recipe, corpus, 40)
    assert [f"{line.src}\t{line.tgt}" for line in lines] == [rows[line.number] for line in lines]
    assert {rows[line.number] for line in lines} == set(sorted(rows, key=text_key)[:40])
    assert [line.number for line in lines] == sorted(line.number for line in lines)
    assert set(lines) < set(chosen_lines(recipe, corpus, 41)), "one more changes no other"
    assert len(chosen_lines(recipe, corpus, 10_000)) == 300
    assert sum(len(src) for src, _ in pair_chunks(recipe, corpus, 64)) == 350


def test_the_store_gives_what_was_put_in_and_drops_what_was_cut_short(tmp_path):
    identity = {"model": "x", "hash": "y"}
    store = VectorStore(tmp_path, identity, 3)
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 2**63, 10).astype(np.uint64) * np.uint64(2)
    vectors = rng.standard_normal((10, 3)).astype(np.float16)
    with store.filling():
        store.add(keys[:4], vectors[:4])
        store.add(keys[4:], vectors[4:])
    again = VectorStore(tmp_path, identity, 3)
    with again.filling():
        order = rng.permutation(10)
        assert (again[again.places(keys[order])] == vectors[order]).all()
        assert (again.places(keys + np.uint64(1)) == -1).all()
    other = VectorStore(tmp_path, {"model": "x", "hash": "z"}, 3)
    with other.filling():
        assert len(other) == 0, "another teacher's vectors are kept apart"
    with (again.folder / "vectors").open("ab") as file:
        file.write(b"half")  # killed within a row, before the journal had its key
    journal = (again.folder / "journal").read_bytes()
    (again.folder / "journal").write_bytes(journal[:-3])
    left = VectorStore(tmp_path, identity, 3)
    with left.filling():
        assert len(left) == 4
        left.add(keys[4:], vectors[4:])
    assert (left[left.places(keys)] == vectors).all()
    assert (left.folder / "vectors").read_bytes() == vectors.tobytes()
    with (again.folder / "vectors").open("r+b") as file:
        file.truncate(12)
    with pytest.raises(BitextmineError, match=r"vectors: cut short; remove .*teacher-"):
        left[np.arange(10)]


TAUGHT = {"teacher__lines": 300, "teacher__batch": 32}


def cosines(encoder, pairs):
    found = encoder.encode([pair[0] for pair in pairs])
    return np.asarray((found @ found.T)[np.triu_indices(len(pairs), 1)])


@pytest.mark.parametrize("name", [name for name, declared in OBJECTIVES.items() if declared.taught])
def test_taught_alone_a_student_finds_translations_or_follows_its_teacher(
    make_recipe, tmp_path, tiny_model, sentence_pairs, name
):
    settings = {"train__objective": {name: 1.0}, "teacher__model": str(tiny_model), "train__steps": 120}
    recipe = make_recipe(**TAUGHT, **settings, train__valid_every=120)
    folder = train(recipe, tmp_path / "out")
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert entries[-1][name] < entries[1][name]
    student, unseen = load_encoder(folder), sentence_pairs[5000:5100]
    en, fr = (student.encode([pair[side] for pair in unseen]) for side in (0, 1))
    assert ((en @ fr.T).argmax(1) == np.arange(100)).mean() > 0.25
    if name != "mcl_bool":
        teacher = load_encoder(tiny_model)
        assert np.corrcoef(cosines(student, unseen), cosines(teacher, unseen))[0, 1] > 0.4
    assert "taught by model (hash" in (folder / "README.md").read_text()


def test_a_teacher_of_one_language_reads_that_side_only_and_a_student_starts_from_an_encoder(
    make_recipe, tmp_path, tiny_model, monkeypatch
):
    asked: list[str] = []
    encode = Encoder.encode

    def note(self, sentences, **options):
        asked.extend(sentences)
        return encode(self, sentences, **options)

    monkeypatch.setattr(Encoder, "encode", note)
    recipe = make_recipe(
        **TAUGHT,
        teacher__model="europe5",
        teacher__languages=("en",),
        train__objective={"contrastive": 1.0, "structure": 5.0},
        train__steps=4,
        vocabulary__size=150,
    )
    train(recipe, tmp_path / "out")
    english = {line.split("\t")[0] for line in (tmp_path / "pairs.en-fr.tsv").read_text().splitlines()}
    assert 250 < len(asked) <= 300 and set(asked) <= english and len(set(asked)) == len(asked)
    asked.clear()
    # Its vectors are there: of another recipe, into another folder, they are not made again.
    (tmp_path / "more").mkdir()
    (tmp_path / "out" / "work" / "cache").rename(tmp_path / "cache")
    more = make_recipe(
        **{**TAUGHT, "teacher__lines": 330},
        teacher__model="europe5",
        teacher__languages=("en",),
        train__objective={"contrastive": 1.0, "distil": 1.0},
        train__steps=2,
        data__cache=str(tmp_path / "cache"),
        model__start_from=str(tiny_model),
        model__dim=32,
    )
    train(more, tmp_path / "more")
    assert 0 < len(asked) < 80, "but for other lines, and those of another vocabulary's held-out pairs"


def test_no_pair_that_shares_a_sentence_with_a_held_out_one_is_taught(make_recipe, tmp_path, tiny_model):
    from bitextmine.training.cache import open_caches
    from bitextmine.training.teacher import open_teacher
    from bitextmine.training.vocabulary import open_vocabulary

    recipe = make_recipe(
        teacher__model=str(tiny_model), teacher__lines=5000, train__objective={"structure": 1.0}
    )
    tokenizer = open_vocabulary(recipe, tmp_path)
    caches = open_caches(tmp_path, recipe, tokenizer)
    teacher = open_teacher(recipe)
    found = lessons_module.open_lessons(tmp_path, recipe, caches, tokenizer, teacher)
    held_out = caches[0].valid.take(np.arange(len(caches[0].valid))).keys
    (taught,) = found.corpora
    assert len(held_out[0]) == 60 and not np.isin(taught.train.pairs.keys, held_out).any()
    assert len(found) == len(caches[0].train)
    drawn = taught.train.take(np.array([5, 3]))
    assert drawn.teacher is not None and drawn.teacher.shape == (2, 2, 32)
    np.testing.assert_allclose(np.linalg.norm(drawn.teacher, axis=2), 1, atol=1e-6)


def test_a_teacher_with_passes_of_its_own_teaches_in_these_from_its_first_lesson_on(
    make_recipe, tmp_path, tiny_model
):
    """Up to there the weights are those of a training without it; taken up in the middle it goes on alike."""
    import torch

    from bitextmine.training.cache import open_caches
    from bitextmine.training.run import Inputs, TrainingRun
    from bitextmine.training.teacher import open_teacher
    from bitextmine.training.trainer import load_checkpoint, save_checkpoint
    from bitextmine.training.vocabulary import open_vocabulary

    both = {"contrastive": 1.0, "structure": 5.0}
    recipes = [
        make_recipe(train__steps=6, train__objective={"contrastive": 1.0}),
        *(
            make_recipe(
                **TAUGHT,
                train__steps=6,
                train__objective=both,
                teacher__model=str(tiny_model),
                teacher__epochs=epochs,
                teacher__rate=0.5,
            )
            for epochs in (0.0, 0.16, 0.16)
        ),
    ]
    tokenizer = open_vocabulary(recipes[0], tmp_path)
    caches = open_caches(tmp_path, recipes[0], tokenizer)
    teacher = open_teacher(recipes[1])
    lessons = lessons_module.open_lessons(tmp_path, recipes[1], caches, tokenizer, teacher)
    alone, early, late, again = (
        TrainingRun(Inputs(recipe, caches, tokenizer, lessons=None if i == 0 else lessons))
        for i, recipe in enumerate(recipes)
    )

    def steps(run, begin, end):
        drawn = [run.draw(step) for step in range(begin, end)]
        for batch, lesson in drawn:
            run.learn(batch, 1.0, lesson)
        return [lesson if lesson is None else lesson.src.ids.tolist() for _, lesson in drawn]

    assert (alone.steps, early.steps) == (6, 6)
    assert late.steps == 6 + math.ceil(0.16 * len(caches[0].train) / recipes[2].train.batch) == 10
    first = steps(early, 0, 4)
    steps(alone, 0, 6)
    assert steps(late, 0, 6) == [None] * 6
    for name, weights in alone.model.state_dict().items():
        assert torch.equal(weights, late.model.state_dict()[name])
    assert steps(late, 6, 8) == first[:2] and None not in first
    save_checkpoint(tmp_path / "c.pt", late.state())
    again.restore(load_checkpoint(tmp_path / "c.pt"))
    assert steps(again, 8, 10) == first[2:]
    steps(late, 8, 10)
    for name, weights in late.model.state_dict().items():
        assert torch.equal(weights, again.model.state_dict()[name])
    assert not torch.equal(weights, alone.model.state_dict()[name])


def test_rates_fall_once_more_while_a_teacher_with_passes_of_its_own_teaches(
    make_recipe, tmp_path, tiny_model
):
    recipe = make_recipe(
        **TAUGHT,
        train__steps=4,
        train__warmup=0.25,
        train__floor=0.1,
        train__learning_rate=1e-3,
        train__valid_every=1,
        train__objective={"contrastive": 1.0, "structure": 5.0},
        teacher__model=str(tiny_model),
        teacher__epochs=0.16,
        teacher__rate=0.5,
    )
    folder = train(recipe, tmp_path / "out")
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    entries = [entry for entry in lines if "learning_rate" in entry]
    expected = [1.0, *(0.1 + 0.9 * (1 + math.cos(math.pi * i / 3)) / 2 for i in range(3))]
    expected += [0.1 + 0.4 * (1 + math.cos(math.pi * i / 4)) / 2 for i in range(4)]
    assert [entry["learning_rate"] for entry in entries] == pytest.approx([1e-3 * x for x in expected])
    assert ["structure" in entry for entry in entries] == [False] * 4 + [True] * 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"teacher__model": "missing"}, r"recipe: teacher\.model: missing: no such model folder"),
        (
            {"train__objective": {"embedding": 1.0}, "teacher__model": "europe5"},
            r"europe5: teacher and student disagree: its vocabulary, of \d+ pieces, is not the student's, of \d+",
        ),
    ],
)
def test_a_teacher_that_cannot_teach_is_told(make_recipe, tmp_path, wrong, said):
    with pytest.raises(BitextmineError, match=said):
        train(make_recipe(**{"train__objective": {"structure": 1.0}, **wrong}), tmp_path / "out")
    assert not (tmp_path / "out" / "config.json").exists()
    assert (tmp_path / "out").exists() == (wrong["teacher__model"] == "europe5"), (
        "a missing one leaves no folder"
    )


def test_nan_from_a_teacher_is_told_with_the_line(make_recipe, tmp_path, tiny_model, monkeypatch):
    encode = Encoder.encode
    sick: list[str] = []

    def one_is_nan(self, sentences, **options):
        found = encode(self, sentences, **options)
        found[17, 3] = float("nan")
        sick.append(sentences[17])
        return found

    monkeypatch.setattr(Encoder, "encode", one_is_nan)
    recipe = make_recipe(**TAUGHT, teacher__model=str(tiny_model), train__objective={"structure": 1.0})
    with pytest.raises(
        BitextmineError, match=r"its vector of line \d+ of pairs\.en-fr\.tsv .* NaN"
    ) as caught:
        train(recipe, tmp_path / "out")
    number = int(str(caught.value).split("of line ")[1].split()[0])
    line = (tmp_path / "pairs.en-fr.tsv").read_text().splitlines()[number - 1]
    assert sick[0] in line.split("\t") and repr(sick[0]) in str(caught.value)


def precomputed(make_recipe, folder, arrays, **settings):
    import dataclasses

    recipe = make_recipe(train__objective={"contrastive": 1.0}, **TAUGHT, **settings)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (corpus,) = recipe.data.corpora
    corpus = dataclasses.replace(corpus, **{f"{name}_vectors": f"{name}.npy" for name in arrays})
    return dataclasses.replace(
        recipe,
        data=dataclasses.replace(recipe.data, corpora=(corpus,)),
        teacher=dataclasses.replace(recipe.teacher, model="precomputed"),
        train=dataclasses.replace(recipe.train, objective={"distil": 1.0}, steps=90),
    )


def test_vectors_of_another_tool_teach_row_by_row(make_recipe, tmp_path, tiny_model, sentence_pairs):
    teacher = load_encoder(tiny_model)
    sides = {name: [pair[i] for pair in sentence_pairs[:1600]] for i, name in enumerate(("src", "tgt"))}
    arrays = {name: 3 * teacher.encode(lines).astype(np.float64) for name, lines in sides.items()}
    folder = train(precomputed(make_recipe, tmp_path, arrays), tmp_path / "out")
    unseen = sentence_pairs[5000:5100]
    assert np.corrcoef(cosines(load_encoder(folder), unseen), cosines(teacher, unseen))[0, 1] > 0.6


def test_vectors_of_another_tool_that_do_not_fit_are_told(make_recipe, tmp_path):
    good = units(1, 1600, 6)
    bad = good.copy()
    bad[:, 2] = np.inf
    for arrays, said in (
        ({"src": good[:1599]}, r"src\.npy: 1,599 rows, but the text has 1,600 lines"),
        ({"src": good, "tgt": good[:, :5]}, r"src\.npy has 6 dimensions, but .*tgt\.npy has 5"),
        ({"tgt": bad}, r"tgt\.npy: row \d+ contains NaN or infinite numbers"),
        ({"src": np.arange(1600)}, r"src\.npy: holds int64 numbers"),
        ({"src": 0 * good}, r"precomputed: its vectors are all zeros"),
    ):
        with pytest.raises(BitextmineError, match=said):
            train(precomputed(make_recipe, tmp_path, arrays), tmp_path / "out")
    recipe = precomputed(make_recipe, tmp_path, {"src": good})
    (tmp_path / "src.npy").write_bytes(good.tobytes())
    with pytest.raises(BitextmineError, match=r"src\.npy: not a whole \.npy file"):
        train(recipe, tmp_path / "out")
    (tmp_path / "src.npy").unlink()
    with pytest.raises(BitextmineError, match=r"src\.npy: cannot read the teacher's vectors: No such file"):
        train(recipe, tmp_path / "out")
