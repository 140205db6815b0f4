/* A Vulkan layer that brings VK_ARM_shader_instrumentation to any device, for tests: no device that has it was at hand.

   Its values come from what it is told, not from what a test hopes for: it follows which pipelines were made with
   VK_PIPELINE_CREATE_2_INSTRUMENT_SHADERS_BIT_ARM, which of them is bound, which dispatches are recorded between
   vkCmdBeginShaderInstrumentationARM and vkCmdEndShaderInstrumentationARM, and how often each of those command buffers
   is submitted. Each result has two basic blocks with two metrics each:

     block 0: "Workgroups" = x * y * z * submissions        "Submissions" = submissions
     block 1: "Workgroups" = x * submissions                "Submissions" = 0

   Environment, read when an instance is created:
     INSTRUMENTATION_LOG   file that calls of the extension, and those that break its rules (WRONG ...), are added to
     INSTRUMENTATION_LACKS "feature", "maintenance5": what the device does not have
     INSTRUMENTATION_LIES  "metrics": vkEnumerate... gives another number than the properties; "blocks": as many as fit;
                           "lost": the third reading of values in a process loses the device
                           "crash": the third reading of values in a process ends it

   What is declared here is the binary interface of Vulkan; handles are pointers on the 64-bit systems
   where the tests run. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HAS_PHYSICAL_COMMANDS
#include "loader_interface.h"

typedef struct { char name[256]; uint32_t revision; } Extension;
typedef struct { int32_t type; void *next; uint32_t enabled; } Feature;
typedef struct { int32_t type; void *next; uint32_t metrics, per_block; } Properties;
typedef struct { int32_t type; void *next; char name[256], description[256]; } Description;
typedef struct { int32_t type; void *next; uint64_t flags; } Flags2;
typedef struct { uint32_t result, sub, stages, block; uint64_t values[2]; } Values;

enum { INCOMPLETE = 5, METRICS = 2, COMPUTE = 0x20 };
enum { VULKAN14 = 55, MAINTENANCE5 = 1000470000, FLAGS2 = 1000470005, FEATURES = 1000607000, PROPERTIES, CREATE_INFO, DESCRIPTION };
#define INSTRUMENT 0x8000000000ull
/* Maintenance5 is a feature of its own extension, and of VkPhysicalDeviceVulkan14Features, where it is the 16th. */
typedef struct { int32_t type; void *next; uint32_t before[15], maintenance5; } Vulkan14;

static const Extension extensions[] = {{"VK_ARM_shader_instrumentation", 1}, {"VK_KHR_maintenance5", 1}};
/* Several instances may live at once, one device. The calls below an instance are taken while it is made: later the
   loader answers with the top of the chain. An instance and its physical devices begin with the same pointer. */
typedef struct { void *key; Handle handle; GetProcAddr next; Function destroy, extensions, features, properties; } Instance;
static Instance instances[64];
static size_t instance_count;
static FILE *log_file;
static const char *lacks, *lies;
static int enabled;

#define LOG(...) do { if (log_file) { fprintf(log_file, __VA_ARGS__); fputc('\n', log_file); fflush(log_file); } } while (0)

/* What was recorded: one entry for each dispatch that was instrumented. */
enum { MOST = 4096 };
typedef struct { Handle object, commands; uint32_t index, x, y, z, submissions; } Record;
static Record records[MOST];
static size_t record_count;
typedef struct { Handle commands, object; int instrumented; uint32_t next_index; } Commands;
static Commands buffers[64];
static size_t buffer_count;
static Handle pipelines[MOST];
static size_t pipeline_count;
static long objects;

static Commands *commands_of(Handle handle) {
  for (size_t i = 0; i < buffer_count; i++) if (buffers[i].commands == handle) return &buffers[i];
  if (buffer_count == sizeof buffers / sizeof *buffers) abort();
  buffers[buffer_count].commands = handle;
  return &buffers[buffer_count++];
}

static void forget(Handle commands) {
  size_t kept = 0;
  for (size_t i = 0; i < record_count; i++) if (records[i].commands != commands) records[kept++] = records[i];
  record_count = kept;
}

static Instance *instance_of(Handle handle) {
  for (size_t i = instance_count; i-- > 0;) if (handle && instances[i].key == *(void **)handle) return &instances[i];
  return NULL;
}

static int is(const char *text, const char *word) { return text && !strcmp(text, word); }

