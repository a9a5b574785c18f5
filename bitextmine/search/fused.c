/* Both-way k nearest neighbours: int8 similarity tiles with the selection fused in.
 *
 * A tile of similarities never leaves the first-level cache. Rows are quantised to int8 with one scale each, and
 * with the length of what the quantisation lost; by Cauchy-Schwarz
 *
 *     x.y  <=  xs*ys*(xq.yq) + |x - xs*xq| * |y| + |xs*xq| * |y - ys*yq|  =  upper(x, y)
 *
 * so that a pair whose upper bound is below the k-th best of its row and of its column can be dropped, and nothing
 * that belongs to the answer ever is. What survives is rescored from the stored vectors in double precision, in the
 * order of summation that products.py documents. The answer therefore depends neither on block sizes nor on the
 * number of threads, on timing or on the instruction set.
 *
 * No Python API: loaded with ctypes, called with the interpreter lock released; native.py declares the functions.
 * Threads may work on tiles of different columns at the same time; the state of the rows is shared between them under
 * one lock per row.
 *
 * What a processor is good at is told apart by `isa`. PORTABLE is plain C and runs everywhere. AMX multiplies tiles of 16
 * rows by 16 columns; all that it does not do is done as by AVX512.
 */

#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* syscall(), by which Linux is asked for AMX */
#endif

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../compiled.h"

#if defined(__x86_64__)
#define X86 1
#include <cpuid.h>
#include <immintrin.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#define PAUSE() _mm_pause()
#else
#define X86 0
#endif

#if defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__)
#define ARM 1
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#define PAUSE() __asm__ volatile("yield")
#else
#define ARM 0
#endif

#ifndef PAUSE
#define PAUSE() (void)0
#endif

#define VERSION 5 /* of the interface, as in native.py */
#define PANEL 64 /* columns of a packed panel */
#define MR 6     /* rows of a register tile */
#define MOST_MR 16 /* rows of one with AMX */
#define LANES 32 /* partial sums of the exact inner product */

enum { ISA_PORTABLE = 1, ISA_NEON = 2, ISA_DOTPROD = 3, ISA_AVX2 = 4, ISA_AVXVNNI = 5, ISA_AVX512 = 6, ISA_AMX = 7 };
enum { F16 = 0, F32 = 1 };

typedef struct {
    float upper;
    int32_t at;
} candidate;

/* One side's candidates within the current tile: for each row up to cap of them, the k best lower bounds, and the
 * value below which a newcomer is dropped. */
typedef struct {
    candidate *list;
    int32_t *count;
    float *lower;
    float *limit;
} side;

typedef struct {
    int32_t isa, dtype, k, cap;
    int64_t d, dpad;
    /* block of rows */
    int64_t rows, row_base;
    const int8_t *xq;
    const float *xscale, *xloss;
    const int32_t *xsum;
    const void *xrows;
    float *row_sim;
    int64_t *row_id;
    uint8_t *row_lock;
    /* tile of columns */
    int64_t cols, col_base;
    const uint8_t *ypack;
    const float *yscale, *yloss;
    const void *yrows;
    float *col_sim; /* null: the columns' neighbours are not wanted */
    int64_t *col_id;
    /* per-thread workspace of fused_workspace() bytes, 64-byte aligned */
    void *work;
    /* out: exact products computed */
    int64_t rescored;
} tile;

#define FUNCTIONS(F)                                                                                                \
    F(int32_t, fused_isa, void)                                                                                     \
    F(int32_t, fused_has, int32_t)                                                                                  \
    F(int64_t, fused_quantise, int32_t, const void *, int32_t, int64_t, int64_t, int64_t, int32_t, int8_t *,        \
      float *, float *, float *, int32_t *)                                                                         \
    F(void, fused_pack, const int8_t *, int64_t, int64_t, int32_t, uint8_t *)                                       \
    F(void, fused_products, const void *, const int64_t *, const void *, const int64_t *, int64_t, int64_t,         \
      int32_t, int32_t, float *)                                                                                    \
    F(int64_t, fused_workspace, int32_t, int64_t, int64_t, int64_t, int32_t, int32_t)                               \
    F(int64_t, fused_tile, tile *)
#define STRUCTURES(S) S(tile)

PROTOTYPES(FUNCTIONS)
INTERFACE(VERSION, FUNCTIONS, STRUCTURES)

#define IS_X86(ISA) (X86 && (ISA) >= ISA_AVX2)

/* What is added to the codes of columns: x86 multiplies unsigned bytes by signed ones, but for AMX. */
static inline int32_t offset_of(int32_t isa) { return !IS_X86(isa) || isa == ISA_AMX ? 0 : isa == ISA_AVX2 ? 64 : 128; }

/* ---- rows as float32 ---- */

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, bits;
    float f;
    if (rest >= 0x7c00) /* infinity, NaN */
        bits = sign | 0x7f800000 | (rest & 0x3ff) << 13;
    else if (rest >= 0x400)
        bits = sign | ((rest << 13) + (112u << 23));
    else { /* zero and what is too small for a leading one: a multiple of 2^-24, which float32 holds */
        f = (float)rest * 0x1p-24f;
        memcpy(&bits, &f, 4);
        bits |= sign;
    }
    memcpy(&f, &bits, 4);
    return f;
}

static void widen_portable(const void *rows, int dtype, int64_t row, int64_t d, float *out) {
    if (dtype == F32) {
        memcpy(out, (const float *)rows + row * d, (size_t)d * sizeof(float));
        return;
    }
    const uint16_t *h = (const uint16_t *)rows + row * d;
    int64_t i = 0;
#if ARM
    for (; i + 4 <= d; i += 4) vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h + i))));
#endif
    for (; i < d; i++) out[i] = half_to_float(h[i]);
}

/* Every sum below is one of exact products in double precision, or an upper bound that allows for its rounding: what
 * a processor or a compiler makes of the order and of fused operations changes no answer. */
static int64_t quantise_portable(const void *rows, int32_t dtype, int64_t n, int64_t d, int64_t dpad, int32_t levels,
                                 int8_t *q, float *scale, float *loss, float *length, int32_t *sum) {
    float *v = malloc((size_t)dpad * sizeof(float));
    if (!v) return -2;
    for (int64_t r = 0; r < n; r++) {
        widen_portable(rows, dtype, r, d, v);
        for (int64_t i = d; i < dpad; i++) v[i] = 0.0f;
        float top = 0.0f, bad = 0.0f;
        for (int64_t i = 0; i < d; i++) {
            float a = fabsf(v[i]);
            top = a > top ? a : top;
            bad += v[i] - v[i]; /* NaN once anything is not finite */
        }
        if (bad != bad) {
            free(v);
            return r;
        }
        int some = top > 1e-30f; /* below, 1/top overflows: all of the row is then loss */
        float s = some ? top / (float)levels : 0.0f, inv = some ? (float)levels / top : 0.0f;
        const float nearest = 12582912.0f; /* 1.5 * 2^23: added and taken off again, it rounds to the nearest integer */
        double lost = 0.0, len = 0.0;
        int32_t total = 0;
        int8_t *out = q + r * dpad;
        for (int64_t i = 0; i < dpad; i++) {
            float moved = v[i] * inv + nearest;
            int32_t z = (int32_t)(moved - nearest);
            double e = (double)v[i] - (double)z * (double)s;
            lost += e * e;
            len += (double)v[i] * (double)v[i];
            total += z;
            out[i] = (int8_t)z;
        }
        scale[r] = s;
        loss[r] = (float)(sqrt(lost) * (1.0 + 1e-6)); /* rounded up, so that the bound stays one */
        length[r] = (float)(sqrt(len) * (1.0 + 1e-6));
        sum[r] = total;
    }
    free(v);
    return -1;
}

