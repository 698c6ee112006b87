import { copyFileSync, cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { softwareBill } from '../sbom.ts'
import { type Release, thirdPartyLicenses } from './contents.ts'
import { type DebianPackage, unpackDebian } from './debian-packages.ts'
import { type Arch, archNames, strippedNode } from './node.ts'
import { type Descriptor, type ImageConfig, type PlatformImage, writeLayout } from './oci.ts'

// The container image: Debian's C and C++ libraries, chroot and sleep, Node.js, and the scripts of dist/. No shell, no package manager, no root.
// Under Node.js, the scripts need 43 MB less memory than the executable (docs/decisions/0018-image.md).

const libraries = ['libc6', 'libgcc-s1', 'libstdc++6']
const user = 65_532

export interface ImageSettings {
  readonly release: Release
  readonly archs: readonly Arch[]
  /** The folder of the OCI layout. */
  readonly target: string
  /** The /etc of a Debian with apt's sources and keys. */
  readonly etc: string
  readonly gzipLevel: number
}

/** Builds the image from dist/, and returns the descriptor of its index. */
export function buildImage(settings: ImageSettings, temporary: string): Descriptor {
  const { release, archs, target, etc, gzipLevel } = settings
  const images = archs.map((arch): PlatformImage => {
    const own = join(temporary, `image-${arch}`)
    const [system, node, program] = ['system', 'node', 'program'].map((name) => join(own, name)) as [
      string,
      string,
      string,
    ]
    for (const folder of [system, node, program]) mkdirSync(folder, { recursive: true })
    const packages = [
      ...unpackDebian(libraries, arch, etc, system, temporary),
      ...writeTools(system, arch, etc, join(own, 'tools')),
    ]
    writeAccounts(system)
    mkdirSync(join(node, 'usr/bin'), { recursive: true })
    strippedNode(arch, join(node, 'usr/bin/node'))
    writeProgram(program)
    writeDocuments(program, arch, packages)
    return {
      arch,
      layers: [
        [packages.map(({ name, version }) => `${name} ${version}`).join(', '), system],
        [`Node.js ${process.version}`, node],
        [`kcert ${release.version}`, program],
      ],
    }
  })
  return writeLayout(target, images, configOf(release), release, gzipLevel)
}

/**
 * Writes what a Job needs to reach its node (docs/decisions/0021-nodes-by-jobs.md): sleep, which waits, and chroot. Both need
 * libc6 alone. The shell and all other tools are those of the node.
 */
function writeTools(root: string, arch: Arch, etc: string, temporary: string): DebianPackage[] {
  const whole = join(temporary, 'root')
  mkdirSync(whole, { recursive: true })
  const packages = unpackDebian(['coreutils'], arch, etc, whole, temporary)
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  const tools = globSync('{usr/,}{s,}bin/{chroot,sleep}', { cwd: whole })
  if (tools.length !== 2) throw new Error(`coreutils has ${tools.join(', ')} instead of chroot and sleep`)
  for (const path of tools) copyFileSync(join(whole, path), join(root, 'usr/bin', basename(path)))
  for (const path of ['usr/share/doc/coreutils', 'var/lib/dpkg/status.d/coreutils'])
    cpSync(join(whole, path), join(root, path), { recursive: true })
  return packages
}

function configOf({ version, summary, date }: Release): ImageConfig {
  const label = (name: string): string => `org.opencontainers.image.${name}`
  return {
    User: `${user}:${user}`,
    Entrypoint: ['/usr/bin/kcert'],
    Env: ['PATH=/usr/bin:/bin'],
    WorkingDir: '/',
    Labels: {
      [label('title')]: 'kcert',
      [label('description')]: summary,
      [label('version')]: version,
      [label('created')]: date.toISOString(),
      [label('licenses')]: 'Apache-2.0',
    },
  }
}

function writeAccounts(root: string): void {
  const etc = (name: string, text: string): void => writeFileSync(join(root, 'etc', name), text)
  etc(
    'passwd',
    `root:x:0:0:root:/root:/sbin/nologin\nkcert:x:${user}:${user}:kcert:/nonexistent:/sbin/nologin\n`,
  )
  etc('group', `root:x:0:\nkcert:x:${user}:\n`)
  etc('nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n')
}

/** The npm package without its pages. Its first line names Node.js directly, because the image has no env. */
function writeProgram(root: string): void {
  const folder = join(root, 'usr/lib/kcert')
  for (const name of ['bin', 'dist', 'oclif.manifest.json', 'package.json'])
    cpSync(name, join(folder, name), { recursive: true })
  const start = join(folder, 'bin/run.js')
  const script = readFileSync(start, 'utf8')
  const shebang = '#!/usr/bin/env node\n'
  if (!script.startsWith(shebang)) throw new Error(`bin/run.js does not begin with ${shebang}`)
  writeFileSync(start, `#!/usr/bin/node\n${script.slice(shebang.length)}`, { mode: 0o755 })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  for (const name of ['kcert', 'kubectl-kcert'])
    symlinkSync('../lib/kcert/bin/run.js', join(root, 'usr/bin', name))
}

function writeDocuments(root: string, arch: Arch, packages: readonly DebianPackage[]): void {
  const write = (name: string, text: string): void => {
    const path = join(root, 'usr/share/doc/kcert', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  write('THIRD-PARTY.txt', thirdPartyLicenses())
  write('kcert.cdx.json', `${JSON.stringify(imageBill(arch, packages), null, 2)}\n`)
  copyFileSync('LICENSE', join(root, 'usr/share/doc/kcert/LICENSE'))
}

/** Returns the SBOM of the image, without npm's random serial number and time, so that two builds are identical. */
function imageBill(arch: Arch, packages: readonly DebianPackage[]): object {
  const { serialNumber, metadata, ...bill } = softwareBill() as ReturnType<typeof softwareBill> & {
    readonly serialNumber?: string
  }
  const { timestamp, ...about } = metadata as typeof metadata & { readonly timestamp?: string }
  const component = (type: string, purl: string, { name, version }: DebianPackage) => ({
    ...{ type, 'bom-ref': purl, name, version, purl },
  })
  const node = { name: `node-linux-${arch}`, version: process.version.slice(1) }
  return {
    ...bill,
    metadata: about,
    components: [
      ...bill.components,
      component('platform', `pkg:npm/${node.name}@${node.version}`, node),
      ...packages.map((one) => {
        const [name, version] = [one.name, one.version].map(encodeURIComponent)
        return component('library', `pkg:deb/debian/${name}@${version}?arch=${archNames[arch].deb}`, one)
      }),
    ],
  }
}
