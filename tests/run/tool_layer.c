/* A Vulkan layer that writes down what a capture tool would see of frames, names and labels, for tests.

   Environment, read when an instance is created:
     TOOL_LOG   file that these lines are added to:
                  name TYPE TEXT     an object of this VkObjectType gets a name
                  begin TEXT, end, insert TEXT     labels of command buffers
                  submit N           a submission of N command buffers
                  frame ID FLAGS IMAGES BUFFERS TENSORS     the VkFrameBoundaryEXT of the submission before

   Where its manifest lists VK_EXT_frame_boundary, it takes the extension away from what the driver gets.

   What is declared here is the binary interface of Vulkan; handles are pointers on the 64-bit systems
   where the tests run. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader_interface.h"

typedef struct { int32_t type; const void *next; const char *text; float color[4]; } Label;
typedef struct { int32_t type; const void *next; int32_t kind; uint64_t handle; const char *text; } Name;
typedef struct { int32_t type; void *next; uint32_t flags; uint64_t id; uint32_t images; const void *image; uint32_t buffers; const void *buffer; } Boundary;
typedef struct { int32_t type; void *next; uint32_t count; const void *tensors; } BoundaryTensors;
typedef struct { int32_t type; const void *next; uint32_t waits; const void *semaphores, *stages; uint32_t count; const Handle *commands; uint32_t signals; const void *signalled; } Submit;
typedef struct { int32_t type; const void *next; uint32_t flags, queues; const void *queue; uint32_t layers; const void *layer; uint32_t extensions; const char *const *names; const void *features; } DeviceInfo;

enum { MOST = 64 };
enum { BOUNDARY = 1000375001, BOUNDARY_TENSORS = 1000460023 };

static GetProcAddr next_instance;
static Handle instance;
static FILE *log_file;

#define LOG(...) do { if (log_file) { fprintf(log_file, __VA_ARGS__); fputc('\n', log_file); fflush(log_file); } } while (0)

static VkResult layer_vkSetDebugUtilsObjectNameEXT(Handle owner, const Name *name) {
  VkResult (*below)(Handle, const Name *) = (VkResult (*)(Handle, const Name *))next_device(device, "vkSetDebugUtilsObjectNameEXT");
  LOG("name %d %s", name->kind, name->text);
  return below ? below(owner, name) : 0;
}

static void layer_vkCmdBeginDebugUtilsLabelEXT(Handle commands, const Label *label) {
  void (*below)(Handle, const Label *) = (void (*)(Handle, const Label *))next_device(device, "vkCmdBeginDebugUtilsLabelEXT");
  LOG("begin %s", label->text);
  if (below) below(commands, label);
}

static void layer_vkCmdEndDebugUtilsLabelEXT(Handle commands) {
  void (*below)(Handle) = (void (*)(Handle))next_device(device, "vkCmdEndDebugUtilsLabelEXT");
  LOG("end");
  if (below) below(commands);
}

static void layer_vkCmdInsertDebugUtilsLabelEXT(Handle commands, const Label *label) {
  void (*below)(Handle, const Label *) = (void (*)(Handle, const Label *))next_device(device, "vkCmdInsertDebugUtilsLabelEXT");
  LOG("insert %s", label->text);
  if (below) below(commands, label);
}

static VkResult layer_vkQueueSubmit(Handle queue, uint32_t count, const Submit *submits, Handle fence) {
  for (uint32_t s = 0; s < count; s++) {
    const Boundary *found = (const Boundary *)find(submits[s].next, BOUNDARY);
    LOG("submit %u", submits[s].count);
    if (!found) continue;
    const BoundaryTensors *tensors = (const BoundaryTensors *)find(submits[s].next, BOUNDARY_TENSORS);
    LOG("frame %llu %u %u %u %u", (unsigned long long)found->id, found->flags, found->images, found->buffers, tensors ? tensors->count : 0);
  }
  return ((VkResult (*)(Handle, uint32_t, const Submit *, Handle))next_device(device, "vkQueueSubmit"))(queue, count, submits, fence);
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  const char *path = getenv("TOOL_LOG");
  if (path && *path && !log_file) log_file = fopen(path, "a");
  VkResult code = create_instance(info, allocator, out, &next_instance);
  if (code >= 0) instance = *out;
  return code;
}

static VkResult layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *out) {
  const char *names[MOST];
  DeviceInfo changed = *info;
  changed.extensions = 0;
  changed.names = names;
  for (uint32_t i = 0; i < info->extensions && changed.extensions < MOST; i++)
    if (strcmp(info->names[i], "VK_EXT_frame_boundary")) names[changed.extensions++] = info->names[i];
  return create_device(instance, physical, &changed, allocator, out);
}

static const Entry instance_functions[] = {ENTRY(vkCreateInstance) ENTRY(vkCreateDevice)};
static const Entry device_functions[] = {
  ENTRY(vkQueueSubmit) ENTRY(vkSetDebugUtilsObjectNameEXT)
  ENTRY(vkCmdBeginDebugUtilsLabelEXT) ENTRY(vkCmdEndDebugUtilsLabelEXT) ENTRY(vkCmdInsertDebugUtilsLabelEXT)
};

GET_FUNCTIONS(next_instance)
