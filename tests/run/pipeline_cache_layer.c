/* A Vulkan layer whose pipeline cache keeps something, for tests: software drivers return a header and nothing else.

   As the specification says of VkPipelineCache: vkGetPipelineCacheData gives the driver's own header and what was put
   in, here a hash of the code of each compute shader; vkCreatePipelineCache takes such data; and the feedback of a
   pipeline says VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT where its shader was in the cache.
   Where it was not, VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT gives VK_PIPELINE_COMPILE_REQUIRED. The
   driver itself makes each pipeline without a cache.

   Environment, read when a device is created:
     CACHE_LAYER_LOG   file that a line is added to for each cache that is created, with the number of its shaders
     CACHE_LAYER_DOES  "refuse": a cache with initial data cannot be created; "silent": pipelines have no feedback;
                       "old": the device is one of Vulkan 1.2, where feedback is an extension

   What is declared here is the binary interface of Vulkan; handles are pointers on the 64-bit systems
   where the tests run. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader_interface.h"

typedef struct { int32_t type; const void *next; uint32_t flags; size_t size; const char *data; } Info; /* of a cache and of a module */
typedef struct { uint32_t flags; uint64_t duration; } Feedback;
typedef struct { int32_t type; const void *next; Feedback *whole; uint32_t count; Feedback *stages; } FeedbackInfo;

enum { INCOMPLETE = 5, FEEDBACK = 1000192000, HEADER = 32, MOST = 1024 };
enum { VALID = 1, HIT = 2 };

typedef struct { size_t count; uint64_t hashes[MOST]; } Cache;
typedef struct { Handle module; uint64_t hash; } Module;
static Module modules[MOST];
static size_t module_count;
static GetProcAddr next_instance;
static Handle last_instance;
static char header[HEADER];
static void (*properties_below)(Handle, uint32_t *);

static int does(const char *word) {
  const char *text = getenv("CACHE_LAYER_DOES");
  return text && !strcmp(text, word);
}

#define BELOW(result, name, ...) ((result (*)(__VA_ARGS__))next_device(device, name))

static VkResult layer_vkCreatePipelineCache(Handle owner, const Info *info, const void *allocator, Handle *out) {
  (void)owner; (void)allocator;
  const char *path = getenv("CACHE_LAYER_LOG");
  if (info->size && does("refuse")) return -3; /* VK_ERROR_INITIALIZATION_FAILED */
  Cache *cache = calloc(1, sizeof *cache);
  if (!cache) return -1;
  if (info->size >= HEADER && !memcmp(info->data, header, HEADER)) {
    cache->count = (info->size - HEADER) / sizeof *cache->hashes;
    if (cache->count > MOST || info->size != HEADER + cache->count * sizeof *cache->hashes) abort(); /* as a driver may */
    memcpy(cache->hashes, info->data + HEADER, cache->count * sizeof *cache->hashes);
  } else if (info->size) abort();
  if (path && *path) {
    FILE *file = fopen(path, "a");
    fprintf(file, "%zu\n", cache->count);
    fclose(file);
  }
  *out = cache;
  return 0;
}

static void layer_vkDestroyPipelineCache(Handle owner, Handle cache, const void *allocator) {
  (void)owner; (void)allocator;
  free(cache);
}

static VkResult layer_vkGetPipelineCacheData(Handle owner, Cache *cache, size_t *size, char *data) {
  (void)owner;
  size_t there = HEADER + cache->count * sizeof *cache->hashes;
  if (!data) { *size = there; return 0; }
  if (*size < there) { *size = 0; return INCOMPLETE; }
  *size = there;
  memcpy(data, header, HEADER);
  memcpy(data + HEADER, cache->hashes, there - HEADER);
  return 0;
}

static VkResult layer_vkMergePipelineCaches(Handle owner, Cache *into, uint32_t count, Cache *const *others) {
  (void)owner;
  for (uint32_t i = 0; i < count; i++) {
    for (size_t k = 0; k < others[i]->count; k++) {
      size_t at = 0;
      while (at < into->count && into->hashes[at] != others[i]->hashes[k]) at++;
      if (at == into->count && at < MOST) into->hashes[into->count++] = others[i]->hashes[k];
    }
  }
  return 0;
}

