/* What two sentences would gain if words of them were deleted; deletions.py says what each value means. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define LANES 32 /* numbers of a row that are multiplied at once */
#define SIDE_BY_SIDE 8 /* numbers that are compared at once; a row of products has room for a multiple */
#define LONGEST 32000 /* of the vectors of a pair, as whole numbers: their products fit 32 bits, and are exact */
#define RUNS 3
#define BEST 3
#define LEAST 1e-3 /* square of the length of a rest */
#define RISE 1e-3  /* a gain beyond rounding */
#define WORD 4 /* values of a word */
#define SIDE_FEATURES (2 * RUNS + 6)
static const int64_t fewest[RUNS] = {1, 3, 6}; /* words */

/* Sums of products are whole numbers below 2^53, exact in any order; `unit` makes them those of the vectors. */
typedef struct {
    int64_t count;
    float *words;                    /* (count, wide) */
    int16_t *rows;                   /* (count, wide), the same as whole numbers */
    int32_t *gram;                   /* (count, w), products of the words of this side with it and those after it */
    double *rest;                    /* (count, w), 1 / the length of the text without its words i to j */
    int64_t *toward, *own;           /* (count), products with the whole of the other side, and of this one */
    int64_t *sums;                   /* (count), for what is computed in between */
    double *left, *column, *room;    /* (count), likewise */
    double *alone, *replaced;        /* (count), gains */
    double *closest, *length;        /* (count), the highest cosine with a word of the other side; of the vector */
    double unit, square, cosine;     /* square of the length of the whole; cosine of the best run */
    int64_t total, begin, end;       /* product of the whole with itself; of the best run */
} side;

/* By how much a deletion brings the cosine nearer to 1, on a logarithmic scale. */
static double gain(double cosine, double base) {
    const double found = log((1.02 - fmin(base, 0.999)) / (1.02 - fmin(cosine, 0.999)));
    return found > -1 ? found : -1;
}

/* Words of the longest run. */
static int64_t longest_run(int64_t count) {
    const int64_t words = count * 7 / 10;
    return count < 2 ? 0 : words > 1 ? words : 1;
}

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE double highest(double a, double b) { return a > b ? a : b; }

/* The highest of some numbers. */
INLINE double most_of(const double *values, int64_t count) {
    double lanes[SIDE_BY_SIDE], most = -INFINITY;
    int64_t j = 0;
    if (count >= SIDE_BY_SIDE) {
        for (int l = 0; l < SIDE_BY_SIDE; l++) lanes[l] = values[l];
        for (j = SIDE_BY_SIDE; j + SIDE_BY_SIDE <= count; j += SIDE_BY_SIDE)
/* GCC would take the loop apart before it could use vectors. */
#pragma GCC unroll 1
            for (int l = 0; l < SIDE_BY_SIDE; l++) lanes[l] = highest(values[j + l], lanes[l]);
        for (int l = 0; l < SIDE_BY_SIDE; l++) most = highest(lanes[l], most);
    }
    for (; j < count; j++) most = highest(values[j], most);
    return most;
}

/* The product of the sum of some words with itself. */
INLINE int64_t run_product(const side *s, int64_t w, int64_t begin, int64_t end) {
    int64_t total = 0;
    for (int64_t i = begin; i < end; i++) {
        total -= s->gram[i * w + i];
        for (int64_t j = i; j < end; j++) total += 2 * (int64_t)s->gram[i * w + j];
    }
    return total;
}

/* Fills in `rest`. */
INLINE void measure_rests(side *s, int64_t w) {
    const int64_t n = s->count, longest = longest_run(n);
    int64_t *restrict sums = s->sums; /* products of word j with those of the run, less those with the whole */
    for (int64_t j = 0; j < n; j++) sums[j] = -s->own[j];
    for (int64_t i = n; i-- > 0;) {
        const int32_t *restrict gram = s->gram + i * w;
        double *restrict rest = s->rest + i * w;
        for (int64_t j = i; j < n; j++) sums[j] += gram[j];
        const int64_t end = least(n, i + longest);
        int64_t square = s->total;
        for (int64_t j = i; j < end; j++) {
            square += 2 * sums[j] - s->gram[j * w + j];
            rest[j] = (double)square;
        }
        for (int64_t j = i; j < end; j++) rest[j] = 1 / sqrt(highest(rest[j] * s->unit, LEAST));
    }
}

