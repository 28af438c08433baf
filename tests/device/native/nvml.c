/* Stands in for libnvidia-ml.so.1: eight cards under load, unless the table beside the library says otherwise.
 * Layouts are those that nvidia-ml-py declares. With -DOLD_DRIVER the newer symbols are missing. */
#include "standin.h"

typedef unsigned int u32;
typedef unsigned long long u64;
struct device { int gpu, mig; };
typedef struct device *handle;

enum { OK = 0, BAD_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
#define CARDS 64
#define SLICES 7
static struct device cards[CARDS], slices[CARDS][SLICES];

#define ENTER(h) do { int code = enter((h) ? (h)->gpu : -1, __func__); if (code) return code; if (!(h)) return BAD_ARGUMENT; } while (0)
#define NUMBER(function, type, name, value) \
  int function(handle h, type *out) { ENTER(h); *out = (type)whole(h->gpu, name, value); return OK; }

int nvmlInitWithFlags(u32 flags) { (void)flags; return enter(-1, "nvmlInit"); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == OK ? "Success" : code == NOT_SUPPORTED ? "Not Supported" : "Error"; }
int nvmlSystemGetDriverVersion(char *out, u32 size) { int code = enter(-1, __func__); if (!code) snprintf(out, size, "580.95.05"); return code; }
int nvmlSystemGetNVMLVersion(char *out, u32 size) { snprintf(out, size, "13.580.95.05"); return OK; }
int nvmlSystemGetCudaDriverVersion(int *out) { *out = 13000; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 13000; return OK; }
int nvmlDeviceGetCount_v2(u32 *out) { int code = enter(-1, __func__); *out = (u32)whole(-1, "count", 8); return code; }

int nvmlDeviceGetHandleByIndex_v2(u32 index, handle *out) {
  int code = enter((int)index, __func__);
  if (code) return code;
  if (index >= CARDS || index >= whole(-1, "count", 8)) return BAD_ARGUMENT;
  cards[index].gpu = (int)index;
  cards[index].mig = -1;
  *out = &cards[index];
  return OK;
}

int nvmlDeviceGetIndex(handle h, u32 *out) { *out = (u32)h->gpu; return OK; }
int nvmlDeviceGetMinorNumber(handle h, u32 *out) { *out = (u32)h->gpu; return OK; }

int nvmlDeviceGetName(handle h, char *out, u32 size) { ENTER(h); snprintf(out, size, "Stand-in H200"); return OK; }
int nvmlDeviceGetUUID(handle h, char *out, u32 size) {
  ENTER(h);
  if (h->mig < 0) snprintf(out, size, "GPU-5d0c0000-0000-4000-8000-%012d", h->gpu);
  else snprintf(out, size, "MIG-5d0c0000-0000-4000-8%03d-%012d", h->mig, h->gpu);
  return OK;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, handle *out) {
  return strlen(uuid) < 40 ? NOT_FOUND : nvmlDeviceGetHandleByIndex_v2((u32)atoi(uuid + 28), out);
}

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char address[32]; };
int nvmlDeviceGetPciInfo_v3(handle h, struct pci *out) {
  ENTER(h);
  memset(out, 0, sizeof *out);
  out->bus = 16u + (u32)h->gpu;
  snprintf(out->address, sizeof out->address, "00000000:%02X:00.0", out->bus);
  snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
  return OK;
}

struct memory { u64 total, free, used; };
struct memory2 { u32 version; u64 total, reserved, free, used; };
static u64 memory_total(handle h) { return h->mig < 0 ? whole(h->gpu, "memory_total", 141ULL << 30) : 17ULL << 30; }
static u64 memory_used(handle h) { return h->mig < 0 ? whole(h->gpu, "memory_used", 90ULL << 30) : 2ULL << 30; }
int nvmlDeviceGetMemoryInfo(handle h, struct memory *out) {
  ENTER(h);
  out->total = memory_total(h); out->used = memory_used(h); out->free = out->total - out->used;
  return OK;
}
int nvmlDeviceGetMemoryInfo_v2(handle h, struct memory2 *out) {
  ENTER(h);
  out->total = memory_total(h); out->used = memory_used(h); out->free = out->total - out->used; out->reserved = 0;
  return OK;
}
int nvmlDeviceGetBAR1MemoryInfo(handle h, struct memory *out) { return nvmlDeviceGetMemoryInfo(h, out); }

