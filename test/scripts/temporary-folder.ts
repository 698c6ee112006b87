import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Returns a new folder that is removed after the test file. */
export function temporaryFolder(name: string): string {
  const path = mkdtempSync(join(tmpdir(), `kcert-${name}-`))
  afterAll(() => rmSync(path, { recursive: true, force: true }))
  return path
}
