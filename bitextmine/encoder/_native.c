/* The inner loops of an encoder without layers: words looked up in a table, piece vectors summed up and compared.
 *
 * No Python API: loaded with ctypes, called with the interpreter lock released. native.py declares the functions,
 * words.py, sums.py and matches.py do the same in Python where this file was not compiled, with the same results to the
 * bit: sums are taken in one fixed order, without fused multiply-adds (build with -ffp-contract=off).
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define X86 1
#include <immintrin.h>
#define T_AVX2 __attribute__((target("avx2")))
#define T_512 __attribute__((target("avx512f")))
#define T_512BW __attribute__((target("avx512f,avx512bw,avx512dq")))
#else
#define X86 0
#endif

/* ---- words ------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t hash;
    int64_t at;     /* of its bytes, in the arena */
    int32_t length; /* in bytes */
    int32_t number; /* -1: the slot is free */
} slot;

/* An open hash table of byte strings; the n-th new one gets the number n. */
typedef struct {
    slot *slots;
    int64_t mask, count;
    uint8_t *arena;
    int64_t used, room;
} table;

static int start(table *t, int64_t slots) {
    slot *fresh = malloc(slots * sizeof(slot));
    if (!fresh) return 0;
    for (int64_t i = 0; i < slots; i++) fresh[i].number = -1;
    free(t->slots);
    t->slots = fresh;
    t->mask = slots - 1;
    return 1;
}

EXPORT void words_free(table *t) {
    if (!t) return;
    free(t->slots);
    free(t->arena);
    free(t);
}

EXPORT table *words_new(void) {
    table *t = calloc(1, sizeof(table));
    if (t && !start(t, 1 << 12)) {
        words_free(t);
        return NULL;
    }
    return t;
}

EXPORT int64_t words_count(const table *t) { return t->count; }

INLINE uint64_t mix(uint64_t h, uint64_t w) {
    h = (h ^ w) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 32);
}

INLINE uint64_t hash_of(const uint8_t *s, int64_t n) {
    uint64_t h = (uint64_t)n, w;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&w, s, 8);
        h = mix(h, w);
    }
    for (w = 0; n > 0; n--) w = w << 8 | s[n - 1];
    return mix(mix(h, w), 0xD6E8FEB86659FD93ull);
}

static int grow(table *t) {
    slot *old = t->slots;
    int64_t size = t->mask + 1;
    t->slots = NULL;
    if (!start(t, size * 2)) {
        t->slots = old;
        return 0;
    }
    for (int64_t i = 0; i < size; i++) {
        if (old[i].number < 0) continue;
        uint64_t p = old[i].hash & t->mask;
        while (t->slots[p].number >= 0) p = (p + 1) & t->mask;
        t->slots[p] = old[i];
    }
    free(old);
    return 1;
}

/* The number of a word, added if it is new; -1 when memory runs out. */
static int64_t number_of(table *t, const uint8_t *s, int64_t n) {
    uint64_t h = hash_of(s, n), p = h & t->mask;
    for (; t->slots[p].number >= 0; p = (p + 1) & t->mask) {
        const slot *q = &t->slots[p];
        if (q->hash == h && q->length == n && !memcmp(t->arena + q->at, s, n)) return q->number;
    }
    if (n > INT32_MAX || t->count == INT32_MAX) return -1;
    if (t->used + n > t->room) {
        int64_t room = (t->used + n) * 2 + 4096;
        uint8_t *arena = realloc(t->arena, room);
        if (!arena) return -1;
        t->arena = arena;
        t->room = room;
    }
    if (t->count * 2 > t->mask) {
        if (!grow(t)) return -1;
        for (p = h & t->mask; t->slots[p].number >= 0;) p = (p + 1) & t->mask;
    }
    memcpy(t->arena + t->used, s, n);
    t->slots[p] = (slot){h, t->used, (int32_t)n, (int32_t)t->count};
    t->used += n;
    return t->count++;
}

/* The words of a text: what stands between spaces and line feeds.
 *
 * number (as many as there are words) gets each word's number, ends (lines) how many words there are up to the end
 * of each line, fresh (2 per word) where in the text each word begins that the table did not have, and its bytes.
 * Returns the number of new words, -1 when memory runs out.
 */
