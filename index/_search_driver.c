/* One exact search by fused.c, as engines/compiled.py does it, for processors that are emulated (check_processors.py).
 *
 * Standard input: int32 isa, dtype, arithmetic, both, k, 0; int64 n, m, d; x (n, d), y (m, d). Standard output: x's
 * similarities (n, k) float32 and ids (n, k) int64, then y's, if both. Exits with 3 where the processor lacks the isa. */

#include "../bitextmine/search/fused.c"

#include <stdio.h>

#define BLOCK 70 /* rows of x, and */
#define TILE 128 /* of y that are compared at a time: small, so that there are several */
#define SLACK 4e-6f

static void *room(int64_t count, int64_t size) {
    void *p = 0;
    if (posix_memalign(&p, 64, (size_t)(count * size + 64))) exit(4);
    memset(p, 0, (size_t)(count * size + 64));
    return p;
}

static void *get(int64_t count, int64_t size) {
    void *p = room(count, size);
    if ((int64_t)fread(p, (size_t)size, (size_t)count, stdin) != count) exit(5);
    return p;
}

static float longest(const float *length, const float *more, int64_t n) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        float v = length[i] + (more ? more[i] : 0);
        if (v > most) most = v;
    }
    return most;
}

int main(void) {
    const int32_t *head = get(6, 4);
    const int64_t *sizes = get(3, 8);
    const int32_t isa = head[0], dtype = head[1], wide = head[2], both = head[3], k = head[4], cap = 2 * k + 24;
    const int64_t n = sizes[0], m = sizes[1], d = sizes[2], dpad = (d + 31) / 32 * 32, item = dtype == F32 ? 4 : 2;
    if (!fused_has(isa)) return 3;
    const char *x = get(n * d, item), *y = get(m * d, item);
    float *row_sim = room(n * k, 4), *col_sim = room(m * k, 4);
    int64_t *row_id = room(n * k, 8), *col_id = room(m * k, 8);
    for (int64_t i = 0; i < n * k; i++) row_sim[i] = -INFINITY, row_id[i] = -1;
    for (int64_t j = 0; j < m * k; j++) col_sim[j] = -INFINITY, col_id[j] = -1;
    const int32_t levels = isa == ISA_AVX2 ? 63 : 127, offset = offset_of(isa);
    char *xq = room((BLOCK + MOST_MR) * dpad, wide ? 4 : 1), *yq = room(TILE * dpad, 1);
    uint8_t *panels = room(TILE * dpad, wide ? 4 : 1), *locks = room(BLOCK, 1);
    float *xscale = room(BLOCK, 4), *xerror = room(BLOCK, 4), *xlength = room(BLOCK, 4), *xloss = room(BLOCK, 4);
    float *yscale = room(TILE, 4), *yerror = room(TILE, 4), *ylength = room(TILE, 4), *yloss = room(TILE, 4);
    int32_t *xsum = room(BLOCK, 4), *ysum = room(TILE, 4);
    void *work = room(fused_workspace(isa, BLOCK, TILE, dpad, k, cap), 1);
    for (int64_t i = 0; i < n; i += BLOCK)
        for (int64_t j = 0; j < m; j += TILE) {
            const int64_t rows = n - i < BLOCK ? n - i : BLOCK, cols = m - j < TILE ? m - j : TILE;
            const char *a = x + i * d * item, *b = y + j * d * item;
            memset(xq, 0, (size_t)((BLOCK + MOST_MR) * dpad * (wide ? 4 : 1)));
            int64_t bad;
            if (wide) {
                bad = fused_interleave(isa, a, dtype, rows, d, dpad, MR, (float *)xq, xlength) & /* -1: all is well */
                      fused_interleave(isa, b, dtype, cols, d, dpad, PANEL, (float *)panels, ylength);
            } else {
                bad = fused_quantise(isa, a, dtype, rows, d, dpad, 127, (int8_t *)xq, xscale, xerror, xlength, xsum) &
                      fused_quantise(isa, b, dtype, cols, d, dpad, levels, (int8_t *)yq, yscale, yerror, ylength, ysum);
                fused_pack((int8_t *)yq, cols, dpad, offset, panels);
            }
            if (bad != -1) return 6;
            const float far = longest(xlength, wide ? 0 : xerror, rows), off = longest(ylength, 0, cols);
            for (int64_t r = 0; r < rows; r++)
                xloss[r] = wide ? (float)(((dpad + 16) * 0x1p-23 * xlength[r] * off + 2e-38 * dpad * (far + off + 1)) * (1 + 1e-6))
                                : xerror[r] * off + SLACK * far * off;
            for (int64_t c = 0; c < cols; c++) yloss[c] = yerror[c] * far;
            tile t = {isa, dtype, k, cap, wide, 0, d, dpad, rows, i, (int8_t *)xq, wide ? 0 : xscale, xloss,
                      wide ? 0 : xsum, a, row_sim + i * k, row_id + i * k, locks, cols, j, panels,
                      wide ? 0 : yscale, wide ? 0 : yloss, b, both ? col_sim + j * k : 0, both ? col_id + j * k : 0,
                      work, 0};
            fused_tile(&t);
        }
    fwrite(row_sim, 4, (size_t)(n * k), stdout);
    fwrite(row_id, 8, (size_t)(n * k), stdout);
    if (both) {
        fwrite(col_sim, 4, (size_t)(m * k), stdout);
        fwrite(col_id, 8, (size_t)(m * k), stdout);
    }
    return 0;
}