/* The best runs of a side by the cosine of the rest with a vector of this square, whose products with the words are given:
 * over all lengths, and for each of RUNS in `of`, with begin and end in `runs` unless it is null. */
INLINE double best_runs(const side *s, const int64_t *toward, double square, int64_t w, double *of, int64_t (*runs)[2]) {
    const int64_t n = s->count, longest = longest_run(n);
    double *restrict left = s->column, *restrict cosines = s->room; /* left: products with the words after each */
    int64_t dot = 0, after = 0, row[RUNS] = {0};
    for (int64_t j = n; j-- > 0; dot += toward[j]) left[j] = (double)dot;
    for (int r = 0; r < RUNS; r++) of[r] = -INFINITY;
    for (int64_t i = 0; longest && i < n; after += toward[i++]) {
        const double *restrict rest = s->rest + i * w, before = (double)after;
        const int64_t end = least(n, i + longest);
        for (int64_t j = i; j < end; j++) cosines[j] = (before + left[j]) * rest[j];
        for (int r = 0; r < RUNS; r++) {
            const int64_t first = i + fewest[r] - 1, last = r < RUNS - 1 ? least(end, i + fewest[r + 1] - 1) : end;
            const double found = most_of(cosines + first, last - first);
            if (!(found > of[r])) continue;
            of[r] = found;
            row[r] = i;
        }
    }
    const double factor = s->unit / sqrt(square);
    double best = -1;
    for (int r = 0; r < RUNS; r++) {
        const double found = of[r];
        of[r] *= factor;
        best = highest(of[r], best);
        if (!runs || !(of[r] > -1)) continue;
        int64_t begin = row[r], end = row[r] + fewest[r] - 1, before = 0;
        for (int64_t i = 0; i < begin; i++) before += toward[i];
        while (((double)before + left[end]) * s->rest[begin * w + end] != found) end++;
        runs[r][0] = begin, runs[r][1] = end + 1;
    }
    return best;
}

static double mean_of_best(const double *values, int64_t count) {
    double best[BEST] = {-1, -1, -1}, total = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = values[i];
        for (int r = 0; r < BEST; r++)
            if (value > best[r]) {
                const double lower = best[r];
                best[r] = value;
                value = lower;
            }
    }
    for (int r = 0; r < BEST; r++) total += best[r];
    return total / BEST;
}

INLINE void side_features(side *s, double square, double base, int64_t w, float *out) {
    double of[RUNS];
    int64_t runs[RUNS][2];
    s->cosine = highest(best_runs(s, s->toward, square, w, of, runs), s->count > 1 ? -1 : base);
    for (int r = 0; r < RUNS; r++, out += 2) {
        out[0] = out[1] = 0;
        if (!(of[r] > -1)) continue;
        out[0] = (float)gain(of[r], base);
        out[1] = (float)sqrt(highest((double)run_product(s, w, runs[r][0], runs[r][1]) * s->unit / s->square, 0));
        if (of[r] == s->cosine) s->begin = runs[r][0], s->end = runs[r][1];
    }
    int64_t dot = 0;
    double sum = 0, squares = 0, higher = 0, rise = 0, most = -1;
    const double factor = s->unit / sqrt(square);
    for (int64_t i = 0; i < s->count; i++) dot += s->toward[i];
    for (int64_t i = 0; i < s->count; i++) {
        const double cosine = (double)(dot - s->toward[i]) * s->rest[i * w + i] * factor;
        const double alone = s->count > 1 ? fmin(gain(cosine, base), 1) : 0;
        s->alone[i] = alone;
        sum += alone;
        squares += alone * alone;
        if (alone > RISE) rise += alone, higher++;
        most = highest(alone, most);
    }
    const double n = (double)s->count, spread = squares / n - sum / n * (sum / n);
    *out++ = (float)rise;
    *out++ = (float)(higher / n);
    *out++ = (float)most;
    *out++ = (float)mean_of_best(s->alone, s->count);
    *out++ = (float)sqrt(spread > 0 ? spread : 0);
    *out++ = (float)mean_of_best(s->replaced, s->count);
}