EXPORT int64_t words_scan(table *t, const uint8_t *text, int64_t bytes, int32_t *number, int64_t *ends, int64_t *fresh) {
    int64_t words = 0, line = 0, known = t->count, found = 0;
    for (int64_t at = 0; at <= bytes;) {
        int64_t end = at;
        while (end < bytes && text[end] != ' ' && text[end] != '\n') end++;
        if (end > at) {
            int64_t k = number_of(t, text + at, end - at);
            if (k < 0) return -1;
            if (k >= known + found) {
                fresh[2 * found] = at;
                fresh[2 * found + 1] = end - at;
                found++;
            }
            number[words++] = (int32_t)k;
        }
        if (end == bytes || text[end] == '\n') ends[line++] = words;
        at = end + 1;
    }
    return found;
}

/* Pieces of lines from the pieces of words: first (words of the table + 1) says where each word's pieces begin.
 * With ids null, only counts: offsets (lines + 1) and, returned, how many lines are longer than most; these end
 * after most pieces. */
EXPORT int64_t words_pieces(const int32_t *number, const int64_t *ends, int64_t lines, const int32_t *pieces,
                            const int64_t *first, int64_t most, int64_t *offsets, int32_t *ids) {
    int64_t word = 0, cut = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < lines; i++) {
        if (!ids) {
            int64_t n = 0;
            for (; word < ends[i]; word++) n += first[number[word] + 1] - first[number[word]];
            cut += n > most;
            offsets[i + 1] = offsets[i] + (n > most ? most : n);
            continue;
        }
        int64_t at = offsets[i], end = offsets[i + 1];
        for (; word < ends[i] && at < end; word++)
            for (int64_t p = first[number[word]]; p < first[number[word] + 1] && at < end; p++) ids[at++] = pieces[p];
        word = ends[i];
    }
    return cut;
}

/* ---- sums -------------------------------------------------------------------------------------------------- */

#define LANES 16

INLINE void unit(float *v, int64_t dim) {
    float lane[LANES] = {0}, total, length;
    int64_t j = 0;
    for (; j + LANES <= dim; j += LANES)
        for (int64_t l = 0; l < LANES; l++) lane[l] += v[j + l] * v[j + l];
    for (int64_t l = 0; j < dim; j++, l++) lane[l] += v[j] * v[j];
    for (int64_t half = LANES / 2; half; half /= 2)
        for (int64_t l = 0; l < half; l++) lane[l] += lane[l + half];
    total = lane[0];
    length = sqrtf(total);
    /* Below this a direction is rounding noise: no pieces, or pieces that cancel out. */
    if (!(length > 1e-12f)) {
        memset(v, 0, dim * sizeof(float));
        return;
    }
    for (j = 0; j < dim; j++) v[j] /= length;
}

/* out = the sum of the first `width` numbers of one sentence's piece vectors, times `times` of each piece unless it is
 * null: values (pieces, dim) are int8 with a scale each, or float32 with scale null. Elements are summed on their own, in
 * the order of the pieces, whatever the instruction set. */
typedef void sum(const void *values, const float *scale, const float *times, int64_t dim, int64_t width,
                 const int32_t *ids, int64_t count, float *out);

INLINE float factor_of(const float *scale, const float *times, int32_t id, int64_t p) {
    if (!scale) return times ? times[p] : 1;
    return times ? scale[id] * times[p] : scale[id];
}

INLINE void sum_from(int64_t k, const void *values, const float *scale, const float *times, int64_t dim, int64_t width,
                     const int32_t *ids, int64_t count, float *out) {
    for (; k < width; k++) {
        float total = 0;
        for (int64_t p = 0; p < count; p++) {
            int64_t at = ids[p] * dim + k;
            total += factor_of(scale, times, ids[p], p) *
                     (scale ? (float)((const int8_t *)values)[at] : ((const float *)values)[at]);
        }
        out[k] = total;
    }
}

static void sum_plain(const void *values, const float *scale, const float *times, int64_t dim, int64_t width,
                      const int32_t *ids, int64_t count, float *out) {
    memset(out, 0, width * sizeof(float));
    for (int64_t p = 0; p < count; p++) {
        float s = factor_of(scale, times, ids[p], p);
        if (scale) {
            const int8_t *row = (const int8_t *)values + ids[p] * dim;
            for (int64_t j = 0; j < width; j++) out[j] += s * (float)row[j];
        } else {
            const float *row = (const float *)values + ids[p] * dim;
            for (int64_t j = 0; j < width; j++) out[j] += s * row[j];
        }
    }
}

