/* Two sentences compared piece by piece, and by all features of their pieces, windows and parts. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

/* What follows comes in versions for wider registers: VERSIONS(MAKE, name) makes them, BEST(name) is the one to take here. */
#if X86
#define VERSIONS(MAKE, NAME) MAKE(NAME##_plain, ) MAKE(NAME##_avx2, T_AVX2) MAKE(NAME##_avx512, T_512BW)
#define BEST(NAME) (registers() == 2 ? NAME##_avx512 : registers() == 1 ? NAME##_avx2 : NAME##_plain)

static int registers(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) return 2;
    return __builtin_cpu_supports("avx2") ? 1 : 0;
}
#else
#define VERSIONS(MAKE, NAME) MAKE(NAME##_plain, )
#define BEST(NAME) NAME##_plain
#endif

/* The vectors of a vocabulary: values (pieces, dim). To compare sums of them, a number is (value * factor of its row +
 * 2^15) / 2^16, rounded down: on one scale, and whole, so that sums and products are exact. */
typedef struct {
    const int8_t *values;
    const int32_t *factor; /* (pieces) */
    int64_t dim;
} vocabulary;

/* One sentence of a pair: its pieces, what of it is compared, and what it is most similar to. */
typedef struct {
    const int32_t *ids;
    int64_t count;
    int16_t *rows;  /* (count, dim) */
    float *inverse; /* (count): 1 / length of each row, or 0 */
    float *best;    /* (count): the highest cosine of each row with one of the other sentence, -2 where there is none */
    int32_t *match; /* (count): of which of them */
} side;

static void sentence(side *s, const int32_t *ids, const int64_t *offsets, int64_t i) {
    s->ids = ids + offsets[i];
    s->count = offsets[i + 1] - offsets[i];
}

/* Of the two sentences of a pair together. */
static int64_t most_pieces(const int64_t *a_offsets, const int64_t *b_offsets, int64_t pairs) {
    int64_t most = 0;
    for (int64_t i = 0; i < pairs; i++) {
        int64_t count = a_offsets[i + 1] - a_offsets[i] + b_offsets[i + 1] - b_offsets[i];
        if (count > most) most = count;
    }
    return most;
}

/* ---- pieces ---- */

/* For each row of two sentences the row of the other one that has the highest cosine with it; the first of equal ones.
 *
 * Rows are whole numbers, whose products are exact, so that the result is the same on every machine. */
INLINE void match_pair(const side *a, const side *b, int64_t dim) {
    const int64_t na = a->count, nb = b->count;
    const float *a_inverse = a->inverse, *b_inverse = b->inverse;
    float *b_best = b->best;
    int32_t *a_match = a->match, *b_match = b->match;
    for (int64_t p = 0; p < na; p++) a->best[p] = -2, a_match[p] = 0;
    for (int64_t p = 0; p < nb; p++) b_best[p] = -2, b_match[p] = 0;
    for (int64_t i = 0; i < na; i++) {
        const int16_t *x = a->rows + i * dim;
        float best = -2;
        for (int64_t j = 0; j < nb; j += 4) {
            /* Four at once, so that x is read once for them; the last ones again where nb is no multiple. */
            const int16_t *y[4];
            int32_t total[4] = {0};
            for (int64_t l = 0; l < 4; l++) y[l] = b->rows + (j + l < nb ? j + l : nb - 1) * dim;
            for (int64_t k = 0; k < dim; k++) {
                int32_t value = x[k];
                total[0] += value * y[0][k];
                total[1] += value * y[1][k];
                total[2] += value * y[2][k];
                total[3] += value * y[3][k];
            }
            for (int64_t l = 0; l < 4 && j + l < nb; l++) {
                float cosine = (float)total[l] * a_inverse[i] * b_inverse[j + l];
                if (cosine > best) {
                    best = cosine;
                    a_match[i] = (int32_t)(j + l);
                }
                if (cosine > b_best[j + l]) {
                    b_best[j + l] = cosine;
                    b_match[j + l] = (int32_t)i;
                }
            }
        }
        a->best[i] = best;
    }
}

