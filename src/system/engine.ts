import { setFlagsFromString } from 'node:v8'

// Several thousand certificates.
const muchBytes = 4 * 1024 * 1024

/** Returns true for a file with as many certificates as a large folder. */
export function isLarge({ length }: Uint8Array): boolean {
  return length >= muchBytes
}

/**
 * Tunes V8 for a process that mostly waits: without its optimizing compilers, it has 9 MB less resident memory
 * (docs/decisions/0017-controller.md).
 */
export function tuneForLittleMemory(): void {
  setFlagsFromString('--no-opt')
  setFlagsFromString('--no-maglev')
}

/**
 * Tunes V8 for thousands of certificates, which all stay in memory until the report is complete (docs/benchmarks.md). With few
 * certificates it would cost more than it saves.
 */
export function tuneForManyCertificates(): void {
  globalThis.kcertEngineIsTuned = true
  // The young generation only grows, to twice the size of the surviving objects. 10,000 certificates need a third less memory.
  setFlagsFromString('--semi-space-growth-factor=1')
  // A collection of so small a generation ends before a second thread wakes up.
  setFlagsFromString('--no-parallel-scavenge')
  // The optimizing compiler spends more time on the reader than the reader spends on its files: a fifth of the CPU time for
  // 10,000 files, and still a sixth for 60,000.
  setFlagsFromString('--no-opt')
}
