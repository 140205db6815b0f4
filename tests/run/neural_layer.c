/* A Vulkan layer that brings VK_ARM_data_graph_neural_accelerator_statistics to any device with data graphs, for tests:
   no device that has it was at hand.

   Its contents come from what it is told: the statistics of a session are four 32-bit numbers, 0x54415453, the mode of
   the session, the dispatches that were recorded with it, and the submissions since; the debug database of a pipeline is
   "DEBUG", a zero, and "DATABASE".

   Environment:
     NEURAL_LOG   file that calls that break the extension's rules (WRONG ...), and created devices, are added to

   What is declared here is the binary interface of Vulkan; handles are pointers on the 64-bit systems
   where the tests run. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader_interface.h"

typedef struct { char name[256]; uint32_t revision; } Extension;
typedef struct { int32_t type; void *next; uint32_t value; } Word; /* of a feature, a pipeline and a session */
typedef struct { int32_t type; void *next; Handle object; } About;
typedef struct { int32_t type; void *next; int32_t point, kind; uint32_t objects; } Requirement;
typedef struct { int32_t type; void *next; Handle session; int32_t point; uint32_t index; } MemoryQuery;
typedef struct { int32_t type; void *next; uint64_t size, alignment; uint32_t types; } MemoryNeeds;
typedef struct { int32_t type; void *next; Handle session; int32_t point; uint32_t index; Handle memory; uint64_t offset; } Bind;
typedef struct { int32_t type; void *next; int32_t property; uint32_t is_text; size_t size; void *data; } Result;
typedef struct { int32_t type; const void *next; uint64_t flags; Handle pipeline; } SessionInfo;

enum { INCOMPLETE = 5, MOST = 64, SIZE = 256 };
enum { PIPELINE_INFO = 1000676000, SESSION_INFO, FEATURE, POINT = 1000676000, DATABASE = 1000676000 };

static const Extension extension = {"VK_ARM_data_graph_neural_accelerator_statistics", 1};
static const char database[] = "DEBUG\0DATABASE";
typedef struct { void *key; Handle handle; GetProcAddr next; Function destroy, extensions, features; } Instance;
static Instance instances[MOST];
static size_t instance_count;
static int enabled;
typedef struct { Handle session, memory; uint32_t mode, dispatches, submissions; } Session;
static Session sessions[MOST];
static size_t session_count;
static struct { Handle memory; uint32_t *data; } maps[1024];
static size_t map_count;
static Handle allowed[MOST];
static size_t allowed_count;

static void note(const char *text) {
  const char *path = getenv("NEURAL_LOG");
  FILE *file = path && *path ? fopen(path, "a") : NULL;
  if (file) { fprintf(file, "%s\n", text); fclose(file); }
}

static Instance *instance_of(Handle handle) {
  for (size_t i = instance_count; i-- > 0;) if (handle && instances[i].key == *(void **)handle) return &instances[i];
  return NULL;
}

static Session *session_of(Handle handle) { /* the newest with this handle */
  for (size_t i = session_count; i-- > 0;) if (sessions[i].session == handle) return &sessions[i];
  return NULL;
}

#define BELOW(result, name, ...) ((result (*)(__VA_ARGS__))next_device(device, name))

static VkResult layer_vkCreateDataGraphPipelinesARM(Handle owner, Handle deferred, Handle cache, uint32_t count, const Base *infos, const void *allocator, Handle *out) {
  VkResult code = BELOW(VkResult, "vkCreateDataGraphPipelinesARM", Handle, Handle, Handle, uint32_t, const Base *, const void *, Handle *)(
      owner, deferred, cache, count, infos, allocator, out);
  const Word *word = (const Word *)find(infos->next, PIPELINE_INFO);
  if (count != 1) note("WRONG several pipelines: this layer looks at one");
  if (word && !enabled) note("WRONG statistics without the feature");
  if (code >= 0 && word && word->value && allowed_count < MOST) allowed[allowed_count++] = *out;
  return code;
}

