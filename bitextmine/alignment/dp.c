/* The dynamic program of sentence alignment on a band of antidiagonals; lattice.py says what the arrays are, and does
   the same in NumPy, bit for bit. */

#include <math.h>
#include <stdint.h>

#include "../compiled.h"

#define FUNCTIONS(F)                                                                                                \
    F(void, dp_advance, double *, uint8_t *, const int64_t *, const float *, const int64_t *, const int64_t *,      \
      const double *, const int64_t *)

PROTOTYPES(FUNCTIONS)
INTERFACE(2, FUNCTIONS, NO_STRUCTURES)

/* Fills total and back.

   total (antidiagonals, width) double: the cost of the best way to a node; back (the same) uint8: the kind of its last
   step, or 255. Column c of row a is the node of y = low[a] + c and x = a - y; n and m bound them.
   cost (antidiagonals, width, kinds) float: of a step from that node. Kind k takes step_x[k] and step_y[k] sentences;
   kinds and kinds + 1 leave one out, of x and of y, at the price *skip.
   shape: width, n, m, kinds. */
void dp_advance(double *total, uint8_t *back, const int64_t *low, const float *cost, const int64_t *step_x,
                const int64_t *step_y, const double *skip, const int64_t *shape)
{
    int64_t width = shape[0], n = shape[1], m = shape[2], kinds = shape[3];
    for (int64_t a = 0; a <= n + m; a++) {
        for (int64_t c = 0; c < width; c++) {
            int64_t y = low[a] + c, x = a - y;
            double best = INFINITY;
            uint8_t how = 255;
            if (a == 0 && y == 0)
                best = 0;
            else if (x >= 0 && x <= n && y >= 0 && y <= m) {
                for (int64_t k = 0; k < kinds + 2; k++) {
                    int64_t s = k < kinds ? step_x[k] : k == kinds;
                    int64_t t = k < kinds ? step_y[k] : k > kinds;
                    if (x < s || y < t)
                        continue;
                    int64_t before = a - s - t, column = y - t - low[before];
                    if (column < 0 || column >= width)
                        continue;
                    int64_t node = before * width + column;
                    double sum = total[node] + (k < kinds ? cost[node * kinds + k] : *skip);
                    if (sum < best) {
                        best = sum;
                        how = (uint8_t)k;
                    }
                }
            }
            total[a * width + c] = best;
            back[a * width + c] = how;
        }
    }
}