/* What a word of one side gains with a word of the other, and the highest cosine: cross (n, w) are the products of both. */
INLINE double replace(side *a, side *b, const int32_t *cross, int64_t w, double dot, double base) {
    const double unit = a->unit;
    for (int s = 0; s < 2; s++) {
        side *of = s ? b : a;
        for (int64_t i = 0; i < of->count; i++) {
            const int64_t square = of->gram[i * w + i];
            of->left[i] = 1 / sqrt(highest((double)(of->total - 2 * of->own[i] + square) * unit, LEAST));
            of->length[i] = sqrt((double)square * unit);
            of->column[i] = 1 / highest(of->length[i], 1e-6);
        }
        for (int64_t i = 0; i < of->count; i++) of->replaced[i] = of->closest[i] = -INFINITY;
    }
    const double *restrict inverse = b->column, *restrict left = b->left;
    const int64_t *restrict toward = b->toward;
    double *restrict closest = b->closest, *restrict replaced = b->replaced, *restrict alike = a->room,
                     *restrict after = b->room;
    for (int64_t i = 0; i < a->count; i++, cross += w) {
        const double whole = dot - (double)a->toward[i], own = a->column[i], rest = a->left[i];
        for (int64_t j = 0; j < b->count; j++) {
            const double product = cross[j];
            alike[j] = product * own * inverse[j];
            after[j] = (whole - (double)toward[j] + product) * rest * left[j];
        }
        for (int64_t j = 0; j < b->count; j++) {
            closest[j] = highest(alike[j], closest[j]);
            replaced[j] = highest(after[j], replaced[j]);
        }
        a->closest[i] = most_of(alike, b->count);
        a->replaced[i] = most_of(after, b->count);
    }
    double best = -INFINITY;
    for (int s = 0; s < 2; s++) {
        side *of = s ? b : a;
        for (int64_t i = 0; i < of->count; i++) {
            best = highest(of->replaced[i] * unit, best);
            of->replaced[i] = gain(of->replaced[i] * unit, base);
            of->closest[i] = highest(of->closest[i] * unit, -1);
        }
    }
    return gain(best, base);
}

/* The gain when the best run of one side goes, and then the best of the other: step and stride of cross as seen from s. */
INLINE double joint(const side *s, side *other, const int32_t *cross, int64_t w, int64_t step, int64_t stride,
                    double base) {
    int64_t square = s->total + run_product(s, w, s->begin, s->end);
    double of[RUNS];
    for (int64_t i = s->begin; i < s->end; i++) square -= 2 * s->own[i];
    for (int64_t j = 0; j < other->count; j++) {
        other->sums[j] = other->toward[j];
        for (int64_t i = s->begin; i < s->end; i++) other->sums[j] -= cross[i * step + j * stride];
    }
    const double found = best_runs(other, other->sums, highest((double)square * s->unit, LEAST), w, of, NULL);
    return gain(highest(found, s->cosine), base);
}

