/* Packs matrices for products; see src/kernels/matmul.h. */
#include "base/memory.h"
#include "kernels/matmul.h"

void matmul_pack(struct packed *packed, size_t depth, size_t columns, const real *b,
                 size_t stride, bool transposed)
{
    const size_t padded = size_padded(columns);
    if (packed->depth != depth || packed->columns != padded) {
        memory_free(packed->value);
        *packed = (struct packed){depth, padded, NEW(real, depth * padded)};
    }
    for (size_t first = 0; first < columns; first += WIDTH) {
        const size_t n = size_min(WIDTH, columns - first);
        real *const panel = packed->value + first * depth;
        if (transposed)
            for (size_t j = 0; j < n; j++)
                for (size_t d = 0; d < depth; d++)
                    panel[d * WIDTH + j] = b[(first + j) * stride + d];
        else
            for (size_t d = 0; d < depth; d++)
                for (size_t j = 0; j < n; j++)
                    panel[d * WIDTH + j] = b[d * stride + first + j];
    }
}

void matmul_free(struct packed *packed)
{
    memory_free(packed->value);
    *packed = (struct packed){0};
}
