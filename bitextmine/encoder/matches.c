/* Two sentences compared piece by piece, and by all features of their pieces, windows and parts.
 *
 * Everything comes from products of rows of whole numbers, which are exact: the products of windows and of parts are
 * sums of those of their pieces. So the result is the same on every machine. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

/* What follows comes in versions for wider registers: VERSIONS(MAKE, name) makes them, each with its strip(), and with
 * one for rows of int8 where that is faster, and BEST(name) is the one to take here. */
#if X86 && defined(__GNUC__) && !defined(__clang__)
#define T_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vnni,prefer-vector-width=512")))
#elif X86
#define T_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vnni")))
#endif
#if X86
#define VERSIONS(MAKE, NAME) \
    MAKE(NAME##_plain, , strip_plain, NULL, 8) MAKE(NAME##_avx2, T_AVX2, strip_avx2, NULL, 8) \
    MAKE(NAME##_avx512, T_512BW, strip_avx512, NULL, 16) MAKE(NAME##_vnni, T_VNNI, strip_vnni, bytes_vnni, 16)
#define BEST(NAME)                            \
    (registers() == 3   ? NAME##_vnni         \
     : registers() == 2 ? NAME##_avx512       \
     : registers() == 1 ? NAME##_avx2         \
                        : NAME##_plain)

static int registers(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return __builtin_cpu_supports("avx512vnni") ? 3 : 2;
    return __builtin_cpu_supports("avx2") ? 1 : 0;
}
#else
#define VERSIONS(MAKE, NAME) MAKE(NAME##_plain, , strip_plain, NULL, 8)
#define BEST(NAME) NAME##_plain
#endif

#define LANES 16 /* Numbers that are compared side by side. */
#define TILE 4   /* Rows by rows whose products are summed together. */
#define REACH 4  /* The longest way from the middle of a window to its end: zeros at both ends of a row of products. */

static int64_t up_to(int64_t count, int64_t step) { return (count + step - 1) / step * step; }
/* Numbers of a row of so many dimensions with zeros behind it, and of a row of products with so many pieces. */
static int64_t stride(int64_t dim) { return up_to(dim > 0 ? dim : 1, 32); }
static int64_t width(int64_t count) { return REACH + up_to(count, LANES) + LANES; }

/* The numbers of a register with AVX2, and with AVX-512. Compilers take wider vectors apart, number by number, and GCC 12
 * copies sums of type __m256i or __m512i in every step. */
typedef float floats8 __attribute__((vector_size(32)));
typedef int32_t numbers8 __attribute__((vector_size(32)));
typedef float floats16 __attribute__((vector_size(64)));
typedef int32_t numbers16 __attribute__((vector_size(64)));

/* ---- products ---- */

/* The products of 4 rows of x with m rows of y, into totals (4, w). */
typedef void strip(const int16_t *x, const int16_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w);
/* The same for rows of int8, whose number of dimensions is a multiple of 64. */
typedef void byte_strip(const int8_t *x, const int8_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w);

#define EACH(DO) DO(0, 0) DO(0, 1) DO(0, 2) DO(0, 3) DO(1, 0) DO(1, 1) DO(1, 2) DO(1, 3) \
                 DO(2, 0) DO(2, 1) DO(2, 2) DO(2, 3) DO(3, 0) DO(3, 1) DO(3, 2) DO(3, 3)
#define ROWS(TYPE, NAME, FIRST, DIM) \
    const TYPE *NAME##0 = (FIRST), *NAME##1 = NAME##0 + (DIM), *NAME##2 = NAME##1 + (DIM), *NAME##3 = NAME##2 + (DIM)

static void strip_plain(const int16_t *x, const int16_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w) {
    ROWS(int16_t, x, x, dim);
    for (int64_t j = 0; j < m; j += TILE) {
        ROWS(int16_t, y, y + j * dim, dim);
#define START(R, C) int32_t t##R##C = 0;
#define STEP(R, C) t##R##C += (int32_t)x##R[k] * y##C[k];
#define STORE(R, C) totals[R * w + j + C] = t##R##C;
        EACH(START)
        for (int64_t k = 0; k < dim; k++) { EACH(STEP) }
        EACH(STORE)
    }
}

#if X86
/* The sums of the numbers of each of 4 registers. */
T_AVX2 INLINE __m128i sum_each(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

/* Two rows of x at a time: the sums of four would not fit the 16 registers. */
T_AVX2 static void strip_avx2(const int16_t *x, const int16_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w) {
    for (int64_t j = 0; j < m; j += TILE) {
        ROWS(int16_t, y, y + j * dim, dim);
        for (int r = 0; r < TILE; r += 2) {
            const int16_t *x0 = x + r * dim, *x1 = x0 + dim;
#define LOAD256(ROW) _mm256_loadu_si256((const __m256i *)(ROW + k))
#define START256(R, C) numbers8 t##R##C = {0};
#define STEP256(R, C) t##R##C += (numbers8)_mm256_madd_epi16(a##R, b##C);
#define EACH256(DO) DO(0, 0) DO(0, 1) DO(0, 2) DO(0, 3) DO(1, 0) DO(1, 1) DO(1, 2) DO(1, 3)
#define STORE256(R) \
    _mm_storeu_si128((__m128i *)(totals + (r + R) * w + j), \
                     sum_each((__m256i)t##R##0, (__m256i)t##R##1, (__m256i)t##R##2, (__m256i)t##R##3));
            EACH256(START256)
            int64_t k = 0;
            do {
                const __m256i a0 = LOAD256(x0), a1 = LOAD256(x1);
                const __m256i b0 = LOAD256(y0), b1 = LOAD256(y1), b2 = LOAD256(y2), b3 = LOAD256(y3);
                EACH256(STEP256)
            } while ((k += 16) < dim);
            STORE256(0)
            STORE256(1)
        }
    }
}

#define START512(R, C) numbers16 t##R##C = {0};
#define LOAD512(ROW) _mm512_loadu_si512(ROW + k)
#define HALVES(SUM) \
    _mm256_add_epi32(_mm512_castsi512_si256((__m512i)SUM), _mm512_extracti64x4_epi64((__m512i)SUM, 1))
#define STORE512(R) \
    _mm_storeu_si128((__m128i *)(totals + R * w + j), \
                     sum_each(HALVES(t##R##0), HALVES(t##R##1), HALVES(t##R##2), HALVES(t##R##3)));
#define STRIP512(NAME, TARGET, STEP512)                                                                                 \
    TARGET static void NAME(const int16_t *x, const int16_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w) {   \
        ROWS(int16_t, x, x, dim);                                                                                       \
        for (int64_t j = 0; j < m; j += TILE) {                                                                         \
            ROWS(int16_t, y, y + j * dim, dim);                                                                         \
            EACH(START512)                                                                                              \
            int64_t k = 0;                                                                                              \
            do {                                                                                                        \
                const __m512i a0 = LOAD512(x0), a1 = LOAD512(x1), a2 = LOAD512(x2), a3 = LOAD512(x3);                   \
                const __m512i b0 = LOAD512(y0), b1 = LOAD512(y1), b2 = LOAD512(y2), b3 = LOAD512(y3);                   \
                EACH(STEP512)                                                                                           \
            } while ((k += 32) < dim);                                                                                  \
            STORE512(0) STORE512(1) STORE512(2) STORE512(3)                                                             \
        }                                                                                                               \
    }
#define STEP_512BW(R, C) t##R##C += (numbers16)_mm512_madd_epi16(a##R, b##C);
#define STEP_VNNI(R, C) t##R##C = (numbers16)_mm512_dpwssd_epi32((__m512i)t##R##C, a##R, b##C);

STRIP512(strip_avx512, T_512BW, STEP_512BW)
STRIP512(strip_vnni, T_VNNI, STEP_VNNI)

/* The instruction takes one side without sign: y + 128, so that the sums begin with -128 times the sum of x. */
T_VNNI static void bytes_vnni(const int8_t *x, const int8_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w) {
    const __m512i more = _mm512_set1_epi8(-128);
    ROWS(int8_t, x, x, dim);
#define LESS(R) numbers16 less##R = {0};
#define STEP_LESS(R) less##R = (numbers16)_mm512_dpbusd_epi32((__m512i)less##R, more, LOAD512(x##R));
#define START_BYTES(R, C) numbers16 t##R##C = -less##R;
#define STEP_BYTES(R, C) t##R##C = (numbers16)_mm512_dpbusd_epi32((__m512i)t##R##C, b##C, a##R);
#define LOAD_MORE(ROW) _mm512_xor_si512(LOAD512(ROW), more)
    LESS(0) LESS(1) LESS(2) LESS(3)
    for (int64_t k = 0; k < dim; k += 64) { STEP_LESS(0) STEP_LESS(1) STEP_LESS(2) STEP_LESS(3) }
    for (int64_t j = 0; j < m; j += TILE) {
        ROWS(int8_t, y, y + j * dim, dim);
        EACH(START_BYTES)
        int64_t k = 0;
        do {
            const __m512i a0 = LOAD512(x0), a1 = LOAD512(x1), a2 = LOAD512(x2), a3 = LOAD512(x3);
            const __m512i b0 = LOAD_MORE(y0), b1 = LOAD_MORE(y1), b2 = LOAD_MORE(y2), b3 = LOAD_MORE(y3);
            EACH(STEP_BYTES)
        } while ((k += 64) < dim);
        STORE512(0) STORE512(1) STORE512(2) STORE512(3)
    }
}
#endif

#define CHOOSE(KIND, WHERE, ONE, OTHER) ((KIND)(((numbers)(ONE) & (WHERE)) | ((numbers)(OTHER) & ~(WHERE))))

/* Each of HALF numbers becomes the better one of it and the number HALF behind it. */
#define FOLD(HALF, NUMBERS, BETTER) \
    for (int l = 0; l < (HALF); l++)  \
        NUMBERS[l] = NUMBERS[l + (HALF)] BETTER NUMBERS[l] ? NUMBERS[l + (HALF)] : NUMBERS[l];

/* The best of both sides by a row of products: of row i of a with the m rows of b. Of equal ones the first counts. */
#define COMPARE(NAME, WIDTH, ...)                                                                                     \
    INLINE void NAME(const int32_t *totals, int64_t i, int64_t m, const float *a_inverse, const float *b_inverse,     \
                     float *a_best, int32_t *a_match, float *b_best, int32_t *b_match) {                              \
        typedef floats##WIDTH floats;                                                                                 \
        typedef numbers##WIDTH numbers;                                                                               \
        const numbers lanes = {__VA_ARGS__};                                                                          \
        const floats least = (floats){0} - 2;                                                                         \
        floats best = least;                                                                                          \
        numbers match = {0};                                                                                          \
        for (int64_t c = 0; c < m; c += WIDTH) {                                                                      \
            numbers total, theirs;                                                                                    \
            floats inverse, before;                                                                                   \
            memcpy(&total, totals + c, sizeof total);                                                                 \
            memcpy(&inverse, b_inverse + c, sizeof inverse);                                                          \
            memcpy(&before, b_best + c, sizeof before);                                                               \
            const numbers at = lanes + (int32_t)c, there = at < (int32_t)m;                                           \
            floats cosine = __builtin_convertvector(total, floats) * a_inverse[i] * inverse;                          \
            cosine = CHOOSE(floats, there, cosine, least);                                                            \
            numbers higher = cosine > before;                                                                         \
            before = CHOOSE(floats, higher, cosine, before);                                                          \
            memcpy(b_best + c, &before, sizeof before);                                                               \
            if (b_match) {                                                                                            \
                memcpy(&theirs, b_match + c, sizeof theirs);                                                          \
                theirs = CHOOSE(numbers, higher, (numbers){0} + (int32_t)i, theirs);                                  \
                memcpy(b_match + c, &theirs, sizeof theirs);                                                          \
            }                                                                                                         \
            higher = cosine > best;                                                                                   \
            best = CHOOSE(floats, higher, cosine, best);                                                              \
            match = CHOOSE(numbers, higher, at, match);                                                               \
        }                                                                                                             \
        float high[WIDTH];                                                                                            \
        memcpy(high, &best, sizeof best);                                                                             \
        FOLD(WIDTH / 2, high, >) FOLD(WIDTH / 4, high, >) FOLD(2, high, >) FOLD(1, high, >)                           \
        a_best[i] = high[0];                                                                                          \
        if (!a_match) return;                                                                                         \
        int32_t first[WIDTH];                                                                                         \
        match = CHOOSE(numbers, best == high[0], match, (numbers){0} + INT32_MAX);                                    \
        memcpy(first, &match, sizeof match);                                                                          \
        FOLD(WIDTH / 2, first, <) FOLD(WIDTH / 4, first, <) FOLD(2, first, <) FOLD(1, first, <)                       \
        a_match[i] = first[0];                                                                                        \
    }

COMPARE(compare8, 8, 0, 1, 2, 3, 4, 5, 6, 7)
COMPARE(compare16, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)

INLINE void compare(int lanes, const int32_t *totals, int64_t i, int64_t m, const float *a_inverse, const float *b_inverse,
                    float *a_best, int32_t *a_match, float *b_best, int32_t *b_match) {
    if (lanes == 16) compare16(totals, i, m, a_inverse, b_inverse, a_best, a_match, b_best, b_match);
    else compare8(totals, i, m, a_inverse, b_inverse, a_best, a_match, b_best, b_match);
}

/* ---- pieces ---- */

/* One sentence of a pair. Arrays have room for a multiple of LANES. */
typedef struct {
    const int32_t *ids;
    int64_t count;
    int16_t *rows;  /* (count, stride), zeros behind the last; int8 for a byte_strip() */
    float *inverse; /* (count): 1 / length of each row, or 0 */
    float *best;    /* (count): the highest cosine of each row with one of the other sentence, -2 where there is none */
    int32_t *match; /* (count): of which of them, the first of equals */
} side;

/* Matches all rows of two sentences; totals: room for 4 rows of width(b). */
INLINE void match_pair(const side *a, const side *b, int64_t dim, strip *products, byte_strip *bytes, int lanes,
                       int32_t *totals) {
    const int64_t na = a->count, nb = b->count, w = width(nb), wide = up_to(dim, 64);
    for (int64_t p = 0; p < up_to(na, LANES); p++) a->best[p] = -2, a->match[p] = 0;
    for (int64_t p = 0; p < up_to(nb, LANES); p++) b->best[p] = -2, b->match[p] = 0;
    for (int64_t i = 0; i < na && nb; i += TILE) {
        if (bytes) bytes((const int8_t *)a->rows + i * wide, (const int8_t *)b->rows, nb, wide, totals, w);
        else products(a->rows + i * dim, b->rows, nb, dim, totals, w);
        for (int64_t r = 0; r < TILE && i + r < na; r++)
            compare(lanes, totals + r * w, i + r, nb, a->inverse, b->inverse, a->best, a->match, b->best, b->match);
    }
}

/* Zeros behind the numbers of each row, and in the rows behind the last that are in its tile. */
INLINE void clear_tails(int16_t *rows, int64_t count, int64_t dim) {
    const int64_t wide = stride(dim);
    for (int64_t i = 0; i < count && dim < wide; i++) memset(rows + i * wide + dim, 0, (wide - dim) * sizeof(int16_t));
    memset(rows + count * wide, 0, (up_to(count, TILE) - count) * wide * sizeof(int16_t));
}

/* Fills in `rows`, of int8 if `narrow`, and `inverse`. */
INLINE void read_rows(const side *s, const int8_t *values, const float *inverse, int64_t dim, int narrow) {
    const int64_t wide = narrow ? up_to(stride(dim), 64) : stride(dim);
    if (!narrow) clear_tails(s->rows, s->count, dim);
    for (int64_t i = 0; i < s->count; i++) {
        const int8_t *restrict row = values + s->ids[i] * dim;
        if (narrow) {
            int8_t *to = (int8_t *)s->rows + i * wide;
            memcpy(to, row, dim);
            memset(to + dim, 0, wide - dim);
        } else {
            int16_t *restrict to = s->rows + i * wide;
            for (int64_t k = 0; k < dim; k++) to[k] = row[k];
        }
        s->inverse[i] = inverse[s->ids[i]];
    }
    for (int64_t i = s->count; i < up_to(s->count, LANES); i++) s->inverse[i] = 0;
}

/* The number of bytes of `count` numbers of so many bytes, up to a multiple of a cache line. */
static int64_t lines(int64_t count, int64_t bytes) { return up_to(count * bytes, 64); }

/* Room for sentences of at most so many pieces; returns the bytes, and places the arrays from `at` on. */
static int64_t place_side(side *s, int64_t most, int64_t dim, uintptr_t at) {
    const int64_t rows = lines(up_to(most, TILE) * stride(dim), 2), numbers = lines(up_to(most, LANES) + LANES, 4);
    *s = (side){.rows = (int16_t *)at, .inverse = (float *)(at + rows), .best = (float *)(at + rows + numbers),
                .match = (int32_t *)(at + rows + 2 * numbers)};
    return rows + 3 * numbers;
}

/* malloc() at the beginning of a cache line. */
static uintptr_t make_room(int64_t bytes, void **whole) {
    const uintptr_t at = (uintptr_t)(*whole = malloc(bytes + 64));
    return at ? at + (64 - at % 64) % 64 : 0;
}

void multiply_rows(const int16_t *x, int64_t n, const int16_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w) {
    strip *products = BEST(strip);
    for (int64_t i = 0; i < n; i += TILE) {
        const int64_t from = x == y ? i : 0;
        products(x + i * dim, y + from * dim, m - from, dim, totals + i * w + from, w);
    }
}

typedef struct {
    const int32_t *ids;
    const int64_t *offsets;
} sentences;

typedef void match(const int8_t *values, const float *inverse, int64_t dim, const sentences *from, int64_t pairs,
                   side *both, int32_t *totals, float *const *best, int32_t *const *matches);

INLINE void match_each(const int8_t *values, const float *inverse, int64_t dim, const sentences *from, int64_t pairs,
                       side *both, strip *products, byte_strip *bytes, int lanes, int32_t *totals, float *const *best,
                       int32_t *const *matches) {
    for (int64_t i = 0; i < pairs; i++) {
        for (int v = 0; v < 2; v++) {
            both[v].ids = from[v].ids + from[v].offsets[i];
            both[v].count = from[v].offsets[i + 1] - from[v].offsets[i];
            read_rows(&both[v], values, inverse, dim, bytes != NULL);
        }
        match_pair(&both[0], &both[1], stride(dim), products, bytes, lanes, totals);
        for (int v = 0; v < 2; v++) {
            memcpy(best[v] + from[v].offsets[i], both[v].best, both[v].count * sizeof(float));
            memcpy(matches[v] + from[v].offsets[i], both[v].match, both[v].count * sizeof(int32_t));
        }
    }
}

#define MATCH(NAME, TARGET, STRIP, BYTES, LANES_)                                                                      \
    TARGET static void NAME(const int8_t *values, const float *inverse, int64_t dim, const sentences *from,            \
                            int64_t pairs, side *both, int32_t *totals, float *const *best, int32_t *const *matches) { \
        match_each(values, inverse, dim, from, pairs, both, STRIP, BYTES, LANES_, totals, best, matches);              \
    }

VERSIONS(MATCH, match)

static int64_t most_pieces(const int64_t *offsets, int64_t count) {
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++)
        if (offsets[i + 1] - offsets[i] > most) most = offsets[i + 1] - offsets[i];
    return most;
}

/* The matches of pairs of sentences: values (pieces, dim) int8, inverse (pieces), pair i has the pieces
 * a_ids[a_offsets[i]] to a_ids[a_offsets[i + 1] - 1] and the same of b. best and match, of a and of b, have a number
 * for each piece; a sentence whose other one has no pieces gets -2 and 0. Returns 0, or -1 when memory runs out. */
int64_t match_pieces(const int8_t *values, const float *inverse, int64_t dim, const int32_t *a_ids,
                     const int64_t *a_offsets, const int32_t *b_ids, const int64_t *b_offsets, int64_t pairs,
                     float *a_best, int32_t *a_match, float *b_best, int32_t *b_match) {
    match *one = BEST(match);
    const sentences from[2] = {{a_ids, a_offsets}, {b_ids, b_offsets}};
    float *const best[2] = {a_best, b_best};
    int32_t *const matches[2] = {a_match, b_match};
    const int64_t most[2] = {most_pieces(a_offsets, pairs), most_pieces(b_offsets, pairs)};
    side both[2];
    int64_t bytes = lines(TILE * width(most[1]), 4);
    for (int v = 0; v < 2; v++) bytes += place_side(&both[v], most[v], dim, 0);
    void *whole;
    uintptr_t at = make_room(bytes, &whole);
    if (!at) return -1;
    for (int v = 0; v < 2; v++) at += place_side(&both[v], most[v], dim, at);
    one(values, inverse, dim, from, pairs, both, (int32_t *)at, best, matches);
    free(whole);
    return 0;
}

/* ---- features ---- */

/* What mining/piece_features.py computes, for many pairs: a sentence that comes in several pairs in a row is prepared once.
 * The constants are those of that file. */
#define LIMITS 9
#define WINDOW_LIMITS 6
#define WINDOWS_COUNT 2
#define SIDE_FEATURES (LIMITS + 4 + WINDOWS_COUNT * (WINDOW_LIMITS + 2))
#define PART_SUMS (2 + 3)
#define SEGMENTS 4 /* The cuts of halves and thirds, in order, make four; each part is one of them, or two. */
#define FEATURES (2 * SIDE_FEATURES + PART_SUMS + 2 + 2)

static const float limits[LIMITS] = {0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
static const float window_limits[WINDOW_LIMITS] = {0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f};

/* The vectors of a vocabulary. To compare sums of them, a number is (value * factor of its row + 2^15) / 2^16, rounded
 * down: on one scale, and so small that the products of windows fit int32. */
typedef struct {
    const int8_t *values;  /* (pieces, dim) */
    const float *inverse;  /* (pieces): 1 / length of each row, or 0 */
    const int32_t *factor; /* (pieces) */
    const double *weights; /* (pieces) */
    const int64_t *whole;  /* (pieces): the weights in whole numbers */
    int64_t dim;
} vocabulary;

/* A sentence with all that is compared. */
typedef struct {
    side pieces;
    int16_t *scaled;                     /* (count, stride) on one scale, zeros behind the last */
    float *inverses[WINDOWS_COUNT];      /* (count): 1 / length of each window, or 0 */
    float *best[WINDOWS_COUNT];          /* (count): the highest cosine of each window with one of the other sentence */
    int64_t cuts[SEGMENTS + 1];          /* where each segment begins, and the number of pieces */
    double lengths[PART_SUMS];           /* of halves and thirds */
    double *weight;                      /* (count) */
    int64_t row;                         /* which sentence this is */
} prepared;

static int64_t place_prepared(prepared *s, int64_t most, int64_t dim, uintptr_t at) {
    const uintptr_t begin = at;
    const int64_t numbers = lines(up_to(most, LANES) + LANES, 4);
    at += place_side(&s->pieces, most, dim, at);
    s->scaled = (int16_t *)at, at += lines(up_to(most, TILE) * stride(dim), 2);
    for (int v = 0; v < WINDOWS_COUNT; v++) {
        s->inverses[v] = (float *)at, at += numbers;
        s->best[v] = (float *)at, at += numbers;
    }
    s->weight = (double *)at, at += 2 * numbers;
    s->row = -1;
    return (int64_t)(at - begin);
}

/* The room of a comparison, for sentences of at most so many pieces. */
typedef struct {
    int32_t *totals;  /* (most, width): products of pieces */
    uint32_t *column; /* (width): sums of some of these rows */
    int32_t *row;     /* (width): and of neighbours in that */
    int64_t *sums;    /* (width): the sum of the rows of a segment */
    int16_t *window;  /* (2, stride): for window_lengths() */
    int32_t *vectors; /* (SEGMENTS, stride): the sums of the pieces of each segment */
} workspace;

static int64_t place_workspace(workspace *r, int64_t most, int64_t dim, uintptr_t at) {
    const uintptr_t begin = at;
    const int64_t w = width(most);
    r->totals = (int32_t *)at, at += lines(up_to(most, TILE) * w, 4);
    r->column = (uint32_t *)at, at += lines(w, 4);
    r->row = (int32_t *)at, at += lines(w, 4);
    r->sums = (int64_t *)at, at += lines(w, 8);
    r->window = (int16_t *)at, at += lines(2 * stride(dim), 2);
    r->vectors = (int32_t *)at, at += lines(SEGMENTS * stride(dim), 4);
    return (int64_t)(at - begin);
}

/* The products (na, width(nb)) of all pieces on one scale, each row behind REACH zeros and with zeros behind it. */
INLINE void all_products(const prepared *a, const prepared *b, int64_t dim, strip *products, int32_t *totals) {
    const int64_t na = a->pieces.count, nb = b->pieces.count, w = width(nb);
    for (int64_t i = 0; i < na; i++) {
        memset(totals + i * w, 0, REACH * sizeof(int32_t));
        memset(totals + i * w + REACH + nb, 0, (w - REACH - nb) * sizeof(int32_t));
    }
    for (int64_t i = 0; i < na; i += TILE) products(a->scaled + i * dim, b->scaled, nb, dim, totals + REACH + i * w, w);
}

/* The sum of the rows of products up to `reach` away from row i, from that of row i - 1. Modulo 2^32: what is asked for
 * in the end fits. */
INLINE void slide(const int32_t *totals, int64_t count, int64_t w, int64_t i, int64_t reach, uint32_t *column) {
    if (i == 0) memset(column, 0, w * sizeof(uint32_t));
    for (int64_t p = i ? i + reach : 0; p <= i + reach && p < count; p++)
        for (int64_t j = 0; j < w; j++) column[j] += (uint32_t)totals[p * w + j];
    if (i > reach)
        for (int64_t j = 0; j < w; j++) column[j] -= (uint32_t)totals[(i - reach - 1) * w + j];
}

INLINE int32_t around(const uint32_t *column, int64_t j, int64_t reach) {
    uint32_t sum = 0;
    for (int64_t q = REACH - reach; q <= REACH + reach; q++) sum += column[j + q];
    return (int32_t)sum;
}

INLINE void match_windows(const prepared *a, const prepared *b, int v, int64_t reach, int lanes, const workspace *room) {
    const int64_t na = a->pieces.count, nb = b->pieces.count, w = width(nb);
    for (int64_t p = 0; p < up_to(nb, LANES); p++) b->best[v][p] = -2;
    for (int64_t i = 0; i < na; i++) {
        slide(room->totals, na, w, i, reach, room->column);
        for (int64_t j = 0; j < up_to(nb, LANES); j++) room->row[j] = around(room->column, j, reach);
        compare(lanes, room->row, i, nb, a->inverses[v], b->inverses[v], a->best[v], NULL, b->best[v], NULL);
    }
}

/* The lengths of a sentence's windows. The sum of one fits int16 (LONGEST in matches.py), and its square int32. room:
 * a sum, and a row of zeros. */
INLINE void window_lengths(const prepared *s, int v, int64_t reach, int64_t dim, int16_t *room) {
    const int64_t count = s->pieces.count;
    const int16_t *none = room + dim;
    int32_t *squares = s->pieces.match; /* not yet in use */
    memset(room, 0, 2 * dim * sizeof(int16_t));
    for (int64_t p = 0; p < count + reach; p++) {
        const int64_t first = p - 2 * reach - 1;
        const int16_t *come = p < count ? s->scaled + p * dim : none, *gone = first < 0 ? none : s->scaled + first * dim;
        int32_t square = 0;
        for (int64_t k = 0; k < dim; k++) {
            const int16_t sum = (int16_t)(room[k] + come[k] - gone[k]);
            room[k] = sum;
            square += (int32_t)sum * sum;
        }
        if (p >= reach) squares[p - reach] = square;
    }
    for (int64_t i = 0; i < count; i++) s->inverses[v][i] = squares[i] ? (float)(1 / sqrt((double)squares[i])) : 0;
    for (int64_t i = count; i < up_to(count, LANES); i++) s->inverses[v][i] = 0;
}

/* The first segment of each part, and the one behind its last. */
static const int part_segments[PART_SUMS][2] = {{0, 2}, {2, 4}, {0, 1}, {1, 3}, {3, 4}};

/* The lengths of the sums of the pieces of each part. */
INLINE void part_lengths(prepared *s, int64_t dim, int32_t *vectors) {
    memset(vectors, 0, SEGMENTS * dim * sizeof(int32_t));
    for (int x = 0; x < SEGMENTS; x++)
        for (int64_t i = s->cuts[x]; i < s->cuts[x + 1]; i++) {
            const int16_t *restrict row = s->scaled + i * dim;
            int32_t *restrict vector = vectors + x * dim;
            for (int64_t k = 0; k < dim; k++) vector[k] += row[k];
        }
    for (int q = 0; q < PART_SUMS; q++) {
        const int first = part_segments[q][0], last = part_segments[q][1] - 1;
        const int32_t *one = vectors + first * dim, *other = vectors + last * dim;
        int64_t square = 0;
        for (int64_t k = 0; k < dim; k++) {
            const int32_t sum = first == last ? one[k] : one[k] + other[k];
            square += (int64_t)sum * sum;
        }
        s->lengths[q] = sqrt((double)square);
    }
}

/* The products of each segment of a with each of b. */
INLINE void segment_products(const prepared *a, const prepared *b, const workspace *room,
                             int64_t (*products)[SEGMENTS]) {
    const int64_t w = width(b->pieces.count), used = up_to(b->pieces.count, LANES);
    int64_t *restrict sums = room->sums;
    for (int x = 0; x < SEGMENTS; x++) {
        memset(sums, 0, used * sizeof(int64_t));
        for (int64_t i = a->cuts[x]; i < a->cuts[x + 1]; i++) {
            const int32_t *restrict row = room->totals + REACH + i * w;
            for (int64_t j = 0; j < used; j++) sums[j] += row[j];
        }
        for (int y = 0; y < SEGMENTS; y++) {
            products[x][y] = 0;
            for (int64_t j = b->cuts[y]; j < b->cuts[y + 1]; j++) products[x][y] += sums[j];
        }
    }
}

/* The product of part q of one sentence with part r of the other. */
INLINE double part_product(int64_t (*products)[SEGMENTS], int q, int r) {
    int64_t total = 0;
    for (int x = part_segments[q][0]; x < part_segments[q][1]; x++)
        for (int y = part_segments[r][0]; y < part_segments[r][1]; y++) total += products[x][y];
    return (double)total;
}

/* A piece belongs to the part in which the middle of its weight lies. */
INLINE void cut_segments(prepared *s, const int64_t *whole) {
    static const int64_t cuts[SEGMENTS - 1][2] = {{1, 3}, {1, 2}, {2, 3}};
    const int64_t count = s->pieces.count;
    int64_t total = 0, until = 0;
    for (int64_t i = 0; i < count; i++) total += whole[s->pieces.ids[i]];
    const int64_t all = 2 * total > 1 ? 2 * total : 1;
    int at = 0;
    s->cuts[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t own = whole[s->pieces.ids[i]], middle = 2 * until + own;
        until += own;
        while (at < SEGMENTS - 1 && middle * cuts[at][1] >= all * cuts[at][0]) s->cuts[++at] = i;
    }
    while (at < SEGMENTS) s->cuts[++at] = count;
}

INLINE void prepare(prepared *s, const vocabulary *v, const sentences *from, int64_t row, int narrow,
                    const workspace *room) {
    const int64_t dim = v->dim, wide = stride(dim);
    s->row = row;
    side *own = &s->pieces;
    own->ids = from->ids + from->offsets[row];
    own->count = from->offsets[row + 1] - from->offsets[row];
    read_rows(own, v->values, v->inverse, dim, narrow);
    clear_tails(s->scaled, own->count, dim);
    for (int64_t i = 0; i < own->count; i++) {
        const int32_t by = v->factor[own->ids[i]];
        const int8_t *restrict from_row = v->values + own->ids[i] * dim;
        int16_t *restrict to = s->scaled + i * wide;
        for (int64_t k = 0; k < dim; k++) to[k] = (int16_t)((from_row[k] * by + (1 << 15)) >> 16);
        s->weight[i] = v->weights[own->ids[i]];
    }
    cut_segments(s, v->whole);
    window_lengths(s, 0, 2, wide, room->window);
    window_lengths(s, 1, REACH, wide, room->window);
    part_lengths(s, wide, room->vectors);
}

static double at_least(double value, double least) { return value > least ? value : least; }

/* The features of the pieces of one side, and of its windows. */
static void side_features(const prepared *s, const prepared *other, float *out) {
    const side *own = &s->pieces, *back = &other->pieces;
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
    for (int v = 0; v < WINDOWS_COUNT; v++) {
        const float *best = s->best[v];
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

INLINE void pair_features(const prepared *a, const prepared *b, const workspace *room, float *out) {
    side_features(a, b, out);
    side_features(b, a, out + SIDE_FEATURES);
    out += 2 * SIDE_FEATURES;
    int64_t products[SEGMENTS][SEGMENTS];
    segment_products(a, b, room, products);
    for (int parts = 2, first = 0; parts <= 3; first += parts++) {
        double others = 0;
        for (int x = first; x < first + parts; x++)
            for (int y = first; y < first + parts; y++) {
                const double both = a->lengths[x] * b->lengths[y];
                const float cosine = both > 0 ? (float)(part_product(products, x, y) / both) : 0;
                if (x == y) *out++ = cosine;
                else others += cosine;
            }
        *out++ = (float)(others / (double)(parts * parts - parts));
    }
    *out++ = (float)log1p((double)a->pieces.count);
    *out++ = (float)log1p((double)b->pieces.count);
}

typedef struct {
    sentences from;
    const int64_t *rows;
    float *best; /* (pieces), or NULL */
} listed;

/* Asks for what prepare() reads of a sentence: it lies anywhere in a vocabulary that fits no cache. */
INLINE void ask_for(const vocabulary *v, const listed *l, int64_t row) {
    for (int64_t p = l->from.offsets[row]; p < l->from.offsets[row + 1]; p++) {
        const int64_t id = l->from.ids[p];
        for (int64_t k = 0; k < v->dim; k += 64) __builtin_prefetch(v->values + id * v->dim + k);
        __builtin_prefetch(v->inverse + id);
        __builtin_prefetch(v->factor + id);
        __builtin_prefetch(v->weights + id);
        __builtin_prefetch(v->whole + id);
    }
}

typedef void features(const vocabulary *v, const listed *l, int64_t pairs, prepared *both, const workspace *room,
                      float *out);

INLINE void each_pair(const vocabulary *v, const listed *l, int64_t pairs, prepared *both, strip *products, byte_strip *bytes, int lanes,
                      const workspace *room, float *out) {
    for (int64_t i = 0; i < pairs; i++, out += FEATURES) {
        int64_t least = INT64_MAX;
        for (int s = 0; s < 2; s++) {
            const int64_t row = l[s].rows[i];
            if (i + 1 < pairs && l[s].rows[i + 1] != row) ask_for(v, &l[s], l[s].rows[i + 1]);
            if (both[s].row != row) prepare(&both[s], v, &l[s].from, row, bytes != NULL, room);
            if (both[s].pieces.count < least) least = both[s].pieces.count;
        }
        match_pair(&both[0].pieces, &both[1].pieces, stride(v->dim), products, bytes, lanes, room->totals);
        for (int s = 0; s < 2; s++)
            if (l[s].best)
                memcpy(l[s].best + l[s].from.offsets[l[s].rows[i]], both[s].pieces.best,
                       both[s].pieces.count * sizeof(float));
        if (least == 0) {
            memset(out, 0, FEATURES * sizeof(float));
            continue;
        }
        all_products(&both[0], &both[1], stride(v->dim), products, room->totals);
        /* One by one: with a constant reach the sums need no loop. */
        match_windows(&both[0], &both[1], 0, 2, lanes, room);
        match_windows(&both[0], &both[1], 1, REACH, lanes, room);
        pair_features(&both[0], &both[1], room, out);
    }
}

#define EACH_PAIR(NAME, TARGET, STRIP, BYTES, LANES_)                                            \
    TARGET static void NAME(const vocabulary *v, const listed *l, int64_t pairs, prepared *both, \
                            const workspace *room, float *out) {                                 \
        each_pair(v, l, pairs, both, STRIP, BYTES, LANES_, room, out);                           \
    }

VERSIONS(EACH_PAIR, features)

/* The features (pairs, FEATURES) of sentence a_rows[i] of a with b_rows[i] of b; zeros if one of them has no pieces.
 * sides: the addresses of ids, offsets, rows and best of a, then of b; best, if it is not 0, gets the highest cosine of
 * each piece of these sentences. values (pieces, dim) and inverse are those of match_pieces(). Returns 0, or -1 when memory
 * runs out. */
int64_t match_features(const int8_t *values, const float *inverse, const int32_t *factor, const void *weights,
                       const int64_t *whole, int64_t dim, const int64_t *sides, int64_t pairs, float *out) {
    const vocabulary v = {values, inverse, factor, weights, whole, dim};
    features *one = BEST(features);
    listed l[2];
    int64_t most[2] = {0, 0};
    for (int s = 0; s < 2; s++, sides += 4) {
        l[s] = (listed){{(const int32_t *)(uintptr_t)sides[0], (const int64_t *)(uintptr_t)sides[1]},
                        (const int64_t *)(uintptr_t)sides[2], (float *)(uintptr_t)sides[3]};
        for (int64_t i = 0; i < pairs; i++) {
            const int64_t count = most_pieces(l[s].from.offsets + l[s].rows[i], 1);
            if (count > most[s]) most[s] = count;
        }
    }
    prepared both[2];
    workspace room;
    const int64_t longest = most[0] > most[1] ? most[0] : most[1];
    int64_t bytes = place_workspace(&room, longest, dim, 0);
    for (int s = 0; s < 2; s++) bytes += place_prepared(&both[s], most[s], dim, 0);
    void *whole_room;
    uintptr_t at = make_room(bytes, &whole_room);
    if (!at) return -1;
    for (int s = 0; s < 2; s++) at += place_prepared(&both[s], most[s], dim, at);
    place_workspace(&room, longest, dim, at);
    one(&v, l, pairs, both, &room, out);
    free(whole_room);
    return 0;
}
