/* Stands in for libcuda.so.1 as far as copies go: memory of the host plays the device, and a copy takes the time that the
 * table beside the library gives for its kind of memory. Numbers: pinned_gb_per_s, pageable_gb_per_s, free_bytes, code.*, hang_s.*. */
#include "standin.h"
#include <stdint.h>

enum { OK = 0, BAD_ARGUMENT = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NO_SUCH_DEVICE = 101 };
static void *pinned_from, *pinned_to;
static int context;

#define ENTER() do { int code = enter(-1, __func__); if (code) return code; } while (0)

int cuInit(unsigned flags) { (void)flags; ENTER(); return OK; }
int cuDeviceGet(int *out, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= (int)whole(-1, "count", 1)) return NO_SUCH_DEVICE;
  *out = ordinal;
  return OK;
}
int cuDeviceGetName(char *out, int size, int device) {
  ENTER();
  snprintf(out, (size_t)size, whole(device, "unknown_model", 0) ? "Stand-in card" : "Stand-in H200");
  return OK;
}
int cuDeviceGetPCIBusId(char *out, int size, int device) { ENTER(); snprintf(out, (size_t)size, "0000:%02X:00.0", 16 + device); return OK; }
int cuDevicePrimaryCtxRetain(void **out, int device) { (void)device; ENTER(); *out = &context; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
int cuCtxSetCurrent(void *which) { ENTER(); return which == &context ? OK : BAD_ARGUMENT; }
int cuCtxSynchronize(void) { ENTER(); return OK; }
int cuMemGetInfo_v2(size_t *left, size_t *total) { ENTER(); *left = (size_t)whole(-1, "free_bytes", 8ULL << 30); *total = 141ULL << 30; return OK; }
int cuMemAlloc_v2(uint64_t *out, size_t size) { ENTER(); void *got = malloc(size); *out = (uint64_t)(uintptr_t)got; return got ? OK : OUT_OF_MEMORY; }
int cuMemFree_v2(uint64_t which) { free((void *)(uintptr_t)which); return OK; }
int cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  (void)flags; ENTER();
  *out = malloc(size);
  pinned_from = *out; pinned_to = (char *)*out + size;
  return *out ? OK : OUT_OF_MEMORY;
}
int cuMemFreeHost(void *which) { free(which); return OK; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
  ENTER();
  int is_pinned = from >= pinned_from && from < pinned_to;
  const struct entry *speed = look(-1, is_pinned ? "pinned_gb_per_s" : "pageable_gb_per_s");
  memcpy((void *)(uintptr_t)to, from, 4096);
  if (speed) rest((double)size / speed->number / 1e9);
  return OK;
}
