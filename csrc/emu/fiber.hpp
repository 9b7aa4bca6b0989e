// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Fibers: one CUDA thread each, all on one thread of the host.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define MC_EMU_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#define MC_EMU_UCONTEXT 1
#include <ucontext.h>
#endif

namespace cuda_emu {

// Where a fiber's registers are while another one runs. On x86-64 the switch is a few pushes;
// elsewhere it is swapcontext, which makes system calls and takes ten times as long.
#if defined(MC_EMU_UCONTEXT)
struct Registers {
  ucontext_t context;
};
#else
struct Registers {
  void* stack_pointer = nullptr;
};
extern "C" void mc_emu_switch(void** save, void* load);
asm(R"(
  .text
  .weak mc_emu_switch
  .type mc_emu_switch,@function
mc_emu_switch:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size mc_emu_switch, .-mc_emu_switch
)");
#endif

struct Fiber {
  Registers registers;
  // Of the host's own stack these are unknown until a sanitizer says them.
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's

  void prepare(unsigned char* memory, size_t bytes, void (*entry)()) {
    *this = Fiber{};
    stack = memory;
    stack_bytes = bytes;
#if defined(MC_EMU_UCONTEXT)
    getcontext(&registers.context);
    registers.context.uc_stack.ss_sp = memory;
    registers.context.uc_stack.ss_size = bytes;
    registers.context.uc_link = nullptr;
    makecontext(&registers.context, entry, 0);
#else
    const auto end = reinterpret_cast<uintptr_t>(memory + bytes) & ~uintptr_t(15);
    auto top = reinterpret_cast<void**>(end);
    *--top = nullptr;  // alignment as after a call
    *--top = reinterpret_cast<void*>(entry);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    registers.stack_pointer = top;
#endif
  }
};

// Leaves `from`, which never runs again if it `ends`, and continues `to`.
inline void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool ends) {
#if MC_EMU_ASAN
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#if defined(MC_EMU_UCONTEXT)
  swapcontext(&from.registers.context, &to.registers.context);
#else
  mc_emu_switch(&from.registers.stack_pointer, to.registers.stack_pointer);
#endif
#if MC_EMU_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// To be called first in a fiber; `host` is the one that started it.
inline void enter_fiber([[maybe_unused]] Fiber& host) {
#if MC_EMU_ASAN
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (!host.stack) host.stack = bottom, host.stack_bytes = bytes;
#endif
}

// Memory for the stacks of a block's threads.
class Stacks {
 public:
  Stacks(size_t count, size_t bytes) : bytes_(bytes), total_(count * bytes) {
    void* memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("cuda_emu: no memory for the stacks");
      std::abort();
    }
    memory_ = static_cast<unsigned char*>(memory);
  }
  Stacks(const Stacks&) = delete;
  ~Stacks() { munmap(memory_, total_); }

  unsigned char* of(size_t i) const { return memory_ + i * bytes_; }
  size_t bytes() const { return bytes_; }
  // Fibers that ended left their frames marked as forbidden.
  void forget_frames() const {
#if MC_EMU_ASAN
    __asan_unpoison_memory_region(memory_, total_);
#endif
  }

 private:
  unsigned char* memory_;
  size_t bytes_, total_;
};

}  // namespace cuda_emu
