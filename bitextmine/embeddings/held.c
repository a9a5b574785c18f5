/* What a truncated file does to those who read it through a map: instead of ending the process, SIGBUS marks the map as
   torn, and zeros take the place of what is not there any more. held.py says who asks for the mark. */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../compiled.h"

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

#define FUNCTIONS(F)                                                                                                \
    F(int64_t, held_watch, const void *, int64_t)                                                                   \
    F(int64_t, held_torn, int64_t)                                                                                  \
    F(void, held_release, int64_t)

PROTOTYPES(FUNCTIONS)
INTERFACE(1, 1, FUNCTIONS, NO_STRUCTURES)

#define MOST 64

/* end is 0 where the place is free; start is written before end. */
typedef struct {
    atomic_uintptr_t start, end;
    atomic_int torn;
} map;

static map maps[MOST];
static uintptr_t page;
static struct sigaction before;

static void on_bus(int signal, siginfo_t *info, void *context) {
    (void)context;
    int kept = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    for (int i = 0; info->si_code > 0 && i < MOST; i++) {
        uintptr_t end = atomic_load(&maps[i].end), start = atomic_load(&maps[i].start);
        if (!end || at < start || at >= end)
            continue;
        /* Beyond the end of a file nothing follows: one call, or a long file would take more maps than there may be. */
        uintptr_t first = at & ~(page - 1), last = (end + page - 1) & ~(page - 1);
        void *zeros = mmap((void *)first, last - first, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (zeros == MAP_FAILED)
            break;
        atomic_store(&maps[i].torn, 1);
        errno = kept;
        return;
    }
    /* Not ours: what was there before is asked when the instruction runs again. */
    sigaction(SIGBUS, &before, 0);
    if (info->si_code <= 0)
        raise(signal);
    errno = kept;
}

/* Watches a map of so many bytes; returns its number, -1 where no more can be watched. Call it from one thread. */
int64_t held_watch(const void *start, int64_t size) {
    struct sigaction now;
    if (size <= 0 || sigaction(SIGBUS, 0, &now))
        return -1;
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus) {
        struct sigaction ours = {0};
        page = (uintptr_t)sysconf(_SC_PAGESIZE);
        before = now;
        ours.sa_sigaction = on_bus;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        if (sigaction(SIGBUS, &ours, 0))
            return -1;
    }
    for (int i = 0; i < MOST; i++)
        if (!atomic_load(&maps[i].end)) {
            atomic_store(&maps[i].torn, 0);
            atomic_store(&maps[i].start, (uintptr_t)start);
            atomic_store(&maps[i].end, (uintptr_t)start + (uintptr_t)size);
            return i;
        }
    return -1;
}

/* Whether something of a watched map was not there when it was read. */
int64_t held_torn(int64_t number) { return atomic_load(&maps[number].torn); }

/* Watches a map no more. */
void held_release(int64_t number) { atomic_store(&maps[number].end, 0); }