#if X86

#define T_AVX2 __attribute__((target("avx2,fma,f16c")))
#define T_VNNI __attribute__((target("avx2,fma,f16c,avxvnni")))
#define T_512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

/* ---- rows to int8 ---- */

T_AVX2 static void widen_avx2(const void *rows, int dtype, int64_t row, int64_t d, float *out) {
    if (dtype == F32) {
        memcpy(out, (const float *)rows + row * d, (size_t)d * sizeof(float));
        return;
    }
    const uint16_t *h = (const uint16_t *)rows + row * d;
    int64_t i = 0;
    for (; i + 8 <= d; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + i))));
    for (; i < d; i++) out[i] = _cvtsh_ss(h[i]);
}

T_AVX2 static int64_t quantise_avx2(const void *rows, int32_t dtype, int64_t n, int64_t d, int64_t dpad,
                                    int32_t levels, int8_t *q, float *scale, float *loss, float *length, int32_t *sum) {
    float *v = malloc((size_t)dpad * sizeof(float));
    if (!v) return -2;
    for (int64_t r = 0; r < n; r++) {
        widen_avx2(rows, dtype, r, d, v);
        for (int64_t i = d; i < dpad; i++) v[i] = 0.0f;
        __m256 big = _mm256_setzero_ps(), fin = _mm256_setzero_ps();
        const __m256 sign = _mm256_set1_ps(-0.0f);
        for (int64_t i = 0; i < dpad; i += 8) {
            __m256 a = _mm256_loadu_ps(v + i);
            big = _mm256_max_ps(big, _mm256_andnot_ps(sign, a));
            fin = _mm256_add_ps(fin, _mm256_sub_ps(a, a)); /* NaN once anything is not finite */
        }
        float m[8], f[8], top = 0.0f, bad = 0.0f;
        _mm256_storeu_ps(m, big);
        _mm256_storeu_ps(f, fin);
        for (int i = 0; i < 8; i++) {
            if (m[i] > top) top = m[i];
            bad += f[i];
        }
        if (bad != bad) {
            free(v);
            return r;
        }
        int some = top > 1e-30f; /* below, 1/top overflows: all of the row is then loss */
        float s = some ? top / (float)levels : 0.0f, inv = some ? (float)levels / top : 0.0f;
        const __m256 vinv = _mm256_set1_ps(inv), vs = _mm256_set1_ps(s);
        __m256d lost = _mm256_setzero_pd(), len = _mm256_setzero_pd();
        __m256i total = _mm256_setzero_si256();
        int8_t *out = q + r * dpad;
        for (int64_t i = 0; i < dpad; i += 8) {
            __m256 a = _mm256_loadu_ps(v + i);
            __m256i z = _mm256_cvtps_epi32(_mm256_mul_ps(a, vinv)); /* |a*inv| <= levels up to rounding */
            total = _mm256_add_epi32(total, z);
            __m256 e = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(z), vs, a);
            __m256d elo = _mm256_cvtps_pd(_mm256_castps256_ps128(e)), ehi = _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1));
            __m256d alo = _mm256_cvtps_pd(_mm256_castps256_ps128(a)), ahi = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
            lost = _mm256_fmadd_pd(elo, elo, _mm256_fmadd_pd(ehi, ehi, lost));
            len = _mm256_fmadd_pd(alo, alo, _mm256_fmadd_pd(ahi, ahi, len));
            __m128i w = _mm_packs_epi32(_mm256_castsi256_si128(z), _mm256_extracti128_si256(z, 1));
            _mm_storel_epi64((__m128i *)(out + i), _mm_packs_epi16(w, w));
        }
        double l4[4], n4[4];
        int32_t t8[8], st = 0;
        _mm256_storeu_pd(l4, lost);
        _mm256_storeu_pd(n4, len);
        _mm256_storeu_si256((__m256i *)t8, total);
        for (int i = 0; i < 8; i++) st += t8[i];
        scale[r] = s;
        /* rounded up, so that the bound stays one */
        loss[r] = (float)(sqrt(l4[0] + l4[1] + l4[2] + l4[3]) * (1.0 + 1e-6));
        length[r] = (float)(sqrt(n4[0] + n4[1] + n4[2] + n4[3]) * (1.0 + 1e-6));
        sum[r] = st;
    }
    free(v);
    return -1;
}

#endif

static void widen(int32_t isa, const void *rows, int dtype, int64_t row, int64_t d, float *out) {
#if X86
    if (IS_X86(isa)) {
        widen_avx2(rows, dtype, row, d, out);
        return;
    }
#endif
    (void)isa;
    widen_portable(rows, dtype, row, d, out);
}

/* rows (n, d) -> q (n, dpad) in [-levels, levels]; scale, loss |x - scale*q|, length |x| and the sum of q, per row.
 * Returns the first row that holds a NaN or an infinity, -1 if none does, -2 without memory. */
int64_t fused_quantise(int32_t isa, const void *rows, int32_t dtype, int64_t n, int64_t d, int64_t dpad, int32_t levels,
                       int8_t *q, float *scale, float *loss, float *length, int32_t *sum) {
#if X86
    if (IS_X86(isa)) return quantise_avx2(rows, dtype, n, d, dpad, levels, q, scale, loss, length, sum);
#endif
    (void)isa;
    return quantise_portable(rows, dtype, n, d, dpad, levels, q, scale, loss, length, sum);
}

/* q (n, dpad) -> panels [n/64][dpad/4][64][4] of unsigned bytes q + offset; the last panel is filled with zeros. */
void fused_pack(const int8_t *q, int64_t n, int64_t dpad, int32_t offset, uint8_t *out) {
    int64_t panels = (n + PANEL - 1) / PANEL;
    uint32_t add = (uint32_t)(offset & 0xff) * 0x01010101u;
    for (int64_t p = 0; p < panels; p++) {
        uint8_t *to = out + p * PANEL * dpad;
        for (int64_t c = 0; c < PANEL; c++) {
            int64_t r = p * PANEL + c;
            for (int64_t g = 0; g < dpad / 4; g++) {
                uint32_t w = add;
                if (r < n) {
                    uint8_t b[4];
                    memcpy(b, q + r * dpad + 4 * g, 4);
                    for (int i = 0; i < 4; i++) b[i] = (uint8_t)(b[i] + offset);
                    memcpy(&w, b, 4);
                }
                memcpy(to + g * PANEL * 4 + c * 4, &w, 4);
            }
        }
    }
}

/* ---- exact inner products ---- */

