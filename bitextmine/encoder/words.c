/* Words of texts, looked up in a table. */

#include <stdlib.h>
#include <string.h>

#include "native.h"

typedef struct {
    uint64_t hash;
    int64_t at;     /* of its bytes, in the arena */
    int32_t length; /* in bytes */
    int32_t number; /* -1: the slot is free */
} slot;

/* An open hash table of byte strings; the n-th new one gets the number n. */
struct table {
    slot *slots;
    int64_t mask, count;
    uint8_t *arena;
    int64_t used, room;
};

static int start(table *t, int64_t slots) {
    slot *fresh = malloc(slots * sizeof(slot));
    if (!fresh) return 0;
    for (int64_t i = 0; i < slots; i++) fresh[i].number = -1;
    free(t->slots);
    t->slots = fresh;
    t->mask = slots - 1;
    return 1;
}

void words_free(table *t) {
    if (!t) return;
    free(t->slots);
    free(t->arena);
    free(t);
}

table *words_new(void) {
    table *t = calloc(1, sizeof(table));
    if (t && !start(t, 1 << 12)) {
        words_free(t);
        return NULL;
    }
    return t;
}

int64_t words_count(const table *t) { return t->count; }

INLINE uint64_t mix(uint64_t h, uint64_t w) {
    h = (h ^ w) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 32);
}

INLINE uint64_t hash_of(const uint8_t *s, int64_t n) {
    uint64_t h = (uint64_t)n, w;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&w, s, 8);
        h = mix(h, w);
    }
    for (w = 0; n > 0; n--) w = w << 8 | s[n - 1];
    return mix(mix(h, w), 0xD6E8FEB86659FD93ull);
}

/* The words numbered below `known`, in a new set of slots; 0 when memory runs out, with nothing changed. */
static int rehash(table *t, int64_t known, int64_t slots) {
    slot *old = t->slots;
    int64_t size = t->mask + 1;
    t->slots = NULL;
    if (!start(t, slots)) {
        t->slots = old;
        return 0;
    }
    for (int64_t i = 0; i < size; i++) {
        if (old[i].number < 0 || old[i].number >= known) continue;
        uint64_t p = old[i].hash & t->mask;
        while (t->slots[p].number >= 0) p = (p + 1) & t->mask;
        t->slots[p] = old[i];
    }
    free(old);
    return 1;
}

/* Takes back what was added after the first `known` words. The bytes of the others come first in the arena. */
static int forget_after(table *t, int64_t known) {
    if (!rehash(t, known, t->mask + 1)) return 0;
    t->count = known;
    t->used = 0;
    for (int64_t i = 0; i <= t->mask; i++) {
        if (t->slots[i].number < 0) continue;
        int64_t end = t->slots[i].at + t->slots[i].length;
        if (end > t->used) t->used = end;
    }
    return 1;
}

/* The number of a word, added if it is new; -1 when memory runs out. */
static int64_t number_of(table *t, const uint8_t *s, int64_t n) {
    uint64_t h = hash_of(s, n), p = h & t->mask;
    for (; t->slots[p].number >= 0; p = (p + 1) & t->mask) {
        const slot *q = &t->slots[p];
        if (q->hash == h && q->length == n && !memcmp(t->arena + q->at, s, n)) return q->number;
    }
    if (n > INT32_MAX || t->count == INT32_MAX) return -1;
    if (t->used + n > t->room) {
        int64_t room = (t->used + n) * 2 + 4096;
        uint8_t *arena = realloc(t->arena, room);
        if (!arena) return -1;
        t->arena = arena;
        t->room = room;
    }
    if (t->count * 2 > t->mask) {
        if (!rehash(t, t->count, 2 * (t->mask + 1))) return -1;
        for (p = h & t->mask; t->slots[p].number >= 0;) p = (p + 1) & t->mask;
    }
    memcpy(t->arena + t->used, s, n);
    t->slots[p] = (slot){h, t->used, (int32_t)n, (int32_t)t->count};
    t->used += n;
    return t->count++;
}

/* The words of a text: what stands between spaces and line feeds.
 *
 * known: how many words, the first ones, the caller has pieces for. Others that are in the table are of a scan whose
 * caller did not get to store their pieces, and are taken out of it first: every number handed out is of a known
 * word or of one that `fresh` tells of.
 * number (as many as there are words) gets each word's number, ends (lines) how many words there are up to the end
 * of each line, fresh (2 per word) where in the text each word begins that the table did not have, and its bytes.
 * Returns the number of new words, -1 when memory runs out, -2 when there are fewer words than are said to be known.
 */
int64_t words_scan(table *t, int64_t known, const uint8_t *text, int64_t bytes, int32_t *number, int64_t *ends,
                   int64_t *fresh) {
    int64_t words = 0, line = 0, found = 0;
    if (known > t->count) return -2;
    if (known < t->count && !forget_after(t, known)) return -1;
    for (int64_t at = 0; at <= bytes;) {
        int64_t end = at;
        while (end < bytes && text[end] != ' ' && text[end] != '\n') end++;
        if (end > at) {
            int64_t k = number_of(t, text + at, end - at);
            if (k < 0) return -1;
            if (k >= known + found) {
                fresh[2 * found] = at;
                fresh[2 * found + 1] = end - at;
                found++;
            }
            number[words++] = (int32_t)k;
        }
        if (end == bytes || text[end] == '\n') ends[line++] = words;
        at = end + 1;
    }
    return found;
}

/* Pieces of lines from the pieces of words: first (words of the table + 1) says where each word's pieces begin.
 * With ids null, only counts: offsets (lines + 1) and, returned, how many lines are longer than most; these end
 * after most pieces. */
int64_t words_pieces(const int32_t *number, const int64_t *ends, int64_t lines, const int32_t *pieces,
                            const int64_t *first, int64_t most, int64_t *offsets, int32_t *ids) {
    int64_t word = 0, cut = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < lines; i++) {
        if (!ids) {
            int64_t n = 0;
            for (; word < ends[i]; word++) n += first[number[word] + 1] - first[number[word]];
            cut += n > most;
            offsets[i + 1] = offsets[i] + (n > most ? most : n);
            continue;
        }
        int64_t at = offsets[i], end = offsets[i + 1];
        for (; word < ends[i] && at < end; word++)
            for (int64_t p = first[number[word]]; p < first[number[word] + 1] && at < end; p++) ids[at++] = pieces[p];
        word = ends[i];
    }
    return cut;
}
