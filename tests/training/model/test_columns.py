"""Training vectors that tell the order of the pieces and the length of a sentence."""

import numpy as np
import pytest
import torch

from bitextmine.encoder.columns import COLUMNS, piece_characters, steps, wave
from bitextmine.encoder.folder import WEIGHTS, read_folder
from bitextmine.encoder.weights import CHARACTERS, read_weights
from bitextmine.training.trainer import train


@pytest.mark.parametrize("spelling", [False, True])
def test_vectors_and_gradients_in_training_are_those_of_plain_sums(make_recipe, begin, spelling):
    recipe = make_recipe(model__dim=24, model__order_columns=8, model__spelling=spelling)
    run = begin(recipe)
    run.model.train()
    sentences = [[3, 9, 3, 20], [], [7], [20, 9, 3, 3, 11]]
    ids = torch.tensor([piece for sentence in sentences for piece in sentence])
    offsets = torch.tensor([0, *np.cumsum([len(sentence) for sentence in sentences])])
    found = run.model(ids, offsets)

    table = run.model.embedding.table() if spelling else run.model.embedding.weight.detach()
    rows = table.numpy().astype(np.float64)
    expected = np.zeros((len(sentences), 24))
    for i, sentence in enumerate(sentences):
        for place, piece in enumerate(sentence):
            at = int(steps(torch.tensor([place]), torch.tensor([len(sentence)]))[0])
            expected[i, :16] += rows[piece]
            expected[i, 16:] += rows[piece, :8] * float(wave()[at]) * 0.6
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-6)

    # The derivative of all numbers' squares is twice their sum of products with what moves them.
    found.square().sum().backward()
    own = run.model.embedding.own if spelling else run.model.embedding.weight
    gradient = np.zeros_like(rows[: len(own)])
    for i, sentence in enumerate(sentences):
        for place, piece in enumerate(sentence):
            at = int(steps(torch.tensor([place]), torch.tensor([len(sentence)]))[0])
            gradient[piece] += 2 * expected[i, :16]
            gradient[piece, :8] += 2 * expected[i, 16:] * float(wave()[at]) * 0.6
    np.testing.assert_allclose(own.grad.to_dense().numpy(), gradient, atol=1e-6)


@pytest.mark.parametrize("spelling", [False, True])
def test_the_finished_model_has_its_own_share_for_the_length(make_recipe, begin, tmp_path, spelling):
    recipe = make_recipe(
        model__dim=40,
        model__length_share=0.2,
        model__spelling=spelling,
        train__length_share_in_training=0.4,
        train__steps=20,
    )
    out = train(recipe, tmp_path / "out")
    config, tokenizer = read_folder(out)
    assert (config.length_share, config.dim, config.piece_dim) == (0.2, 40, 40 - COLUMNS)
    assert (read_weights(config, out / WEIGHTS)[CHARACTERS] == piece_characters(tokenizer.pieces())).all()

    run = begin(recipe)
    ids, offsets = torch.arange(9), torch.tensor([0, 4, 9])
    with torch.no_grad():
        shares = [
            run.model.train(training)(ids, offsets)[:, -COLUMNS:].square().sum(1).numpy()
            for training in (True, False)
        ]
    np.testing.assert_allclose(shares, [[0.4, 0.4], [0.2, 0.2]], atol=1e-5)
