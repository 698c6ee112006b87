import { createHash } from 'node:crypto'
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { writeTar } from './archives.ts'
import type { Release } from './contents.ts'
import { type Arch, archNames } from './node.ts'

// An OCI image layout (https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md): a folder with blobs, which any
// registry and container runtime takes.

const types = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
}

/** The image of one architecture. */
export interface PlatformImage {
  readonly arch: Arch
  /** From the lowest up: what a layer contains, and the folder of its files. */
  readonly layers: readonly (readonly [what: string, folder: string])[]
}

/** How the container runs. */
export interface ImageConfig {
  readonly User: string
  readonly Entrypoint: readonly string[]
  readonly Env: readonly string[]
  readonly WorkingDir: string
  readonly Labels: Readonly<Record<string, string>>
}

export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: object
  readonly annotations?: Readonly<Record<string, string>>
}

/** Writes the layout of an image for several architectures, and returns the descriptor of its index. The same input gives the same bytes. */
export function writeLayout(
  target: string,
  images: readonly PlatformImage[],
  config: ImageConfig,
  release: Release,
  gzipLevel = 9,
): Descriptor {
  const blobs = join(target, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const write = (mediaType: string, content: Uint8Array | object): Descriptor => {
    const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content))
    const hex = sha256(bytes)
    writeFileSync(join(blobs, hex), bytes)
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length }
  }
  const created = release.date.toISOString()
  const manifests = images.map(({ arch, layers }): Descriptor => {
    const tars = layers.map(([, folder]) => tarOf(folder, release))
    const platform = {
      architecture: archNames[arch].deb,
      os: 'linux',
      ...(arch === 'arm64' && { variant: 'v8' }),
    }
    const ofConfig = write(types.config, {
      created,
      ...platform,
      config,
      rootfs: { type: 'layers', diff_ids: tars.map((tar) => `sha256:${sha256(tar)}`) },
      history: layers.map(([what]) => ({ created, created_by: 'npm run image', comment: what })),
    })
    const ofLayers = tars.map((tar) => write(types.layer, gzipSync(tar, { level: gzipLevel })))
    const manifest = { schemaVersion: 2, mediaType: types.manifest, config: ofConfig, layers: ofLayers }
    return { ...write(types.manifest, manifest), platform }
  })
  const index = write(types.index, {
    ...{ schemaVersion: 2, mediaType: types.index, manifests },
    annotations: config.Labels,
  })
  const names = {
    'org.opencontainers.image.ref.name': release.version,
    // Without it, containerd names an imported image after the day, and a kubelet finds it by no name.
    'io.containerd.image.name': `localhost/kcert:${release.version}`,
  }
  const named = { ...index, annotations: names }
  const top = { schemaVersion: 2, mediaType: types.index, manifests: [named] }
  writeFileSync(join(target, 'index.json'), JSON.stringify(top))
  writeFileSync(join(target, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  return index
}

interface ReadImage {
  readonly arch: Arch
  readonly config: ImageConfig
  /** The paths of the layers. */
  readonly layers: readonly string[]
}

/** Returns what a layout has. Throws if a blob is not what its descriptor says, or if the layout has another blob. */
export function readLayout(folder: string): {
  readonly digest: string
  readonly images: readonly ReadImage[]
} {
  const seen = new Set<string>()
  const pathOf = ({ digest, size }: Descriptor): string => {
    const path = join(folder, 'blobs', digest.replace(':', '/'))
    const bytes = readFileSync(path)
    if (`sha256:${sha256(bytes)}` !== digest || bytes.length !== size) throw new Error(`${digest} is damaged`)
    seen.add(basename(path))
    return path
  }
  const read = (descriptor: Descriptor) => JSON.parse(readFileSync(pathOf(descriptor), 'utf8'))
  const { imageLayoutVersion } = JSON.parse(readFileSync(join(folder, 'oci-layout'), 'utf8'))
  if (imageLayoutVersion !== '1.0.0') throw new Error(`${folder} is not an OCI image layout`)
  const [index] = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')).manifests as [Descriptor]
  const images = (read(index).manifests as Descriptor[]).map((descriptor): ReadImage => {
    const manifest = read(descriptor) as { config: Descriptor; layers: Descriptor[] }
    const { architecture, config, rootfs } = read(manifest.config)
    const layers = manifest.layers.map(pathOf)
    const tars = layers.map((layer) => `sha256:${sha256(gunzipSync(readFileSync(layer)))}`)
    if (tars.join() !== rootfs.diff_ids.join()) throw new Error(`the layers of ${architecture} are others`)
    const arch = (Object.keys(archNames) as Arch[]).find((one) => archNames[one].deb === architecture)
    if (arch === undefined) throw new Error(`unknown architecture ${architecture}`)
    return { arch, config, layers }
  })
  const others = readdirSync(join(folder, 'blobs/sha256')).filter((name) => !seen.has(name))
  if (others.length > 0) throw new Error(`the layout also has ${others.join(', ')}`)
  return { digest: index.digest, images }
}

/** Returns the files of a folder as a tar, readable by everyone and writable by root. */
function tarOf(folder: string, release: Release): Uint8Array {
  for (const entry of globSync('**/*', { cwd: folder, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isSymbolicLink()) continue
    chmodSync(path, entry.isDirectory() || isExecutable(path) ? 0o755 : 0o644)
  }
  const temporary = mkdtempSync(join(tmpdir(), 'kcert-layer-'))
  try {
    const tar = join(temporary, 'layer.tar')
    writeTar(tar, folder, readdirSync(folder).sort(), release)
    return readFileSync(tar)
  } finally {
    rmSync(temporary, { recursive: true })
  }
}

function isExecutable(path: string): boolean {
  return (statSync(path).mode & 0o100) !== 0
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
