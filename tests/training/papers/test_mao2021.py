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
from bitextmine.encoder.weights import unrolled
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.registry import Objectives, Setup, Views
from bitextmine.training.outputs import read_log
from bitextmine.training.papers import divergence
from bitextmine.training.papers.divergence import piece_counts, softmax_divergence
from bitextmine.training.papers.mao2021 import MASK, align_loss, mask_like_bert, mask_one, sim_loss
from bitextmine.training.recipe import load_recipe
from bitextmine.training.trainer import train

V, D = 23, 8
UNTAUGHT = [name for name, known in OBJECTIVES.items() if not (known.teacher or known.edits)]
PIECES = ["", *".,;:", *map(chr, range(97, 97 + V - 5))]  # 0 stands for a masked piece
CONTENT = np.array([piece.isalpha() for piece in PIECES])

sentences = st.lists(st.lists(st.integers(1, V - 1), max_size=6), min_size=1, max_size=8)


def dense(targets):
    found = np.zeros((targets.rows, V))
    np.add.at(found, (targets.row, targets.piece), targets.mass.astype(np.float64))
    return found


def kl(q, logits):
    """D(q || softmax(logits)); 0 where q is empty."""
    if not q.any():
        return 0.0
    p = np.exp(logits - logits.max())
    p /= p.sum()
    return float(sum(q[w] * (math.log(q[w]) - math.log(p[w])) for w in range(V) if q[w] > 0))


@given(sentences)
def test_eq_3_gives_each_piece_its_share_and_rows_sum_to_1(found):
    q = dense(piece_counts(Pieces.from_lists(found)))
    for row, sentence in zip(q, found, strict=True):
        for w in range(V):
            assert row[w] == pytest.approx(sentence.count(w) / len(sentence) if sentence else 0, abs=1e-6)


@given(sentences, st.data())
def test_eq_4_halves_and_rows_sum_to_1_even_if_the_masked_piece_is_among_the_others(found, data):
    piece = np.array([data.draw(st.integers(-1, V - 1)) for _ in found], dtype=np.int64)
    q = dense(piece_counts(Pieces.from_lists(found)).mixed(piece, 0.5))
    for row, sentence, masked in zip(q, found, piece, strict=True):
        for w in range(V):
            expected = sentence.count(w) / len(sentence) if sentence else 0.0
            if masked >= 0:
                expected = (0.5 * expected if sentence else 0.0) + (w == masked) * (0.5 if sentence else 1.0)
            assert row[w] == pytest.approx(expected, abs=1e-6)
        assert row.sum() == pytest.approx(1 if sentence or masked >= 0 else 0, abs=1e-6)


@pytest.mark.parametrize("block", [2, 256])
@pytest.mark.parametrize("seed", range(4))
def test_divergence_value_and_gradient(block, seed, monkeypatch):
    monkeypatch.setattr(divergence, "ROWS", block)
    rng = np.random.default_rng(seed)
    found = [rng.integers(1, V, rng.integers(0, 6)).tolist() for _ in range(7)]
    targets = piece_counts(Pieces.from_lists(found)).mixed(rng.integers(-1, V, 7), 0.5)
    weights = rng.random(7).astype(np.float32)
    arrays = [rng.standard_normal(shape) for shape in ((7, D), (V, D), (V,))]

    def oracle():
        hidden, embedding, bias = arrays
        q = dense(targets)
        return float(sum(float(weights[i]) * kl(q[i], embedding @ hidden[i] + bias) for i in range(7)))

    tensors = [torch.tensor(a, dtype=torch.float32, requires_grad=True) for a in arrays]
    loss = softmax_divergence(*tensors, targets, weights)
    assert float(loss.detach()) == pytest.approx(oracle(), abs=1e-4)
    (loss * 3).backward()
    for array, tensor in zip(arrays, tensors, strict=True):
        for _ in range(5):
            at = tuple(int(rng.integers(size)) for size in array.shape)
            array[at] += 1e-5
            up = oracle()
            array[at] -= 2e-5
            down = oracle()
            array[at] += 1e-5
            assert float(tensor.grad[at]) == pytest.approx(3 * (up - down) / 2e-5, abs=2e-3)


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


