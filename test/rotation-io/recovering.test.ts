import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { FileContent, NodeAccess, WriteOptions } from '../../src/pki/node-access.ts'
import { readInventory } from '../../src/rotation/inventory.ts'
import { Certificates } from '../../src/rotation-io/certificates.ts'
import { FileReading } from '../../src/rotation-io/file-reading.ts'
import { carryOutRecovery, inventoryObjects, planRecovery } from '../../src/rotation-io/recovering.ts'
import type { Site } from '../../src/rotation-io/site.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { controlPlaneTree, workerTree } from '../pki/kubeadm-tree.ts'

// Two nodes whose CAs ended years ago, with nothing on them that runs: kcert goes by their files, and no API server is asked.

const now = new Date('2026-11-21T12:00:00Z')
const madeAt = new Date('2016-11-01T00:00:00Z')
let drawn = 0
const random = (count: number): Uint8Array => Buffer.alloc(count, ++drawn)
const ca = '/etc/kubernetes/pki/ca.crt'

interface StoredFile {
  readonly content: Buffer
  readonly mode: number
  readonly linkTarget?: string
}

/** A node in memory. `writesLeft` is when it is cut off. */
class MemoryNode {
  readonly files = new Map<string, StoredFile>()
  readonly restarted: string[] = []
  writesLeft = Number.POSITIVE_INFINITY
  readonly access: NodeAccess

  constructor(name: string, tree: ReturnType<typeof controlPlaneTree>) {
    for (const [path, { bytes, mode, linkTarget }] of tree.files) {
      this.files.set(path, {
        content: Buffer.from(bytes),
        mode,
        ...(linkTarget !== undefined && { linkTarget }),
      })
    }
    const access = {
      name,
      readFiles: async (paths: readonly string[]) => paths.map((path) => this.read(path)),
      statFiles: async (paths: readonly string[]) => paths.map((path) => this.read(path)),
      matchPaths: async (patterns: readonly string[]) => patterns.flatMap((pattern) => this.match(pattern)),
      processes: async () => [],
      clock: async () => ({ at: now, aheadMs: { atLeast: 0, atMost: 0 }, roundTripMs: 0 }),
      unit: async (unit: string) => ({
        name: unit,
        loadState: 'not-found',
        activeState: 'inactive',
        mainPid: 0,
        dropInPaths: [],
      }),
      makeFolder: async () => {},
      writeFile: async (path: string, content: string, options: WriteOptions) =>
        this.write(path, Buffer.from(content), options),
      copyFile: async (from: string, to: string, options: WriteOptions) =>
        this.write(to, this.files.get(this.leads(from))!.content, options),
      restartUnit: async (unit: string) => this.restarted.push(unit),
    }
    this.access = access as unknown as NodeAccess
  }

  private leads(path: string): string {
    const to = this.files.get(path)?.linkTarget
    return to === undefined ? path : to.startsWith('/') ? to : `${path.slice(0, path.lastIndexOf('/'))}/${to}`
  }

  private read(path: string): FileContent {
    const own = this.files.get(path)
    const file = this.files.get(this.leads(path))
    if (own === undefined || file === undefined) return { path, found: 'absent' }
    const { content, mode } = file
    const link = own.linkTarget === undefined ? {} : { linkTarget: own.linkTarget, linkedAt: madeAt }
    const facts = { mode, uid: 0, gid: 0, sizeBytes: content.length, modifiedAt: madeAt }
    return { path, found: 'file', ...facts, ...link, content, sha256: digest(content) }
  }

  private match(pattern: string): string[] {
    const words = pattern.split('*').map((word) => word.replaceAll(/[.$^+()[\]{}|\\]/g, '\\$&'))
    const expression = new RegExp(`^${words.join('[^/]*')}$`)
    return [...this.files.keys()].filter((path) => expression.test(path))
  }

