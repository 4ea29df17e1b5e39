// A CUDA driver without a GPU: memory is the host's, kernels compute nothing,
// every launch is written to $FAKE_CUDA_LOG.
//
// Compiled against the real cuda.h, so that calls with wrong types or numbers
// show. $FAKE_CUDA_ARCH is the compute capability times 10, $FAKE_CUDA_FAULT
// makes launches "hang", "die" or "fail".
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

#undef cuEventElapsedTime

namespace {

std::string setting(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

int arch() { return std::atoi(setting("FAKE_CUDA_ARCH").c_str()); }

FILE *logFile() {
  static FILE *file = std::fopen(setting("FAKE_CUDA_LOG").c_str(), "a");
  return file;
}

void logLine(const std::string &text) {
  std::fprintf(logFile(), "%s\n", text.c_str());
  std::fflush(logFile());
}

int clockTicks = 0;

} // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  return flags == 0 && arch() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
CUresult cuDeviceGet(CUdevice *device, int index) {
  *device = index;
  return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(0x77);
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  return context == reinterpret_cast<CUcontext>(0x77)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = reinterpret_cast<CUcontext>(0x77);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  std::snprintf(name, size, "Fake GPU");
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) {
  *version = 12040;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = arch() / 10;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = arch() % 10;
    break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    *value = 1'500'000;
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  *address = reinterpret_cast<CUdeviceptr>(
      std::aligned_alloc(256, (size + 255) / 256 * 256));
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  std::free(reinterpret_cast<void *>(address));
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  std::memcpy(reinterpret_cast<void *>(to), from, size);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  std::memcpy(to, reinterpret_cast<void *>(from), size);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t size) {
  std::memset(reinterpret_cast<void *>(to), value, size);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **memory, size_t size) {
  *memory = std::malloc(size);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size,
                              CUstream) {
  return cuMemcpyDtoH_v2(to, from, size);
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned, int) {
  *stream = reinterpret_cast<CUstream>(0x99);
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  *module = reinterpret_cast<CUmodule>(0x88);
  return std::memcmp(image,
                     "\x7f"
                     "ELF",
                     4) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  *function = reinterpret_cast<CUfunction>(strdup(name));
  return module == reinterpret_cast<CUmodule>(0x88) ? CUDA_SUCCESS
                                                    : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  const char *name =
      attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? "shared"
      : attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
          ? "cluster"
          : "other";
  logLine("allow " + std::string(reinterpret_cast<const char *>(function)) +
          " " + name + "=" + std::to_string(value));
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS           ? 96
           : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? 16
                                                             : -1;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *shape, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  if (reinterpret_cast<uintptr_t>(map) % 64 ||
      reinterpret_cast<uintptr_t>(address) % 16 || rank > 5 ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      promotion != CU_TENSOR_MAP_L2_PROMOTION_L2_128B)
    return CUDA_ERROR_INVALID_VALUE;
  std::string text = "map type=" + std::to_string(type) +
                     " swizzle=" + std::to_string(swizzle) +
                     " fill=" + std::to_string(fill) + " shape=";
  for (unsigned dim = 0; dim < rank; ++dim)
    text += std::to_string(shape[dim]) + ",";
  text += " strides=";
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    text += std::to_string(strides[dim]) + ",";
  text += " box=";
  for (unsigned dim = 0; dim < rank; ++dim)
    text += std::to_string(box[dim] * steps[dim]) + ",";
  logLine(text);
  std::memset(map, 0xAB, sizeof *map);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **parameters, void **) {
  std::string text = "launch " +
                     std::string(reinterpret_cast<const char *>(function)) +
                     " grid=" + std::to_string(config->gridDimX) + "," +
                     std::to_string(config->gridDimY) + "," +
                     std::to_string(config->gridDimZ) +
                     " block=" + std::to_string(config->blockDimX) +
                     " shared=" + std::to_string(config->sharedMemBytes);
  for (unsigned index = 0; index < config->numAttrs; ++index) {
    const CUlaunchAttribute &attribute = config->attrs[index];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      text += " cluster=" + std::to_string(attribute.value.clusterDim.x) + "," +
              std::to_string(attribute.value.clusterDim.y) + "," +
              std::to_string(attribute.value.clusterDim.z);
    else if (attribute.id ==
             CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
      text +=
          " spread=" +
          std::to_string(attribute.value.clusterSchedulingPolicyPreference ==
                         CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
    else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      text += " cooperative=" + std::to_string(attribute.value.cooperative);
    else if (attribute.id ==
             CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      text += " dependent=" +
              std::to_string(
                  attribute.value.programmaticStreamSerializationAllowed);
    else
      text += " attribute" + std::to_string(attribute.id);
  }
  // The driver knows from the binary how many parameters there are; here the
  // first few have to do.
  const int wanted = std::atoi(setting("FAKE_CUDA_PARAMETERS").c_str());
  for (int index = 0; index < wanted; ++index) {
    cuuint64_t value = 0;
    std::memcpy(&value, parameters[index], 4);
    char hex[32];
    std::snprintf(hex, sizeof hex, " %08llx",
                  static_cast<unsigned long long>(value));
    text += hex;
  }
  logLine(text);
  const std::string fault = setting("FAKE_CUDA_FAULT");
  return fault == "fail" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  const std::string fault = setting("FAKE_CUDA_FAULT");
  if (fault == "hang")
    sleep(600);
  if (fault == "die")
    std::_Exit(9);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new int(0));
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream) {
  *reinterpret_cast<int *>(event) = ++clockTicks;
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  *milliseconds = 0.25F * static_cast<float>(*reinterpret_cast<int *>(end) -
                                             *reinterpret_cast<int *>(start));
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<int *>(event);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_LAUNCH_FAILED ? "unspecified launch failure"
                                            : "another error";
  return CUDA_SUCCESS;
}

} // extern "C"
