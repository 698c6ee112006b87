import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** Compresses the man pages below a prefix, as in Debian and RPM packages. Node.js writes no time and no name into the file. */
export function gzipManPages(prefix: string): void {
  for (const name of globSync('share/man/man1/*.1', { cwd: prefix })) {
    const path = join(prefix, name)
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }), { mode: 0o644 })
    rmSync(path)
  }
}

/** Returns the size of a folder on disk in KiB. */
export function sizeOf(folder: string): number {
  return Number.parseInt(execFileSync('du', ['-sk', '--apparent-size', folder], { encoding: 'utf8' }), 10)
}
