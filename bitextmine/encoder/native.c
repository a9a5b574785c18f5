/* The table of this module; its version is that of compiled.py. */

#include "native.h"

INTERFACE(5, FUNCTIONS, NO_STRUCTURES)
