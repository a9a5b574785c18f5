/* What this module says of itself. The version is that of native.py. */

#include "native.h"

INTERFACE(2, 1, FUNCTIONS, NO_STRUCTURES)