/* (Always inline, to be compiled for what the caller is compiled for.) */
static inline __attribute__((always_inline)) double fold(const double *acc) {
    double s[8];
    for (int i = 0; i < 8; i++) s[i] = (acc[i] + acc[i + 8]) + (acc[i + 16] + acc[i + 24]);
    for (int i = 0; i < 4; i++) s[i] = s[i] + s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

static float exact_portable(const void *xrows, int64_t i, const void *yrows, int64_t j, int64_t d, int dtype) {
    double acc[LANES];
    float a[LANES], b[LANES];
    memset(acc, 0, sizeof acc);
    for (int64_t at = 0; at < d; at += LANES) {
        int64_t n = d - at < LANES ? d - at : LANES;
        if (n < LANES) {
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
        }
        int64_t item = dtype == F32 ? 4 : 2;
        widen_portable((const char *)xrows + (i * d + at) * item, dtype, 0, n, a);
        widen_portable((const char *)yrows + (j * d + at) * item, dtype, 0, n, b);
        for (int l = 0; l < LANES; l++) acc[l] += (double)a[l] * (double)b[l];
    }
    return (float)fold(acc) + 0.0f;
}

#if X86

T_AVX2 static float exact_avx2(const void *xrows, int64_t i, const void *yrows, int64_t j, int64_t d, int dtype) {
    double acc[LANES];
    float a[LANES], b[LANES];
    memset(acc, 0, sizeof acc);
    for (int64_t at = 0; at < d; at += LANES) {
        int64_t n = d - at < LANES ? d - at : LANES;
        if (n < LANES) {
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
        }
        if (dtype == F32) {
            memcpy(a, (const float *)xrows + i * d + at, (size_t)n * sizeof(float));
            memcpy(b, (const float *)yrows + j * d + at, (size_t)n * sizeof(float));
        } else {
            widen_avx2((const uint16_t *)xrows + i * d + at, F16, 0, n, a);
            widen_avx2((const uint16_t *)yrows + j * d + at, F16, 0, n, b);
        }
        for (int l = 0; l < LANES; l++) acc[l] += (double)a[l] * (double)b[l];
    }
    return (float)fold(acc) + 0.0f;
}

T_512 static inline __m512d up512(__m256 a) { return _mm512_cvtps_pd(a); }

T_512 static float exact_512(const void *xrows, int64_t i, const void *yrows, int64_t j, int64_t d, int dtype) {
    __m512d acc[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd()};
    for (int64_t at = 0; at < d; at += LANES) {
        int64_t n = d - at < LANES ? d - at : LANES;
        uint32_t keep = n == LANES ? 0xffffffffu : (1u << n) - 1u;
        __m512 a[2], b[2];
        if (dtype == F32) {
            const float *p = (const float *)xrows + i * d + at, *q = (const float *)yrows + j * d + at;
            a[0] = _mm512_maskz_loadu_ps((__mmask16)keep, p);
            a[1] = _mm512_maskz_loadu_ps((__mmask16)(keep >> 16), p + 16);
            b[0] = _mm512_maskz_loadu_ps((__mmask16)keep, q);
            b[1] = _mm512_maskz_loadu_ps((__mmask16)(keep >> 16), q + 16);
        } else {
            __m512i p = _mm512_maskz_loadu_epi16(keep, (const uint16_t *)xrows + i * d + at);
            __m512i q = _mm512_maskz_loadu_epi16(keep, (const uint16_t *)yrows + j * d + at);
            a[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(p));
            a[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(p, 1));
            b[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(q));
            b[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(q, 1));
        }
        for (int h = 0; h < 2; h++) {
            acc[2 * h] = _mm512_fmadd_pd(up512(_mm512_castps512_ps256(a[h])), up512(_mm512_castps512_ps256(b[h])), acc[2 * h]);
            acc[2 * h + 1] = _mm512_fmadd_pd(up512(_mm512_extractf32x8_ps(a[h], 1)),
                                             up512(_mm512_extractf32x8_ps(b[h], 1)), acc[2 * h + 1]);
        }
    }
    double out[LANES];
    for (int l = 0; l < 4; l++) _mm512_storeu_pd(out + 8 * l, acc[l]);
    return (float)fold(out) + 0.0f;
}

#endif

static inline float exact_product(int32_t isa, const void *x, int64_t i, const void *y, int64_t j, int64_t d, int dtype) {
#if X86
    if (isa >= ISA_AVX512) return exact_512(x, i, y, j, d, dtype);
    if (IS_X86(isa)) return exact_avx2(x, i, y, j, d, dtype);
#endif
    (void)isa;
    return exact_portable(x, i, y, j, d, dtype);
}

static inline float exact(const tile *t, int64_t i, int64_t j) {
    return exact_product(t->isa, t->xrows, i, t->yrows, j, t->d, t->dtype);
}

/* out[p] = row i[p] of x times row j[p] of y, both (.., d) of one dtype. */
void fused_products(const void *x, const int64_t *i, const void *y, const int64_t *j, int64_t count, int64_t d,
                           int32_t dtype, int32_t isa, float *out) {
    size_t bytes = (size_t)d * (dtype == F32 ? 4 : 2);
    for (int64_t p = 0; p < count; p++) {
        if (p + 1 < count) {
            const char *a = (const char *)x + (size_t)i[p + 1] * bytes, *b = (const char *)y + (size_t)j[p + 1] * bytes;
            for (size_t o = 0; o < bytes; o += 64) {
                __builtin_prefetch(a + o);
                __builtin_prefetch(b + o);
            }
        }
        out[p] = exact_product(isa, x, i[p], y, j[p], d, dtype);
    }
}

/* ---- candidates ---- */

/* Into the sorted k best, highest first, equal similarities by lowest id. */
static void keep_best(float *sim, int64_t *id, int k, float s, int64_t i) {
    int last = k - 1;
    if (id[last] >= 0 && (s < sim[last] || (s == sim[last] && i > id[last]))) return;
    int p = last;
    while (p > 0 && (id[p - 1] < 0 || s > sim[p - 1] || (s == sim[p - 1] && i < id[p - 1]))) {
        sim[p] = sim[p - 1];
        id[p] = id[p - 1];
        p--;
    }
    sim[p] = s;
    id[p] = i;
}

static inline float kth(const float *sim, const int64_t *id, int k) { return id[k - 1] < 0 ? -INFINITY : sim[k - 1]; }

static inline void lock(uint8_t *l) {
    /* Whoever holds it has a few instructions to go, unless the system has taken the processor from it. */
    for (int tries = 1; __atomic_test_and_set(l, __ATOMIC_ACQUIRE); tries++) {
        if (tries % 64)
            PAUSE();
        else
            sched_yield();
    }
}

static inline void unlock(uint8_t *l) { __atomic_clear(l, __ATOMIC_RELEASE); }

static void sort_candidates(candidate *c, int n) {
    for (int i = 1; i < n; i++) {
        candidate v = c[i];
        int p = i;
        for (; p > 0 && c[p - 1].upper < v.upper; p--) c[p] = c[p - 1];
        c[p] = v;
    }
}

static inline void fetch_ahead(const tile *t, const void *rows, int64_t r) {
    size_t bytes = (size_t)t->d * (t->dtype == F32 ? 4 : 2);
    const char *p = (const char *)rows + (size_t)r * bytes;
    for (size_t o = 0; o < bytes; o += 64) __builtin_prefetch(p + o);
}

/* Rescores row i's candidates, best bound first, until the k-th best is out of the bounds' reach. */
static void flush_row(tile *t, side *s, int64_t i) {
    candidate *c = s->list + i * t->cap;
    int n = s->count[i];
    s->count[i] = 0;
    if (!n) return;
    sort_candidates(c, n);
    float *sim = t->row_sim + i * t->k;
    int64_t *id = t->row_id + i * t->k;
    lock(t->row_lock + i);
    float limit = kth(sim, id, t->k);
    unlock(t->row_lock + i);
    for (int e = 0; e < n && c[e].upper >= limit; e++) {
        if (e + 1 < n) fetch_ahead(t, t->yrows, c[e + 1].at);
        float v = exact(t, i, c[e].at);
        t->rescored++;
        lock(t->row_lock + i);
        keep_best(sim, id, t->k, v, t->col_base + c[e].at);
        limit = kth(sim, id, t->k);
        unlock(t->row_lock + i);
    }
    if (limit > s->limit[i]) s->limit[i] = limit;
}

static void flush_col(tile *t, side *s, int64_t j) {
    candidate *c = s->list + j * t->cap;
    int n = s->count[j];
    s->count[j] = 0;
    if (!n) return;
    sort_candidates(c, n);
    float *sim = t->col_sim + j * t->k;
    int64_t *id = t->col_id + j * t->k;
    float limit = kth(sim, id, t->k);
    for (int e = 0; e < n && c[e].upper >= limit; e++) {
        if (e + 1 < n) fetch_ahead(t, t->xrows, c[e + 1].at);
        keep_best(sim, id, t->k, exact(t, c[e].at, j), t->row_base + c[e].at);
        t->rescored++;
        limit = kth(sim, id, t->k);
    }
    if (limit > s->limit[j]) s->limit[j] = limit;
}

/* Adds a candidate; returns 1 when the list is full of candidates that cannot be told apart yet. */
static int push(const tile *t, side *s, int64_t row, float upper, float lower, int32_t at) {
    if (upper < s->limit[row]) return 0;
    candidate *c = s->list + row * t->cap;
    float *best = s->lower + row * t->k;
    int k = t->k;
    if (lower > best[k - 1]) {
        int p = k - 1;
        for (; p > 0 && lower > best[p - 1]; p--) best[p] = best[p - 1];
        best[p] = lower;
        if (best[k - 1] > s->limit[row]) s->limit[row] = best[k - 1];
    }
    int n = s->count[row];
    c[n].upper = upper;
    c[n].at = at;
    n++;
    if (n == t->cap) {
        int m = 0;
        for (int e = 0; e < n; e++)
            if (c[e].upper >= s->limit[row]) c[m++] = c[e];
        n = m;
    }
    s->count[row] = n;
    return n > t->cap - 1;
}

/* ---- int8 products of MR rows with a panel: out[r][c] = x_r . (y_c + offset) + start[r] ---- */

typedef void (*product)(const int8_t *x, int64_t stride, const uint8_t *y, int64_t groups, const int32_t *start, int32_t *out);

static void product_portable(const int8_t *x, int64_t stride, const uint8_t *y, int64_t groups, const int32_t *start,
                             int32_t *out) {
    for (int r = 0; r < MR; r++) {
        int32_t *o = out + r * PANEL;
        for (int c = 0; c < PANEL; c++) o[c] = start[r];
        for (int64_t g = 0; g < groups; g++) {
            const int8_t *a = x + r * stride + 4 * g, *b = (const int8_t *)y + g * 4 * PANEL;
            const int32_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
            for (int c = 0; c < PANEL; c++)
                o[c] += a0 * b[4 * c] + a1 * b[4 * c + 1] + a2 * b[4 * c + 2] + a3 * b[4 * c + 3];
        }
    }
}

#if ARM

#define PRODUCT_ARM(NAME, TARGET, DOT)                                                                            \
    TARGET static void NAME(const int8_t *x, int64_t stride, const uint8_t *y, int64_t groups, const int32_t *start, \
                            int32_t *out) {                                                                       \
        for (int c = 0; c < PANEL; c += 16) {                                                                     \
            int32x4_t a[MR][4];                                                                                   \
            for (int r = 0; r < MR; r++)                                                                          \
                for (int v = 0; v < 4; v++) a[r][v] = vdupq_n_s32(start[r]);                                      \
            const int8_t *yp = (const int8_t *)y + 4 * c, *xp = x;                                                \
            for (int64_t g = 0; g < groups; g++, yp += 4 * PANEL, xp += 4) {                                      \
                const int8x16_t y0 = vld1q_s8(yp), y1 = vld1q_s8(yp + 16), y2 = vld1q_s8(yp + 32),                \
                                y3 = vld1q_s8(yp + 48);                                                           \
                for (int r = 0; r < MR; r++) {                                                                    \
                    int32_t w;                                                                                    \
                    memcpy(&w, xp + r * stride, 4);                                                               \
                    const int8x16_t b = vreinterpretq_s8_s32(vdupq_n_s32(w));                                     \
                    a[r][0] = DOT(a[r][0], y0, b);                                                                \
                    a[r][1] = DOT(a[r][1], y1, b);                                                                \
                    a[r][2] = DOT(a[r][2], y2, b);                                                                \
                    a[r][3] = DOT(a[r][3], y3, b);                                                                \
                }                                                                                                 \
            }                                                                                                     \
            for (int r = 0; r < MR; r++)                                                                          \
                for (int v = 0; v < 4; v++) vst1q_s32(out + r * PANEL + c + 4 * v, a[r][v]);                      \
        }                                                                                                         \
    }

/* Four sums of four products: pairs of them, of 127 levels, are at most 32,258 and fit 16 bits. */
static inline int32x4_t dot_neon(int32x4_t a, int8x16_t y, int8x16_t b) {
    const int16x8_t low = vmull_s8(vget_low_s8(y), vget_low_s8(b)), high = vmull_high_s8(y, b);
    return vpadalq_s16(a, vpaddq_s16(low, high));
}

PRODUCT_ARM(product_neon, , dot_neon)

#if defined(__clang__)
#define T_DOTPROD __attribute__((target("dotprod")))
#else
#define T_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
#if (defined(__clang__) && __clang_major__ >= 16) || (!defined(__clang__) && __GNUC__ >= 8) || \
    defined(__ARM_FEATURE_DOTPROD)
#define HAVE_DOTPROD 1
PRODUCT_ARM(product_dotprod, T_DOTPROD, vdotq_s32)
#endif

#endif

#if X86

/* Eight steps of four bytes a turn (dpad is a multiple of 32): a turn of one step runs at 40% of the speed. */
T_512 static void product_512(const int8_t *x, int64_t stride, const uint8_t *y, int64_t groups, const int32_t *start,
                              int32_t *out) {
#define ROW512(r) __m512i a##r##0 = _mm512_set1_epi32(start[r]), a##r##1 = a##r##0, a##r##2 = a##r##0, a##r##3 = a##r##0;
    ROW512(0) ROW512(1) ROW512(2) ROW512(3) ROW512(4) ROW512(5)
    const int8_t *x3 = x + 3 * stride;
#define DOT512(r, from)                            \
    memcpy(&w, from, 4);                           \
    b = _mm512_set1_epi32(w);                      \
    a##r##0 = _mm512_dpbusd_epi32(a##r##0, y0, b); \
    a##r##1 = _mm512_dpbusd_epi32(a##r##1, y1, b); \
    a##r##2 = _mm512_dpbusd_epi32(a##r##2, y2, b); \
    a##r##3 = _mm512_dpbusd_epi32(a##r##3, y3, b);
#define STEP512(u)                                                                                            \
    {                                                                                                         \
        const uint8_t *yp = y + (u)*4 * PANEL;                                                                \
        const __m512i y0 = _mm512_load_si512(yp), y1 = _mm512_load_si512(yp + 64),                            \
                      y2 = _mm512_load_si512(yp + 128), y3 = _mm512_load_si512(yp + 192);                     \
        int32_t w;                                                                                            \
        __m512i b;                                                                                            \
        DOT512(0, x + 4 * (u)) DOT512(1, x + stride + 4 * (u)) DOT512(2, x + 2 * stride + 4 * (u))            \
        DOT512(3, x3 + 4 * (u)) DOT512(4, x3 + stride + 4 * (u)) DOT512(5, x3 + 2 * stride + 4 * (u))         \
    }
    for (int64_t g = 0; g < groups; g += 8) {
        STEP512(0) STEP512(1) STEP512(2) STEP512(3) STEP512(4) STEP512(5) STEP512(6) STEP512(7)
        y += 8 * 4 * PANEL;
        x += 32;
        x3 += 32;
    }
#define STORE512(r)                                    \
    _mm512_store_si512(out + r * PANEL, a##r##0);      \
    _mm512_store_si512(out + r * PANEL + 16, a##r##1); \
    _mm512_store_si512(out + r * PANEL + 32, a##r##2); \
    _mm512_store_si512(out + r * PANEL + 48, a##r##3);
    STORE512(0) STORE512(1) STORE512(2) STORE512(3) STORE512(4) STORE512(5)
}

#define PRODUCT256(NAME, TARGET, DOT)                                                                             \
    TARGET static void NAME(const int8_t *x, int64_t stride, const uint8_t *y, int64_t groups, const int32_t *start, \
                            int32_t *out) {                                                                       \
        for (int c = 0; c < PANEL; c += 16)                                                                       \
            for (int r = 0; r < MR; r += 3) {                                                                     \
                __m256i a00 = _mm256_set1_epi32(start[r]), a01 = a00, a10 = _mm256_set1_epi32(start[r + 1]),      \
                        a11 = a10, a20 = _mm256_set1_epi32(start[r + 2]), a21 = a20;                              \
                const __m256i ones = _mm256_set1_epi16(1);                                                        \
                (void)ones;                                                                                       \
                const uint8_t *yp = y + 4 * c;                                                                    \
                const int8_t *xp = x + r * stride;                                                                \
                for (int64_t g = 0; g < groups; g++, yp += 4 * PANEL, xp += 4) {                                  \
                    const __m256i y0 = _mm256_load_si256((const __m256i *)yp),                                    \
                                  y1 = _mm256_load_si256((const __m256i *)(yp + 32));                             \
                    int32_t w;                                                                                    \
                    __m256i b;                                                                                    \
                    memcpy(&w, xp, 4);                                                                            \
                    b = _mm256_set1_epi32(w);                                                                     \
                    a00 = DOT(a00, y0, b);                                                                        \
                    a01 = DOT(a01, y1, b);                                                                        \
                    memcpy(&w, xp + stride, 4);                                                                   \
                    b = _mm256_set1_epi32(w);                                                                     \
                    a10 = DOT(a10, y0, b);                                                                        \
                    a11 = DOT(a11, y1, b);                                                                        \
                    memcpy(&w, xp + 2 * stride, 4);                                                               \
                    b = _mm256_set1_epi32(w);                                                                     \
                    a20 = DOT(a20, y0, b);                                                                        \
                    a21 = DOT(a21, y1, b);                                                                        \
                }                                                                                                 \
                int32_t *o = out + r * PANEL + c;                                                                 \
                _mm256_store_si256((__m256i *)o, a00);                                                            \
                _mm256_store_si256((__m256i *)(o + 8), a01);                                                      \
                _mm256_store_si256((__m256i *)(o + PANEL), a10);                                                  \
                _mm256_store_si256((__m256i *)(o + PANEL + 8), a11);                                              \
                _mm256_store_si256((__m256i *)(o + 2 * PANEL), a20);                                              \
                _mm256_store_si256((__m256i *)(o + 2 * PANEL + 8), a21);                                          \
            }                                                                                                     \
    }

#if defined(__linux__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
#define HAVE_AMX 1
#define T_AMX __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

/* Tiles 0-3: sums of 16 rows by 4 x 16 columns; 4 and 5: 64 bytes of the rows and of 16 columns; 6 and 7: 32 bytes. */
T_AMX static void amx_begin(void) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape __attribute__((aligned(64)));
    memset(&shape, 0, sizeof shape);
    shape.palette = 1;
    for (int i = 0; i < 8; i++) {
        shape.rows[i] = i == 7 ? 8 : 16;
        shape.bytes[i] = i == 6 ? 32 : 64;
    }
    __asm__ volatile("" : : "r"(&shape) : "memory"); /* GCC's intrinsic says that it reads 8 bytes of it */
    _tile_loadconfig(&shape);
}

T_AMX static void amx_end(void) { _tile_release(); }

/* Rows i.. of int8 codes, in groups of 16, as tiles: 64 bytes of each of the 16 rows, the next 64, and what is left (32).
 * A tile out of rows that lie d bytes apart takes twice as many cache lines. */
static void tile_rows(const int8_t *x, int64_t rows, int64_t dpad, int8_t *out) {
    for (int64_t i = 0; i < rows; i += 16)
        for (int64_t at = 0; at < dpad; at += 64)
            for (int r = 0; r < 16; r++) {
                const size_t bytes = dpad - at < 64 ? 32 : 64;
                memcpy(out, x + (i + r) * dpad + at, bytes);
                out += bytes;
            }
}

/* Where a register tile's bounds reach their row's or their column's limit: a bit for each of 64 columns. */
typedef struct {
    const int32_t *dots;
    const float *xscale, *xloss, *xlimit, *yscale, *yloss, *ylimit;
    int32_t *least; /* no smaller product of a row's codes reaches a limit, see least_products() */
    uint64_t *hits; /* of each of 16 rows */
} reached;

/* What makes the bounds of a panel's columns as high as any, and their limits as low. */
typedef struct {
    float scale, loss, limit;
} loosest;

static loosest loosest_of(const float *scale, const float *loss, const float *limit) {
    loosest l = {0.0f, 0.0f, INFINITY};
    for (int c = 0; c < PANEL; c++) {
        if (!(loss[c] >= 0.0f)) continue; /* no column */
        l.scale = scale[c] > l.scale ? scale[c] : l.scale;
        l.loss = loss[c] > l.loss ? loss[c] : l.loss;
        l.limit = limit[c] < l.limit ? limit[c] : l.limit;
    }
    return l;
}

/* One comparison of integers tells off most pairs: with the panel's loosest column a bound that reaches a limit takes at
 * least this product. What it takes is positive, or all pass: so does what is no number. */
T_512 static void least_products(const reached *b, loosest y) {
    const __m512 limit = _mm512_min_ps(_mm512_loadu_ps(b->xlimit), _mm512_set1_ps(y.limit));
    const __m512 wanted = _mm512_sub_ps(_mm512_sub_ps(limit, _mm512_loadu_ps(b->xloss)), _mm512_set1_ps(y.loss));
    const __m512 unit = _mm512_mul_ps(_mm512_loadu_ps(b->xscale), _mm512_set1_ps(y.scale * (1.0f + 1e-5f)));
    const __m512 product = _mm512_div_ps(wanted, unit);
    const __mmask16 positive = _mm512_cmp_ps_mask(wanted, _mm512_setzero_ps(), _CMP_GT_OQ) &
                               _mm512_cmp_ps_mask(product, _mm512_set1_ps(1e9f), _CMP_LT_OQ);
    const __m512i least = _mm512_mask_cvttps_epi32(_mm512_set1_epi32(INT32_MIN), positive, product);
    _mm512_storeu_si512(b->least, least);
}

T_512 static inline __attribute__((always_inline)) void reach_rows(const reached *b, int from, int to) {
    for (int r = from; r < to; r++) {
        const int32_t *dots = b->dots + r * PANEL;
        const __m512i least = _mm512_set1_epi32(b->least[r]);
        __mmask16 any = 0;
        for (int c = 0; c < PANEL; c += 16)
            any |= _mm512_cmp_epi32_mask(_mm512_load_si512(dots + c), least, _MM_CMPINT_NLT);
        b->hits[r] = 0;
        if (!any) continue;
        const __m512 xs = _mm512_set1_ps(b->xscale[r]), xl = _mm512_set1_ps(b->xloss[r]), xt = _mm512_set1_ps(b->xlimit[r]);
        uint64_t hits = 0;
        for (int c = 0; c < PANEL; c += 16) {
            const __m512 p = _mm512_cvtepi32_ps(_mm512_load_si512(dots + c));
            const __m512 v = _mm512_fmadd_ps(_mm512_mul_ps(p, xs), _mm512_load_ps(b->yscale + c),
                                             _mm512_add_ps(_mm512_load_ps(b->yloss + c), xl));
            const __m512 limit = _mm512_min_ps(_mm512_loadu_ps(b->ylimit + c), xt);
            hits |= (uint64_t)_mm512_cmp_ps_mask(v, limit, _CMP_GE_OQ) << c;
        }
        b->hits[r] = hits;
    }
}

T_512 static void reach_all(const reached *b) { reach_rows(b, 0, 16); }

/* Products of 16 rows (tile_rows) with a panel, which is laid out as the instruction wants columns: four bytes of each of
 * 16 a line. Between them, which run in a unit of their own, the bounds of the register tile before are looked at. */
T_AMX static void product_amx(const int8_t *x, const uint8_t *y, int64_t groups, int32_t *out, const reached *before) {
    const int line = 4 * PANEL, share = (int)((16 * 16 + groups - 1) / groups);
    int seen = 0;
    __asm__ volatile("" : : : "memory"); /* nor does it say that the tiles are read, */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    int64_t g = 0;
    for (; g + 16 <= groups; g += 16) {
        const uint8_t *yp = y + g * line;
        _tile_loadd(4, x + 64 * g, 64);
        _tile_loadd(5, yp, line);
        _tile_dpbssd(0, 4, 5);
        _tile_loadd(5, yp + 64, line);
        _tile_dpbssd(1, 4, 5);
        _tile_loadd(5, yp + 128, line);
        _tile_dpbssd(2, 4, 5);
        _tile_loadd(5, yp + 192, line);
        _tile_dpbssd(3, 4, 5);
        const int to = seen + share < 16 ? seen + share : 16;
        reach_rows(before, seen, to);
        seen = to;
    }
    if (g < groups) {
        const uint8_t *yp = y + g * line;
        _tile_loadd(6, x + 64 * g, 32);
        _tile_loadd(7, yp, line);
        _tile_dpbssd(0, 6, 7);
        _tile_loadd(7, yp + 64, line);
        _tile_dpbssd(1, 6, 7);
        _tile_loadd(7, yp + 128, line);
        _tile_dpbssd(2, 6, 7);
        _tile_loadd(7, yp + 192, line);
        _tile_dpbssd(3, 6, 7);
    }
    reach_rows(before, seen, 16);
    _tile_stored(0, out, line);
    _tile_stored(1, out + 16, line);
    _tile_stored(2, out + 32, line);
    _tile_stored(3, out + 48, line);
    __asm__ volatile("" : : : "memory"); /* and written */
}

/* Whether the processor has the tiles and the system lets this process use them, which it has to be asked. */
static int amx_there(void) {
    static int known = 0; /* 1: they are not there, 2: they are */
    int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!found) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        const int there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
        found = 1 + (there && syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XTILEDATA */) == 0);
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    }
    return found == 2;
}
#endif

/* Pairs of products must fit 16 bits here: columns have 63 levels, 127 * 127 * 2 = 32258. */
#define DOT_AVX2(a, y, b) _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_maddubs_epi16(y, b), ones))
#define DOT_VNNI(a, y, b) _mm256_dpbusd_avx_epi32(a, y, b)
PRODUCT256(product_avx2, T_AVX2, DOT_AVX2)
#if (defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11)
#define HAVE_AVXVNNI 1
PRODUCT256(product_avxvnni, T_VNNI, DOT_VNNI)
#endif

#endif

/* ---- which of a register tile's bounds reach their row's or their column's limit ---- */

/* What a bound is made of, by row or by column. */
typedef struct {
    const float *scale, *loss, *limit;
} side_of_bound;

/* upper[r][c] is filled in, and hits[r * 4 + c / 16] with a bit for each of 16 columns; returns a bit for each of these
 * that is not zero. */
static uint64_t reach_portable(const int32_t *dots, int rows, side_of_bound x, side_of_bound y, float *upper, uint16_t *hits) {
    uint64_t any = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++) {
            uint32_t hit = 0;
            for (int l = 16 * c; l < 16 * c + 16; l++) {
                const int at = r * PANEL + l;
                const float v = y.loss[l] + x.loss[r] + (float)dots[at] * x.scale[r] * y.scale[l];
                const float least = y.limit[l] < x.limit[r] ? y.limit[l] : x.limit[r];
                upper[at] = v;
                hit |= (uint32_t)(v >= least) << (l - 16 * c);
            }
            hits[r * 4 + c] = (uint16_t)hit;
            any |= (uint64_t)(hit != 0) << (r * 4 + c);
        }
    return any;
}