/* int32 that match_wide() wants to work in, for two sentences of so many pieces together. */
static int64_t width(int64_t count) { return (count + 15) / 16 * 16; }
static int64_t match_room(int64_t most, int64_t dim) { return (dim / 2 + 4) * width(most) + 16; }

#if X86

/* The same products, 4 rows by 32 of the other sentence at a time: these lie side by side, two numbers of each together, so
 * that no sum runs across a register. An even dim. */
T_512BW static void match_wide(const side *a, const side *b, int64_t dim, int32_t *room) {
    const int64_t na = a->count, nb = b->count, w = width(nb), pairs = dim / 2;
    int32_t *const turned = room, *const totals = room + pairs * w;
    for (int64_t p = 0; p < na; p++) a->best[p] = -2, a->match[p] = 0;
    for (int64_t p = 0; p < nb; p++) b->best[p] = -2, b->match[p] = 0;
    if (!na || !nb) return;
    for (int64_t from = 0; from < pairs; from += 16) {
        const int64_t to = from + 16 < pairs ? from + 16 : pairs;
        for (int64_t j = 0; j < w; j++)
            for (int64_t k = from; k < to; k++) {
                int32_t two = 0;
                if (j < nb) memcpy(&two, b->rows + j * dim + 2 * k, 4);
                turned[k * w + j] = two;
            }
    }
    for (int64_t i = 0; i < na; i += 4) {
        const int16_t *x[4];
        for (int64_t r = 0; r < 4; r++) x[r] = a->rows + (i + r < na ? i + r : na - 1) * dim;
        for (int64_t c = 0; c < w;) {
            const int both = c + 32 <= w;
            __m512i t[4][2];
            for (int r = 0; r < 4; r++) t[r][0] = t[r][1] = _mm512_setzero_si512();
            const int32_t *y = turned + c;
#define WIDE_STEP(r, v, from) t[r][v] = _mm512_add_epi32(t[r][v], _mm512_madd_epi16(from, _mm512_set1_epi32(two[r])))
            if (both)
                for (int64_t k = 0; k < pairs; k++, y += w) {
                    const __m512i y0 = _mm512_loadu_si512(y), y1 = _mm512_loadu_si512(y + 16);
                    int32_t two[4];
                    for (int r = 0; r < 4; r++) memcpy(two + r, x[r] + 2 * k, 4);
                    WIDE_STEP(0, 0, y0), WIDE_STEP(0, 1, y1), WIDE_STEP(1, 0, y0), WIDE_STEP(1, 1, y1);
                    WIDE_STEP(2, 0, y0), WIDE_STEP(2, 1, y1), WIDE_STEP(3, 0, y0), WIDE_STEP(3, 1, y1);
                }
            else
                for (int64_t k = 0; k < pairs; k++, y += w) {
                    const __m512i y0 = _mm512_loadu_si512(y);
                    int32_t two[4];
                    for (int r = 0; r < 4; r++) memcpy(two + r, x[r] + 2 * k, 4);
                    WIDE_STEP(0, 0, y0), WIDE_STEP(1, 0, y0), WIDE_STEP(2, 0, y0), WIDE_STEP(3, 0, y0);
                }
            for (int r = 0; r < 4; r++) {
                _mm512_storeu_si512(totals + r * w + c, t[r][0]);
                if (both) _mm512_storeu_si512(totals + r * w + c + 16, t[r][1]);
            }
            c += both ? 32 : 16;
        }
        for (int64_t r = 0; r < 4 && i + r < na; r++) {
            const __m512 inverse = _mm512_set1_ps(a->inverse[i + r]), least = _mm512_set1_ps(-2);
            float best = -2;
            for (int64_t c = 0; c < nb; c += 16) {
                const __mmask16 there = nb - c < 16 ? (__mmask16)((1u << (nb - c)) - 1) : (__mmask16)0xffff;
                const __m512 product = _mm512_cvtepi32_ps(_mm512_loadu_si512(totals + r * w + c));
                const __m512 cosine = _mm512_mask_mul_ps(least, there, _mm512_mul_ps(product, inverse),
                                                         _mm512_maskz_loadu_ps(there, b->inverse + c));
                const float most = _mm512_reduce_max_ps(cosine);
                if (most > best) { /* the first of equal ones */
                    best = most;
                    a->match[i + r] =
                        (int32_t)(c + __builtin_ctz(_mm512_cmp_ps_mask(cosine, _mm512_set1_ps(most), _CMP_EQ_OQ)));
                }
                const __mmask16 higher = _mm512_mask_cmp_ps_mask(
                    there, cosine, _mm512_maskz_loadu_ps(there, b->best + c), _CMP_GT_OQ);
                _mm512_mask_storeu_ps(b->best + c, higher, cosine);
                _mm512_mask_storeu_epi32(b->match + c, higher, _mm512_set1_epi32((int32_t)(i + r)));
            }
            a->best[i + r] = best;
        }
    }
}

