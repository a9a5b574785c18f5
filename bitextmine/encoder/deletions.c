/* What two sentences would gain if words of them were deleted; deletions.py says what each value means. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define LANES 32 /* numbers of a row that are multiplied at once */
#define TILE 4   /* rows, likewise */
#define LONGEST 32000 /* of the vectors of a pair, as whole numbers: their products fit 32 bits, and are exact */
#define RUNS 3
#define BEST 3
#define LEAST 1e-3 /* square of the length of a rest */
#define RISE 1e-3  /* a gain beyond rounding */
#define WORD 4 /* values of a word */
#define SIDE_FEATURES (2 * RUNS + 6)
static const int64_t fewest[RUNS] = {1, 3, 6}; /* words */

typedef struct {
    int64_t count;
    float *words;                    /* (count, wide) */
    int16_t *rows;                   /* (count, wide), the same as whole numbers */
    double *gram;                    /* (count, count), products of the words of this side */
    double *rest;                    /* (count, count + 1), 1 / the length of the text without its words i to j - 1 */
    double *toward, *own;            /* (count), products with the whole of the other side, and of this one */
    double *left, *column;           /* (count), for what is computed in between */
    double *alone, *replaced;        /* (count), gains */
    double *closest, *length;        /* (count), the highest cosine with a word of the other side; of the vector */
    double square, cosine;           /* of the whole; of the best run */
    int64_t begin, end;              /* of the best run */
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

static double at_least(double square) { return square > LEAST ? square : LEAST; }

/* Fills in `rest`. */
static void measure_rests(side *s) {
    const int64_t n = s->count, longest = longest_run(n);
    for (int64_t i = 0; i < n; i++) s->column[i] = 0; /* products of word j with those of the run */
    for (int64_t i = n; i-- > 0;) {
        double run = 0, own = 0;
        for (int64_t j = i; j < n; j++) s->column[j] += s->gram[i * n + j];
        for (int64_t j = i; j < n && j - i < longest; j++) {
            run += 2 * s->column[j] - s->gram[j * n + j];
            own += s->own[j];
            s->rest[i * (n + 1) + j + 1] = s->square - 2 * own + run;
        }
        for (int64_t j = i; j < n && j - i < longest; j++) {
            double *rest = s->rest + i * (n + 1) + j + 1;
            *rest = 1 / sqrt(at_least(*rest));
        }
    }
}

/* The best runs of a side by the cosine of the rest with a vector of this square, whose products with the words are given:
 * over all lengths, and for each of RUNS if `of` is not null, with begin and end in `runs`. */
static double best_runs(const side *s, const double *toward, double square, double *of, int64_t (*runs)[2]) {
    const int64_t n = s->count, longest = longest_run(n);
    double dot = 0, best = -1;
    for (int64_t j = 0; j < n; j++) dot += toward[j];
    const double factor = 1 / sqrt(square);
    for (int r = 0; of && r < RUNS; r++) of[r] = -1;
    for (int64_t i = 0; longest && i < n; i++) {
        double left = dot * factor;
        for (int64_t j = i; j < n && j - i < longest; j++) {
            left -= toward[j] * factor;
            const double cosine = left * s->rest[i * (n + 1) + j + 1];
            if (cosine > best) best = cosine;
            if (!of) continue;
            const int r = j - i + 1 < fewest[1] ? 0 : j - i + 1 < fewest[2] ? 1 : 2;
            if (cosine > of[r]) of[r] = cosine, runs[r][0] = i, runs[r][1] = j + 1;
        }
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

static void side_features(side *s, double square, double base, float *out) {
    double of[RUNS];
    int64_t runs[RUNS][2];
    s->cosine = fmax(best_runs(s, s->toward, square, of, runs), s->count > 1 ? -1 : base);
    for (int r = 0; r < RUNS; r++, out += 2) {
        double run = 0;
        out[0] = out[1] = 0;
        if (of[r] <= -1) continue;
        for (int64_t i = runs[r][0]; i < runs[r][1]; i++)
            for (int64_t j = runs[r][0]; j < runs[r][1]; j++) run += s->gram[i * s->count + j];
        out[0] = (float)gain(of[r], base);
        out[1] = (float)sqrt((run > 0 ? run : 0) / s->square);
        if (of[r] == s->cosine) s->begin = runs[r][0], s->end = runs[r][1];
    }
    double dot = 0, sum = 0, squares = 0, higher = 0, rise = 0, highest = -1;
    for (int64_t i = 0; i < s->count; i++) dot += s->toward[i];
    for (int64_t i = 0; i < s->count; i++) {
        const double rest = s->rest[i * (s->count + 1) + i + 1];
        const double alone = s->count > 1 ? fmin(gain((dot - s->toward[i]) * rest / sqrt(square), base), 1) : 0;
        s->alone[i] = alone;
        sum += alone;
        squares += alone * alone;
        if (alone > RISE) rise += alone, higher++;
        if (alone > highest) highest = alone;
    }
    const double n = (double)s->count, spread = squares / n - sum / n * (sum / n);
    *out++ = (float)rise;
    *out++ = (float)(higher / n);
    *out++ = (float)highest;
    *out++ = (float)mean_of_best(s->alone, s->count);
    *out++ = (float)sqrt(spread > 0 ? spread : 0);
    *out++ = (float)mean_of_best(s->replaced, s->count);
}

/* What a word of one side gains with a word of the other, and the highest cosine: cross (n, m) are the products of both. */
static double replace(side *a, side *b, const double *cross, double dot, double base) {
    double best = -1;
    for (int s = 0; s < 2; s++) {
        side *of = s ? b : a;
        for (int64_t i = 0; i < of->count; i++) {
            const double square = of->gram[i * of->count + i];
            of->left[i] = 1 / sqrt(at_least(of->square - 2 * of->own[i] + square));
            of->column[i] = 1 / fmax(sqrt(square), 1e-6);
            of->replaced[i] = of->closest[i] = -1;
            of->length[i] = sqrt(square);
        }
    }
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t j = 0; j < b->count; j++) {
            const double product = cross[i * b->count + j];
            const double alike = product * a->column[i] * b->column[j];
            const double cosine = (dot - a->toward[i] - b->toward[j] + product) * a->left[i] * b->left[j];
            if (alike > a->closest[i]) a->closest[i] = alike;
            if (alike > b->closest[j]) b->closest[j] = alike;
            if (cosine > a->replaced[i]) a->replaced[i] = cosine;
            if (cosine > b->replaced[j]) b->replaced[j] = cosine;
            if (cosine > best) best = cosine;
        }
    for (int64_t i = 0; i < a->count; i++) a->replaced[i] = gain(a->replaced[i], base);
    for (int64_t j = 0; j < b->count; j++) b->replaced[j] = gain(b->replaced[j], base);
    return gain(best, base);
}

/* The gain when the best run of one side goes, and then the best of the other: step and stride of cross as seen from s. */
static double joint(const side *s, side *other, const double *cross, int64_t step, int64_t stride, double base) {
    double square = s->square;
    for (int64_t i = s->begin; i < s->end; i++) {
        square -= 2 * s->own[i];
        for (int64_t j = s->begin; j < s->end; j++) square += s->gram[i * s->count + j];
    }
    for (int64_t j = 0; j < other->count; j++) {
        other->left[j] = other->toward[j];
        for (int64_t i = s->begin; i < s->end; i++) other->left[j] -= cross[i * step + j * stride];
    }
    const double found = best_runs(other, other->left, at_least(square), NULL, NULL);
    return gain(found > s->cosine ? found : s->cosine, base);
}

/* Fills in `rows` of both sides, and returns what the numbers of words were multiplied by. */
static double whole_numbers(side *both, int64_t wide) {
    float longest = 1e-9f;
    for (int s = 0; s < 2; s++)
        for (int64_t x = 0; x < both[s].count; x++) {
            float lanes[LANES] = {0}, square = 0;
            for (int64_t k = 0; k < wide; k += LANES)
                for (int l = 0; l < LANES; l++) {
                    const float value = both[s].words[x * wide + k + l];
                    lanes[l] += value * value;
                }
            for (int l = 0; l < LANES; l++) square += lanes[l];
            if (square > longest) longest = square;
        }
    const float factor = LONGEST / sqrtf(longest);
    for (int s = 0; s < 2; s++)
        for (int64_t k = 0; k < both[s].count * wide; k++) {
            const float value = both[s].words[k] * factor;
            both[s].rows[k] = (int16_t)(value + (value < 0 ? -0.5f : 0.5f));
        }
    return factor;
}

/* Fills in the products of words with words, (n, m) in cross, and returns that of the whole texts. */
static double multiply(side *both, int64_t wide, double *cross, int32_t *totals, int64_t w) {
    const double factor = whole_numbers(both, wide), unit = 1 / (factor * factor);
    side *a = &both[0], *b = &both[1];
    double dot = 0;
    for (side *of = a; of <= b; of++) {
        multiply_rows(of->rows, of->count, of->rows, of->count, wide, totals, w);
        of->square = 0;
        for (int64_t x = 0; x < of->count; x++) {
            of->own[x] = of->toward[x] = 0;
            for (int64_t y = 0; y < of->count; y++)
                of->own[x] += of->gram[x * of->count + y] = totals[x * w + y] * unit;
            of->square += of->own[x];
        }
        of->square = fmax(of->square, 1e-6);
    }
    multiply_rows(a->rows, a->count, b->rows, b->count, wide, totals, w);
    for (int64_t x = 0; x < a->count; x++)
        for (int64_t y = 0; y < b->count; y++) {
            const double product = cross[x * b->count + y] = totals[x * w + y] * unit;
            a->toward[x] += product;
            b->toward[y] += product;
            dot += product;
        }
    return dot;
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
    longest = (longest + TILE - 1) / TILE * TILE;
    side both[2];
    const int64_t floats = longest * wide, doubles = longest * (longest + 1);
    float *vectors = calloc(2 * floats, sizeof(float));
    int16_t *rows = calloc(2 * floats, sizeof(int16_t));
    int32_t *totals = malloc(longest * longest * sizeof(int32_t));
    double *numbers = calloc(5 * doubles + 16 * longest, sizeof(double));
    const int64_t failed = vectors && rows && totals && numbers ? 0 : -1;
    if (failed) pairs = 0;
    double *cross = numbers, *at = numbers + doubles;
    for (int s = 0; s < 2; s++) {
        both[s].words = vectors + s * floats;
        both[s].rows = rows + s * floats;
        both[s].gram = at, at += doubles;
        both[s].rest = at, at += doubles;
        double **arrays[] = {&both[s].toward, &both[s].own,      &both[s].left,    &both[s].column,
                             &both[s].alone,  &both[s].replaced, &both[s].closest, &both[s].length};
        for (int a = 0; a < 8; a++) *arrays[a] = at, at += longest;
    }
    for (int64_t i = 0; i < pairs; i++, out += 2 * SIDE_FEATURES + 3) {
        side *a = &both[0], *b = &both[1];
        for (int s = 0; s < 2; s++) {
            side *of = &both[s];
            of->count = texts[s][i + 1] - texts[s][i];
            for (int64_t w = 0; w < of->count; w++) {
                const int64_t *word = words[s] + texts[s][i] + w;
                sum_words(values, scale, dim, ids[s] + word[0], word[1] - word[0], of->words + w * wide);
            }
        }
        memset(out, 0, (2 * SIDE_FEATURES + 3) * sizeof(float));
        if (!a->count || !b->count) continue;
        const double dot = multiply(both, wide, cross, totals, longest);
        const double base = dot / sqrt(a->square * b->square);
        measure_rests(a), measure_rests(b);
        const double replaced = replace(a, b, cross, dot, base);
        a->begin = a->end = b->begin = b->end = 0;
        side_features(a, b->square, base, out);
        side_features(b, a->square, base, out + SIDE_FEATURES);
        out[2 * SIDE_FEATURES] = (float)joint(a, b, cross, b->count, 1, base);
        out[2 * SIDE_FEATURES + 1] = (float)joint(b, a, cross, 1, b->count, base);
        out[2 * SIDE_FEATURES + 2] = (float)replaced;
        for (int s = 0; s < 2; s++)
            for (int64_t w = 0; w < both[s].count; w++) {
                float *word = of_words[s] + WORD * (texts[s][i] + w);
                word[0] = (float)both[s].alone[w];
                word[1] = (float)both[s].replaced[w];
                word[2] = (float)both[s].closest[w];
                word[3] = (float)both[s].length[w];
            }
    }
    free(vectors), free(rows), free(totals), free(numbers);
    return failed;
}