#if X86

T_512 static uint64_t reach_512(const int32_t *dots, int rows, side_of_bound x, side_of_bound y, float *upper, uint16_t *hits) {
    uint64_t any = 0;
    for (int c = 0; c < 4; c++) {
        const __m512 yl = _mm512_load_ps(y.loss + 16 * c), yt = _mm512_load_ps(y.limit + 16 * c),
                     ys = _mm512_load_ps(y.scale + 16 * c);
        for (int r = 0; r < rows; r++) {
            const int at = r * PANEL + 16 * c;
            __m512 v = _mm512_add_ps(yl, _mm512_set1_ps(x.loss[r]));
            const __m512 p = _mm512_cvtepi32_ps(_mm512_load_si512(dots + at));
            v = _mm512_fmadd_ps(_mm512_mul_ps(p, _mm512_set1_ps(x.scale[r])), ys, v);
            _mm512_store_ps(upper + at, v);
            const __mmask16 m = _mm512_cmp_ps_mask(v, _mm512_min_ps(yt, _mm512_set1_ps(x.limit[r])), _CMP_GE_OQ);
            hits[r * 4 + c] = (uint16_t)m;
            any |= (uint64_t)(m != 0) << (r * 4 + c);
        }
    }
    return any;
}

T_AVX2 static uint64_t reach_avx2(const int32_t *dots, int rows, side_of_bound x, side_of_bound y, float *upper, uint16_t *hits) {
    uint64_t any = 0;
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < rows; r++) {
            uint32_t hit = 0;
            for (int h = 0; h < 2; h++) {
                const int l = 16 * c + 8 * h, at = r * PANEL + l;
                __m256 v = _mm256_add_ps(_mm256_load_ps(y.loss + l), _mm256_set1_ps(x.loss[r]));
                const __m256 p = _mm256_cvtepi32_ps(_mm256_load_si256((const __m256i *)(dots + at)));
                v = _mm256_fmadd_ps(_mm256_mul_ps(p, _mm256_set1_ps(x.scale[r])), _mm256_load_ps(y.scale + l), v);
                _mm256_store_ps(upper + at, v);
                const __m256 least = _mm256_min_ps(_mm256_load_ps(y.limit + l), _mm256_set1_ps(x.limit[r]));
                hit |= (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, least, _CMP_GE_OQ)) << (8 * h);
            }
            hits[r * 4 + c] = (uint16_t)hit;
            any |= (uint64_t)(hit != 0) << (r * 4 + c);
        }
    return any;
}