  private write(path: string, content: Buffer, { replaces, mode }: WriteOptions): void {
    if (this.writesLeft-- <= 0) throw new Error('cut off')
    const before = this.read(path)
    if (typeof replaces === 'object' && 'sha256' in replaces) {
      expect(before).toMatchObject({ found: 'file', sha256: replaces.sha256 })
    }
    const was = this.files.get(this.leads(path))
    this.files.set(this.leads(path), { content, mode: mode ?? was?.mode ?? 0o600 })
  }
}

function digest(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

async function cluster() {
  const nodes = new Map([
    ['cp1', new MemoryNode('cp1', controlPlaneTree({ madeAt }))],
    ['w1', new MemoryNode('w1', workerTree({ madeAt, nodeName: 'w1' }))],
  ])
  const inventory = await readInventory(`apiVersion: kcert/v1
kind: Inventory
access: {by: command, argv: ['false']}
nodes:
- {name: cp1, role: control-plane, addresses: [192.0.2.1], layout: kubeadm}
- {name: w1, role: worker, addresses: [192.0.2.2], layout: kubeadm}
`)
  const site = (): Site => {
    const certificates = new Certificates()
    return {
      inventory,
      objects: inventoryObjects(inventory),
      clock: () => now,
      certificates,
      reading: new FileReading(certificates),
      node: (name) => nodes.get(name)?.access,
      dial: () => {
        throw new Error('nobody is dialled')
      },
      clockAheadMs: async () => 0,
      startedAtMs: async () => 0,
      close: async () => {},
    }
  }
  return { nodes, site }
}

test('what was planned is written with copies, kubelets start anew, and run again nothing is left', async () => {
  const { nodes, site } = await cluster()
  const plan = await planRecovery(site(), random)
  expect(plan.files.length).toBeGreaterThan(15)
  expect(plan.restarts).toEqual(['cp1', 'w1'])
  const said: string[] = []
  const before = new Map(nodes.get('cp1')!.files)
  await carryOutRecovery(site(), plan, random, (what) => said.push(what))
  expect(said.join('\n')).toContain(`wrote cp1:${ca} (CN=kubernetes until 2036-11-`)
  expect(said.join('\n')).not.toContain('PRIVATE')
  expect([...nodes.values()].map(({ restarted }) => restarted)).toEqual([
    ['kubelet.service'],
    ['kubelet.service'],
  ])
  const { files } = nodes.get('cp1')!
  const renewed = readCertificates(files.get(ca)!.content)
  expect(renewed.map(({ notAfterMs }) => notAfterMs > now.getTime())).toEqual([true])
  expect(files.get(ca)!.mode).toBe(before.get(ca)!.mode)
  const copy = `/var/lib/kcert/copies/by-digest/${digest(before.get(ca)!.content)}`
  expect(files.get(copy)?.content).toEqual(before.get(ca)!.content)
  expect(nodes.get('w1')!.files.get(ca)!.content.equals(files.get(ca)!.content)).toBe(true)
  expect(await planRecovery(site(), random)).toMatchObject({ files: [], renewed: [], keyless: [] })
})

test('cut off in the middle and run again, it ends with one CA everywhere', async () => {
  const { nodes, site } = await cluster()
  const first = await planRecovery(site(), random)
  nodes.get('cp1')!.writesLeft = 20
  await expect(carryOutRecovery(site(), first, random, () => {})).rejects.toThrow('cut off')
  nodes.get('cp1')!.writesLeft = Number.POSITIVE_INFINITY
  const second = await planRecovery(site(), random)
  expect(second.files.length).toBeLessThan(first.files.length)
  await carryOutRecovery(site(), second, random, () => {})
  const cas = [...nodes.values()].map(
    ({ files }) => readCertificates(files.get(ca)!.content)[0]!.fingerprintSha256,
  )
  expect(new Set(cas).size).toBe(1)
  // Stopped before anything was started anew: that is not forgotten, though its files are in order.
  expect(second.restarts).toEqual(['cp1', 'w1'])
  expect((await planRecovery(site(), random)).files).toEqual([])
})
