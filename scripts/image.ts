import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readRelease } from './release/contents.ts'
import { buildImage } from './release/image.ts'
import { archNames, archOf } from './release/node.ts'
import { readLayout } from './release/oci.ts'

// `npm run image`: builds the container image as an OCI layout in release/image, without Docker and without root. Flags: --arch
// x64, one architecture only; --debian DIR, a chroot with Debian, where this machine is not one; --out DIR.

const { values } = parseArgs({
  options: {
    arch: { type: 'string', multiple: true, default: ['x64', 'arm64'] },
    debian: { type: 'string', default: '/' },
    out: { type: 'string', default: 'release/image' },
  },
})
const archs = values.arch.map(archOf)
const target = resolve(values.out)
const temporary = mkdtempSync(join(tmpdir(), 'kcert-image-'))
try {
  // As in test/build-once.ts.
  if (process.env.KCERT_TEST_BUILT === undefined)
    execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
  rmSync(target, { recursive: true, force: true })
  const etc = join(resolve(values.debian), 'etc')
  const index = buildImage({ release: readRelease(), archs, target, etc, gzipLevel: 9 }, temporary)
  for (const { arch, layers } of readLayout(target).images) {
    const sizes = layers.map((layer) => statSync(layer).size)
    const whole = sizes.reduce((sum, size) => sum + size, 0)
    process.stdout.write(
      `${archNames[arch].deb}: ${whole} bytes to download (libraries, Node.js, kcert: ${sizes.join(', ')})\n`,
    )
  }
  process.stdout.write(`${values.out}: ${index.digest}\n`)
} finally {
  rmSync(temporary, { recursive: true })
}