#endif

static uint64_t reach(int32_t isa, const int32_t *dots, int rows, side_of_bound x, side_of_bound y, float *upper,
                      uint16_t *hits) {
#if X86
    if (isa >= ISA_AVX512) return reach_512(dots, rows, x, y, upper, hits);
    if (IS_X86(isa)) return reach_avx2(dots, rows, x, y, upper, hits);
#endif
    (void)isa;
    return reach_portable(dots, rows, x, y, upper, hits);
}

/* ---- a tile ---- */

static void *carve(char **at, size_t bytes) {
    char *p = *at;
    *at = p + ((bytes + 63) & ~(size_t)63);
    return p;
}

static side carve_side(char **at, int64_t rows, int32_t k, int32_t cap) {
    side s;
    s.list = carve(at, (size_t)rows * (size_t)cap * sizeof(candidate));
    s.count = carve(at, (size_t)rows * sizeof(int32_t));
    s.lower = carve(at, (size_t)rows * (size_t)k * sizeof(float));
    s.limit = carve(at, (size_t)rows * sizeof(float));
    return s;
}

static int64_t side_bytes(int64_t rows, int32_t k, int32_t cap) {
    return rows * (int64_t)(cap * sizeof(candidate) + sizeof(int32_t) + k * sizeof(float) + sizeof(float)) + 4 * 64;
}