def test_bert_masking_has_its_shares_and_leaves_no_sentence_out():
    rng = np.random.default_rng(0)
    whole = Pieces.from_lists([rng.integers(5, V, n).tolist() for n in [1, 0, 2] * 50 + [60] * 300])
    ids, positions = mask_like_bert(whole, CONTENT, np.random.default_rng(1))
    assert (np.diff(positions) > 0).all()
    assert len(positions) / len(ids) == pytest.approx(0.15, abs=0.02)
    assert (ids[positions] == MASK).mean() == pytest.approx(0.8, abs=0.03)
    untouched = np.setdiff1d(np.arange(len(ids)), positions)
    assert (ids[untouched] == whole.ids[untouched]).all()
    rows = np.searchsorted(whole.offsets, positions, side="right") - 1
    assert set(rows.tolist()) == set(np.flatnonzero(whole.lengths).tolist())


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
    texts = [
        s.ids[a:b].tolist()
        for s in (batch.src, batch.tgt)
        for a, b in zip(s.offsets[:-1], s.offsets[1:], strict=True)
    ]
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


def test_mlm_reads_the_states_at_the_masked_positions():
    model, batch = make_model(), make_batch()
    objectives = objectives_of(model, objective={"mlm": 1.0})
    loss = float(objectives(model, batch, step=5)["mlm"].detach())
    n = len(batch)
    whole = Pieces.join([batch.src, batch.tgt])
    ids, positions = mask_like_bert(whole, CONTENT, np.random.default_rng([1, 5, 3]))
    per_pair: list[list[float]] = [[] for _ in range(n)]
    head = objectives.parts["mlm"].head
    with torch.no_grad():
        for position in positions:
            row = int(np.searchsorted(whole.offsets, position, side="right")) - 1
            a, b = whole.offsets[row], whole.offsets[row + 1]
            one = torch.tensor(ids[a:b].astype(np.int64))[None]
            state = model.states(one, torch.ones_like(one, dtype=torch.bool))[0, position - a]
            logits = head(state) @ model.embedding.weight.T + head.bias
            per_pair[row % n].append(kl(np.eye(V)[whole.ids[position]], logits.double().numpy()))
    assert loss == pytest.approx(sum(np.mean(x) for x in per_pair) / n, abs=1e-4)


@pytest.mark.parametrize("name", ["mlm", "smlm", "xtr", "ugt"])
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


@pytest.mark.parametrize("name", UNTAUGHT)
@pytest.mark.parametrize("layers", [0, 2])
def test_every_objective_goes_down_when_it_is_followed(name, layers):
    if name == "mlm" and not layers:
        pytest.skip("mlm needs layers, and the recipe check says so")
    model, batch = make_model(layers), make_batch(n=12)
    objectives = objectives_of(model, objective={name: 1.0})
    optimizer = torch.optim.Adam([*model.parameters(), *objectives.parameters()], lr=0.02)
    losses = []
    for _ in range(60):
        loss = objectives(model, batch, step=0)[name]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0] and math.isfinite(losses[-1])


def test_the_papers_sum_trains_end_to_end(make_recipe, tmp_path):
    recipe = make_recipe(
        train__objective={"ugt": 1.0, "align": 2.0, "sim": 2.0},
        train__steps=60,
        train__valid_every=60,
        train__batch=64,
        model__layers=2,
        model__dim=32,
        model__heads=4,
        model__ffn=64,
        train__learning_rate=2e-3,
        train__embedding_learning_rate=5e-3,
    )
    folder = train(recipe, tmp_path / "out")
    entries = read_log(folder / "log.jsonl")
    assert {"loss", "ugt", "align", "sim"} <= entries[-1].keys()
    weighted = entries[-1]["ugt"] + 2 * entries[-1]["align"] + 2 * entries[-1]["sim"]
    assert entries[-1]["loss"] == pytest.approx(weighted, rel=1e-4)
    assert entries[-1]["p_at_1"]["mean"] > 60
