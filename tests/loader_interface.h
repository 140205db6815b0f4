/* What every layer of the tests needs of the binary interface between the Vulkan loader and its layers (the loader's
   LoaderLayerInterface document, version 2). Handles are pointers on the 64-bit systems where the tests run. */

#ifndef LOADER_INTERFACE_H
#define LOADER_INTERFACE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int32_t VkResult;
typedef void *Handle;
typedef void (*Function)(void);
typedef Function (*GetProcAddr)(Handle, const char *);

typedef struct Base { int32_t type; struct Base *next; } Base;
typedef struct InstanceLink { struct InstanceLink *next; GetProcAddr get_instance, get_physical; } InstanceLink;
typedef struct DeviceLink { struct DeviceLink *next; GetProcAddr get_instance, get_device; } DeviceLink;
typedef struct { int32_t type; const void *next; int32_t function; union { InstanceLink *instance; DeviceLink *device; } link; } LayerInfo;
typedef struct { int32_t type; void *next; uint32_t version; GetProcAddr get_instance, get_device, get_physical; } Negotiation;

enum { LOADER_INSTANCE = 47, LOADER_DEVICE = 48, LINK_INFO = 0 };

/* The structure of this type in a chain, or NULL. */
static inline Base *find(const void *chain, int32_t type) {
  for (Base *each = (Base *)chain; each; each = each->next) if (each->type == type) return each;
  return NULL;
}

/* What the loader tells a layer while an instance (LOADER_INSTANCE) or a device (LOADER_DEVICE) is created. */
static inline LayerInfo *link_of(const void *info, int32_t type) {
  for (Base *each = ((const Base *)info)->next; each; each = each->next)
    if (each->type == type && ((LayerInfo *)each)->function == LINK_INFO) return (LayerInfo *)each;
  return NULL;
}

/* The one device that is open, and where the layers below begin. */
static GetProcAddr next_device;
static Handle device;

/* Create an instance in the layers below, which begin at ``next`` then. */
static inline VkResult create_instance(const void *info, const void *allocator, Handle *out, GetProcAddr *next) {
  LayerInfo *chain = link_of(info, LOADER_INSTANCE);
  if (!chain) return -3; /* VK_ERROR_INITIALIZATION_FAILED */
  *next = chain->link.instance->get_instance;
  chain->link.instance = chain->link.instance->next;
  return ((VkResult (*)(const void *, const void *, Handle *))(*next)(NULL, "vkCreateInstance"))(info, allocator, out);
}

/* Create the device in the layers below. */
static inline VkResult create_device(Handle instance, Handle physical, const void *info, const void *allocator, Handle *out) {
  LayerInfo *chain = link_of(info, LOADER_DEVICE);
  if (!chain) return -3;
  GetProcAddr below = chain->link.device->get_instance;
  next_device = chain->link.device->get_device;
  chain->link.device = chain->link.device->next;
  VkResult code = ((VkResult (*)(Handle, const void *, const void *, Handle *))below(instance, "vkCreateDevice"))(
      physical, info, allocator, out);
  if (code >= 0) device = *out;
  return code;
}

/* Tables of a layer's own functions. */
typedef struct { const char *name; Function function; } Entry;
#define ENTRY(name) { #name, (Function)layer_##name },
#define FIND(table) for (size_t i = 0; i < sizeof table / sizeof *table; i++) \
  if (!strcmp(name, table[i].name)) return table[i].function

/* The two functions below, for a layer with ``instance_functions`` and ``device_functions``; the layers below the
   instance ``which`` begin at ``next``. */
#define GET_FUNCTIONS(next) \
  static Function layer_get_device(Handle which, const char *name) { \
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (Function)layer_get_device; \
    FIND(device_functions); \
    return which && next_device ? next_device(which, name) : NULL; \
  } \
  static Function layer_get_instance(Handle which, const char *name) { \
    if (!strcmp(name, "vkGetInstanceProcAddr")) return (Function)layer_get_instance; \
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (Function)layer_get_device; \
    FIND(instance_functions); \
    FIND(device_functions); \
    GetProcAddr below = which ? next : NULL; \
    return below ? below(which, name) : NULL; \
  }

/* A layer defines these two, and a third for commands of physical devices where it defines HAS_PHYSICAL_COMMANDS; the
   loader asks for them by the function below. */
static Function layer_get_instance(Handle which, const char *name);
static Function layer_get_device(Handle which, const char *name);
#ifdef HAS_PHYSICAL_COMMANDS
static Function layer_get_physical(Handle which, const char *name);
#else
#define layer_get_physical NULL
#endif

__attribute__((visibility("default"))) VkResult vkNegotiateLoaderLayerInterfaceVersion(Negotiation *wish) {
  if (wish->version > 2) wish->version = 2;
  wish->get_instance = layer_get_instance;
  wish->get_device = layer_get_device;
  wish->get_physical = layer_get_physical;
  return 0;
}

#endif
