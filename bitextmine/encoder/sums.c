/* Vectors of pieces summed up to unit vectors of sentences. */

#include <math.h>
#include <string.h>

#include "native.h"

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

/* A piece that occurs c times in its sentence gets table[min(c, most) - 1] in `times`; sentences as in `sum_pieces`. Most
 * have a few dozen pieces: comparing each with each is faster than sorting. */
void weigh_repeats(const int32_t *ids, const int64_t *offsets, int64_t rows, const float *table, int64_t most,
                   float *times) {
    for (int64_t i = 0; i < rows; i++) {
        const int32_t *sentence = ids + offsets[i];
        int64_t count = offsets[i + 1] - offsets[i];
        for (int64_t p = 0; p < count; p++) {
            int32_t same = 0;
            for (int64_t q = 0; q < count; q++) same += sentence[q] == sentence[p];
            times[offsets[i] + p] = table[(same < most ? same : most) - 1];
        }
    }
}

/* Unit-length sums of piece vectors: values (pieces, dim) are int8 with a scale per row, or float32 with scale null;
 * sentence i has the pieces ids[offsets[i]] to ids[offsets[i + 1] - 1], each with a weight in `times` (null: 1); out
 * (rows, stride), of which each row's first dim + columns are written. The last of these are the sums of the first ones
 * weighted by `waves`, which includes the weights. All ids must be in range. */
void sum_pieces(const void *values, const float *scale, int64_t dim, const int32_t *ids, const int64_t *offsets,
                int64_t rows, const float *times, int64_t columns, const float *waves, int64_t stride, float *out) {
    sum *one = best_sum();
    for (int64_t i = 0; i < rows; i++, out += stride) {
        int64_t at = offsets[i], count = offsets[i + 1] - at;
        one(values, scale, times ? times + at : NULL, dim, dim, ids + at, count, out);
        if (columns) one(values, scale, waves + at, dim, columns, ids + at, count, out + dim);
        unit(out, dim + columns);
    }
}

void sum_words(const int8_t *values, const float *scale, int64_t dim, const int32_t *ids, int64_t count, float *out) {
    best_sum()(values, scale, NULL, dim, dim, ids, count, out);
}