#if X86
/* By hand: the compiler makes ten times as slow a loop of the conversion from int8. Eight vectors of sums stay in
 * registers while the pieces go by, then the next eight; what is left goes one by one. */
#define SUM(NAME, TARGET, VECTOR, WIDTH, PREFIX, WIDEN)                                                            \
    TARGET INLINE void NAME##_part(int vectors, int64_t k, const void *values, const float *scale,                  \
                                   const float *times, int64_t dim, const int32_t *ids, int64_t count, float *out) { \
        VECTOR total[8];                                                                                            \
        for (int j = 0; j < vectors; j++) total[j] = PREFIX##_setzero_ps();                                         \
        for (int64_t p = 0; p < count; p++) {                                                                       \
            int64_t at = ids[p] * dim + k;                                                                          \
            VECTOR s = PREFIX##_set1_ps(factor_of(scale, times, ids[p], p));                                        \
            if (scale) {                                                                                            \
                const int8_t *row = (const int8_t *)values + at;                                                    \
                for (int j = 0; j < vectors; j++)                                                                   \
                    total[j] = PREFIX##_add_ps(total[j], PREFIX##_mul_ps(s, WIDEN(row + j * WIDTH)));               \
            } else {                                                                                                \
                const float *row = (const float *)values + at;                                                      \
                for (int j = 0; j < vectors; j++)                                                                   \
                    total[j] = PREFIX##_add_ps(total[j], PREFIX##_mul_ps(s, PREFIX##_loadu_ps(row + j * WIDTH)));   \
            }                                                                                                       \
        }                                                                                                           \
        for (int j = 0; j < vectors; j++) PREFIX##_storeu_ps(out + k + j * WIDTH, total[j]);                        \
    }                                                                                                               \
    TARGET static void NAME(const void *values, const float *scale, const float *times, int64_t dim, int64_t width,  \
                            const int32_t *ids, int64_t count, float *out) {                                        \
        int64_t k = 0;                                                                                              \
        for (; k + 8 * WIDTH <= width; k += 8 * WIDTH)                                                              \
            NAME##_part(8, k, values, scale, times, dim, ids, count, out);                                          \
        for (; k + WIDTH <= width; k += WIDTH) NAME##_part(1, k, values, scale, times, dim, ids, count, out);       \
        sum_from(k, values, scale, times, dim, width, ids, count, out);                                             \
    }

#define WIDEN8(row) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(row))))
#define WIDEN16(row) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(row))))
SUM(sum_avx2, T_AVX2, __m256, 8, _mm256, WIDEN8)
SUM(sum_avx512, T_512, __m512, 16, _mm512, WIDEN16)
#endif

static sum *best_sum(void) {
#if X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return sum_avx512;
    if (__builtin_cpu_supports("avx2")) return sum_avx2;
#endif
    return sum_plain;
}

/* Unit-length sums of piece vectors: values (pieces, dim) are int8 with a scale per row, or float32 with scale null;
 * sentence i has the pieces ids[offsets[i]] to ids[offsets[i + 1] - 1]; out (rows, dim + columns). The last columns are
 * the sums of the first ones times `waves`, which has a number for each piece of each sentence. All ids must be in
 * range. */
EXPORT void sum_pieces(const void *values, const float *scale, int64_t dim, const int32_t *ids, const int64_t *offsets,
                       int64_t rows, int64_t columns, const float *waves, float *out) {
    sum *one = best_sum();
    for (int64_t i = 0; i < rows; i++, out += dim + columns) {
        int64_t at = offsets[i], count = offsets[i + 1] - at;
        one(values, scale, NULL, dim, dim, ids + at, count, out);
        if (columns) one(values, scale, waves + at, dim, columns, ids + at, count, out + dim);
        unit(out, dim + columns);
    }
}

/* ---- matches ----------------------------------------------------------------------------------------------- */

/* What follows comes in versions for wider registers: MAKE(name, target) makes one, BEST(name) is the one to take here. */
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