static VkResult layer_vkCreateDataGraphPipelineSessionARM(Handle owner, const SessionInfo *info, const void *allocator, Handle *out) {
  VkResult code = BELOW(VkResult, "vkCreateDataGraphPipelineSessionARM", Handle, const SessionInfo *, const void *, Handle *)(owner, info, allocator, out);
  const Word *word = (const Word *)find(info->next, SESSION_INFO);
  int is_allowed = 0;
  for (size_t i = 0; i < allowed_count; i++) is_allowed |= allowed[i] == info->pipeline;
  if (word && word->value && !is_allowed) note("WRONG statistics of a pipeline that does not allow them");
  if (session_count == MOST) abort();
  if (code >= 0) sessions[session_count++] = (Session){*out, NULL, word ? word->value : 0, 0, 0};
  return code;
}

static VkResult layer_vkGetDataGraphPipelineSessionBindPointRequirementsARM(Handle owner, const About *info, uint32_t *count, Requirement *out) {
  uint32_t extra = session_of(info->object)->mode != 0, room = *count;
  VkResult (*below)(Handle, const About *, uint32_t *, Requirement *) =
      BELOW(VkResult, "vkGetDataGraphPipelineSessionBindPointRequirementsARM", Handle, const About *, uint32_t *, Requirement *);
  uint32_t there = 0;
  VkResult code = below(owner, info, &there, NULL);
  if (code < 0 || !out) { *count = there + extra; return code; }
  if (room < there + extra) return INCOMPLETE;
  if (there) code = below(owner, info, &there, out);
  if (extra) { out[there].point = POINT; out[there].kind = 0; out[there].objects = 1; }
  *count = there + extra;
  return code;
}

static void layer_vkGetDataGraphPipelineSessionMemoryRequirementsARM(Handle owner, const MemoryQuery *query, MemoryNeeds *needs) {
  if (query->point == POINT) { needs->size = SIZE; needs->alignment = 64; needs->types = ~0u; return; }
  BELOW(void, "vkGetDataGraphPipelineSessionMemoryRequirementsARM", Handle, const MemoryQuery *, MemoryNeeds *)(owner, query, needs);
}

static VkResult layer_vkBindDataGraphPipelineSessionMemoryARM(Handle owner, uint32_t count, const Bind *binds) {
  if (count == 1 && binds->point == POINT) { session_of(binds->session)->memory = binds->memory; return 0; }
  return BELOW(VkResult, "vkBindDataGraphPipelineSessionMemoryARM", Handle, uint32_t, const Bind *)(owner, count, binds);
}

static VkResult layer_vkMapMemory(Handle owner, Handle memory, uint64_t offset, uint64_t size, uint32_t flags, void **data) {
  VkResult code = BELOW(VkResult, "vkMapMemory", Handle, Handle, uint64_t, uint64_t, uint32_t, void **)(owner, memory, offset, size, flags, data);
  if (code >= 0 && map_count < sizeof maps / sizeof *maps) { maps[map_count].memory = memory; maps[map_count++].data = *data; }
  return code;
}

static void layer_vkCmdDispatchDataGraphARM(Handle commands, Handle session, const void *info) {
  session_of(session)->dispatches++;
  BELOW(void, "vkCmdDispatchDataGraphARM", Handle, Handle, const void *)(commands, session, info);
}

static VkResult layer_vkQueueSubmit(Handle queue, uint32_t count, const void *submits, Handle fence) {
  for (size_t i = 0; i < session_count; i++) {
    Session *each = &sessions[i];
    if (!each->memory || !each->dispatches) continue;
    each->submissions++;
    for (size_t k = map_count; k-- > 0;)
      if (maps[k].memory == each->memory) {
        uint32_t values[4] = {0x54415453, each->mode, each->dispatches, each->submissions};
        memcpy(maps[k].data, values, sizeof values);
        break;
      }
  }
  return BELOW(VkResult, "vkQueueSubmit", Handle, uint32_t, const void *, Handle)(queue, count, submits, fence);
}