static VkResult layer_vkCreateShaderInstrumentationARM(Handle owner, const Base *info, const void *allocator, Handle *out) {
  (void)owner; (void)allocator;
  if (info->type != CREATE_INFO) LOG("WRONG sType of the create info");
  *out = malloc(1);
  objects++;
  LOG("create");
  return 0;
}

static void layer_vkDestroyShaderInstrumentationARM(Handle owner, Handle object, const void *allocator) {
  (void)owner; (void)allocator;
  free(object);
  objects--;
  LOG("destroy");
}

static void layer_vkCmdBeginShaderInstrumentationARM(Handle handle, Handle object) {
  Commands *commands = commands_of(handle);
  if (commands->object) LOG("WRONG begin inside of begin");
  commands->object = object;
  LOG("begin");
}

static void layer_vkCmdEndShaderInstrumentationARM(Handle handle) {
  Commands *commands = commands_of(handle);
  if (!commands->object) LOG("WRONG end without begin");
  commands->object = NULL;
  LOG("end");
}

static VkResult layer_vkGetShaderInstrumentationValuesARM(Handle owner, Handle object, uint32_t *count, void *out, uint32_t flags) {
  (void)owner;
  uint32_t found = 0, room = *count;
  Values *values = out;
  static int readings;
  if (values) readings++;
  if (is(lies, "lost") && values && readings == 3) return -4; /* VK_ERROR_DEVICE_LOST */
  if (is(lies, "crash") && values && readings == 3) raise(SIGSEGV);
  if (flags) LOG("WRONG flags");
  for (size_t i = 0; i < record_count; i++) {
    Record *each = &records[i];
    if (each->object != object || !each->submissions) continue;
    for (uint32_t block = 0; block < 2; block++, found++) {
      if (!values || found >= room) continue;
      uint64_t groups = block ? each->x : (uint64_t)each->x * each->y * each->z;
      values[found] = (Values){each->index, 0, COMPUTE, block, {groups * each->submissions, block ? 0 : each->submissions}};
    }
  }
  if (!values && is(lies, "blocks")) found = UINT32_MAX;
  *count = values && room < found ? room : found;
  return values && room < found ? INCOMPLETE : 0;
}

static void layer_vkClearShaderInstrumentationMetricsARM(Handle owner, Handle object) {
  (void)owner;
  for (size_t i = 0; i < record_count; i++) if (records[i].object == object) records[i].submissions = 0;
  LOG("clear");
}

static VkResult layer_vkEnumeratePhysicalDeviceShaderInstrumentationMetricsARM(Handle physical, uint32_t *count, Description *out) {
  static const char *const texts[METRICS][2] = {
    {"Workgroups", "workgroups that ran"}, {"Submissions", "times that the command was submitted"}};
  (void)physical;
  if (!out) { *count = METRICS + is(lies, "metrics"); return 0; }
  for (uint32_t i = 0; i < *count && i < METRICS; i++) {
    if (out[i].type != DESCRIPTION) LOG("WRONG sType of a description");
    snprintf(out[i].name, sizeof out[i].name, "%s", texts[i][0]);
    snprintf(out[i].description, sizeof out[i].description, "%s", texts[i][1]);
  }
  return 0;
}

static VkResult layer_vkCreateComputePipelines(Handle owner, Handle cache, uint32_t count, const char *infos, const void *allocator, Handle *out) {
  enum { SIZE = 96 }; /* sizeof(VkComputePipelineCreateInfo) on 64-bit systems */
  VkResult code = ((VkResult (*)(Handle, Handle, uint32_t, const char *, const void *, Handle *))next_device(
      device, "vkCreateComputePipelines"))(owner, cache, count, infos, allocator, out);
  for (uint32_t i = 0; i < count && code >= 0; i++) {
    const Flags2 *flags = (const Flags2 *)find(((const Base *)(infos + i * SIZE))->next, FLAGS2);
    if (!flags || !(flags->flags & INSTRUMENT)) { LOG("plain pipeline"); continue; }
    if (!enabled) LOG("WRONG an instrumented pipeline without the feature");
    if (pipeline_count == MOST) abort();
    pipelines[pipeline_count++] = out[i];
    LOG("instrumented pipeline");
  }
  return code;
}

static void layer_vkDestroyPipeline(Handle owner, Handle pipeline, const void *allocator) {
  size_t kept = 0;
  for (size_t i = 0; i < pipeline_count; i++) if (pipelines[i] != pipeline) pipelines[kept++] = pipelines[i];
  pipeline_count = kept;
  ((void (*)(Handle, Handle, const void *))next_device(device, "vkDestroyPipeline"))(owner, pipeline, allocator);
}