/* Fills in `rows` of both sides, and returns what the numbers of words were multiplied by. */
INLINE double whole_numbers(side *both, int64_t wide) {
    float longest = 1e-9f, near = 0;
    /* The order of a sum counts, so those near the highest are computed again, in order. */
    for (int in_order = 0; in_order < 2; near = (1 - 1e-5f) * longest, in_order++) {
        float found = 1e-9f;
        for (int s = 0; s < 2; s++)
            for (int64_t x = 0; x < both[s].count; x++) {
                float lanes[LANES] = {0}, square = 0;
                if (in_order && both[s].left[x] < near) continue;
                for (int64_t k = 0; k < wide; k += LANES)
                    for (int l = 0; l < LANES; l++) {
                        const float value = both[s].words[x * wide + k + l];
                        lanes[l] += value * value;
                    }
                if (in_order)
                    for (int l = 0; l < LANES; l++) square += lanes[l];
                else {
                    for (int half = LANES / 2; half; half /= 2)
                        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
                    both[s].left[x] = square = lanes[0];
                }
                if (square > found) found = square;
            }
        longest = found;
    }
    const float factor = LONGEST / sqrtf(longest);
    for (int s = 0; s < 2; s++) {
        const float *restrict words = both[s].words;
        int16_t *restrict rows = both[s].rows;
        for (int64_t k = 0; k < both[s].count * wide; k++) {
            const float value = words[k] * factor;
            rows[k] = (int16_t)(value + (value < 0 ? -0.5f : 0.5f));
        }
    }
    return factor;
}

/* Fills in the products of words with words, (n, w) in cross, and returns that of the whole texts. */
INLINE double multiply(side *both, int64_t wide, int32_t *cross, int64_t w) {
    const double factor = whole_numbers(both, wide), unit = 1 / (factor * factor);
    side *a = &both[0], *b = &both[1];
    for (side *of = a; of <= b; of++) {
        const int64_t n = of->count;
        int64_t *restrict own = of->own;
        multiply_rows(of->rows, n, of->rows, n, wide, of->gram, w);
        for (int64_t x = 0; x < n; x++) own[x] = of->toward[x] = 0;
        for (int64_t x = 0; x < n; x++) {
            const int32_t *restrict gram = of->gram + x * w;
            int64_t sum = gram[x];
            for (int64_t y = x + 1; y < n; y++) sum += gram[y], own[y] += gram[y];
            own[x] += sum;
        }
        of->total = 0;
        for (int64_t x = 0; x < n; x++) of->total += own[x];
        of->unit = unit;
        of->square = highest((double)of->total * unit, 1e-6);
    }
    multiply_rows(a->rows, a->count, b->rows, b->count, wide, cross, w);
    int64_t dot = 0, *restrict toward = b->toward;
    for (int64_t x = 0; x < a->count; x++) {
        const int32_t *restrict row = cross + x * w;
        int64_t sum = 0;
        for (int64_t y = 0; y < b->count; y++) sum += row[y], toward[y] += row[y];
        a->toward[x] = sum;
        dot += sum;
    }
    return (double)dot;
}

typedef void compare(side *both, int64_t wide, int32_t *cross, int64_t w, float *out);

INLINE void compare_pair(side *both, int64_t wide, int32_t *cross, int64_t w, float *out) {
    side *a = &both[0], *b = &both[1];
    const double dot = multiply(both, wide, cross, w), base = dot * a->unit / sqrt(a->square * b->square);
    const double replaced = replace(a, b, cross, w, dot, base);
    measure_rests(a, w), measure_rests(b, w);
    a->begin = a->end = b->begin = b->end = 0;
    side_features(a, b->square, base, w, out);
    side_features(b, a->square, base, w, out + SIDE_FEATURES);
    out[2 * SIDE_FEATURES] = (float)joint(a, b, cross, w, w, 1, base);
    out[2 * SIDE_FEATURES + 1] = (float)joint(b, a, cross, w, 1, w, base);
    out[2 * SIDE_FEATURES + 2] = (float)replaced;
}

#define COMPARE(NAME, TARGET)                                                                        \
    TARGET static void NAME(side *both, int64_t wide, int32_t *cross, int64_t w, float *out) {       \
        compare_pair(both, wide, cross, w, out);                                                     \
    }

COMPARE(compare_plain, )
#if X86
COMPARE(compare_avx2, T_AVX2)
COMPARE(compare_512, T_512BW)
#endif

static compare *best_compare(void) {
#if X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) return compare_512;
    if (__builtin_cpu_supports("avx2")) return compare_avx2;
#endif
    return compare_plain;
}

