/* A Vulkan layer that makes one call fail, for tests: no mock, the program and the driver below are the real ones.

   Environment, read when an instance is created:
     FAULT_AT      which of the calls counted below fails, from 1 on (0 or unset: none)
     FAULT_CALL    count only calls of this name
     FAULT_RESULT  the VkResult that the failing call returns (default -4, VK_ERROR_DEVICE_LOST)
     FAULT_SIGNAL  the failing call raises this signal instead, as a crash of the driver does
     FAULT_POINTER a number: a failing vkMapMemory returns VK_SUCCESS with this address instead of FAULT_RESULT
     FAULT_STAYS   1: every later counted call of the same name fails as well
     FAULT_QUEUES  VkQueueFlags that no queue family has (1: a device without graphics)
     FAULT_FORMAT_FEATURES  VkFormatFeatureFlags that no format of an image has
     FAULT_TIMESTAMP_BITS  the timestampValidBits of every queue family
     FAULT_TYPE    VkPhysicalDeviceType that devices report (so that a software driver passes for a discrete GPU)
     FAULT_IMAGE_MEMORY_TYPES  the memory types (VkMemoryRequirements::memoryTypeBits) that images can be bound to
     FAULT_LOG     file that one line per counted call is added to, and the objects that were never destroyed

   A failing call does not reach the driver, except vkWaitForFences: it fails after the work has really finished, or,
   with FAULT_RESULT 2 (VK_TIMEOUT), says that it has not. What is declared here is the binary interface of Vulkan 1.0
   and of the loader (its LoaderLayerInterface document, version 2); handles are pointers on the 64-bit systems where
   the tests run. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader_interface.h"

enum { TIMEOUT = 2 };

/* Of each instance the calls below, taken while it is made: later the loader answers with the top of the chain. An
   instance and its physical devices begin with the same pointer, by which the loader tells layers whose they are. */
typedef struct { const void *key; Handle instance; GetProcAddr next; Function destroy, enumerate, extensions, properties, queues, formats; } Below;
enum { MOST_INSTANCES = 4 };
static Below instances[MOST_INSTANCES];

static Below *below_of(Handle object) {
  for (int i = 0; i < MOST_INSTANCES; i++)
    if (instances[i].key == *(const void **)object) return &instances[i];
  return NULL;
}

static FILE *log_file;
static long at, count;
static const char *wanted, *pointer;
static VkResult result;
static int stays, type_override, crash;
static uint32_t lacking_queues, lacking_features;
static long timestamp_bits;
static long image_memory_types;
static char failed[64];

static long number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static void configure(void) {
  const char *path = getenv("FAULT_LOG");
  at = number("FAULT_AT", 0);
  wanted = getenv("FAULT_CALL");
  pointer = getenv("FAULT_POINTER");
  result = (VkResult)number("FAULT_RESULT", -4);
  crash = (int)number("FAULT_SIGNAL", 0);
  stays = (int)number("FAULT_STAYS", 0);
  type_override = (int)number("FAULT_TYPE", -1);
  lacking_queues = (uint32_t)number("FAULT_QUEUES", 0);
  lacking_features = (uint32_t)number("FAULT_FORMAT_FEATURES", 0);
  timestamp_bits = number("FAULT_TIMESTAMP_BITS", -1);
  image_memory_types = number("FAULT_IMAGE_MEMORY_TYPES", -1);
  count = 0;
  failed[0] = 0;
  if (log_file) fclose(log_file);
  log_file = path && *path ? fopen(path, "a") : NULL;
}

/* Counts a call and says whether it is to fail. */
static int fails(const char *name) {
  if (wanted && *wanted && strcmp(wanted, name)) return 0;
  count++;
  int now = count == at || (stays && failed[0] && !strcmp(failed, name));
  if (now) snprintf(failed, sizeof failed, "%s", name);
  if (log_file) { fprintf(log_file, "%s%s\n", name, now ? " FAILS" : ""); fflush(log_file); }
  if (now && crash) raise(crash);
  return now;
}

#define KINDS(X) X(Buffer) X(Image) X(ImageView) X(Sampler) X(Memory) X(DescriptorSetLayout) X(PipelineLayout) \
  X(ShaderModule) X(Pipeline) X(DescriptorPool) X(CommandPool) X(Fence) X(Semaphore) X(QueryPool) X(Device)