/* For each piece of two sentences the piece of the other one whose vector has the highest cosine with its own.
 *
 * One of the pair has na pieces with rows a (na, dim), the other nb; rows are int16 copies of int8 values, whose
 * products are exact, so that the result is the same on every machine. inverse: 1 / length of each row, or 0. Equal
 * cosines go to the first piece; b_best is -2 where nothing was compared yet. */
INLINE void match_pair(const int16_t *a, int64_t na, const float *a_inverse, const int16_t *b, int64_t nb,
                       const float *b_inverse, int64_t dim, float *a_best, int32_t *a_match, float *b_best,
                       int32_t *b_match) {
    for (int64_t i = 0; i < na; i++) {
        const int16_t *x = a + i * dim;
        float best = -2;
        for (int64_t j = 0; j < nb; j += 4) {
            /* Four at once, so that x is read once for them; the last ones again where nb is no multiple. */
            const int16_t *y[4];
            int32_t total[4] = {0};
            for (int64_t l = 0; l < 4; l++) y[l] = b + (j + l < nb ? j + l : nb - 1) * dim;
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
        a_best[i] = best;
    }
}

typedef void match(const int16_t *a, int64_t na, const float *a_inverse, const int16_t *b, int64_t nb,
                   const float *b_inverse, int64_t dim, float *a_best, int32_t *a_match, float *b_best,
                   int32_t *b_match);

#define MATCH(NAME, TARGET)                                                                                         \
    TARGET static void NAME(const int16_t *a, int64_t na, const float *a_inverse, const int16_t *b, int64_t nb,      \
                            const float *b_inverse, int64_t dim, float *a_best, int32_t *a_match, float *b_best,    \
                            int32_t *b_match) {                                                                     \
        match_pair(a, na, a_inverse, b, nb, b_inverse, dim, a_best, a_match, b_best, b_match);                      \
    }

VERSIONS(MATCH, match)

static void widen(const int8_t *values, const float *inverse, int64_t dim, const int32_t *ids, int64_t count,
                  int16_t *rows, float *inverses) {
    for (int64_t i = 0; i < count; i++) {
        const int8_t *row = values + ids[i] * dim;
        for (int64_t k = 0; k < dim; k++) rows[i * dim + k] = row[k];
        inverses[i] = inverse[ids[i]];
    }
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

/* The matches of pairs of sentences: values (pieces, dim) int8, inverse (pieces), pair i has the pieces
 * a_ids[a_offsets[i]] to a_ids[a_offsets[i + 1] - 1] and the same of b. best and match, of a and of b, have a number
 * for each piece; a sentence whose other one has no pieces gets -2 and 0. Returns 0, or -1 when memory runs out. */
EXPORT int64_t match_pieces(const int8_t *values, const float *inverse, int64_t dim, const int32_t *a_ids,
                            const int64_t *a_offsets, const int32_t *b_ids, const int64_t *b_offsets, int64_t pairs,
                            float *a_best, int32_t *a_match, float *b_best, int32_t *b_match) {
    match *one = BEST(match);
    int64_t most = most_pieces(a_offsets, b_offsets, pairs);
    int16_t *rows = malloc((most * dim + 1) * sizeof(int16_t));
    float *inverses = malloc((most + 1) * sizeof(float));
    if (!rows || !inverses) {
        free(rows);
        free(inverses);
        return -1;
    }
    for (int64_t i = 0; i < pairs; i++) {
        int64_t a = a_offsets[i], na = a_offsets[i + 1] - a, b = b_offsets[i], nb = b_offsets[i + 1] - b;
        for (int64_t p = 0; p < na; p++) a_best[a + p] = -2, a_match[a + p] = 0;
        for (int64_t p = 0; p < nb; p++) b_best[b + p] = -2, b_match[b + p] = 0;
        widen(values, inverse, dim, a_ids + a, na, rows, inverses);
        widen(values, inverse, dim, b_ids + b, nb, rows + na * dim, inverses + na);
        one(rows, na, inverses, rows + na * dim, nb, inverses + na, dim, a_best + a, a_match + a, b_best + b, b_match + b);
    }
    free(rows);
    free(inverses);
    return 0;
}

/* ---- windows and parts ------------------------------------------------------------------------------------- */

/* Sums of piece vectors need these on one scale: a number is (int8 value * factor of its row + 2^15) / 2^16, rounded
 * down. Whole numbers, so that sums and products are exact here too. */
INLINE void rescale(const int8_t *values, const int32_t *factor, int64_t dim, const int32_t *ids, int64_t count,
                    int16_t *rows) {
    for (int64_t i = 0; i < count; i++) {
        const int8_t *row = values + ids[i] * dim;
        int32_t by = factor[ids[i]];
        for (int64_t k = 0; k < dim; k++) rows[i * dim + k] = (int16_t)((row[k] * by + (1 << 15)) >> 16);
    }
}

/* The sum of each row with its neighbours up to `reach` away, and 1 / its length, or 0. nothing: a row of zeros. */
INLINE void windows(const int16_t *rows, const int16_t *nothing, int64_t count, int64_t dim, int64_t reach,
                    int16_t *sums, float *inverses) {
    if (!count) return;
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
        inverses[i] = square ? (float)(1 / sqrt((double)square)) : 0;
    }
}

INLINE void windows_pair(const int8_t *values, const int32_t *factor, int64_t dim, int64_t reach, const int32_t *a_ids,
                         int64_t na, const int32_t *b_ids, int64_t nb, int16_t *rows, int16_t *sums, float *inverses,
                         int32_t *where, float *a_best, float *b_best) {
    for (int64_t p = 0; p < na; p++) a_best[p] = -2;
    for (int64_t p = 0; p < nb; p++) b_best[p] = -2;
    int16_t *nothing = rows;
    for (int64_t k = 0; k < dim; k++) nothing[k] = 0;
    rows += dim;
    rescale(values, factor, dim, a_ids, na, rows);
    windows(rows, nothing, na, dim, reach, sums, inverses);
    rescale(values, factor, dim, b_ids, nb, rows);
    windows(rows, nothing, nb, dim, reach, sums + na * dim, inverses + na);
    match_pair(sums, na, inverses, sums + na * dim, nb, inverses + na, dim, a_best, where, b_best, where + na);
}

typedef void windows_of_pair(const int8_t *values, const int32_t *factor, int64_t dim, int64_t reach,
                             const int32_t *a_ids, int64_t na, const int32_t *b_ids, int64_t nb, int16_t *rows,
                             int16_t *sums, float *inverses, int32_t *where, float *a_best, float *b_best);

#define WINDOWS(NAME, TARGET)                                                                                       \
    TARGET static void NAME(const int8_t *values, const int32_t *factor, int64_t dim, int64_t reach,                 \
                            const int32_t *a_ids, int64_t na, const int32_t *b_ids, int64_t nb, int16_t *rows,      \
                            int16_t *sums, float *inverses, int32_t *where, float *a_best, float *b_best) {         \
        windows_pair(values, factor, dim, reach, a_ids, na, b_ids, nb, rows, sums, inverses, where, a_best, b_best); \
    }

VERSIONS(WINDOWS, windows)

/* As match_pieces, but of windows: of each piece with those up to `reach` away from it. factor (pieces): at most such
 * that no sum of 2 reach + 1 rows is longer than 2^15 - 1. best has a number for each piece. */
EXPORT int64_t match_windows(const int8_t *values, const int32_t *factor, int64_t dim, int64_t reach,
                             const int32_t *a_ids, const int64_t *a_offsets, const int32_t *b_ids,
                             const int64_t *b_offsets, int64_t pairs, float *a_best, float *b_best) {
    windows_of_pair *one = BEST(windows);
    int64_t most = most_pieces(a_offsets, b_offsets, pairs);
    int16_t *rows = malloc((most + 1) * dim * sizeof(int16_t)), *sums = malloc((most * dim + 1) * sizeof(int16_t));
    float *inverses = malloc((most + 1) * sizeof(float));
    int32_t *where = malloc((most + 1) * sizeof(int32_t));
    int64_t failed = !rows || !sums || !inverses || !where ? -1 : 0;
    for (int64_t i = 0; i < pairs && !failed; i++) {
        int64_t a = a_offsets[i], b = b_offsets[i];
        one(values, factor, dim, reach, a_ids + a, a_offsets[i + 1] - a, b_ids + b, b_offsets[i + 1] - b, rows, sums,
            inverses, where, a_best + a, b_best + b);
    }
    free(rows);
    free(sums);
    free(inverses);
    free(where);
    return failed;
}

INLINE void add_parts(const int8_t *values, const int32_t *factor, int64_t dim, const int32_t *ids,
                      const int8_t *part, int64_t count, int64_t parts, int16_t *row, int32_t *sums) {
    for (int64_t k = 0; k < parts * dim; k++) sums[k] = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t *sum = sums + part[i] * dim;
        rescale(values, factor, dim, ids + i, 1, row);
        for (int64_t k = 0; k < dim; k++) sum[k] += row[k];
    }
}

