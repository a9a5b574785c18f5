/* What this module says of itself. The version is that of native.py. */

#include "native.h"

INTERFACE(1, 1, FUNCTIONS, NO_STRUCTURES)
