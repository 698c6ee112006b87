import { createHash } from 'node:crypto'
import {
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Binaries, keyFolder } from './binaries.ts'
import { endProcess, run, startDetached, until } from './command.ts'
import { type Minor, releases } from './spec.ts'
import { folders, withLock } from './state.ts'
import type { Steps } from './steps.ts'

/** A container image with one layer: the source of each file, and its command. */
interface Image {
  readonly reference: string
  readonly entrypoint?: readonly string[]
  readonly fill: (root: string, binaries: string) => Promise<void>
}

const component = (name: string, version: string): Image => ({
  reference: `registry.k8s.io/${name}:${version}`,
  fill: async (root, binaries) => put(root, join(binaries, name), `/usr/local/bin/${name}`),
})

const program = (name: string, reference: string): Image => ({
  reference,
  entrypoint: [`/${name}`],
  fill: async (root, binaries) => put(root, join(binaries, name), `/${name}`),
})

const script = (file: string, interpreter: string, fill: (root: string) => Promise<void>): Image => ({
  reference: `lab.local/${file.slice(0, file.indexOf('.'))}:1`,
  entrypoint: [interpreter, `/${file}`],
  fill: async (root) => {
    await fill(root)
    put(root, join(folders.source, 'clients', file), `/${file}`)
  },
})

/** Returns the images that kubeadm of a minor version needs, by their names. */
function kubeadmImages(minor: Minor): readonly Image[] {
  const { kubernetes, etcd, pause, coredns } = releases[minor]
  return [
    program('pause', `registry.k8s.io/pause:${pause}`),
    component('etcd', etcd),
    component('kube-apiserver', kubernetes),
    component('kube-controller-manager', kubernetes),
    component('kube-scheduler', kubernetes),
    {
      ...component('kube-proxy', kubernetes),
      fill: async (root, binaries) => {
        put(root, join(binaries, 'kube-proxy'), '/usr/local/bin/kube-proxy')
        await putIptables(root)
      },
    },
    program('coredns', `registry.k8s.io/coredns/coredns:${coredns}`),
  ]
}

/**
 * Builds the archives of the images that kubeadm of a minor version needs, one at a time. Each is deleted when the next is
 * requested.
 */
export async function* archivesOf(minor: Minor, binaries: string, work: string): AsyncGenerator<string> {
  for (const image of kubeadmImages(minor)) {
    const archive = await archiveOf(image, binaries, work)
    yield archive
    rmSync(archive)
  }
}

/** The lab's own images are lab.local/…:1. */
const ownImages: readonly Image[] = [
  program('metrics-server', 'lab.local/metrics-server:1'),
  program('client', 'lab.local/client-go:1'),
  program('client-0.33', 'lab.local/client-go-0.33:1'),
  program('plain-client', 'lab.local/plain-client:1'),
  program('webhook', 'lab.local/webhook:1'),
  script('client-node.mjs', '/usr/bin/node', putNode),
  script('client-python.py', '/usr/bin/python3', putPython),
]

/**
 * Builds a containerd root folder with every image unpacked. Nodes get it through hard links, so that their images are available
 * within a second, and all nodes share the memory pages of one kube-apiserver.
 */
export async function buildImageStore(all: readonly Binaries[], steps: Steps): Promise<string> {
  const [first, ...others] = all as readonly [Binaries, ...Binaries[]]
  const store = join(keyFolder(first), ['images', imagesKey(), ...others.map(({ key }) => key)].join('-'))
  if (existsSync(store)) return store
  return withLock(join(folders.cache, 'build.lock'), `the cache ${folders.cache}`, 30 * 60_000, async () => {
    if (existsSync(store)) return store
    return steps.step('make the images', async () => {
      const work = mkdtempSync(join(tmpdir(), 'kcert-images-'))
      const draft = `${store}.new`
      rmSync(draft, { recursive: true, force: true })
      try {
        await importAll(all, work, draft)
        renameSync(draft, store)
      } finally {
        rmSync(work, { recursive: true, force: true })
      }
      return store
    })
  })
}

