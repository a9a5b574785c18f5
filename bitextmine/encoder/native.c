/* The table of this module; its version is that of compiled.py. */

#include "native.h"

INTERFACE(4, FUNCTIONS, NO_STRUCTURES)
