/* The inner loops of an encoder without layers: declarations shared by words.c, sums.c, matches.c, deletions.c
 * and rows.c.
 *
 * No Python API: loaded with ctypes, called with the interpreter lock released; compiled.py declares the functions for
 * Python. Without a compiled library tokenizer.py, sums.py and matches.py compute the same to the bit: sums are taken in one
 * fixed order, without fused multiply-adds (build with -ffp-contract=off). deletions.py computes the same up to rounding.
 */

#ifndef BITEXTMINE_ENCODER_NATIVE_H
#define BITEXTMINE_ENCODER_NATIVE_H

#include "../compiled.h"

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

typedef struct table table; /* words.c */

#define FUNCTIONS(F)                                                                                                \
    F(table *, words_new, void)                                                                                     \
    F(void, words_free, table *)                                                                                    \
    F(int64_t, words_count, const table *)                                                                          \
    F(int64_t, words_scan, table *, int64_t, const uint8_t *, int64_t, int32_t *, int64_t *, int64_t *)             \
    F(int64_t, words_pieces, const int32_t *, const int64_t *, int64_t, const int32_t *, const int64_t *, int64_t,  \
      int64_t *, int32_t *)                                                                                         \
    F(void, weigh_repeats, const int32_t *, const int64_t *, int64_t, const float *, int64_t, float *)              \
    F(void, sum_pieces, const void *, const float *, int64_t, const int32_t *, const int64_t *, int64_t,            \
      const float *, int64_t, const float *, int64_t, float *)                                                      \
    F(void, adam_rows, float *, float *, float *, const float *, const int64_t *, int64_t, int64_t, const float *)  \
    F(int64_t, match_pieces, const int8_t *, const float *, int64_t, const int32_t *, const int64_t *,              \
      const int32_t *, const int64_t *, int64_t, float *, int32_t *, float *, int32_t *)                            \
    F(int64_t, match_features, const int8_t *, const float *, const int32_t *, const void *, const int64_t *,        \
      int64_t, const int64_t *, int64_t, float *)                                                                   \
    F(int64_t, delete_words, const int8_t *, const float *, int64_t, const int64_t *, int64_t, float *)

PROTOTYPES(FUNCTIONS)

/* matches.c: the products (n, w) of n rows of x with m rows of y, of dim numbers, a multiple of 32; there is room for as
 * many rows as are a multiple of four. Of rows with themselves, those of each with it and with the rows behind it. */
void multiply_rows(const int16_t *x, int64_t n, const int16_t *y, int64_t m, int64_t dim, int32_t *totals, int64_t w);

/* sums.c: the sum of so many rows, each with its factor. */
void sum_words(const int8_t *values, const float *scale, int64_t dim, const int32_t *ids, int64_t count, float *out);

#endif
