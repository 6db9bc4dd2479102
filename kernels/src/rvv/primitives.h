// The RVV primitives that rvv/table.cpp puts into the table. Meanings: ../isa_table.h.
#pragma once

#include "../isa_table.h"

namespace k230::rvv {

bool gemm(const detail::GemmBlock& block);
bool depthwise3x3(const detail::Depthwise3x3& plane);
void copy_strided(const float* x, int64_t stride, int64_t count, float* y);
void dot_rows(const float* x, const float* w, int64_t ldw, int64_t rows, int64_t k, float* y);
void gemv_columns(const float* a, const float* b, int64_t ldb, int64_t k, int64_t n, float* y);
void clamp(const float* x, int64_t count, float low, float high, float* y);
void add(const float* a, const float* b, float alpha, int64_t count, float* y);
void scale_shift(const float* x, int64_t count, float scale, float shift, float* y);
float sum(const float* x, int64_t count);

}  // namespace k230::rvv
