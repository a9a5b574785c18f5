/* AdamW on some rows of a table, for training (training/model/rows.py computes the same in torch). */

#include <math.h>

#include "native.h"

/* keep1, keep2, move and eps are those of the row. */
INLINE void adam_row(float *w, float *m, float *v, const float *grad, int64_t dim, const float *factors) {
    float keep1 = factors[0], keep2 = factors[1], move = factors[2], eps = factors[3];
    float new1 = 1 - keep1, new2 = 1 - keep2;
    if (grad)
        for (int64_t j = 0; j < dim; j++) {
            m[j] = keep1 * m[j] + new1 * grad[j];
            v[j] = keep2 * v[j] + new2 * (grad[j] * grad[j]);
            w[j] -= move * m[j] / (sqrtf(v[j]) + eps);
        }
    else
        for (int64_t j = 0; j < dim; j++) {
            w[j] -= move * m[j] / (sqrtf(v[j]) + eps);
            m[j] *= keep1;
            v[j] *= keep2;
        }
}

#define ADAM(NAME, TARGET)                                                                                          \
    TARGET static void NAME(float *restrict w, float *restrict m, float *restrict v, const float *restrict grad,     \
                            int64_t dim, const float *factors) {                                                    \
        adam_row(w, m, v, grad, dim, factors);                                                                      \
    }

ADAM(adam_plain, )
#if X86
ADAM(adam_avx2, T_AVX2)
ADAM(adam_512, T_512)
#endif

/* Rows of w, m and v (rows, dim) take a step with grad (count, dim), or with grad null those of steps without a
 * gradient; factors (count, 4). Rows must be distinct and in range. */
void adam_rows(float *w, float *m, float *v, const float *grad, const int64_t *rows, int64_t count, int64_t dim,
               const float *factors) {
    void (*one)(float *restrict, float *restrict, float *restrict, const float *restrict, int64_t, const float *) =
        adam_plain;
#if X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) one = adam_avx2;
    if (__builtin_cpu_supports("avx512f")) one = adam_512;
#endif
    for (int64_t i = 0; i < count; i++) {
        int64_t at = rows[i] * dim;
        one(w + at, m + at, v + at, grad ? grad + i * dim : 0, dim, factors + 4 * i);
    }
}
