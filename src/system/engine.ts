import { setFlagsFromString } from 'node:v8'

// Some thousands of certificates.
const muchBytes = 4 * 1024 * 1024

/** True for one file that holds as much as a folder of many. */
export function isLarge({ length }: Uint8Array): boolean {
  return length >= muchBytes
}

/**
 * Sets V8 up for thousands of certificates, all of which are held until the report is made (docs/benchmarks.md). Not for a few,
 * where it would cost more than it saves.
 */
export function tuneForManyCertificates(): void {
  globalThis.kcertEngineIsTuned = true
  // A young generation that grows only holds twice what lives on: 10,000 certificates take a third less memory this way.
  setFlagsFromString('--semi-space-growth-factor=1')
  // So small a one is collected before a second thread is awake.
  setFlagsFromString('--no-parallel-scavenge')
  // The last of V8's compilers works longer on the reader than the reader on its files: a fifth of the processor's time for
  // 10,000, and still a sixth for 60,000.
  setFlagsFromString('--no-opt')
}