struct utilization { u32 gpu, memory; };
int nvmlDeviceGetUtilizationRates(handle h, struct utilization *out) {
  ENTER(h);
  if (h->mig >= 0) return NOT_SUPPORTED;
  out->gpu = (u32)whole(h->gpu, "utilization", 91); out->memory = 40;
  return OK;
}
int nvmlDeviceGetEncoderUtilization(handle h, u32 *out, u32 *period) { ENTER(h); *out = 0; *period = 100000; return OK; }
int nvmlDeviceGetDecoderUtilization(handle h, u32 *out, u32 *period) { ENTER(h); *out = 0; *period = 100000; return OK; }

int nvmlDeviceGetTemperature(handle h, u32 sensor, u32 *out) { (void)sensor; ENTER(h); *out = (u32)whole(h->gpu, "celsius", 61); return OK; }
struct temperature { u32 version, sensor; int celsius; };
int nvmlDeviceGetTemperatureV(handle h, struct temperature *out) { ENTER(h); out->celsius = (int)whole(h->gpu, "celsius", 61); return OK; }
int nvmlDeviceGetTemperatureThreshold(handle h, u32 kind, u32 *out) { ENTER(h); *out = kind == 3 ? 87 : kind == 1 ? 92 : 95; return OK; }

NUMBER(nvmlDeviceGetPowerUsage, u32, "power_mw", 610000)
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, "power_limit_mw", 700000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, u32, "power_limit_mw", 700000)
NUMBER(nvmlDeviceGetPerformanceState, u32, "performance_state", 0)
NUMBER(nvmlDeviceGetPersistenceMode, u32, "persistence", 1)
NUMBER(nvmlDeviceGetComputeMode, u32, "compute_mode", 0)
NUMBER(nvmlDeviceGetDisplayActive, u32, "display", 0)
NUMBER(nvmlDeviceGetDisplayMode, u32, "display", 0)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, u32, "pcie_width", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, u32, "pcie_max_width", 16)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, u32, "pcie_generation", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, u32, "pcie_max_generation", 5)
int nvmlDeviceGetPcieThroughput(handle h, u32 counter, u32 *out) { (void)counter; ENTER(h); *out = (u32)whole(h->gpu, "pcie_kib_s", 180000); return OK; }
/* Windows only, yet every Linux driver has it. */
int nvmlDeviceGetDriverModel_v2(handle h, u32 *now, u32 *next) { ENTER(h); (void)now; (void)next; return NOT_SUPPORTED; }
NUMBER(nvmlDeviceGetPcieReplayCounter, u32, "pcie_replays", 0)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "reasons", 0)
#ifndef OLD_DRIVER
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "reasons", 0)
NUMBER(nvmlDeviceGetVirtualizationMode, u32, "virtualization", 0)
#endif
int nvmlDeviceGetFanSpeed(handle h, u32 *out) { (void)out; ENTER(h); return NOT_SUPPORTED; }

static u32 clock_of(handle h, u32 kind, const char *name) { return kind == 2 ? 3201 : (u32)whole(h->gpu, name, 1980); }
int nvmlDeviceGetClockInfo(handle h, u32 kind, u32 *out) { ENTER(h); *out = clock_of(h, kind, "sm_mhz"); return OK; }
int nvmlDeviceGetMaxClockInfo(handle h, u32 kind, u32 *out) { ENTER(h); *out = clock_of(h, kind, "sm_max_mhz"); return OK; }

int nvmlDeviceGetTotalEccErrors(handle h, u32 kind, u32 counter, u64 *out) {
  (void)counter; ENTER(h);
  *out = whole(h->gpu, kind ? "ecc_uncorrected" : "ecc_corrected", 0);
  return OK;
}
int nvmlDeviceGetMemoryErrorCounter(handle h, u32 kind, u32 counter, u32 place, u64 *out) { (void)place; return nvmlDeviceGetTotalEccErrors(h, kind, counter, out); }
int nvmlDeviceGetEccMode(handle h, u32 *now, u32 *next) { ENTER(h); *now = *next = 1; return OK; }
int nvmlDeviceGetRemappedRows(handle h, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
  ENTER(h);
  *corrected = 0; *uncorrected = (u32)whole(h->gpu, "remapped", 0);
  *pending = (u32)whole(h->gpu, "remap_pending", 0); *failed = (u32)whole(h->gpu, "remap_failed", 0);
  return OK;
}

