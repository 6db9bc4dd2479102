// ${generated_comment}
// Written by the generator, used by nothing here: kernels register themselves at start.
#pragma once
