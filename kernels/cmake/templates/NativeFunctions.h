// ${generated_comment}
// The functions that the registration calls: ExecuTorch's and the variant's own.
#pragma once

#include <tuple>

${headers}

${nativeFunctions_declarations}