/* Asks for the vectors of some pieces, which lie anywhere in a vocabulary that fits no cache. */
static void ask_for(const int8_t *values, int64_t dim, const int32_t *ids, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++)
        for (int64_t k = 0; k < dim; k += 64) __builtin_prefetch(values + ids[p] * dim + k);
}

/* values (pieces, dim) with a factor of each. sides: of both, the addresses of ids, offsets of the words in these, offsets of
 * the texts in the words (pairs + 1), and of what is found of the words, (words, WORD). out (pairs, FEATURES), zeros if a
 * text has no words. Returns 0, or -1 when memory runs out. */
int64_t delete_words(const int8_t *values, const float *scale, int64_t dim, const int64_t *sides, int64_t pairs,
                     float *out) {
    const int64_t wide = (dim + LANES - 1) / LANES * LANES;
    const int32_t *ids[2];
    const int64_t *words[2], *texts[2];
    float *of_words[2];
    int64_t longest = 4;
    for (int s = 0; s < 2; s++, sides += 4) {
        ids[s] = (const int32_t *)(uintptr_t)sides[0];
        words[s] = (const int64_t *)(uintptr_t)sides[1];
        texts[s] = (const int64_t *)(uintptr_t)sides[2];
        of_words[s] = (float *)(uintptr_t)sides[3];
        for (int64_t i = 0; i < pairs; i++)
            if (texts[s][i + 1] - texts[s][i] > longest) longest = texts[s][i + 1] - texts[s][i];
    }
    compare *one = best_compare();
    const int64_t w = (longest + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE * SIDE_BY_SIDE, square = w * w;
    side both[2];
    float *vectors = calloc(2 * w * wide, sizeof(float));
    int16_t *rows = calloc(2 * w * wide, sizeof(int16_t));
    int32_t *products = calloc(3 * square, sizeof(int32_t));
    double *numbers = calloc(2 * square + 20 * w, sizeof(double)), *at = numbers;
    const int64_t failed = vectors && rows && products && numbers ? 0 : -1;
    if (failed) pairs = 0;
    for (int s = 0; s < 2; s++) {
        side *of = &both[s];
        of->words = vectors + s * w * wide;
        of->rows = rows + s * w * wide;
        of->gram = products + (s + 1) * square;
        of->rest = at, at += square;
        double **arrays[] = {&of->left, &of->column, &of->room, &of->alone, &of->replaced, &of->closest, &of->length};
        for (int a = 0; a < 7; a++) *arrays[a] = at, at += w;
        int64_t **integers[] = {&of->toward, &of->own, &of->sums};
        for (int a = 0; a < 3; a++) *integers[a] = (int64_t *)at, at += w;
    }
    for (int64_t i = 0; i < pairs; i++, out += 2 * SIDE_FEATURES + 3) {
        for (int s = 0; s < 2; s++) {
            side *of = &both[s];
            of->count = texts[s][i + 1] - texts[s][i];
            if (i + 1 < pairs) ask_for(values, dim, ids[s], words[s][texts[s][i + 1]], words[s][texts[s][i + 2]]);
            for (int64_t x = 0; x < of->count; x++) {
                const int64_t *word = words[s] + texts[s][i] + x;
                sum_words(values, scale, dim, ids[s] + word[0], word[1] - word[0], of->words + x * wide);
            }
        }
        memset(out, 0, (2 * SIDE_FEATURES + 3) * sizeof(float));
        if (!both[0].count || !both[1].count) continue;
        one(both, wide, products, w, out);
        for (int s = 0; s < 2; s++)
            for (int64_t x = 0; x < both[s].count; x++) {
                float *word = of_words[s] + WORD * (texts[s][i] + x);
                word[0] = (float)both[s].alone[x];
                word[1] = (float)both[s].replaced[x];
                word[2] = (float)both[s].closest[x];
                word[3] = (float)both[s].length[x];
            }
    }
    free(vectors), free(rows), free(products), free(numbers);
    return failed;
}