async function importAll(all: readonly Binaries[], work: string, root: string): Promise<void> {
  const socket = join(work, 'containerd.sock')
  const config = `version = 2\nroot = "${root}"\nstate = "${work}/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "${socket}"\n[ttrpc]\n  address = "${socket}.ttrpc"\n`
  writeFileSync(join(work, 'config.toml'), config)
  const daemon = await startDetached(
    ['containerd', '-c', join(work, 'config.toml')],
    join(work, 'containerd.log'),
  )
  try {
    await until(
      'containerd answers',
      30_000,
      async () => (await run(['ctr', '-a', socket, 'version'], { mayFail: true })).code === 0,
    )
    const [newest] = all
    const made = all.flatMap(({ minor, folder }) => kubeadmImages(minor).map((image) => ({ image, folder })))
    for (const { image, folder } of [
      ...made,
      ...ownImages.map((image) => ({ image, folder: newest!.folder })),
    ]) {
      const archive = await archiveOf(image, folder, work)
      await run(['ctr', '-a', socket, '-n', 'k8s.io', 'images', 'import', archive])
      rmSync(archive)
    }
  } finally {
    await endProcess(daemon, 'SIGTERM')
  }
}

/** Builds a docker-archive: one layer, its configuration, and a manifest with both. */
async function archiveOf(image: Image, binaries: string, work: string): Promise<string> {
  const root = join(work, 'root')
  mkdirSync(join(root, 'tmp'), { recursive: true })
  await image.fill(root, binaries)
  const tar = ['tar', '--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-cf']
  const archiveFolder = join(work, 'archive')
  mkdirSync(archiveFolder)
  await run([...tar, join(archiveFolder, 'layer.tar'), '-C', root, '.'])
  const digest = await sha256(join(archiveFolder, 'layer.tar'))
  const config = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      ...(image.entrypoint && { Entrypoint: image.entrypoint }),
      Env: ['PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  })
  writeFileSync(join(archiveFolder, 'config.json'), config)
  const manifest = [{ Config: 'config.json', RepoTags: [image.reference], Layers: ['layer.tar'] }]
  writeFileSync(join(archiveFolder, 'manifest.json'), JSON.stringify(manifest))
  const archive = join(work, 'image.tar')
  await run([...tar, archive, '-C', archiveFolder, 'manifest.json', 'config.json', 'layer.tar'])
  rmSync(root, { recursive: true })
  rmSync(archiveFolder, { recursive: true })
  return archive
}

/** Copies one file or folder into an image and follows links. */
function put(root: string, source: string, target: string): void {
  mkdirSync(dirname(join(root, target)), { recursive: true })
  cpSync(source, join(root, target), { recursive: true, dereference: true })
}

/** Copies a program and every library that the dynamic loader would load for it. */
async function putWithLibraries(root: string, source: string, target = source): Promise<void> {
  put(root, source, target)
  const loaded = await run(['ldd', source], { mayFail: true })
  for (const match of loaded.stdout.matchAll(/(\/\S+) \(0x/g)) {
    if (!existsSync(join(root, match[1]!))) put(root, match[1]!, match[1]!)
  }
}

/** iptables and its extensions, for kube-proxy: Debian's multi-call binary with the names that kube-proxy runs. */
async function putIptables(root: string): Promise<void> {
  await putWithLibraries(root, '/usr/sbin/xtables-nft-multi')
  for (const family of ['iptables', 'ip6tables']) {
    for (const suffix of ['', '-save', '-restore'])
      symlinkSync('xtables-nft-multi', join(root, `usr/sbin/${family}${suffix}`))
  }
  const extensions = dirname((await run(['sh', '-c', 'ls /usr/lib/*/xtables/libxt_tcp.so'])).stdout.trim())
  for (const name of readdirSync(extensions)) await putWithLibraries(root, join(extensions, name))
  await putWithLibraries(root, '/usr/sbin/conntrack')
}

/** The Node of this checkout, which also runs the suites. */
async function putNode(root: string): Promise<void> {
  await putWithLibraries(root, realpathSync(process.execPath), '/usr/bin/node')
}

/** Debian's Python with its standard library and OpenSSL. */
async function putPython(root: string): Promise<void> {
  const python = realpathSync('/usr/bin/python3')
  await putWithLibraries(root, python, '/usr/bin/python3')
  const library = `/usr/lib/${basename(python)}`
  const unused = /\/(__pycache__|dist-packages|test|config-[^/]*|ensurepip|idlelib|lib2to3|pydoc_data)$/
  cpSync(library, join(root, library), {
    recursive: true,
    dereference: true,
    filter: (name) => !unused.test(name),
  })
  for (const name of ['_ssl', '_hashlib']) {
    const modules = (await run(['sh', '-c', `ls ${library}/lib-dynload/${name}.*.so`])).stdout
      .trim()
      .split('\n')
    for (const module of modules) await putWithLibraries(root, module)
  }
}

function imagesKey(): string {
  const hash = createHash('sha256')
  for (const file of ['images.ts', 'clients/client-node.mjs', 'clients/client-python.py']) {
    hash.update(readFileSync(join(folders.source, file)))
  }
  return hash.update(process.version).digest('hex').slice(0, 12)
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
