#include "../isa_table.h"