static int64_t panels_of(int64_t cols) { return (cols + PANEL - 1) / PANEL * PANEL; }

/* Rows of a step through a tile: they stay in the second-level cache while the columns pass by. bytes: of a row. */
static int64_t step_of(int64_t bytes, int mr) {
    const int64_t step = (int64_t)(512 * 1024) / bytes / mr * mr;
    return step < 16 * mr ? 16 * mr : step;
}

static int64_t tiled_bytes(int64_t rows, int64_t dpad) {
    const int64_t step = step_of(dpad, MOST_MR);
    return (step < rows ? step : (rows + MOST_MR - 1) / MOST_MR * MOST_MR) * dpad;
}

int64_t fused_workspace(int32_t isa, int64_t rows, int64_t cols, int64_t dpad, int32_t k, int32_t cap) {
    return side_bytes(rows + MOST_MR, k, cap) + side_bytes(panels_of(cols), k, cap) + 2 * MOST_MR * PANEL * 4 + 4096 +
           (isa == ISA_AMX ? tiled_bytes(rows, dpad) : 0);
}

static void clear(side *s, int64_t from, int64_t to, int32_t k) {
    for (int64_t i = from; i < to; i++) {
        s->count[i] = 0;
        for (int32_t e = 0; e < k; e++) s->lower[i * k + e] = -INFINITY;
    }
}