INLINE double product(const int32_t *x, const int32_t *y, int64_t dim) {
    int64_t total = 0;
    for (int64_t k = 0; k < dim; k++) total += (int64_t)x[k] * y[k];
    return (double)total;
}

INLINE void parts_pair(const int8_t *values, const int32_t *factor, int64_t dim, int64_t parts, const int32_t *a_ids,
                       const int8_t *a_part, int64_t na, const int32_t *b_ids, const int8_t *b_part, int64_t nb,
                       int16_t *row, int32_t *sums, double *lengths, float *cosines) {
    int32_t *b_sums = sums + parts * dim;
    add_parts(values, factor, dim, a_ids, a_part, na, parts, row, sums);
    add_parts(values, factor, dim, b_ids, b_part, nb, parts, row, b_sums);
    for (int64_t p = 0; p < 2 * parts; p++) lengths[p] = sqrt(product(sums + p * dim, sums + p * dim, dim));
    for (int64_t p = 0; p < parts; p++)
        for (int64_t q = 0; q < parts; q++) {
            double both = lengths[p] * lengths[parts + q];
            cosines[p * parts + q] = both > 0 ? (float)(product(sums + p * dim, b_sums + q * dim, dim) / both) : 0;
        }
}

typedef void parts_of_pair(const int8_t *values, const int32_t *factor, int64_t dim, int64_t parts,
                           const int32_t *a_ids, const int8_t *a_part, int64_t na, const int32_t *b_ids,
                           const int8_t *b_part, int64_t nb, int16_t *row, int32_t *sums, double *lengths,
                           float *cosines);

