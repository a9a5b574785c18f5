"""The network in training: piece vectors, transformer layers, mean pooling."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.extra_columns import LONGEST, length_table, repeat_table, steps, wave

WITHOUT_CUDNN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class PieceVectors(nn.Embedding):
    """A vector per piece."""

    def gathered(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return places (total pieces,) int64 and rows (m, dim): the vector of piece i is rows[places[i]]."""
        return ids, self.weight


class SentenceModel(nn.Module):
    """Encodes sentences given as pieces; one set of parameters for all languages.

    layers = 0: the sum of the sentence's piece vectors (only its direction counts; with config.repeat_damping, repeated
    pieces count less), then config.order_columns for the order of the pieces; with config.length_share this has length
    1, and columns for its length follow (`extra_columns`). layers > 0: pre-norm transformer (Vaswani et al. 2017;
    learned positions, GELU, final LayerNorm), then the mean over the sentence's positions, as in Mao et al. 2021,
    section 3.1. With config.bottleneck a matrix brings the piece vectors to the layers' dimension, with
    config.recurrent the layers are repeated (both after Lan et al. 2020, "ALBERT").
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = PieceVectors(config.rows, config.stored_dim)
        if config.order_columns:
            self.wave: Tensor
            self.register_buffer("wave", torch.from_numpy(wave().copy()), persistent=False)
        if config.repeat_damping:
            self.repeat_table: Tensor
            table = torch.from_numpy(repeat_table(config.repeat_damping).copy())
            self.register_buffer("repeat_table", table, persistent=False)
        if config.length_share:
            self.length_share_in_training = config.length_share
            self.characters: Tensor
            self.length_table: Tensor
            self.register_buffer("characters", torch.ones(config.rows, dtype=torch.uint8))
            self.register_buffer("length_table", torch.from_numpy(length_table().copy()), persistent=False)
        if config.layers:
            self.positions = nn.Embedding(config.max_pieces, config.dim)
            if config.bottleneck:
                self.bottleneck = nn.Linear(config.bottleneck, config.dim, bias=False)
            self.layers = nn.ModuleList(Layer(config) for _ in range(config.own_layers))
            self.norm = nn.LayerNorm(config.dim)
            self.dropout = nn.Dropout(config.dropout)

    def initialise(self, std: float = 0.01) -> None:
        """Draw piece vectors (and positions) with standard deviation ``std``; layers keep their initial weights.

        It must be small: a piece that training hardly sees keeps its random vector, which is noise in every sum.
        """
        with torch.no_grad():
            self.embedding.weight.normal_(0.0, std)
            if self.config.layers:
                self.positions.weight.normal_(0.0, std)
            if self.config.bottleneck:  # orthonormal columns keep the lengths of vectors
                nn.init.orthogonal_(self.bottleneck.weight)

    @property
    def device(self) -> torch.device:
        """Return the device of the parameters."""
        return next(self.parameters()).device

    def forward(
        self, ids: Tensor, offsets: Tensor, width: int | None = None, full: bool | None = None
    ) -> Tensor:
        """Return (n, dim) sentence vectors, not normalised, of ids (total pieces,) and offsets (n + 1,) int64.

        A sentence of no pieces is all zeros. ``width`` is the length of the longest sentence, ``full`` is True if all
        are as long; stating both, in a model with layers, spares a GPU two waits.
        """
        if not self.config.layers:
            places, rows = self.embedding.gathered(ids)
            times = self._repeat_weights(ids, offsets) if self.config.repeat_damping else None
            sums = _sums(places, rows, offsets, times)
            if columns := self.config.order_columns:
                lengths = offsets.diff()
                place = torch.arange(len(ids), device=ids.device) - offsets[:-1].repeat_interleave(lengths)
                wave = self.wave[steps(place, lengths.repeat_interleave(lengths))] * self.config.order_weight
                wave = wave if times is None else wave * times
                sums = torch.cat([sums, _sums(places, rows[:, :columns].contiguous(), offsets, wave)], dim=1)
            if not self.config.length_share:
                return sums
            share = self.length_share_in_training if self.training else self.config.length_share
            each = self.characters.to(sums.dtype)[:, None]
            characters = functional.embedding_bag(ids, each, offsets, mode="sum", include_last_offset=True)
            return with_length(unit_vectors(sums), characters[:, 0], share, self.length_table)
        lengths = offsets.diff()
        if width is None:
            width = int(lengths.max()) if len(lengths) else 0
        if width == 0:
            return self.embedding.weight.new_zeros(len(lengths), self.config.dim)
        column = torch.arange(width, device=ids.device)[None, :]
        inside = column < lengths[:, None]
        # (`padded[inside] = ids` would have the GPU count what is inside, and wait for it.)
        place = (offsets[:-1, None] + column).clamp(max=len(ids) - 1)
        padded = torch.where(inside, ids[place], 0)
        states = self.states(padded, inside, full)
        total = (states * inside[:, :, None]).sum(1)
        return total / lengths.clamp(min=1)[:, None]

    def _repeat_weights(self, ids: Tensor, offsets: Tensor) -> Tensor:
        """Return each piece's weight by the number of its equals in the sentence, (total pieces,) float32."""
        lengths = offsets.diff()
        sentence = torch.arange(len(lengths), device=ids.device).repeat_interleave(lengths)
        codes = sentence * self.config.rows + ids
        _, which, counts = codes.unique(return_inverse=True, return_counts=True)
        return self.repeat_table[counts[which].clamp(max=len(self.repeat_table)) - 1]

    def piece_states(self, ids: Tensor) -> Tensor:
        """Return (..., piece_dim) states of ids (...,) int64 before the first layer, without positions."""
        states: Tensor = self.embedding(ids)
        return self.bottleneck(states) if self.config.bottleneck else states

    def states(self, padded: Tensor, inside: Tensor, full: bool | None = None) -> Tensor:
        """Return the final states (n, width, dim) of padded ids (n, width); inside (n, width) bool marks the pieces.

        full: True if all are inside (None: unknown).
        """
        hidden = self.dropout(self.piece_states(padded) + self.positions.weight[: padded.shape[1]])
        # A fully masked row would be NaN in the softmax: an empty sentence attends to its padding instead,
        # and pooling leaves it out.
        mask = None
        if not (bool(inside.all()) if full is None else full):
            mask = (inside | ~inside.any(1, keepdim=True))[:, None, None, :]
        for i in range(self.config.layers):
            hidden = self.layers[i % self.config.own_layers](hidden, mask)
        return self.norm(hidden)


