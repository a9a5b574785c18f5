/* Two sentences compared piece by piece, window by window, part by part. */

#include <math.h>
#include <stdlib.h>

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

typedef void match(const side *a, const side *b, int64_t dim);

#define MATCH(NAME, TARGET) \
    TARGET static void NAME(const side *a, const side *b, int64_t dim) { match_pair(a, b, dim); }

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
    int64_t failed = !rows || !inverses ? -1 : 0;
    for (int64_t i = 0; i < pairs && !failed; i++) {
        side a = {.rows = rows, .inverse = inverses, .best = a_best + a_offsets[i], .match = a_match + a_offsets[i]};
        sentence(&a, a_ids, a_offsets, i);
        side b = {.rows = rows + a.count * dim, .inverse = inverses + a.count, .best = b_best + b_offsets[i],
                  .match = b_match + b_offsets[i]};
        sentence(&b, b_ids, b_offsets, i);
        widen(&a, values, inverse, dim);
        widen(&b, values, inverse, dim);
        one(&a, &b, dim);
    }
    free(rows);
    free(inverses);
    return failed;
}

/* ---- windows ---- */

INLINE void rescale(const vocabulary *v, const int32_t *ids, int64_t count, int16_t *rows) {
    const int64_t dim = v->dim;
    for (int64_t i = 0; i < count; i++) {
        const int8_t *row = v->values + ids[i] * dim;
        int32_t by = v->factor[ids[i]];
        for (int64_t k = 0; k < dim; k++) rows[i * dim + k] = (int16_t)((row[k] * by + (1 << 15)) >> 16);
    }
}

/* A sentence's rows become the sum of each piece's with its neighbours' up to `reach` away. Room for a row of zeros, and
 * for as many rows as it has pieces. */
INLINE void windows(const side *s, const vocabulary *v, int64_t reach, int16_t *room) {
    const int64_t dim = v->dim, count = s->count;
    int16_t *nothing = room, *rows = room + dim, *sums = s->rows;
    if (!count) return;
    for (int64_t k = 0; k < dim; k++) nothing[k] = 0;
    rescale(v, s->ids, count, rows);
    for (int64_t k = 0; k < dim; k++) sums[k] = 0;
    for (int64_t i = 0; i < count && i <= reach; i++)
        for (int64_t k = 0; k < dim; k++) sums[k] = (int16_t)(sums[k] + rows[i * dim + k]);
    for (int64_t i = 0; i < count; i++) {
        int16_t *sum = sums + i * dim;
        if (i) {
            const int16_t *comes = i + reach < count ? rows + (i + reach) * dim : nothing;
            const int16_t *goes = i > reach ? rows + (i - reach - 1) * dim : nothing;
            /* Together: with the one that comes before the other is gone it may be too long. */
            for (int64_t k = 0; k < dim; k++) sum[k] = (int16_t)((int32_t)sum[k - dim] + comes[k] - goes[k]);
        }
        int32_t square = 0;
        for (int64_t k = 0; k < dim; k++) square += (int32_t)sum[k] * sum[k];
        s->inverse[i] = square ? (float)(1 / sqrt((double)square)) : 0;
    }
}

typedef void match_of_windows(const side *a, const side *b, const vocabulary *v, int64_t reach, int16_t *room);

#define WINDOWS(NAME, TARGET)                                                                                       \
    TARGET static void NAME(const side *a, const side *b, const vocabulary *v, int64_t reach, int16_t *room) {       \
        windows(a, v, reach, room);                                                                                 \
        windows(b, v, reach, room);                                                                                 \
        match_pair(a, b, v->dim);                                                                                   \
    }

VERSIONS(WINDOWS, windows)

/* As match_pieces, but of windows: of each piece with those up to `reach` away from it. factor (pieces): at most such
 * that no sum of 2 reach + 1 rows is longer than 2^15 - 1. best has a number for each piece. */
