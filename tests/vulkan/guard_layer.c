/* A Vulkan layer that guards mapped memory, as capture tools do to see what a program writes: whatever touches a page
   first after it was mapped, or after a submission, ends in a handler of SIGSEGV, which lets it go on. System calls do
   not run that handler: they fail with EFAULT where they meet a guarded page.

   Only whole pages inside of a mapping are guarded. What is declared here is the binary interface of Vulkan 1.0 and of
   the loader (its LoaderLayerInterface document, version 2), on 64-bit systems. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader_interface.h"

typedef struct { int32_t type; const void *next; uint64_t size; uint32_t type_index; } AllocateInfo;

enum { MOST = 4096 };

static GetProcAddr next_instance;
static Handle instance;
static struct sigaction before;
static struct { Handle memory; uint64_t size; uintptr_t start, end; } known[MOST];
static int count;

static uintptr_t page_size(void) { return (uintptr_t)sysconf(_SC_PAGESIZE); }

static void protect(int index, int protection) {
  if (known[index].end > known[index].start)
    mprotect((void *)known[index].start, known[index].end - known[index].start, protection);
}

static void touched(int number, siginfo_t *info, void *context) {
  uintptr_t address = (uintptr_t)info->si_addr;
  for (int i = 0; i < count; i++)
    if (address >= known[i].start && address < known[i].end) {
      mprotect((void *)(address & ~(page_size() - 1)), page_size(), PROT_READ | PROT_WRITE);
      return;
    }
  if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(number, info, context);
  else signal(number, SIG_DFL); /* it happens again at once */
}

#define BELOW(name, type) ((type)next_device(device, name))

static VkResult layer_vkAllocateMemory(Handle owner, const AllocateInfo *info, const void *allocator, Handle *out) {
  VkResult code = BELOW("vkAllocateMemory", VkResult (*)(Handle, const AllocateInfo *, const void *, Handle *))(
      owner, info, allocator, out);
  if (code >= 0 && count < MOST) {
    known[count].memory = *out;
    known[count].size = info->size;
    known[count].start = known[count].end = 0;
    count++;
  }
  return code;
}

static VkResult layer_vkMapMemory(Handle owner, Handle memory, uint64_t offset, uint64_t size, uint32_t flags, void **out) {
  VkResult code = BELOW("vkMapMemory", VkResult (*)(Handle, Handle, uint64_t, uint64_t, uint32_t, void **))(
      owner, memory, offset, size, flags, out);
  for (int i = 0; code >= 0 && i < count; i++)
    if (known[i].memory == memory) {
      uintptr_t first = (uintptr_t)*out, last = first + (size == UINT64_MAX ? known[i].size - offset : size);
      known[i].start = (first + page_size() - 1) & ~(page_size() - 1);
      known[i].end = last & ~(page_size() - 1);
      protect(i, PROT_NONE);
    }
  return code;
}

/* Lets go of a piece of memory before the driver does. */
static void release(Handle memory) {
  for (int i = 0; i < count; i++)
    if (known[i].memory == memory) {
      protect(i, PROT_READ | PROT_WRITE);
      known[i].start = known[i].end = 0;
    }
}

static void layer_vkUnmapMemory(Handle owner, Handle memory) {
  release(memory);
  BELOW("vkUnmapMemory", void (*)(Handle, Handle))(owner, memory);
}

static void layer_vkFreeMemory(Handle owner, Handle memory, const void *allocator) {
  release(memory);
  for (int i = 0; i < count; i++)
    if (known[i].memory == memory) known[i].memory = NULL;
  BELOW("vkFreeMemory", void (*)(Handle, Handle, const void *))(owner, memory, allocator);
}

static VkResult layer_vkQueueSubmit(Handle queue, uint32_t submits, const void *infos, Handle fence) {
  for (int i = 0; i < count; i++) protect(i, PROT_NONE);
  return BELOW("vkQueueSubmit", VkResult (*)(Handle, uint32_t, const void *, Handle))(queue, submits, infos, fence);
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  VkResult code = create_instance(info, allocator, out, &next_instance);
  if (code >= 0) instance = *out;
  return code;
}

static VkResult layer_vkCreateDevice(Handle physical, const void *info, const void *allocator, Handle *out) {
  VkResult code = create_device(instance, physical, info, allocator, out);
  if (code >= 0) {
    struct sigaction action = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, &before);
  }
  return code;
}

static const Entry instance_functions[] = {ENTRY(vkCreateInstance) ENTRY(vkCreateDevice)};
static const Entry device_functions[] = {
  ENTRY(vkAllocateMemory) ENTRY(vkMapMemory) ENTRY(vkUnmapMemory) ENTRY(vkFreeMemory) ENTRY(vkQueueSubmit)
};

GET_FUNCTIONS(next_instance)
