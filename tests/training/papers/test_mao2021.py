"""Objectives against slow float64 oracles that follow the formulas of Mao et al. 2021 word for word."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.job import read_log, train
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.registry import Objectives, Setup, Views
from bitextmine.training.papers.mao2021 import align_loss, mask_one, sim_loss
from bitextmine.training.recipe import load_recipe

from ...encoder.conftest import unrolled

V, D = 23, 8
UNTAUGHT = [name for name, known in OBJECTIVES.items() if not (known.teacher or known.edits)]
PIECES = ["", *".,;:", *map(chr, range(97, 97 + V - 5))]  # 0 stands for a masked piece
CONTENT = np.array([piece.isalpha() for piece in PIECES])


def kl(q, logits):
    """D(q || softmax(logits)); 0 where q is empty."""
    if not q.any():
        return 0.0
    p = np.exp(logits - logits.max())
    p /= p.sum()
    return float(sum(q[w] * (math.log(q[w]) - math.log(p[w])) for w in range(V) if q[w] > 0))


@given(
    st.lists(st.tuples(*[st.lists(st.integers(1, V - 1), max_size=6)] * 2), min_size=1, max_size=9),
    st.integers(0, 99),
)
def test_mask_one_masks_a_content_piece_if_there_is_one(pairs, seed):
    whole = Pieces.join([Pieces.from_lists([pair[side] for pair in pairs]) for side in (0, 1)])
    side, position, piece = mask_one(whole, CONTENT, np.random.default_rng(seed))
    for i, pair in enumerate(pairs):
        sentence = pair[side[i]]
        if not sentence:
            assert (position[i], piece[i]) == (-1, -1)
            continue
        within = position[i] - whole.offsets[i + len(pairs) * side[i]]
        assert 0 <= within < len(sentence) and sentence[within] == piece[i]
        assert CONTENT[piece[i]] or not CONTENT[sentence].any(), (
            "punctuation only where there is nothing else"
        )


def test_mask_one_gives_every_content_piece_its_turn():
    whole = Pieces.join([Pieces.from_lists([[1, 5, 2, 6, 7]] * 6000)] * 2)
    _, _, piece = mask_one(whole, CONTENT, np.random.default_rng(0))
    counts = np.bincount(piece, minlength=V)
    assert counts[[5, 6, 7]].sum() == 6000 and (abs(counts[[5, 6, 7]] - 2000) < 200).all()


def softmax_row(scores):
    e = np.exp(scores - scores.max())
    return np.asarray(e / e.sum())


@pytest.mark.parametrize("n", [1, 2, 9])
def test_align_is_eq_5_and_sim_is_eq_6(n):
    rng = np.random.default_rng(n)
    u, v = rng.standard_normal((n, D)), rng.standard_normal((n, D))
    align = sim = 0.0
    for j in range(n):
        align -= math.log(softmax_row(np.array([u[j] @ v[k] for k in range(n)]))[j])
        align -= math.log(softmax_row(np.array([u[k] @ v[j] for k in range(n)]))[j])
        p = softmax_row(np.array([u[j] @ u[k] for k in range(n)]))
        q = softmax_row(np.array([v[j] @ v[k] for k in range(n)]))
        for k in range(n):
            sim -= math.log(math.cos(math.pi / 2 * (p[k] - q[k])))
    tensors = [torch.tensor(x, dtype=torch.float32) for x in (u, v)]
    assert float(align_loss(*tensors)) == pytest.approx(align / n, abs=1e-4)
    assert float(sim_loss(*tensors)) == pytest.approx(sim / n, abs=1e-4)


def test_sim_stays_finite_where_probabilities_differ_by_1():
    u = torch.tensor([[100.0, 0.0], [-100.0, 1.0]], requires_grad=True)
    v = torch.tensor([[0.0, 1.0], [0.0, 100.0]])
    loss = sim_loss(u, v)
    loss.backward()
    assert math.isfinite(float(loss.detach())) and bool(torch.isfinite(u.grad).all())


def make_batch(seed=0, n=6):
    rng = np.random.default_rng(seed)
    sides = [
        Pieces.from_lists([rng.integers(1, V, rng.integers(1, 7)).tolist() for _ in range(n)]) for _ in "st"
    ]
    return TokenPairs(sides[0], sides[1], rng.integers(0, 2**62, (2, n)).astype(np.uint64))


def make_model(layers=2):
    torch.manual_seed(1)
    model = SentenceModel(EncoderConfig(V, D, layers, heads=2, ffn=16, dropout=0.0, max_pieces=20))
    model.initialise(0.5)
    return model.train()


def objectives_of(model, **settings):
    weights = settings.pop("objective", dict.fromkeys(UNTAUGHT, 1.0))
    overrides = {"train.objective": weights, "train.piece_dropout": 0.0, "train.precision": "float32"}
    overrides |= {f"train.{key}": value for key, value in settings.items()}
    torch.manual_seed(2)
    recipe = load_recipe(None, overrides, pairs=["x.en-fr.tsv"])
    return Objectives(Setup(recipe.train, model.config, PIECES))


def test_generative_losses_are_the_papers_sums_over_one_distribution_a_sentence():
    model, batch = make_model(), make_batch()
    objectives = objectives_of(model)
    losses = objectives(model, batch, step=3)
    ugt = objectives.parts["ugt"]
    masked = Views(model, batch, objectives.settings, 3).once(ugt.masking.one)
    n = len(batch)
    with torch.no_grad():
        head = ugt.head
        hidden = head(masked.vectors).double().numpy()
        logits = hidden @ model.embedding.weight.double().numpy().T + head.bias.double().numpy()
    texts = [ids.tolist() for s in (batch.src, batch.tgt) for ids in np.split(s.ids, s.offsets[1:-1])]
    expected = dict.fromkeys(("smlm", "xtr", "ugt"), 0.0)
    for i in range(n):
        for side in (0, 1):
            row, other = logits[i + n * side], texts[i + n * (1 - side)]
            single = np.eye(V)[masked.piece[i]]
            reconstruction = np.bincount(other, minlength=V) / len(other)
            unified = 0.5 * single + 0.5 * reconstruction if side == masked.side[i] else reconstruction
            expected["smlm"] += kl(single, row) / n
            expected["xtr"] += kl(reconstruction, row) / n
            expected["ugt"] += kl(unified, row) / n
    for name, value in expected.items():
        assert float(losses[name].detach()) == pytest.approx(value, abs=1e-4), name


@pytest.mark.parametrize("name", ["smlm", "xtr", "ugt"])
def test_through_a_bottleneck_pieces_are_predicted_as_by_the_larger_model(name):
    torch.manual_seed(1)
    settings = {"heads": 2, "ffn": 16, "dropout": 0.0, "max_pieces": 20}
    model = SentenceModel(EncoderConfig(V, D, 2, bottleneck=5, **settings))
    model.initialise(0.5)
    config, weights = unrolled(model.config, {n: tensor.numpy() for n, tensor in model.state_dict().items()})
    larger = SentenceModel(config)
    larger.load_state_dict({n: torch.from_numpy(array) for n, array in weights.items()})
    batch = make_batch(n=9)
    losses = [objectives_of(m, objective={name: 1.0})(m, batch, step=3)[name] for m in (model, larger)]
    assert float(losses[0].detach()) == pytest.approx(float(losses[1].detach()), rel=1e-5)
    losses[0].backward()
    assert model.bottleneck.weight.grad is not None and bool(model.bottleneck.weight.grad.any())


def test_the_papers_sum_trains_end_to_end(make_recipe, tmp_path):
    recipe = make_recipe(
        model__layers=2,
        model__dim=32,
        model__heads=4,
        model__ffn=64,
        train__objective={"ugt": 1.0, "align": 2.0, "sim": 2.0},
        train__steps=60,
        train__valid_every=60,
        train__learning_rate=2e-3,
        train__embedding_learning_rate=5e-3,
    )
    last = read_log(train(recipe, tmp_path / "out") / "log.jsonl")[-1]
    weighted = last["ugt"] + 2 * last["align"] + 2 * last["sim"]
    assert last["loss"] == pytest.approx(weighted, rel=1e-4)
    assert last["p_at_1"]["mean"] > 60
