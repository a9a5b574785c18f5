/* The scores of language identification. identify.py computes the same in NumPy, bit for bit. */

#include <stdlib.h>

#include "../compiled.h"

#define FUNCTIONS(F)                                                                                                \
    F(int32_t, language_scores, const void *, const int32_t *, const int32_t *, const float *, int64_t, int64_t,    \
      const float *, const uint8_t *, const int64_t *, int64_t, float *)

PROTOTYPES(FUNCTIONS)
INTERFACE(1, FUNCTIONS, NO_STRUCTURES)

/* Texts walked in turns: each step waits for memory, and several wait at the same time. */
enum { LANES = 8 };

/* The feature found at each byte, or -1. */
static void walk(const uint32_t *next, const int32_t *row, const int32_t *output, const uint8_t *bytes,
                 const int64_t *offsets, int64_t texts, int32_t *found) {
    for (int64_t text = 0; text < texts; text += LANES) {
        int64_t lanes = texts - text < LANES ? texts - text : LANES, at[LANES], walking = 1;
        uint32_t state[LANES] = {0};
        for (int64_t k = 0; k < lanes; k++) at[k] = offsets[text + k];
        while (walking) {
            walking = 0;
            for (int64_t k = 0; k < lanes; k++) {
                if (at[k] == offsets[text + k + 1]) continue;
                state[k] = next[(int64_t)row[state[k]] * 256 + bytes[at[k]]];
                found[at[k]++] = output[state[k]];
                walking = 1;
            }
        }
    }
}

/* A counting sort: owners gets the texts that have each feature, as often as they have it, and place (features + 1;
 * zero before) where those of each feature end. */
static void sort(const int32_t *found, const int64_t *offsets, int64_t texts, int64_t features, int32_t *owners,
                 int32_t *place) {
    for (int64_t at = 0; at < offsets[texts]; at++)
        if (found[at] >= 0) place[found[at] + 1]++;
    for (int64_t f = 0; f < features; f++) place[f + 1] += place[f];
    for (int64_t text = 0; text < texts; text++)
        for (int64_t at = offsets[text]; at < offsets[text + 1]; at++)
            if (found[at] >= 0) owners[place[found[at]]++] = (int32_t)text;
}

/* Fills scores (texts, classes), zero before: the sum over the features of a text, in their order, of
 * logs[how often] * weights[feature].
 *
 * next (rows, 256) uint32: the state behind each byte; row (states): the row of a state; output (states): the
 * feature found, or -1. weights (features, classes). offsets (texts + 1): where each text begins in bytes.
 * Returns 0 when memory runs out. */
int32_t language_scores(const void *next, const int32_t *row, const int32_t *output, const float *weights,
                        int64_t features, int64_t classes, const float *logs, const uint8_t *bytes,
                        const int64_t *offsets, int64_t texts, float *scores) {
    int64_t room = offsets[texts] + 1;
    int32_t *found = malloc(room * sizeof *found), *owners = malloc(room * sizeof *owners);
    int32_t *place = calloc(features + 1, sizeof *place), done = found && owners && place;
    if (done) {
        walk(next, row, output, bytes, offsets, texts, found);
        sort(found, offsets, texts, features, owners, place);
        for (int64_t f = 0, at = 0; f < features; f++) {
            while (at < place[f]) {
                int64_t first = at, text = owners[at];
                while (at < place[f] && owners[at] == text) at++;
                float *restrict sums = scores + text * classes, log = logs[at - first];
                for (int64_t c = 0; c < classes; c++) sums[c] += log * weights[f * classes + c];
            }
        }
    }
    free(found);
    free(owners);
    free(place);
    return done;
}