int nvmlDeviceGetMigMode(handle h, u32 *now, u32 *next) { ENTER(h); *now = *next = whole(h->gpu, "mig", 0) > 0; return OK; }
int nvmlDeviceGetMaxMigDeviceCount(handle h, u32 *out) { ENTER(h); *out = SLICES; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(handle h, u32 index, handle *out) {
  ENTER(h);
  if (index >= SLICES || index >= whole(h->gpu, "mig", 0)) return NOT_FOUND;
  struct device *slice = &slices[h->gpu][index];
  slice->gpu = h->gpu; slice->mig = (int)index;
  *out = slice;
  return OK;
}
int nvmlDeviceIsMigDeviceHandle(handle h, u32 *out) { *out = h->mig >= 0; return OK; }
int nvmlDeviceGetGpuInstanceId(handle h, u32 *out) { ENTER(h); if (h->mig < 0) return NOT_SUPPORTED; *out = 3u + (u32)h->mig; return OK; }
int nvmlDeviceGetComputeInstanceId(handle h, u32 *out) { ENTER(h); if (h->mig < 0) return NOT_SUPPORTED; *out = 0; return OK; }

struct process { u32 pid; u64 memory; u32 gpu_instance, compute_instance; };
static int processes(handle h, u32 *count, struct process *out) {
  u32 pid = (u32)whole(h->gpu, "pid", 0);
  if (!pid) { *count = 0; return OK; }
  if (!out || *count < 1) { *count = 1; return TOO_SMALL; }
  *count = 1;
  out->pid = pid; out->memory = memory_used(h); out->gpu_instance = out->compute_instance = ~0u;
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(handle h, u32 *count, struct process *out) { ENTER(h); return processes(h, count, out); }
int nvmlDeviceGetComputeRunningProcesses_v2(handle h, u32 *count, struct process *out) { ENTER(h); return processes(h, count, out); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(handle h, u32 *count, struct process *out) { (void)out; ENTER(h); *count = 0; return OK; }
int nvmlDeviceGetGraphicsRunningProcesses_v2(handle h, u32 *count, struct process *out) { (void)out; ENTER(h); *count = 0; return OK; }
struct sample { u32 pid; u64 at; u32 sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(handle h, struct sample *out, u32 *count, u64 since) {
  ENTER(h);
  u32 pid = (u32)whole(h->gpu, "pid", 0);
  if (!pid) { *count = 0; return OK; }
  if (!out || *count < 1) { *count = 1; return TOO_SMALL; }
  *count = 1;
  *out = (struct sample){pid, since + 1, 91, 40, 0, 0};
  return OK;
}
int nvmlDeviceGetCudaComputeCapability(handle h, int *major, int *minor) { ENTER(h); *major = 9; *minor = 0; return OK; }
int nvmlDeviceGetNvLinkState(handle h, u32 link, u32 *out) { ENTER(h); if (link >= 18) return BAD_ARGUMENT; *out = 1; return OK; }
int nvmlDeviceGetNvLinkErrorCounter(handle h, u32 link, u32 counter, u64 *out) { (void)link; ENTER(h); *out = counter == 2 ? whole(h->gpu, "nvlink_crc", 0) : 0; return OK; }

struct value { u32 field, scope; long long at, latency; u32 type; int code; u64 whole; };
int nvmlDeviceGetFieldValues(handle h, int count, struct value *out) {
  ENTER(h);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (int i = 0; i < count; i++) {
    char name[KEY];
    snprintf(name, KEY, "field.%u", out[i].field);
    const struct entry *entry = look(h->gpu, name);
    if (entry && entry->number < 0) continue; /* left as the caller gave it */
    snprintf(name, KEY, "field_per_s.%u", out[i].field);
    const struct entry *grows = look(h->gpu, name);
    int is_throttle = out[i].field >= 269 && out[i].field <= 271;
    out[i].type = 3;
    out[i].code = entry || grows || is_throttle ? OK : NOT_SUPPORTED;
    out[i].whole = entry ? entry->whole : 0;
    if (grows) out[i].whole += (u64)(grows->number * ((double)(now.tv_sec % 1000000) + (double)now.tv_nsec / 1e9));
  }
  return OK;
}
