/* What every layer of the tests needs of the binary interface between the Vulkan loader and its layers (the loader's
   LoaderLayerInterface document, version 2). Handles are pointers on the 64-bit systems where the tests run. */

#ifndef LOADER_INTERFACE_H
#define LOADER_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

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