static VkResult layer_vkCreateShaderModule(Handle owner, const Info *info, const void *allocator, Handle *out) {
  VkResult code = BELOW(VkResult, "vkCreateShaderModule", Handle, const Info *, const void *, Handle *)(owner, info, allocator, out);
  if (code < 0) return code;
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < info->size; i++) hash = (hash ^ (unsigned char)info->data[i]) * 1099511628211ull;
  modules[module_count++ % MOST] = (Module){*out, hash};
  return code;
}

static uint64_t hash_of(Handle module) {
  for (size_t i = module_count < MOST ? module_count : MOST; i-- > 0;) if (modules[i].module == module) return modules[i].hash;
  abort();
}

static VkResult layer_vkCreateComputePipelines(Handle owner, Cache *cache, uint32_t count, const char *infos, const void *allocator, Handle *out) {
  enum { SIZE = 96, FLAGS = 16, MODULE = 48 }; /* VkComputePipelineCreateInfo on 64-bit systems, its flags, and its stage's shader module */
  enum { FAIL = 0x100, COMPILE_REQUIRED = 1000297000 }; /* VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT */
  char info[SIZE];
  if (count != 1) abort();
  memcpy(info, infos, SIZE);
  uint32_t *flags = (uint32_t *)(info + FLAGS);
  uint64_t hash = hash_of(*(const Handle *)(info + MODULE));
  int hit = 0;
  for (size_t k = 0; cache && k < cache->count; k++) hit |= cache->hashes[k] == hash;
  if (*flags & FAIL && !hit) { *out = NULL; return COMPILE_REQUIRED; }
  *flags &= ~FAIL; /* the driver below keeps nothing */
  VkResult code = BELOW(VkResult, "vkCreateComputePipelines", Handle, Handle, uint32_t, const char *, const void *, Handle *)(
      owner, NULL, 1, info, allocator, out);
  if (code < 0) return code;
  if (cache && !hit && cache->count < MOST) cache->hashes[cache->count++] = hash;
  for (const Base *each = ((const Base *)info)->next; each; each = each->next) {
    const FeedbackInfo *feedback = (const FeedbackInfo *)each;
    if (each->type == FEEDBACK) {
      if (feedback->count && feedback->count != 1) abort();
      *feedback->whole = (Feedback){does("silent") ? 0 : VALID | (hit ? HIT : 0), 1000};
    }
  }
  return code;
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  GetProcAddr below;
  VkResult code = create_instance(info, allocator, out, &below);
  if (code >= 0) {
    next_instance = below;
    last_instance = *out;
    /* taken while the instance is made: later the loader answers with the top of the chain */
    properties_below = (void (*)(Handle, uint32_t *))below(*out, "vkGetPhysicalDeviceProperties");
  }
  return code;
}

static void layer_vkGetPhysicalDeviceProperties(Handle physical, uint32_t *properties) {
  properties_below(physical, properties);
  if (does("old")) *properties = 1u << 22 | 2u << 12; /* apiVersion */
}

static VkResult layer_vkCreateDevice(Handle physical, const void *info, const void *allocator, Handle *out) {
  VkResult code = create_device(last_instance, physical, info, allocator, out);
  if (code < 0) return code;
  /* The header is the driver's own: vendor, device and UUID. */
  Info empty = {17, NULL, 0, 0, NULL};
  Handle cache = NULL;
  size_t size = HEADER;
  BELOW(VkResult, "vkCreatePipelineCache", Handle, const Info *, const void *, Handle *)(device, &empty, NULL, &cache);
  code = BELOW(VkResult, "vkGetPipelineCacheData", Handle, Handle, size_t *, char *)(device, cache, &size, header);
  if (code < 0 || size != HEADER) abort();
  BELOW(void, "vkDestroyPipelineCache", Handle, Handle, const void *)(device, cache, NULL);
  return 0;
}

static const Entry instance_functions[] = {
  ENTRY(vkCreateInstance) ENTRY(vkCreateDevice) ENTRY(vkGetPhysicalDeviceProperties)
};
static const Entry device_functions[] = {
  ENTRY(vkCreatePipelineCache) ENTRY(vkDestroyPipelineCache) ENTRY(vkGetPipelineCacheData) ENTRY(vkCreateShaderModule)
  ENTRY(vkMergePipelineCaches)
  ENTRY(vkCreateComputePipelines)
};

GET_FUNCTIONS(next_instance)