static product product_of(int32_t isa) {
#if X86
    if (isa == ISA_AVX2) return product_avx2;
#ifdef HAVE_AVXVNNI
    if (isa == ISA_AVXVNNI) return product_avxvnni;
#endif
    if (isa == ISA_AVX512) return product_512;
#endif
#if ARM
    if (isa == ISA_NEON) return product_neon;
#ifdef HAVE_DOTPROD
    if (isa == ISA_DOTPROD) return product_dotprod;
#endif
#endif
    (void)isa;
    return product_portable;
}

/* What fused_tile() has at hand; yscale and yloss: of the panel of columns from j0 on. */
typedef struct {
    side rows, cols;
    int32_t *dots; /* of two register tiles */
    float *upper, *yscale, *yloss;
    int8_t *tiled; /* the step's rows as AMX wants them */
    product multiply;
    int mr;
    int64_t j0;
} bench;

/* A pair whose bound is u, at most 2 error above its product. */
static inline void found(tile *t, bench *b, int64_t i, int64_t j, float u, float error) {
    if (u < b->rows.limit[i] && u < b->cols.limit[j]) return;
    const float l = u - 2.0f * error;
    if (push(t, &b->rows, i, u, l, (int32_t)j)) flush_row(t, &b->rows, i);
    if (push(t, &b->cols, j, u, l, (int32_t)i)) flush_col(t, &b->cols, j);
}

/* Rows from..to with a panel. */
static void compare(tile *t, bench *b, int64_t from, int64_t to, const uint8_t *panel) {
    const int32_t offset = offset_of(t->isa);
    int32_t start[MOST_MR];
    float scale[MOST_MR], loss[MOST_MR], limit[MOST_MR];
    uint16_t hits[MOST_MR * 4];
    for (int64_t i = from; i < to; i += b->mr) {
        const int64_t have = to - i < b->mr ? to - i : b->mr;
        for (int64_t r = 0; r < b->mr; r++) {
            const int real = r < have;
            start[r] = real ? -offset * t->xsum[i + r] : 0;
            scale[r] = real ? t->xscale[i + r] : 0.0f;
            loss[r] = real ? t->xloss[i + r] : NAN; /* what is no number reaches no limit */
            limit[r] = real ? b->rows.limit[i + r] : INFINITY;
        }
        /* xq is allocated MOST_MR rows longer than the block, so the last step reads zeros */
        b->multiply(t->xq + i * t->dpad, t->dpad, panel, t->dpad / 4, start, b->dots);
        const side_of_bound x = {scale, loss, limit}, y = {b->yscale, b->yloss, b->cols.limit + b->j0};
        for (uint64_t any = reach(t->isa, b->dots, b->mr, x, y, b->upper, hits); any; any &= any - 1) {
            const int bit = __builtin_ctzll(any), r = bit >> 2;
            for (uint32_t hit = hits[bit]; hit; hit &= hit - 1) {
                const int c = (bit & 3) * 16 + __builtin_ctz(hit);
                found(t, b, i + r, b->j0 + c, b->upper[r * PANEL + c], loss[r] + b->yloss[c]);
            }
        }
    }
}

#ifdef HAVE_AMX

