/* The table of a compiled module's functions, which compiled.py reads before it calls any of them.
 *
 * A module lists its functions once, as F(return type, name, argument types...), and the structures that Python fills
 * in as S(type). PROTOTYPES turns the list into declarations, INTERFACE into the table for Python. Both come from the
 * same types, so that the table cannot differ from the compiled functions.
 */

#ifndef BITEXTMINE_COMPILED_H
#define BITEXTMINE_COMPILED_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    const char *name;
    const char *types; /* of a function: letters of the return type and the arguments; null: a structure */
    int64_t size;      /* of a structure, in bytes */
} interface_entry;

typedef struct {
    int32_t version; /* increases whenever a function changes its arguments or its meaning */
    int64_t count;
    const interface_entry *entries;
} interface;

/* The letters of compiled.py: lower case for a number, upper case for the address of an array. */
#define LETTER(TYPE)                                                                                                \
    _Generic((TYPE *)0, void *: 'v', int32_t *: 'i', int64_t *: 'l', int8_t **: 'B', const int8_t **: 'B',          \
             uint8_t **: 'U', const uint8_t **: 'U', int32_t **: 'I', const int32_t **: 'I', int64_t **: 'L',       \
             const int64_t **: 'L', float **: 'F', const float **: 'F', default: 'P')

#define LETTERS_1(T) LETTER(T)
#define LETTERS_2(T, ...) LETTER(T), LETTERS_1(__VA_ARGS__)
#define LETTERS_3(T, ...) LETTER(T), LETTERS_2(__VA_ARGS__)
#define LETTERS_4(T, ...) LETTER(T), LETTERS_3(__VA_ARGS__)
#define LETTERS_5(T, ...) LETTER(T), LETTERS_4(__VA_ARGS__)
#define LETTERS_6(T, ...) LETTER(T), LETTERS_5(__VA_ARGS__)
#define LETTERS_7(T, ...) LETTER(T), LETTERS_6(__VA_ARGS__)
#define LETTERS_8(T, ...) LETTER(T), LETTERS_7(__VA_ARGS__)
#define LETTERS_9(T, ...) LETTER(T), LETTERS_8(__VA_ARGS__)
#define LETTERS_10(T, ...) LETTER(T), LETTERS_9(__VA_ARGS__)
#define LETTERS_11(T, ...) LETTER(T), LETTERS_10(__VA_ARGS__)
#define LETTERS_12(T, ...) LETTER(T), LETTERS_11(__VA_ARGS__)
#define TWELFTH(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, IT, ...) IT
#define LETTERS(...)                                                                                               \
    TWELFTH(__VA_ARGS__, LETTERS_12, LETTERS_11, LETTERS_10, LETTERS_9, LETTERS_8, LETTERS_7, LETTERS_6, LETTERS_5, \
            LETTERS_4, LETTERS_3, LETTERS_2, LETTERS_1, 0)                                                          \
    (__VA_ARGS__)

#define PROTOTYPE(RETURNS, NAME, ...) EXPORT RETURNS NAME(__VA_ARGS__);
#define FUNCTION_ENTRY(RETURNS, NAME, ...) {#NAME, (const char[]){LETTER(RETURNS), LETTERS(__VA_ARGS__), 0}, 0},
#define STRUCTURE_ENTRY(TYPE) {#TYPE, 0, sizeof(TYPE)},

#define PROTOTYPES(FUNCTIONS) FUNCTIONS(PROTOTYPE)
#define INTERFACE(VERSION, FUNCTIONS, STRUCTURES)                                                                  \
    static const interface_entry interface_entries[] = {FUNCTIONS(FUNCTION_ENTRY) STRUCTURES(STRUCTURE_ENTRY)};     \
    EXPORT const interface bitextmine_interface = {                                                                 \
        VERSION, sizeof interface_entries / sizeof interface_entries[0], interface_entries};

#define NO_STRUCTURES(S)

#endif