static VkResult layer_vkBeginCommandBuffer(Handle handle, const void *info) {
  Commands *commands = commands_of(handle);
  forget(handle);
  commands->object = NULL;
  commands->instrumented = 0;
  commands->next_index = 0;
  return ((VkResult (*)(Handle, const void *))next_device(device, "vkBeginCommandBuffer"))(handle, info);
}

static VkResult layer_vkEndCommandBuffer(Handle handle) {
  if (commands_of(handle)->object) LOG("WRONG a command buffer ends between begin and end");
  return ((VkResult (*)(Handle))next_device(device, "vkEndCommandBuffer"))(handle);
}

static void layer_vkCmdBindPipeline(Handle handle, int32_t point, Handle pipeline) {
  Commands *commands = commands_of(handle);
  commands->instrumented = 0;
  for (size_t i = 0; i < pipeline_count; i++) commands->instrumented |= pipelines[i] == pipeline;
  ((void (*)(Handle, int32_t, Handle))next_device(device, "vkCmdBindPipeline"))(handle, point, pipeline);
}

static void layer_vkCmdDispatch(Handle handle, uint32_t x, uint32_t y, uint32_t z) {
  Commands *commands = commands_of(handle);
  if (commands->object) {
    uint32_t index = commands->next_index++;
    if (commands->instrumented) {
      if (record_count == MOST) abort();
      records[record_count++] = (Record){commands->object, handle, index, x, y, z, 0};
    }
  }
  ((void (*)(Handle, uint32_t, uint32_t, uint32_t))next_device(device, "vkCmdDispatch"))(handle, x, y, z);
}

/* VkSubmitInfo up to its command buffers */
typedef struct { int32_t type; const void *next; uint32_t waits; const void *semaphores, *stages; uint32_t count; const Handle *commands; uint32_t signals; const void *signalled; } Submit;

static VkResult layer_vkQueueSubmit(Handle queue, uint32_t count, const Submit *submits, Handle fence) {
  for (uint32_t s = 0; s < count; s++)
    for (uint32_t c = 0; c < submits[s].count; c++)
      for (size_t i = 0; i < record_count; i++) records[i].submissions += records[i].commands == submits[s].commands[c];
  return ((VkResult (*)(Handle, uint32_t, const Submit *, Handle))next_device(device, "vkQueueSubmit"))(queue, count, submits, fence);
}

static void layer_vkDestroyDevice(Handle which, const void *allocator) {
  if (!which) return;
  if (objects) LOG("WRONG %ld objects were never destroyed", objects);
  ((void (*)(Handle, const void *))next_device(which, "vkDestroyDevice"))(which, allocator);
}

static void layer_vkGetPhysicalDeviceFeatures2(Handle physical, Base *features) {
  ((void (*)(Handle, Base *))instance_of(physical)->features)(physical, features);
  Feature *feature = (Feature *)find(features, FEATURES);
  if (feature) feature->enabled = !is(lacks, "feature");
  feature = (Feature *)find(features, MAINTENANCE5);
  if (feature) feature->enabled = !is(lacks, "maintenance5");
  Vulkan14 *core = (Vulkan14 *)find(features, VULKAN14);
  if (core) core->maintenance5 = !is(lacks, "maintenance5");
}

static void layer_vkGetPhysicalDeviceProperties2(Handle physical, Base *properties) {
  ((void (*)(Handle, Base *))instance_of(physical)->properties)(physical, properties);
  Properties *found = (Properties *)find(properties, PROPERTIES);
  if (found) { found->metrics = METRICS; found->per_block = 1; }
}