static VkResult layer_vkGetDataGraphPipelineAvailablePropertiesARM(Handle owner, const About *info, uint32_t *count, int32_t *out) {
  VkResult (*below)(Handle, const About *, uint32_t *, int32_t *) =
      BELOW(VkResult, "vkGetDataGraphPipelineAvailablePropertiesARM", Handle, const About *, uint32_t *, int32_t *);
  uint32_t there = 0, room = *count;
  VkResult code = below(owner, info, &there, NULL);
  if (code < 0 || !out) { *count = there + 1; return code; }
  if (room < there + 1) return INCOMPLETE;
  if (there) code = below(owner, info, &there, out);
  out[there] = DATABASE;
  *count = there + 1;
  return code;
}

static VkResult layer_vkGetDataGraphPipelinePropertiesARM(Handle owner, const About *info, uint32_t count, Result *results) {
  if (count == 1 && results->property == DATABASE) {
    results->is_text = 0;
    if (!results->data) { results->size = sizeof database - 1; return 0; }
    if (results->size != sizeof database - 1) return INCOMPLETE;
    memcpy(results->data, database, sizeof database - 1);
    return 0;
  }
  return BELOW(VkResult, "vkGetDataGraphPipelinePropertiesARM", Handle, const About *, uint32_t, Result *)(owner, info, count, results);
}

static void layer_vkGetPhysicalDeviceFeatures2(Handle physical, Base *features) {
  ((void (*)(Handle, Base *))instance_of(physical)->features)(physical, features);
  Word *feature = (Word *)find(features, FEATURE);
  if (feature) feature->value = 1;
}

static VkResult layer_vkEnumerateDeviceExtensionProperties(Handle physical, const char *layer, uint32_t *count, Extension *out) {
  VkResult (*below)(Handle, const char *, uint32_t *, Extension *) =
      (VkResult (*)(Handle, const char *, uint32_t *, Extension *))instance_of(physical)->extensions;
  if (layer) return below(physical, layer, count, out);
  uint32_t there = 0, kept = 0;
  VkResult code = below(physical, NULL, &there, NULL);
  if (code < 0) return code;
  Extension *all = calloc(there + 1, sizeof *all);
  if (!all) return -1;
  code = below(physical, NULL, &there, all);
  for (uint32_t i = 0; i < there; i++) if (strcmp(all[i].name, extension.name)) all[kept++] = all[i];
  all[kept++] = extension;
  if (code >= 0 && out) {
    if (*count < kept) code = INCOMPLETE;
    else memcpy(out, all, kept * sizeof *all);
  }
  if (code == 0) *count = kept;
  free(all);
  return code;
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  GetProcAddr below;
  VkResult code = create_instance(info, allocator, out, &below);
  if (code < 0) return code;
  if (instance_count == MOST) abort();
  instances[instance_count++] = (Instance){
    *(void **)*out, *out, below, below(*out, "vkDestroyInstance"), below(*out, "vkEnumerateDeviceExtensionProperties"),
    below(*out, "vkGetPhysicalDeviceFeatures2")};
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
  const Word *feature = (const Word *)find(((const Base *)info)->next, FEATURE);
  enabled = feature && feature->value;
  note(enabled ? "device with statistics" : "device without");
  return create_device(instance_of(physical)->handle, physical, info, allocator, out);
}

static const Entry instance_functions[] = {
  ENTRY(vkCreateInstance) ENTRY(vkDestroyInstance) ENTRY(vkCreateDevice) ENTRY(vkGetPhysicalDeviceFeatures2)
  ENTRY(vkEnumerateDeviceExtensionProperties)
};
static const Entry device_functions[] = {
  ENTRY(vkCreateDataGraphPipelinesARM) ENTRY(vkCreateDataGraphPipelineSessionARM)
  ENTRY(vkGetDataGraphPipelineSessionBindPointRequirementsARM) ENTRY(vkGetDataGraphPipelineSessionMemoryRequirementsARM)
  ENTRY(vkBindDataGraphPipelineSessionMemoryARM) ENTRY(vkMapMemory) ENTRY(vkCmdDispatchDataGraphARM) ENTRY(vkQueueSubmit)
  ENTRY(vkGetDataGraphPipelineAvailablePropertiesARM) ENTRY(vkGetDataGraphPipelinePropertiesARM)
};

GET_FUNCTIONS(instance_of(which) ? instance_of(which)->next : NULL)
