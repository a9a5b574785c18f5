"""What is learned of a teacher: every loss against a slow float64 oracle, and trainings that follow one."""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.extra_columns import COLUMNS
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.training import teacher as lessons_module
from bitextmine.training.data.cache import open_caches, pair_chunks
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.data.vocabulary import open_vocabulary
from bitextmine.training.job import load_checkpoint, read_log, save_checkpoint, train
from bitextmine.training.objectives.cosines import Taught
from bitextmine.training.objectives.registry import Setup, Views, objective_class
from bitextmine.training.recipe import Training
from bitextmine.training.steps import TrainingRun
from bitextmine.training.teacher import chosen_lines, open_teacher, shares, text_key


def units(seed, n, d):
    rows = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


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
    torch.manual_seed(3)
    config = EncoderConfig(9, student.shape[1], 0)
    part = objective_class(name)(Setup(Training(), config, teacher=SimpleNamespace(dim=teacher.shape[1])))
    assert isinstance(part, Taught)
    return part._compare(student, torch.tensor(teacher, dtype=student.dtype), keys)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    ("n", "d", "e"), [(2, 3, 5), (33, 8, 3)]
)  # pairs, the student's numbers, the teacher's
def test_each_loss_is_that_of_its_oracle(name, n, d, e):
    student, teacher = units(1, 2 * n, d), units(2, 2 * n, e)
    keys = np.arange(2 * n, dtype=np.uint64).reshape(2, n)
    loss = loss_of(name, torch.tensor(student, dtype=torch.float32), teacher.astype(np.float32), keys)
    assert float(loss) == pytest.approx(ORACLES[name](student, teacher), rel=2e-4, abs=2e-6)


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
        vectors = Views(model, batch, Training(piece_dropout=0.0), step=1).vectors
        found = vectors.detach()[:, -COLUMNS:].square().sum(1) / vectors.detach().square().sum(1)
        np.testing.assert_allclose(found, share, rtol=1e-5)
    assert model.length_share_in_training == 0.4


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


TAUGHT = {"teacher__lines": 300, "teacher__batch": 32}


def cosines(encoder, pairs):
    found = encoder.encode([pair[0] for pair in pairs])
    return np.asarray((found @ found.T)[np.triu_indices(len(pairs), 1)])


@pytest.mark.parametrize("name", ["structure", "distil"])
def test_taught_alone_a_student_finds_translations_or_follows_its_teacher(
    make_recipe, tmp_path, tiny_model, sentence_pairs, p_at_1, name
):
    settings = {"train__objective": {name: 1.0}, "teacher__model": str(tiny_model), "train__steps": 120}
    recipe = make_recipe(**TAUGHT, **settings, train__valid_every=120)
    folder = train(recipe, tmp_path / "out")
    entries = read_log(folder / "log.jsonl")
    assert entries[-1][name] < entries[1][name]
    student, unseen = load_encoder(folder), sentence_pairs[5000:5100]
    assert p_at_1(student.encode, 100) > 0.25
    teacher = load_encoder(tiny_model)
    assert np.corrcoef(cosines(student, unseen), cosines(teacher, unseen))[0, 1] > 0.4
    assert "taught by model (hash" in (folder / "README.md").read_text()


def test_a_teacher_of_one_language_reads_that_side_only_and_once(make_recipe, tmp_path, monkeypatch):
    recipe = make_recipe(
        **TAUGHT,
        teacher__model="europe5",
        teacher__languages=("en",),
        train__objective={"contrastive": 1.0, "structure": 5.0},
        train__steps=4,
        data__cache=str(tmp_path / "cache"),
    )
    train(recipe, tmp_path / "out")
    english = {line.split("\t")[0] for line in (tmp_path / "pairs.en-fr.tsv").read_text().splitlines()}
    (text,) = (tmp_path / "cache").glob("teacher-*.txt")
    asked = text.read_text().splitlines()
    assert 250 < len(asked) <= 300 and set(asked) <= english and len(set(asked)) == len(asked)
    # Its vectors are there: into another folder, they are not made again.
    monkeypatch.setattr(Encoder, "encode_pieces", lambda *_, **__: pytest.fail("encoded again"))
    train(recipe, tmp_path / "more")


def test_no_pair_that_shares_a_sentence_with_a_held_out_one_is_taught(make_recipe, tmp_path, tiny_model):
    recipe = make_recipe(
        teacher__model=str(tiny_model), teacher__lines=5000, train__objective={"structure": 1.0}
    )
    tokenizer = open_vocabulary(recipe, tmp_path)
    caches = open_caches(tmp_path, recipe, tokenizer)
    teacher = open_teacher(recipe)
    found = lessons_module.open_lessons(tmp_path, recipe, caches, tokenizer, teacher, Run())
    held_out = caches[0].valid.take(np.arange(len(caches[0].valid))).keys
    (taught,) = found
    assert len(held_out[0]) == 60 and not np.isin(taught.train.pairs.keys, held_out).any()
    assert len(taught.train) == len(caches[0].train)
    drawn = taught.train.take(np.array([5, 3]))
    assert drawn.teacher is not None and drawn.teacher.shape == (2, 2, 32)
    np.testing.assert_allclose(np.linalg.norm(drawn.teacher, axis=2), 1, atol=1e-6)


def test_a_teacher_with_passes_of_its_own_teaches_in_these_from_its_first_lesson_on(
    make_recipe, tmp_path, tiny_model
):
    """Up to there the weights are those of a training without it; taken up in the middle it goes on alike."""
    both = {
        **TAUGHT,
        "train__objective": {"contrastive": 1.0, "structure": 5.0},
        "teacher__model": str(tiny_model),
    }
    recipes = [make_recipe(train__steps=6)]
    recipes += [make_recipe(**both, train__steps=6, teacher__epochs=epochs) for epochs in (0.0, 0.16, 0.16)]
    tokenizer = open_vocabulary(recipes[0], tmp_path)
    caches = open_caches(tmp_path, recipes[0], tokenizer)
    teacher = open_teacher(recipes[1])
    lessons = lessons_module.open_lessons(tmp_path, recipes[1], caches, tokenizer, teacher, Run())
    alone, early, late, again = (
        TrainingRun(recipe, caches, tokenizer, teacher=teacher, lessons=() if i == 0 else lessons)
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