#define AS_ENUM(kind) kind,
#define AS_NAME(kind) #kind,
enum { KINDS(AS_ENUM) KIND_COUNT };
static const char *const kind_names[] = { KINDS(AS_NAME) };
static long alive[KIND_COUNT];

static void report_alive(void) {
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    if (log_file && alive[kind]) fprintf(log_file, "ALIVE %s %ld\n", kind_names[kind], alive[kind]);
    alive[kind] = 0;
  }
  if (log_file) { fprintf(log_file, "END\n"); fclose(log_file); log_file = NULL; }
}

#define DEVICE_FUNCTION(name) next_device(device, name)

/* vkCreate...(device, info, allocator, out) and vkDestroy...(device, object, allocator) */
#define OBJECT(kind, create, destroy) \
  static VkResult layer_##create(Handle owner, const void *info, const void *allocator, void *out) { \
    if (fails(#create)) return result; \
    VkResult code = ((VkResult (*)(Handle, const void *, const void *, void *))DEVICE_FUNCTION(#create))(owner, info, allocator, out); \
    if (code >= 0) alive[kind]++; \
    return code; \
  } \
  static void layer_##destroy(Handle owner, Handle object, const void *allocator) { \
    if (object) alive[kind]--; \
    ((void (*)(Handle, Handle, const void *))DEVICE_FUNCTION(#destroy))(owner, object, allocator); \
  }
#define OBJECTS(X) \
  X(Buffer, vkCreateBuffer, vkDestroyBuffer) X(Image, vkCreateImage, vkDestroyImage) \
  X(ImageView, vkCreateImageView, vkDestroyImageView) X(Sampler, vkCreateSampler, vkDestroySampler) \
  X(Memory, vkAllocateMemory, vkFreeMemory) \
  X(DescriptorSetLayout, vkCreateDescriptorSetLayout, vkDestroyDescriptorSetLayout) \
  X(PipelineLayout, vkCreatePipelineLayout, vkDestroyPipelineLayout) \
  X(ShaderModule, vkCreateShaderModule, vkDestroyShaderModule) \
  X(DescriptorPool, vkCreateDescriptorPool, vkDestroyDescriptorPool) \
  X(CommandPool, vkCreateCommandPool, vkDestroyCommandPool) X(Fence, vkCreateFence, vkDestroyFence) \
  X(Semaphore, vkCreateSemaphore, vkDestroySemaphore) X(QueryPool, vkCreateQueryPool, vkDestroyQueryPool)
OBJECTS(OBJECT)

static VkResult layer_vkCreateComputePipelines(Handle owner, Handle cache, uint32_t pipelines, const void *infos,
                                               const void *allocator, void *out) {
  if (fails("vkCreateComputePipelines")) return result;
  VkResult code = ((VkResult (*)(Handle, Handle, uint32_t, const void *, const void *, void *))DEVICE_FUNCTION(
      "vkCreateComputePipelines"))(owner, cache, pipelines, infos, allocator, out);
  if (code >= 0) alive[Pipeline] += pipelines;
  return code;
}

static VkResult layer_vkCreateGraphicsPipelines(Handle owner, Handle cache, uint32_t pipelines, const void *infos,
                                                const void *allocator, void *out) {
  if (fails("vkCreateGraphicsPipelines")) return result;
  VkResult code = ((VkResult (*)(Handle, Handle, uint32_t, const void *, const void *, void *))DEVICE_FUNCTION(
      "vkCreateGraphicsPipelines"))(owner, cache, pipelines, infos, allocator, out);
  if (code >= 0) alive[Pipeline] += pipelines;
  return code;
}

/* Of VK_ARM_data_graph, where the device below has it. */
static VkResult layer_vkCreateDataGraphPipelinesARM(Handle owner, Handle deferred, Handle cache, uint32_t pipelines,
                                                    const void *infos, const void *allocator, Handle *out) {
  if (fails("vkCreateDataGraphPipelinesARM")) return result;
  VkResult code = ((VkResult (*)(Handle, Handle, Handle, uint32_t, const void *, const void *, Handle *))DEVICE_FUNCTION(
      "vkCreateDataGraphPipelinesARM"))(owner, deferred, cache, pipelines, infos, allocator, out);
  if (code >= 0) alive[Pipeline] += pipelines;
  return code;
}

static void layer_vkDestroyPipeline(Handle owner, Handle object, const void *allocator) {
  if (object) alive[Pipeline]--;
  ((void (*)(Handle, Handle, const void *))DEVICE_FUNCTION("vkDestroyPipeline"))(owner, object, allocator);
}

/* Calls with two, three, ... arguments of which nothing is looked at. */
typedef uint64_t A;
#define CALL2(name) static VkResult layer_##name(A a, A b) { \
  return fails(#name) ? result : ((VkResult (*)(A, A))DEVICE_FUNCTION(#name))(a, b); }
#define CALL3(name) static VkResult layer_##name(A a, A b, A c) { \
  return fails(#name) ? result : ((VkResult (*)(A, A, A))DEVICE_FUNCTION(#name))(a, b, c); }
#define CALL4(name) static VkResult layer_##name(A a, A b, A c, A d) { \
  return fails(#name) ? result : ((VkResult (*)(A, A, A, A))DEVICE_FUNCTION(#name))(a, b, c, d); }
CALL2(vkBeginCommandBuffer)
CALL3(vkResetFences)
CALL3(vkAllocateCommandBuffers)
CALL3(vkAllocateDescriptorSets)
CALL4(vkBindBufferMemory)
CALL4(vkBindImageMemory)
CALL4(vkQueueSubmit)

typedef struct { uint64_t size, alignment; uint32_t types; } MemoryRequirements;
static void layer_vkGetImageMemoryRequirements(Handle owner, A image, MemoryRequirements *needs) {
  ((void (*)(Handle, A, MemoryRequirements *))DEVICE_FUNCTION("vkGetImageMemoryRequirements"))(owner, image, needs);
  if (image_memory_types >= 0) needs->types = (uint32_t)image_memory_types;
}

static VkResult layer_vkMapMemory(A owner, A memory, A offset, A size, A flags, void **out) {
  if (!fails("vkMapMemory"))
    return ((VkResult (*)(A, A, A, A, A, void **))DEVICE_FUNCTION("vkMapMemory"))(owner, memory, offset, size, flags, out);
  if (!pointer || !*pointer) return result;
  *out = (void *)strtol(pointer, NULL, 10);
  return 0;
}

static VkResult layer_vkEndCommandBuffer(Handle commands) {
  return fails("vkEndCommandBuffer") ? result
                                     : ((VkResult (*)(Handle))DEVICE_FUNCTION("vkEndCommandBuffer"))(commands);
}

static VkResult layer_vkWaitForFences(Handle owner, uint32_t fences, const Handle *which, uint32_t all, uint64_t wait) {
  VkResult (*below)(Handle, uint32_t, const Handle *, uint32_t, uint64_t) =
      (VkResult (*)(Handle, uint32_t, const Handle *, uint32_t, uint64_t))DEVICE_FUNCTION("vkWaitForFences");
  VkResult code = below(owner, fences, which, all, wait);
  /* One that times out will be made again. It is not counted: how many there are depends on how busy the machine is. */
  return code == TIMEOUT || !fails("vkWaitForFences") ? code : result;
}

static void layer_vkDestroyDevice(Handle which, const void *allocator) {
  if (!which) return;
  if (crash) fails("vkDestroyDevice"); /* it has no other way to */
  ((void (*)(Handle, const void *))next_device(which, "vkDestroyDevice"))(which, allocator);
  alive[Device]--;
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  configure(); /* again with every instance: more than one at a time are only counted, none of their calls fails */
  if (fails("vkCreateInstance")) return result;
  GetProcAddr next;
  VkResult code = create_instance(info, allocator, out, &next);
  if (code < 0) return code;
  for (int i = 0; i < MOST_INSTANCES; i++)
    if (!instances[i].key) {
      instances[i] = (Below){ *(const void **)*out, *out, next, next(*out, "vkDestroyInstance"),
                              next(*out, "vkEnumeratePhysicalDevices"),
                              next(*out, "vkEnumerateDeviceExtensionProperties"),
                              next(*out, "vkGetPhysicalDeviceProperties"),
                              next(*out, "vkGetPhysicalDeviceQueueFamilyProperties"),
                              next(*out, "vkGetPhysicalDeviceFormatProperties") };
      return code;
    }
  return -3;
}

static void layer_vkDestroyInstance(Handle which, const void *allocator) {
  if (!which) return;
  Below *below = below_of(which);
  Function destroy = below->destroy;
  below->key = NULL;
  ((void (*)(Handle, const void *))destroy)(which, allocator);
  for (int i = 0; i < MOST_INSTANCES; i++)
    if (instances[i].key) return;
  report_alive();
}

static VkResult layer_vkCreateDevice(Handle physical, const void *info, const void *allocator, Handle *out) {
  if (fails("vkCreateDevice")) return result;
  VkResult code = create_device(below_of(physical)->instance, physical, info, allocator, out);
  if (code >= 0) alive[Device]++;
  return code;
}

static VkResult layer_vkEnumeratePhysicalDevices(Handle which, uint32_t *number_of, Handle *out) {
  if (fails("vkEnumeratePhysicalDevices")) return result;
  return ((VkResult (*)(Handle, uint32_t *, Handle *))below_of(which)->enumerate)(which, number_of, out);
}

static VkResult layer_vkEnumerateDeviceExtensionProperties(Handle physical, const char *layer, uint32_t *number_of,
                                                           void *out) {
  if (fails("vkEnumerateDeviceExtensionProperties")) return result;
  return ((VkResult (*)(Handle, const char *, uint32_t *, void *))below_of(physical)->extensions)(physical, layer, number_of, out);
}

static void layer_vkGetPhysicalDeviceProperties(Handle physical, uint32_t *properties) {
  ((void (*)(Handle, uint32_t *))below_of(physical)->properties)(physical, properties);
  if (type_override >= 0) properties[4] = (uint32_t)type_override; /* VkPhysicalDeviceProperties::deviceType */
}

/* VkQueueFamilyProperties are six words, the first of them the flags. */
static void layer_vkGetPhysicalDeviceQueueFamilyProperties(Handle physical, uint32_t *number_of, uint32_t *families) {
  ((void (*)(Handle, uint32_t *, uint32_t *))below_of(physical)->queues)(physical, number_of, families);
  for (uint32_t i = 0; families && i < *number_of; i++) {
    families[6 * i] &= ~lacking_queues;
    if (timestamp_bits >= 0) families[6 * i + 2] = (uint32_t)timestamp_bits;
  }
}

/* VkFormatProperties are the features with linear and with optimal tiling, and those of buffers. */
static void layer_vkGetPhysicalDeviceFormatProperties(Handle physical, int32_t format, uint32_t *features) {
  ((void (*)(Handle, int32_t, uint32_t *))below_of(physical)->formats)(physical, format, features);
  features[0] &= ~lacking_features;
  features[1] &= ~lacking_features;
}

#define OBJECT_ENTRIES(kind, create, destroy) ENTRY(create) ENTRY(destroy)
static const Entry instance_functions[] = {
  ENTRY(vkCreateInstance) ENTRY(vkDestroyInstance) ENTRY(vkCreateDevice) ENTRY(vkEnumeratePhysicalDevices)
  ENTRY(vkEnumerateDeviceExtensionProperties) ENTRY(vkGetPhysicalDeviceProperties)
  ENTRY(vkGetPhysicalDeviceQueueFamilyProperties) ENTRY(vkGetPhysicalDeviceFormatProperties)
}, device_functions[] = {
  OBJECTS(OBJECT_ENTRIES)
  ENTRY(vkCreateComputePipelines) ENTRY(vkCreateGraphicsPipelines) ENTRY(vkDestroyPipeline) ENTRY(vkBeginCommandBuffer) ENTRY(vkEndCommandBuffer)
  ENTRY(vkResetFences) ENTRY(vkAllocateCommandBuffers) ENTRY(vkAllocateDescriptorSets) ENTRY(vkBindBufferMemory)
  ENTRY(vkBindImageMemory) ENTRY(vkGetImageMemoryRequirements) ENTRY(vkQueueSubmit) ENTRY(vkMapMemory) ENTRY(vkWaitForFences) ENTRY(vkDestroyDevice)
};

static Function layer_get_instance(Handle which, const char *name) {
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (Function)layer_get_instance;
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (Function)layer_get_device;
  FIND(instance_functions);
  FIND(device_functions);
  return which && below_of(which) ? below_of(which)->next(which, name) : NULL;
}

static Function layer_get_device(Handle which, const char *name) {
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (Function)layer_get_device;
  FIND(device_functions);
  if (!strcmp(name, "vkCreateDataGraphPipelinesARM"))
    return which && next_device && next_device(which, name) ? (Function)layer_vkCreateDataGraphPipelinesARM : NULL;
  return which && next_device ? next_device(which, name) : NULL;
}