T_512 static void found_amx(tile *t, bench *b, int64_t i, int64_t have, const reached *before) {
    for (int64_t r = 0; r < have; r++)
        for (uint64_t hits = before->hits[r]; hits; hits &= hits - 1) {
            const int c = __builtin_ctzll(hits);
            const float error = before->xloss[r] + b->yloss[c];
            const float u = (float)before->dots[r * PANEL + c] * before->xscale[r] * b->yscale[c] + error;
            found(t, b, i + r, b->j0 + c, u, error);
        }
}

/* The same with AMX: the bounds of a register tile are looked at while the next one's products are computed. */
static void compare_amx(tile *t, bench *b, int64_t from, int64_t to, const uint8_t *panel) {
    uint64_t hits[MOST_MR];
    float scale[MOST_MR], loss[MOST_MR], limit[MOST_MR]; /* of the last rows */
    int32_t least[MOST_MR];
    reached before = {b->dots, scale, loss, limit, b->yscale, b->yloss, b->cols.limit + b->j0, least, hits};
    const loosest column = loosest_of(b->yscale, b->yloss, b->cols.limit + b->j0);
    memset(scale, 0, sizeof scale);
    for (int r = 0; r < MOST_MR; r++) /* what is no number reaches no limit */
        loss[r] = NAN, limit[r] = INFINITY, least[r] = INT32_MAX;
    int32_t *dots = b->dots, *next = b->dots + MOST_MR * PANEL;
    int64_t have = 0;
    for (int64_t i = from; i < to; i += MOST_MR) {
        product_amx(b->tiled + (i - from) * t->dpad, panel, t->dpad / 4, next, &before);
        found_amx(t, b, i - MOST_MR, have, &before);
        int32_t *const free = dots;
        dots = next, next = free;
        have = to - i < MOST_MR ? to - i : MOST_MR;
        before.dots = dots;
        if (have == MOST_MR) {
            before.xscale = t->xscale + i, before.xloss = t->xloss + i, before.xlimit = b->rows.limit + i;
            least_products(&before, column);
            continue;
        }
        memcpy(scale, t->xscale + i, (size_t)have * sizeof(float));
        memcpy(loss, t->xloss + i, (size_t)have * sizeof(float));
        memcpy(limit, b->rows.limit + i, (size_t)have * sizeof(float));
        for (int64_t r = have; r < MOST_MR; r++) scale[r] = 0.0f, loss[r] = NAN, limit[r] = INFINITY;
        before.xscale = scale, before.xloss = loss, before.xlimit = limit;
        least_products(&before, column);
    }
    reach_all(&before);
    found_amx(t, b, (to - 1 - from) / MOST_MR * MOST_MR + from, have, &before);
}

#endif

/* All pairs of the block's rows with the tile's columns. Rows come in steps that stay in the second-level cache. What
 * may be in the answer waits until the end of the tile: by then the bounds alone have told most of it off. */
int64_t fused_tile(tile *t) {
    char *at = t->work;
    const int k = t->k;
    bench b = {carve_side(&at, t->rows + MOST_MR, k, t->cap), carve_side(&at, panels_of(t->cols), k, t->cap)};
    b.dots = carve(&at, 2 * MOST_MR * PANEL * sizeof(int32_t)); /* AMX: two of them, and no upper */
    b.upper = (float *)(b.dots + MOST_MR * PANEL);
    b.yscale = carve(&at, PANEL * sizeof(float));
    b.yloss = carve(&at, PANEL * sizeof(float));
    b.multiply = product_of(t->isa);
    b.tiled = (int8_t *)at; /* the last of them */
    b.mr = t->isa == ISA_AMX ? MOST_MR : MR;
    t->rescored = 0;
    clear(&b.rows, 0, t->rows, k);
    for (int64_t i = 0; i < t->rows; i++) {
        lock(t->row_lock + i);
        b.rows.limit[i] = kth(t->row_sim + i * k, t->row_id + i * k, k);
        unlock(t->row_lock + i);
    }
    clear(&b.cols, 0, t->cols, k);
    for (int64_t j = 0; j < panels_of(t->cols); j++) {
        b.cols.limit[j] = INFINITY;
        if (j < t->cols && t->col_sim) b.cols.limit[j] = kth(t->col_sim + j * k, t->col_id + j * k, k);
    }
#ifdef HAVE_AMX
    if (b.mr == MOST_MR) amx_begin();
#endif
    const int64_t step = step_of(t->dpad, b.mr);
    for (int64_t from = 0; from < t->rows; from += step) {
        const int64_t to = from + step < t->rows ? from + step : t->rows;
#ifdef HAVE_AMX
        /* xq is allocated MOST_MR rows longer than the block */
        if (b.mr == MOST_MR) tile_rows(t->xq + from * t->dpad, to - from, t->dpad, b.tiled);
#endif
        for (b.j0 = 0; b.j0 < t->cols; b.j0 += PANEL) {
            for (int64_t c = 0; c < PANEL; c++) {
                const int real = b.j0 + c < t->cols;
                b.yscale[c] = real ? t->yscale[b.j0 + c] : 0.0f;
                b.yloss[c] = real ? t->yloss[b.j0 + c] : NAN;
            }
            const uint8_t *panel = t->ypack + b.j0 * t->dpad;
#ifdef HAVE_AMX
            if (b.mr == MOST_MR) {
                compare_amx(t, &b, from, to, panel);
                continue;
            }
#endif
            compare(t, &b, from, to, panel);
        }
    }
    for (int64_t i = 0; i < t->rows; i++) flush_row(t, &b.rows, i);
    for (int64_t j = 0; j < t->cols && t->col_sim; j++) flush_col(t, &b.cols, j);
#ifdef HAVE_AMX
    if (b.mr == MOST_MR) amx_end();
#endif
    return t->rescored;
}

/* Whether this processor, and this library, has an instruction set. */
int32_t fused_has(int32_t isa) {
    if (isa == ISA_PORTABLE) return 1;
#if X86
    /* (Not every compiler's __builtin_cpu_supports knows f16c and avxvnni.) */
    unsigned a = 0, b = 0, c = 0, d = 0;
    __builtin_cpu_init();
    const int f16c = __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
    if (!(f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return 0;
    if (isa == ISA_AVX2) return 1;
#ifdef HAVE_AVXVNNI
    if (isa == ISA_AVXVNNI) return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
#endif
    if (isa == ISA_AVX512 || isa == ISA_AMX) {
        int there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vnni");
#ifdef HAVE_AMX
        return there && (isa == ISA_AVX512 || amx_there());
#else
        return there && isa == ISA_AVX512;
#endif
    }
#endif
#if ARM
    if (isa == ISA_NEON) return 1;
#ifdef HAVE_DOTPROD
    if (isa == ISA_DOTPROD) {
#if defined(__linux__)
        return (int32_t)(getauxval(AT_HWCAP) >> 20 & 1); /* HWCAP_ASIMDDP */
#elif defined(__APPLE__)
        int there = 0;
        size_t size = sizeof there;
        return !sysctlbyname("hw.optional.arm.FEAT_DotProd", &there, &size, 0, 0) && there;
#endif
    }
#endif
#endif
    return 0;
}

/* The best one. */
int32_t fused_isa(void) {
    int32_t isa = ISA_AMX;
    while (!fused_has(isa)) isa--;
    return isa;
}