#define PARTS(NAME, TARGET)                                                                                         \
    TARGET static void NAME(const int8_t *values, const int32_t *factor, int64_t dim, int64_t parts,                 \
                            const int32_t *a_ids, const int8_t *a_part, int64_t na, const int32_t *b_ids,           \
                            const int8_t *b_part, int64_t nb, int16_t *row, int32_t *sums, double *lengths,         \
                            float *cosines) {                                                                       \
        parts_pair(values, factor, dim, parts, a_ids, a_part, na, b_ids, b_part, nb, row, sums, lengths, cosines);  \
    }

VERSIONS(PARTS, parts)

/* Pairs of sentences as above, each cut into parts: piece i of a is in part a_part[i], from 0 to parts - 1. cosines
 * (pairs, parts, parts): of the sums of the pieces of each part of a and each of b, 0 where a sum is 0. */
EXPORT int64_t match_parts(const int8_t *values, const int32_t *factor, int64_t dim, int64_t parts,
                           const int32_t *a_ids, const int8_t *a_part, const int64_t *a_offsets, const int32_t *b_ids,
                           const int8_t *b_part, const int64_t *b_offsets, int64_t pairs, float *cosines) {
    parts_of_pair *one = BEST(parts);
    int16_t *row = malloc((dim + 1) * sizeof(int16_t));
    int32_t *sums = malloc((2 * parts * dim + 1) * sizeof(int32_t));
    double *lengths = malloc(2 * parts * sizeof(double));
    int64_t failed = !row || !sums || !lengths ? -1 : 0;
    for (int64_t i = 0; i < pairs && !failed; i++) {
        int64_t a = a_offsets[i], b = b_offsets[i];
        one(values, factor, dim, parts, a_ids + a, a_part + a, a_offsets[i + 1] - a, b_ids + b, b_part + b,
            b_offsets[i + 1] - b, row, sums, lengths, cosines + i * parts * parts);
    }
    free(row);
    free(sums);
    free(lengths);
    return failed;
}