def _sums(places: Tensor, rows: Tensor, offsets: Tensor, times: Tensor | None = None) -> Tensor:
    """Return (n, d) sums of the sentences' rows, weighted by ``times`` (total pieces,)."""
    return functional.embedding_bag(
        places, rows, offsets, mode="sum", include_last_offset=True, per_sample_weights=times
    )


def unit_vectors(vectors: Tensor) -> Tensor:
    """Return rows (n, d) with Euclidean length 1, in float32; a row of zeros stays zeros, never NaN."""
    vectors = vectors.float()
    length = vectors.norm(dim=1, keepdim=True)
    # Below this length a row's direction is rounding noise: an empty sentence, or pieces that cancel out.
    return torch.where(length > 1e-12, vectors / length.clamp(min=1e-12), torch.zeros_like(vectors))


def with_length(units: Tensor, characters: Tensor, share: float, table: Tensor) -> Tensor:
    """Append the columns for the length to unit rows (n, d); a row of zeros stays zeros.

    characters: (n,) lengths; share: of the squared length, for these columns; table: `length_table`.
    """
    columns = table[characters.clamp(max=LONGEST).long()]
    both = torch.cat([units * (1 - share) ** 0.5, columns * share**0.5], dim=1)
    return both * (units != 0).any(dim=1, keepdim=True)


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Apply scaled dot-product attention, on a GPU without cuDNN, which prepares anew for each shape of a batch."""
    if q.device.type == "cpu":
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    with sdpa_kernel(WITHOUT_CUDNN):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Apply attention, on a CPU always in float32.

    Its backward pass in bfloat16 takes nine times as long there (torch 2.13, 256 sentences of 12 pieces).
    """
    if q.device.type != "cpu" or q.dtype == torch.float32:
        return fused_attention(q, k, v, mask, dropout)
    with torch.autocast("cpu", enabled=False):
        return fused_attention(q.float(), k.float(), v.float(), mask, dropout)


class Layer(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.dim)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.ffn_norm = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, config.ffn)
        self.down = nn.Linear(config.ffn, config.dim)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """Return the states (n, width, dim) after this layer."""
        n, width, dim = hidden.shape
        qkv = self.qkv(self.attention_norm(hidden)).view(n, width, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        dropout = self.dropout.p if self.training else 0.0
        attended = _attention(q, k, v, mask, dropout)
        hidden = hidden + self.dropout(self.out(attended.transpose(1, 2).reshape(n, width, dim)))
        return hidden + self.dropout(self.down(functional.gelu(self.up(self.ffn_norm(hidden)))))