static VkResult layer_vkEnumerateDeviceExtensionProperties(Handle physical, const char *layer, uint32_t *count, Extension *out) {
  VkResult (*below)(Handle, const char *, uint32_t *, Extension *) =
      (VkResult (*)(Handle, const char *, uint32_t *, Extension *))instance_of(physical)->extensions;
  if (layer) return below(physical, layer, count, out);
  uint32_t there = 0, kept = 0, own = sizeof extensions / sizeof *extensions - is(lacks, "maintenance5");
  VkResult code = below(physical, NULL, &there, NULL);
  if (code < 0) return code;
  Extension *all = calloc(there + own, sizeof *all);
  if (!all) return -1;
  code = below(physical, NULL, &there, all);
  /* The driver's, less those that are this layer's to give or to hide, and then this layer's. */
  for (uint32_t i = 0; i < there; i++)
    if (strcmp(all[i].name, extensions[0].name) && strcmp(all[i].name, extensions[1].name)) all[kept++] = all[i];
  memcpy(all + kept, extensions, own * sizeof *extensions);
  kept += own;
  if (code >= 0 && out) {
    if (*count < kept) code = INCOMPLETE;
    else memcpy(out, all, kept * sizeof *all);
  }
  if (code == 0) *count = kept;
  free(all);
  return code;
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  const char *path = getenv("INSTRUMENTATION_LOG");
  if (path && *path && !log_file) log_file = fopen(path, "a");
  lacks = getenv("INSTRUMENTATION_LACKS");
  lies = getenv("INSTRUMENTATION_LIES");
  GetProcAddr next_instance;
  VkResult code = create_instance(info, allocator, out, &next_instance);
  if (code < 0) return code;
  if (instance_count == sizeof instances / sizeof *instances) abort();
  instances[instance_count++] = (Instance){
    *(void **)*out, *out, next_instance, next_instance(*out, "vkDestroyInstance"),
    next_instance(*out, "vkEnumerateDeviceExtensionProperties"), next_instance(*out, "vkGetPhysicalDeviceFeatures2"),
    next_instance(*out, "vkGetPhysicalDeviceProperties2")};
  return code;
}

static void layer_vkDestroyInstance(Handle which, const void *allocator) {
  if (!which) return;
  Instance *found = instance_of(which);
  Function destroy = found->destroy;
  *found = instances[--instance_count];
  ((void (*)(Handle, const void *))destroy)(which, allocator);
}

static VkResult layer_vkCreateDevice(Handle physical, const void *info, const void *allocator, Handle *out) {
  Base *wanted = ((const Base *)info)->next;
  Feature *feature = (Feature *)find(wanted, FEATURES), *flags = (Feature *)find(wanted, MAINTENANCE5);
  Vulkan14 *core = (Vulkan14 *)find(wanted, VULKAN14);
  enabled = feature && feature->enabled && ((flags && flags->enabled) || (core && core->maintenance5));
  LOG(enabled ? "device with instrumentation" : "device without");
  return create_device(instance_of(physical)->handle, physical, info, allocator, out);
}

static const Entry physical_functions[] = {ENTRY(vkEnumeratePhysicalDeviceShaderInstrumentationMetricsARM)};
static const Entry instance_functions[] = {
  ENTRY(vkCreateInstance) ENTRY(vkDestroyInstance) ENTRY(vkCreateDevice) ENTRY(vkGetPhysicalDeviceFeatures2)
  ENTRY(vkGetPhysicalDeviceProperties2) ENTRY(vkEnumerateDeviceExtensionProperties)
};
static const Entry device_functions[] = {
  ENTRY(vkDestroyDevice) ENTRY(vkCreateComputePipelines) ENTRY(vkDestroyPipeline) ENTRY(vkBeginCommandBuffer)
  ENTRY(vkEndCommandBuffer) ENTRY(vkCmdBindPipeline) ENTRY(vkCmdDispatch) ENTRY(vkQueueSubmit)
};
static const Entry extension_functions[] = {
  ENTRY(vkCreateShaderInstrumentationARM) ENTRY(vkDestroyShaderInstrumentationARM)
  ENTRY(vkCmdBeginShaderInstrumentationARM) ENTRY(vkCmdEndShaderInstrumentationARM)
  ENTRY(vkGetShaderInstrumentationValuesARM) ENTRY(vkClearShaderInstrumentationMetricsARM)
};

static Function layer_get_device(Handle which, const char *name) {
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (Function)layer_get_device;
  FIND(device_functions);
  /* a device knows the commands of an extension when it was opened with it */
  if (enabled) FIND(extension_functions);
  return which && next_device ? next_device(which, name) : NULL;
}

static Function layer_get_instance(Handle which, const char *name) {
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (Function)layer_get_instance;
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (Function)layer_get_device;
  FIND(instance_functions);
  FIND(device_functions);
  FIND(physical_functions);
  Instance *found = instance_of(which);
  return found ? found->next(which, name) : NULL;
}

static Function layer_get_physical(Handle which, const char *name) {
  (void)which;
  FIND(physical_functions);
  return NULL;
}
