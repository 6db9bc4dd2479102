/* Pillow's 8-bit resampling, for the square that a centre crop keeps.
 *
 * The weights are Pillow's to the last bit: computed in double for the whole image, rounded to 22
 * fractional bits, summed in 32-bit integers, rounded to 8 bits after the columns and again after
 * the rows. Only what is not kept is left out, and the sums use vector registers. The caller
 * compares with Pillow before it trusts this (see resampling.py).
 *
 * Called through ctypes; needs no header of Python.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { PRECISION = 32 - 8 - 2, HALF = 1 << (PRECISION - 1), CHANNELS = 4 };

typedef int32_t Pixel __attribute__((vector_size(4 * CHANNELS)));

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define EVERY_CPU __attribute__((target_clones("avx2", "sse4.1", "default")))
#endif
#endif
#ifndef EVERY_CPU
#define EVERY_CPU
#endif

/* The weights of one axis: output i is the sum of count[i] inputs from first[i] on. */
typedef struct {
  int taps;
  int* first;
  int* count;
  int32_t* weights; /* taps for each output */
} Axis;

static double triangle(double x) {
  x = fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic(double x) {
  const double a = -0.5;
  x = fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

static void free_axis(Axis* axis) {
  free(axis->first);
  free(axis->weights);
}

/* Weights for outputs start .. start+kept-1 of the `out` into which `in` inputs are resampled. */
static int make_axis(Axis* axis, int in, int out, int start, int kept, int is_cubic) {
  const double scale = (double)in / out;
  const double stretch = scale < 1.0 ? 1.0 : scale;
  const double support = (is_cubic ? 2.0 : 1.0) * stretch;
  const double shrink = 1.0 / stretch;
  axis->taps = (int)ceil(support) * 2 + 1;
  axis->first = malloc(2 * (size_t)kept * sizeof(int));
  axis->weights = calloc((size_t)kept * axis->taps, sizeof(int32_t));
  double* exact = malloc(axis->taps * sizeof(double));
  if (!axis->first || !axis->weights || !exact) {
    free(exact);
    free_axis(axis);
    return -1;
  }
  axis->count = axis->first + kept;
  for (int i = 0; i < kept; ++i) {
    const double centre = (start + i + 0.5) * scale;
    int low = (int)(centre - support + 0.5);
    int high = (int)(centre + support + 0.5);
    low = low < 0 ? 0 : low;
    high = high > in ? in : high;
    double sum = 0.0;
    for (int k = 0; k < high - low; ++k) {
      const double at = (k + low - centre + 0.5) * shrink;
      exact[k] = is_cubic ? cubic(at) : triangle(at);
      sum += exact[k];
    }
    int32_t* weights = axis->weights + (size_t)i * axis->taps;
    for (int k = 0; k < high - low; ++k) {
      const double weight = sum == 0.0 ? exact[k] : exact[k] / sum;
      weights[k] = (int)((weight < 0 ? -0.5 : 0.5) + weight * (1 << PRECISION));
    }
    axis->first[i] = low;
    axis->count[i] = high - low;
  }
  free(exact);
  return 0;
}

/* Sums become bytes, as Pillow rounds and clips them. */
static inline void narrow(const int32_t* restrict sums, int count, uint8_t* restrict out) {
  for (int i = 0; i < count; ++i) {
    const int32_t value = sums[i] >> PRECISION;
    out[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
  }
}

/* A row of RGBX pixels becomes a row of `kept` pixels; `wide` and `sums` are room for both. */
EVERY_CPU static void resample_columns(
    const uint8_t* restrict row, int width, const Axis* axis, int kept, Pixel* restrict wide,
    Pixel* restrict sums, uint8_t* restrict out) {
  int32_t* values = (int32_t*)wide;
  for (int i = 0; i < width * CHANNELS; ++i) values[i] = row[i];
  for (int i = 0; i < kept; ++i) {
    const int32_t* weights = axis->weights + (size_t)i * axis->taps;
    const Pixel* from = wide + axis->first[i];
    Pixel sum = {HALF, HALF, HALF, HALF};
    for (int k = 0; k < axis->count[i]; ++k) sum += from[k] * weights[k];
    sums[i] = sum;
  }
  narrow((const int32_t*)sums, kept * CHANNELS, out);
}

/* `count` rows of `bytes` bytes become one. */
EVERY_CPU static void resample_rows(
    const uint8_t* restrict rows, int bytes, const int32_t* restrict weights, int count,
    int32_t* restrict sums, uint8_t* restrict out) {
  for (int i = 0; i < bytes; ++i) sums[i] = HALF;
  for (int k = 0; k < count; ++k) {
    const uint8_t* row = rows + (size_t)k * bytes;
    const int32_t weight = weights[k];
    for (int i = 0; i < bytes; ++i) sums[i] += row[i] * weight;
  }
  narrow(sums, bytes, out);
}

/* Resize a picture to full_width x full_height and keep `side` x `side` pixels from (left, top) on.
 *
 * rgbx    height x width pixels of 4 bytes.
 * cubic   bicubic (a = -0.5) instead of bilinear; both with antialiasing.
 * planes  result, 3 x side x side bytes.
 *
 * Returns 0, or -1 when there is no memory.
 */
int k230_resize_and_crop(
    const uint8_t* rgbx, int width, int height, int full_width, int full_height, int left, int top,
    int side, int cubic, uint8_t* planes) {
  Axis x = {0}, y = {0};
  if (make_axis(&x, width, full_width, left, side, cubic)) return -1;
  if (make_axis(&y, height, full_height, top, side, cubic)) {
    free_axis(&x);
    return -1;
  }
  const int first = y.first[0];
  const int rows = y.first[side - 1] + y.count[side - 1] - first;
  const int bytes = side * CHANNELS;
  uint8_t* columns = malloc((size_t)(rows + 1) * bytes);
  Pixel* wide = aligned_alloc(sizeof(Pixel), (size_t)(width + side) * sizeof(Pixel));
  const int failed = !columns || !wide;
  if (!failed) {
    Pixel* sums = wide + width;
    uint8_t* line = columns + (size_t)rows * bytes;
    for (int r = 0; r < rows; ++r)
      resample_columns(
          rgbx + (size_t)(first + r) * width * CHANNELS, width, &x, side, wide, sums,
          columns + (size_t)r * bytes);
    for (int i = 0; i < side; ++i) {
      resample_rows(
          columns + (size_t)(y.first[i] - first) * bytes, bytes,
          y.weights + (size_t)i * y.taps, y.count[i], (int32_t*)sums, line);
      uint8_t* red = planes + (size_t)i * side;
      uint8_t* green = red + (size_t)side * side;
      uint8_t* blue = green + (size_t)side * side;
      for (int p = 0; p < side; ++p) {
        red[p] = line[p * CHANNELS];
        green[p] = line[p * CHANNELS + 1];
        blue[p] = line[p * CHANNELS + 2];
      }
    }
  }
  free(columns);
  free(wide);
  free_axis(&x);
  free_axis(&y);
  return -failed;
}
