// ${generated_comment}
// Written by the generator, used by nothing here.
#pragma once

${static_dispatch_extra_headers}

${Functions_declarations}