int64_t match_windows(const int8_t *values, const int32_t *factor, int64_t dim, int64_t reach, const int32_t *a_ids,
                      const int64_t *a_offsets, const int32_t *b_ids, const int64_t *b_offsets, int64_t pairs,
                      float *a_best, float *b_best) {
    match_of_windows *one = BEST(windows);
    const vocabulary v = {values, factor, dim};
    int64_t most = most_pieces(a_offsets, b_offsets, pairs);
    int16_t *room = malloc((most + 1) * dim * sizeof(int16_t)), *rows = malloc((most * dim + 1) * sizeof(int16_t));
    float *inverses = malloc((most + 1) * sizeof(float));
    int32_t *where = malloc((most + 1) * sizeof(int32_t));
    int64_t failed = !room || !rows || !inverses || !where ? -1 : 0;
    for (int64_t i = 0; i < pairs && !failed; i++) {
        side a = {.rows = rows, .inverse = inverses, .best = a_best + a_offsets[i], .match = where};
        sentence(&a, a_ids, a_offsets, i);
        side b = {.rows = rows + a.count * dim, .inverse = inverses + a.count, .best = b_best + b_offsets[i],
                  .match = where + a.count};
        sentence(&b, b_ids, b_offsets, i);
        one(&a, &b, &v, reach, room);
    }
    free(room);
    free(rows);
    free(inverses);
    free(where);
    return failed;
}

/* ---- parts ---- */

/* A sentence cut into parts: piece i is in part[i]. */
typedef struct {
    side of;
    const int8_t *part;
    int32_t *sums;   /* (parts, dim): of the pieces of each part */
    double *lengths; /* (parts) */
} partition;

INLINE double product(const int32_t *x, const int32_t *y, int64_t dim) {
    int64_t total = 0;
    for (int64_t k = 0; k < dim; k++) total += (int64_t)x[k] * y[k];
    return (double)total;
}

INLINE void add_parts(const partition *s, const vocabulary *v, int64_t parts, int16_t *row) {
    const int64_t dim = v->dim;
    for (int64_t k = 0; k < parts * dim; k++) s->sums[k] = 0;
    for (int64_t i = 0; i < s->of.count; i++) {
        int32_t *sum = s->sums + s->part[i] * dim;
        rescale(v, s->of.ids + i, 1, row);
        for (int64_t k = 0; k < dim; k++) sum[k] += row[k];
    }
    for (int64_t p = 0; p < parts; p++) s->lengths[p] = sqrt(product(s->sums + p * dim, s->sums + p * dim, dim));
}

INLINE void parts_pair(const partition *a, const partition *b, const vocabulary *v, int64_t parts, int16_t *row,
                       float *cosines) {
    const int64_t dim = v->dim;
    add_parts(a, v, parts, row);
    add_parts(b, v, parts, row);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t q = 0; q < parts; q++) {
            double both = a->lengths[p] * b->lengths[q];
            cosines[p * parts + q] = both > 0 ? (float)(product(a->sums + p * dim, b->sums + q * dim, dim) / both) : 0;
        }
}

typedef void match_of_parts(const partition *a, const partition *b, const vocabulary *v, int64_t parts, int16_t *row,
                            float *cosines);

#define PARTS(NAME, TARGET)                                                                                         \
    TARGET static void NAME(const partition *a, const partition *b, const vocabulary *v, int64_t parts,              \
                            int16_t *row, float *cosines) {                                                         \
        parts_pair(a, b, v, parts, row, cosines);                                                                   \
    }

VERSIONS(PARTS, parts)

/* Pairs of sentences as above, each cut into parts: piece i of a is in part a_part[i], from 0 to parts - 1. cosines
 * (pairs, parts, parts): of the sums of the pieces of each part of a and each of b, 0 where a sum is 0. */
int64_t match_parts(const int8_t *values, const int32_t *factor, int64_t dim, int64_t parts, const int32_t *a_ids,
                    const int8_t *a_part, const int64_t *a_offsets, const int32_t *b_ids, const int8_t *b_part,
                    const int64_t *b_offsets, int64_t pairs, float *cosines) {
    match_of_parts *one = BEST(parts);
    const vocabulary v = {values, factor, dim};
    int16_t *row = malloc((dim + 1) * sizeof(int16_t));
    int32_t *sums = malloc((2 * parts * dim + 1) * sizeof(int32_t));
    double *lengths = malloc(2 * parts * sizeof(double));
    int64_t failed = !row || !sums || !lengths ? -1 : 0;
    for (int64_t i = 0; i < pairs && !failed; i++) {
        partition a = {.part = a_part + a_offsets[i], .sums = sums, .lengths = lengths};
        sentence(&a.of, a_ids, a_offsets, i);
        partition b = {.part = b_part + b_offsets[i], .sums = sums + parts * dim, .lengths = lengths + parts};
        sentence(&b.of, b_ids, b_offsets, i);
        one(&a, &b, &v, parts, row, cosines + i * parts * parts);
    }
    free(row);
    free(sums);
    free(lengths);
    return failed;
}
