import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type ImageConfig, readLayout, writeLayout } from '../../scripts/release/oci.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

// The OCI layout of the container image, with small layers. `npm run rehearse-release` runs the image itself.

const folder = temporaryFolder('image')
const release = { version: '1.2.3', summary: 'a test', date: new Date('2026-11-26T00:00:00Z') }
const config: ImageConfig = {
  User: '65532:65532',
  Entrypoint: ['/usr/bin/kcert'],
  Env: ['PATH=/usr/bin:/bin'],
  WorkingDir: '/',
  Labels: { 'org.opencontainers.image.version': '1.2.3' },
}

/** Writes the files of two layers. `time` and `mode` are those of the machine that builds. */
function layersIn(name: string, time: Date, mode: number) {
  const [lower, upper] = ['lower', 'upper'].map((layer) => join(folder, name, layer)) as [string, string]
  mkdirSync(join(lower, 'etc'), { recursive: true })
  mkdirSync(join(upper, 'usr/bin'), { recursive: true })
  writeFileSync(join(lower, 'etc/passwd'), 'kcert:x:65532:65532::/nonexistent:/sbin/nologin\n')
  writeFileSync(join(upper, 'usr/bin/kcert'), '#!/usr/bin/node\n')
  symlinkSync('kcert', join(upper, 'usr/bin/kubectl-kcert'))
  chmodSync(join(lower, 'etc/passwd'), mode)
  chmodSync(join(upper, 'usr/bin/kcert'), mode | 0o100)
  for (const path of [lower, upper, join(lower, 'etc/passwd'), join(upper, 'usr/bin')])
    utimesSync(path, time, time)
  return [
    ['libraries', lower],
    ['kcert', upper],
  ] as const
}

function build(name: string, time: Date, mode: number): string {
  const layers = layersIn(`${name}-files`, time, mode)
  const target = join(folder, name)
  const images = (['x64', 'arm64'] as const).map((arch) => ({ arch, layers }))
  expect(writeLayout(target, images, config, release).digest).toBe(readLayout(target).digest)
  return target
}

let target = ''
beforeAll(() => {
  target = build('one', new Date('2026-01-01T00:00:00Z'), 0o600)
})

test('two builds have the same digest, whatever the times and modes of their files', () => {
  const again = build('two', new Date('2025-01-01T00:00:00Z'), 0o664)
  expect(readLayout(again).digest).toBe(readLayout(target).digest)
  expect(readFileSync(join(again, 'index.json'))).toEqual(readFileSync(join(target, 'index.json')))
})

test('has one image for each architecture, which does not run as root', () => {
  const { images } = readLayout(target)
  expect(images.map(({ arch, config: own }) => [arch, own])).toEqual([
    ['x64', config],
    ['arm64', config],
  ])
  const index = JSON.parse(readFileSync(join(target, 'index.json'), 'utf8'))
  expect(index).toMatchObject({
    schemaVersion: 2,
    manifests: [
      {
        annotations: {
          'org.opencontainers.image.ref.name': '1.2.3',
          'io.containerd.image.name': 'localhost/kcert:1.2.3',
        },
      },
    ],
  })
})

test('files belong to root, with the time of the release, and links stay', () => {
  const listed = readLayout(target).images[0]!.layers.map((layer) =>
    execFileSync('tar', ['--utc', '--full-time', '--numeric-owner', '-tvzf', layer], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' ')),
  )
  expect(listed).toEqual([
    ['drwxr-xr-x 0/0 0 2026-11-26 00:00:00 etc/', '-rw-r--r-- 0/0 48 2026-11-26 00:00:00 etc/passwd'],
    [
      'drwxr-xr-x 0/0 0 2026-11-26 00:00:00 usr/',
      'drwxr-xr-x 0/0 0 2026-11-26 00:00:00 usr/bin/',
      '-rwxr-xr-x 0/0 16 2026-11-26 00:00:00 usr/bin/kcert',
      'lrwxrwxrwx 0/0 0 2026-11-26 00:00:00 usr/bin/kubectl-kcert -> kcert',
    ],
  ])
})

test('a changed or added blob is found', () => {
  const changed = join(folder, 'changed')
  cpSync(target, changed, { recursive: true })
  const [layer = ''] = readLayout(changed).images[0]!.layers
  writeFileSync(layer, Buffer.concat([readFileSync(layer), Buffer.of(0)]))
  expect(() => readLayout(changed)).toThrow(/is damaged/)
  const added = join(folder, 'added')
  cpSync(target, added, { recursive: true })
  writeFileSync(join(added, 'blobs/sha256', 'f'.repeat(64)), '')
  expect(() => readLayout(added)).toThrow(/also has f+/)
})
