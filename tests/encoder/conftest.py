"""Model folders made on the spot: a vocabulary of 120 pieces, random weights."""

import dataclasses

import pytest


@pytest.fixture(autouse=True, scope="module")
def exact():
    """Matrices in float32, whatever the processor: what bfloat16 changes is test_transformer.py's matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitextmine.encoder.network.pick_precision", lambda kind: "float32")
        yield


def save_folder(folder, model, tokenizer, **options):
    """Write the folder of a model."""
    from bitextmine.encoder.folder import write_folder

    state = {name: array.detach().numpy() for name, array in model.state_dict().items()}
    write_folder(folder, model.config, state, tokenizer, **options)


def unrolled(config, weights):
    """Return the same model without bottleneck and recurrence."""
    arrays = dict(weights)
    if config.bottleneck:
        arrays["embedding.weight"] = arrays["embedding.weight"] @ arrays.pop("bottleneck.weight").T
    for i in range(config.own_layers, config.layers):
        mine, same = f"layers.{i}.", f"layers.{i % config.own_layers}."
        arrays |= {
            name.replace(same, mine): array for name, array in weights.items() if name.startswith(same)
        }
    return dataclasses.replace(config, bottleneck=0, recurrent=0), arrays


@pytest.fixture(scope="session")
def tiny_tokenizer(sentence_pairs, tmp_path_factory):
    """A SentencePiece model of 120 pieces."""
    from bitextmine.training.data.vocabulary import train_vocabulary
    from bitextmine.training.recipe import load_recipe

    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    recipe = load_recipe(None, {"vocabulary.size": 120}, pairs=["x.en-fr.tsv"])
    train_vocabulary(recipe, path, [side for pair in sentence_pairs[:400] for side in pair])
    return path


@pytest.fixture(scope="session")
def make_folder(tiny_tokenizer):
    """Makes a model folder of so many layers and dimensions, with random weights that are always the same."""
    import torch

    from bitextmine.encoder.config import EncoderConfig
    from bitextmine.encoder.model import SentenceModel
    from bitextmine.encoder.tokenizer import Tokenizer

    def make(folder, layers, dim=16):
        size = Tokenizer(tiny_tokenizer).vocab_size
        config = EncoderConfig(size, dim, layers, heads=4, ffn=32, max_pieces=50, languages=("en", "fr"))
        torch.manual_seed(3)
        model = SentenceModel(config)
        model.initialise(0.1)
        save_folder(folder, model, tiny_tokenizer)
        return folder

    return make