#else
#define match_wide(A, B, DIM, ROOM) match_pair(A, B, DIM)
#endif

/* wide: known when it is compiled, of the versions for AVX-512. */
INLINE void match_either(const side *a, const side *b, int64_t dim, int32_t *room, int wide) {
    if (wide && dim % 2 == 0)
        match_wide(a, b, dim, room);
    else
        match_pair(a, b, dim);
}

typedef void match(const side *a, const side *b, int64_t dim, int32_t *room);

#define MATCH(NAME, TARGET)                                                                        \
    TARGET static void NAME(const side *a, const side *b, int64_t dim, int32_t *room) {            \
        match_either(a, b, dim, room, WIDE_##NAME);                                                \
    }
#define WIDE_match_plain 0
#define WIDE_match_avx2 0
#define WIDE_match_avx512 1

VERSIONS(MATCH, match)

static void widen(const side *s, const int8_t *values, const float *inverse, int64_t dim) {
    for (int64_t i = 0; i < s->count; i++) {
        const int8_t *row = values + s->ids[i] * dim;
        for (int64_t k = 0; k < dim; k++) s->rows[i * dim + k] = row[k];
        s->inverse[i] = inverse[s->ids[i]];
    }
}

/* The matches of pairs of sentences: values (pieces, dim) int8, inverse (pieces), pair i has the pieces
 * a_ids[a_offsets[i]] to a_ids[a_offsets[i + 1] - 1] and the same of b. best and match, of a and of b, have a number
 * for each piece; a sentence whose other one has no pieces gets -2 and 0. Returns 0, or -1 when memory runs out. */
int64_t match_pieces(const int8_t *values, const float *inverse, int64_t dim, const int32_t *a_ids,
                     const int64_t *a_offsets, const int32_t *b_ids, const int64_t *b_offsets, int64_t pairs,
                     float *a_best, int32_t *a_match, float *b_best, int32_t *b_match) {
    match *one = BEST(match);
    int64_t most = most_pieces(a_offsets, b_offsets, pairs);
    int16_t *rows = malloc((most * dim + 1) * sizeof(int16_t));
    float *inverses = malloc((most + 1) * sizeof(float));
    int32_t *room = malloc(match_room(most, dim) * sizeof(int32_t));
    int64_t failed = !rows || !inverses || !room ? -1 : 0;
    for (int64_t i = 0; i < pairs && !failed; i++) {
        side a = {.rows = rows, .inverse = inverses, .best = a_best + a_offsets[i], .match = a_match + a_offsets[i]};
        sentence(&a, a_ids, a_offsets, i);
        side b = {.rows = rows + a.count * dim, .inverse = inverses + a.count, .best = b_best + b_offsets[i],
                  .match = b_match + b_offsets[i]};
        sentence(&b, b_ids, b_offsets, i);
        widen(&a, values, inverse, dim);
        widen(&b, values, inverse, dim);
        one(&a, &b, dim, room);
    }
    free(rows);
    free(inverses);
    free(room);
    return failed;
}

/* ---- features ---- */

INLINE void rescale(const vocabulary *v, const int32_t *ids, int64_t count, int16_t *rows) {
    const int64_t dim = v->dim;
    for (int64_t i = 0; i < count; i++) {
        const int8_t *row = v->values + ids[i] * dim;
        int32_t by = v->factor[ids[i]];
        for (int64_t k = 0; k < dim; k++) rows[i * dim + k] = (int16_t)((row[k] * by + (1 << 15)) >> 16);
    }
}

INLINE double product(const int32_t *x, const int32_t *y, int64_t dim) {
    int64_t total = 0;
    for (int64_t k = 0; k < dim; k++) total += (int64_t)x[k] * y[k];
    return (double)total;
}

/* What mining/piece_features.py computes, for many pairs: pieces, windows and parts of a sentence are prepared once, and
 * a sentence that comes in several pairs in a row stays prepared. The constants are those of that file. */
#define LIMITS 9
#define WINDOW_LIMITS 6
#define WINDOWS_COUNT 2
#define SIDE_FEATURES (LIMITS + 4 + WINDOWS_COUNT * (WINDOW_LIMITS + 2))
#define PART_SUMS (2 + 3)
#define FEATURES (2 * SIDE_FEATURES + PART_SUMS + 2 + 2)
#define VIEWS (1 + WINDOWS_COUNT) /* pieces and windows */

static const float limits[LIMITS] = {0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
static const float window_limits[WINDOW_LIMITS] = {0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f};
static const int64_t reaches[WINDOWS_COUNT] = {2, 4};

typedef struct {
    vocabulary scaled;
    const float *inverse;  /* (pieces): 1 / length of each row, or 0 */
    const double *weights; /* (pieces) */
    const int64_t *whole;  /* (pieces): the weights in whole numbers */
} pieces_of;

/* A sentence with all that is compared. */
typedef struct {
    side views[VIEWS];
    int16_t *one_scale;      /* (count, dim) */
    int32_t *turned[VIEWS];  /* the rows side by side, for the versions with VNNI */
    int32_t *under;          /* 128 times the sum of each row of pieces */
    int32_t *sums;           /* (PART_SUMS, dim) */
    double lengths[PART_SUMS];
    double *weight;          /* (count) */
    int64_t row;             /* which sentence this is */
    void *room;
} prepared;

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static int make_room(prepared *s, int64_t most, int64_t dim, int turned) {
    const int64_t w = width(most), rows = round_up((most + 1) * dim * 2), numbers = round_up((w + 16) * 4);
    const int64_t wide = turned ? round_up((dim / 2 + 1) * w * 4) : 0, sums = round_up(PART_SUMS * dim * 4);
    char *at = malloc((VIEWS + 1) * rows + VIEWS * (3 * numbers + wide) + numbers + sums + 2 * numbers + 64);
    s->room = at;
    s->row = -1;
    if (!at) return 0;
    at += (64 - (uintptr_t)at % 64) % 64;
    for (int v = 0; v < VIEWS; v++) {
        s->views[v].rows = (int16_t *)at, at += rows;
        s->views[v].inverse = (float *)at, at += numbers;
        s->views[v].best = (float *)at, at += numbers;
        s->views[v].match = (int32_t *)at, at += numbers;
        s->turned[v] = (int32_t *)at, at += wide;
    }
    s->one_scale = (int16_t *)at, at += rows;
    s->under = (int32_t *)at, at += numbers;
    s->sums = (int32_t *)at, at += sums;
    s->weight = (double *)at;
    return 1;
}

/* The sums of each row with its neighbours up to `reach` away, and one over their lengths. */
INLINE void window_sums(const side *s, const int16_t *rows, int64_t dim, int64_t reach) {
    const int64_t count = s->count;
    for (int64_t i = 0; i < count; i++) {
        int16_t *sum = s->rows + i * dim;
        if (i) {
            const int16_t *before = sum - dim, *comes = rows + (i + reach) * dim, *goes = rows + (i - reach - 1) * dim;
            /* Modulo 2^16, which is exact in the end: only the finished sums fit. */
            if (i + reach < count && i > reach)
                for (int64_t k = 0; k < dim; k++)
                    sum[k] = (int16_t)((uint16_t)before[k] + (uint16_t)comes[k] - (uint16_t)goes[k]);
            else if (i + reach < count)
                for (int64_t k = 0; k < dim; k++) sum[k] = (int16_t)((uint16_t)before[k] + (uint16_t)comes[k]);
            else if (i > reach)
                for (int64_t k = 0; k < dim; k++) sum[k] = (int16_t)((uint16_t)before[k] - (uint16_t)goes[k]);
            else
                for (int64_t k = 0; k < dim; k++) sum[k] = before[k];
        } else {
            for (int64_t k = 0; k < dim; k++) sum[k] = rows[k];
            for (int64_t j = 1; j < count && j <= reach; j++)
                for (int64_t k = 0; k < dim; k++) sum[k] = (int16_t)((uint16_t)sum[k] + (uint16_t)rows[j * dim + k]);
        }
        int32_t square = 0;
        for (int64_t k = 0; k < dim; k++) square += (int32_t)sum[k] * sum[k];
        s->inverse[i] = square ? (float)(1 / sqrt((double)square)) : 0;
    }
}

INLINE void part_sums(prepared *s, const pieces_of *p, int64_t dim) {
    const int64_t count = s->views[0].count;
    const int32_t *ids = s->views[0].ids;
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += p->whole[ids[i]];
    for (int64_t k = 0; k < PART_SUMS * dim; k++) s->sums[k] = 0;
    for (int64_t parts = 2, first = 0; parts <= 3; first += parts++) {
        int64_t until = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t middle = 2 * until + p->whole[ids[i]];
            int64_t part = middle * parts / (2 * total > 1 ? 2 * total : 1);
            if (part >= parts) part = parts - 1;
            until += p->whole[ids[i]];
            int32_t *sum = s->sums + (first + part) * dim;
            const int16_t *row = s->one_scale + i * dim;
            for (int64_t k = 0; k < dim; k++) sum[k] += row[k];
        }
    }
    for (int64_t q = 0; q < PART_SUMS; q++) s->lengths[q] = sqrt(product(s->sums + q * dim, s->sums + q * dim, dim));
}

INLINE void prepare(prepared *s, const pieces_of *p, const int32_t *ids, const int64_t *offsets, int64_t row, int wide) {
    const int64_t dim = p->scaled.dim;
    s->row = row;
    for (int v = 0; v < VIEWS; v++) sentence(&s->views[v], ids, offsets, row);
    const side *own = &s->views[0];
    if (wide) widen(own, p->scaled.values, p->inverse, dim);
    for (int64_t i = 0; i < own->count; i++) {
        own->inverse[i] = p->inverse[own->ids[i]];
        s->weight[i] = p->weights[own->ids[i]];
    }
    rescale(&p->scaled, own->ids, own->count, s->one_scale);
    for (int v = 0; v < WINDOWS_COUNT; v++) window_sums(&s->views[1 + v], s->one_scale, dim, reaches[v]);
    part_sums(s, p, dim);
}

#if X86 && defined(__GNUC__)
#define VNNI 1
#define T_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vnni")))

static int has_vnni(void) {
    __builtin_cpu_init();
    return registers() == 2 && __builtin_cpu_supports("avx512vnni");
}

/* Rows side by side, four bytes of each together. */
static void turn(const void *rows, const int32_t *ids, int64_t count, int64_t bytes, int32_t *turned) {
    const int64_t w = width(count), steps = bytes / 4;
    for (int64_t from = 0; from < steps; from += 16) {
        const int64_t to = from + 16 < steps ? from + 16 : steps;
        for (int64_t j = 0; j < w; j++) {
            const char *row = (const char *)rows + (j < count ? (ids ? ids[j] : j) : 0) * bytes;
            for (int64_t k = from; k < to; k++) {
                int32_t four = 0;
                if (j < count) memcpy(&four, row + 4 * k, 4);
                turned[k * w + j] = four;
            }
        }
    }
}

T_VNNI static void turn_all(prepared *s, const pieces_of *p) {
    const int64_t dim = p->scaled.dim, count = s->views[0].count;
    turn(p->scaled.values, s->views[0].ids, count, dim, s->turned[0]);
    for (int v = 1; v < VIEWS; v++) turn(s->views[v].rows, NULL, count, 2 * dim, s->turned[v]);
    for (int64_t j = 0; j < count; j++) {
        const int8_t *row = p->scaled.values + s->views[0].ids[j] * dim;
        int32_t sum = 0;
        for (int64_t k = 0; k < dim; k++) sum += row[k];
        s->under[j] = 128 * sum;
    }
    for (int64_t j = count; j < width(count); j++) s->under[j] = 0;
}

/* The products of 4 rows with 16 * wide of the turned ones; bytes: int8, with 128 added to the rows, else int16. */
#define TIMES(WIDE)                                                                                                  \
    T_VNNI static void times_##WIDE(const char *const *x, const int32_t *y, int64_t w, int64_t steps, int bytes,      \
                                    int32_t *totals) {                                                               \
        __m512i t[4][WIDE];                                                                                          \
        for (int r = 0; r < 4; r++)                                                                                  \
            for (int v = 0; v < WIDE; v++) t[r][v] = _mm512_setzero_si512();                                         \
        for (int64_t k = 0; k < steps; k++, y += w) {                                                                \
            __m512i from[WIDE];                                                                                      \
            for (int v = 0; v < WIDE; v++) from[v] = _mm512_loadu_si512(y + 16 * v);                                 \
            for (int r = 0; r < 4; r++) {                                                                            \
                int32_t four;                                                                                        \
                memcpy(&four, x[r] + 4 * k, 4);                                                                      \
                if (bytes) {                                                                                         \
                    const __m512i own = _mm512_set1_epi32(four ^ (int32_t)0x80808080);                               \
                    for (int v = 0; v < WIDE; v++) t[r][v] = _mm512_dpbusd_epi32(t[r][v], own, from[v]);             \
                } else {                                                                                             \
                    const __m512i own = _mm512_set1_epi32(four);                                                     \
                    for (int v = 0; v < WIDE; v++) t[r][v] = _mm512_dpwssd_epi32(t[r][v], own, from[v]);             \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
        for (int r = 0; r < 4; r++)                                                                                  \
            for (int v = 0; v < WIDE; v++) _mm512_storeu_si512(totals + r * w + 16 * v, t[r][v]);                    \
    }
TIMES(1)
TIMES(2)
TIMES(3)
TIMES(4)

/* As match_pair(), of one view of two sentences, the first of which is turned. totals: room for 4 rows of width(a). */
T_VNNI static void match_turned(const prepared *a, const prepared *b, int view, const pieces_of *p, int32_t *totals) {
    const side *x = &a->views[view], *y = &b->views[view];
    const int64_t dim = p->scaled.dim, na = x->count, nb = y->count, w = width(na);
    const int bytes = view == 0;
    const int64_t steps = bytes ? dim / 4 : dim / 2;
    const __m512 least = _mm512_set1_ps(-2);
    for (int64_t c = 0; c < w; c += 16) {
        _mm512_storeu_ps(x->best + c, least);
        _mm512_storeu_si512(x->match + c, _mm512_setzero_si512());
    }
    for (int64_t i = 0; i < nb; i += 4) {
        const char *rows[4];
        for (int64_t r = 0; r < 4; r++) {
            const int64_t at = i + r < nb ? i + r : nb - 1;
            rows[r] = bytes ? (const char *)(p->scaled.values + y->ids[at] * dim) : (const char *)(y->rows + at * dim);
        }
        for (int64_t c = 0; c < w;) {
            const int64_t left = (w - c) / 16;
            const int32_t *from = a->turned[view] + c;
            if (left >= 4) times_4(rows, from, w, steps, bytes, totals + c), c += 64;
            else if (left == 3) times_3(rows, from, w, steps, bytes, totals + c), c += 48;
            else if (left == 2) times_2(rows, from, w, steps, bytes, totals + c), c += 32;
            else times_1(rows, from, w, steps, bytes, totals + c), c += 16;
        }
        for (int64_t r = 0; r < 4 && i + r < nb; r++) {
            const __m512 inverse = _mm512_set1_ps(y->inverse[i + r]);
            float best = -2;
            int32_t match = 0;
            for (int64_t c = 0; c < na; c += 16) {
                const __mmask16 there = na - c < 16 ? (__mmask16)((1u << (na - c)) - 1) : (__mmask16)0xffff;
                __m512i total = _mm512_loadu_si512(totals + r * w + c);
                if (bytes) total = _mm512_sub_epi32(total, _mm512_loadu_si512(a->under + c));
                const __m512 partly = _mm512_mul_ps(_mm512_cvtepi32_ps(total), _mm512_maskz_loadu_ps(there, x->inverse + c));
                const __m512 cosine = _mm512_mask_mul_ps(least, there, partly, inverse);
                const float most = _mm512_reduce_max_ps(cosine);
                if (most > best) { /* the first of equal ones */
                    best = most;
                    match = (int32_t)(c + __builtin_ctz(_mm512_cmp_ps_mask(cosine, _mm512_set1_ps(most), _CMP_EQ_OQ)));
                }
                const __mmask16 higher =
                    _mm512_mask_cmp_ps_mask(there, cosine, _mm512_loadu_ps(x->best + c), _CMP_GT_OQ);
                _mm512_mask_storeu_ps(x->best + c, higher, cosine);
                _mm512_mask_storeu_epi32(x->match + c, higher, _mm512_set1_epi32((int32_t)(i + r)));
            }
            y->best[i + r] = best;
            y->match[i + r] = match;
        }
    }
}
#else
#define VNNI 0
#define T_VNNI
#define has_vnni() 0
#define turn_all(S, P)
#define match_turned(A, B, VIEW, P, TOTALS)
#endif

static double at_least(double value, double least) { return value > least ? value : least; }

/* The features of the pieces of one side, and of its windows. */
static void side_features(const prepared *s, const prepared *other, float *out) {
    const side *own = &s->views[0], *back = &other->views[0];
    const int64_t count = own->count;
    double unmatched[LIMITS] = {0}, away = 0, sure_total = 0, together = 0, both_total = 0, alone = 0, mutual_total = 0,
           total = 0, before = 0;
    for (int64_t i = 0; i < count; i++) {
        const double weight = s->weight[i];
        const float best = own->best[i];
        const int32_t match = own->match[i];
        const double sure = (double)(best > 0 ? best : 0) * weight;
        const int mutual = back->match[match] == i;
        for (int l = 0; l < LIMITS; l++)
            if (best < limits[l]) unmatched[l] += weight;
        away += fabs((double)i / (double)count - (double)match / (double)back->count) * sure;
        sure_total += sure;
        if (i) {
            const double both = sqrt(sure * before);
            both_total += both;
            if (abs(match - own->match[i - 1]) <= 2) together += both;
        }
        before = sure;
        if (mutual) mutual_total += sure;
        else alone += weight;
        total += weight;
    }
    for (int l = 0; l < LIMITS; l++) *out++ = (float)log1p(unmatched[l]);
    *out++ = (float)(away / at_least(sure_total, 1e-9));
    *out++ = (float)(together / at_least(both_total, 1e-9));
    *out++ = (float)log1p(alone);
    *out++ = (float)(mutual_total / at_least(total, 1e-9));
    for (int v = 1; v < VIEWS; v++) {
        const float *best = s->views[v].best;
        double under[WINDOW_LIMITS] = {0}, mean = 0, lowest = best[0];
        for (int64_t i = 0; i < count; i++) {
            for (int l = 0; l < WINDOW_LIMITS; l++)
                if (best[i] < window_limits[l]) under[l] += s->weight[i];
            mean += s->weight[i] * best[i];
            if (best[i] < lowest) lowest = best[i];
        }
        for (int l = 0; l < WINDOW_LIMITS; l++) *out++ = (float)log1p(under[l]);
        *out++ = (float)(mean / at_least(total, 1e-9));
        *out++ = (float)lowest;
    }
}

INLINE void pair_features(const prepared *a, const prepared *b, const pieces_of *p, float *out) {
    const int64_t dim = p->scaled.dim;
    side_features(a, b, out);
    side_features(b, a, out + SIDE_FEATURES);
    out += 2 * SIDE_FEATURES;
    for (int64_t parts = 2, first = 0; parts <= 3; first += parts++) {
        double others = 0;
        for (int64_t x = 0; x < parts; x++)
            for (int64_t y = 0; y < parts; y++) {
                const double both = a->lengths[first + x] * b->lengths[first + y];
                const int32_t *one = a->sums + (first + x) * dim, *other = b->sums + (first + y) * dim;
                const float cosine = both > 0 ? (float)(product(one, other, dim) / both) : 0;
                if (x == y) *out++ = cosine;
                else others += cosine;
            }
        *out++ = (float)(others / (double)(parts * parts - parts));
    }
    *out++ = (float)log1p((double)a->views[0].count);
    *out++ = (float)log1p((double)b->views[0].count);
}

typedef struct {
    const int32_t *ids;
    const int64_t *offsets, *rows;
} listed;

INLINE void features_of(const pieces_of *p, const listed *l, int64_t pairs, prepared *a, prepared *b, int32_t *room,
                        match *one, int vnni, float *out) {
    for (int64_t i = 0; i < pairs; i++, out += FEATURES) {
        const int64_t s = l[0].rows[i], t = l[1].rows[i];
        if (l[0].offsets[s] == l[0].offsets[s + 1] || l[1].offsets[t] == l[1].offsets[t + 1]) {
            memset(out, 0, FEATURES * sizeof(float));
            continue;
        }
        if (a->row != s) {
            prepare(a, p, l[0].ids, l[0].offsets, s, !vnni);
            if (vnni) turn_all(a, p);
        }
        if (b->row != t) prepare(b, p, l[1].ids, l[1].offsets, t, !vnni);
        for (int v = 0; v < VIEWS; v++) {
            if (vnni) match_turned(a, b, v, p, room);
            else one(&a->views[v], &b->views[v], p->scaled.dim, room);
        }
        pair_features(a, b, p, out);
    }
}

typedef void all_features(const pieces_of *p, const listed *l, int64_t pairs, prepared *a, prepared *b, int32_t *room,
                          float *out);

#define EVERY(NAME, TARGET)                                                                                          \
    TARGET static void NAME(const pieces_of *p, const listed *l, int64_t pairs, prepared *a, prepared *b,             \
                            int32_t *room, float *out) {                                                             \
        features_of(p, l, pairs, a, b, room, BEST(match), VNNI_##NAME, out);                                         \
    }
#define VNNI_features_plain 0
#define VNNI_features_avx2 0
#define VNNI_features_avx512 0
#define VNNI_features_vnni 1

VERSIONS(EVERY, features)
#if VNNI
EVERY(features_vnni, T_VNNI)
#endif

/* The features (pairs, FEATURES) of sentence a_rows[i] of a with b_rows[i] of b; zeros if one of them has no pieces.
 * sides: the addresses of ids, offsets and rows of a, then of b. values (pieces, dim), inverse and factor (pieces) are
 * those of match_pieces(). Returns 0, or -1
 * when memory runs out. */
int64_t match_features(const int8_t *values, const float *inverse, const int32_t *factor, const void *weights,
                       const int64_t *whole, int64_t dim, const int64_t *sides, int64_t pairs, float *out) {
    const pieces_of p = {{values, factor, dim}, inverse, weights, whole};
    listed l[2];
    for (int v = 0; v < 2; v++, sides += 3)
        l[v] = (listed){(const int32_t *)(uintptr_t)sides[0], (const int64_t *)(uintptr_t)sides[1],
                        (const int64_t *)(uintptr_t)sides[2]};
    const int vnni = has_vnni() && dim % 4 == 0;
    int64_t most[2] = {0, 0};
    for (int64_t i = 0; i < pairs; i++)
        for (int v = 0; v < 2; v++) {
            const int64_t row = l[v].rows[i], count = l[v].offsets[row + 1] - l[v].offsets[row];
            if (count > most[v]) most[v] = count;
        }
    prepared a, b;
    int32_t *room = malloc((match_room(most[0] + most[1], dim) + 4 * width(most[0])) * sizeof(int32_t));
    const int made = make_room(&a, most[0], dim, vnni) & make_room(&b, most[1], dim, 0);
    const int64_t failed = made && room ? 0 : -1;
#if VNNI
    all_features *one = vnni ? features_vnni : BEST(features);
#else
    all_features *one = BEST(features);
#endif
    if (!failed) one(&p, l, pairs, &a, &b, room, out);
    free(room);
    free(a.room);
    free(b.room);
    return failed;
}
