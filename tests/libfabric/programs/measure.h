#pragma once

#include <rnicd.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline int compare(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static inline double median(double* values, size_t count) {
  qsort(values, count, sizeof(double), compare);
  return values[count / 2];
}

static inline int must(int result, const char* step) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", step, rnicd_last_error()->message);
    exit(1);
  }
  return result;
}
