import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { actionsOf } from '../../src/rotation/action.ts'
import { phaseOf } from '../../src/rotation/phase.ts'
import { runbookOf } from '../../src/rotation/runbook.ts'
import { keyIdFor } from '../../src/rotation/service-account-key/key-id.ts'
import { keyPlaybook } from '../../src/rotation/service-account-key/playbook.ts'
import type { Snapshot } from '../../src/rotation/snapshot.ts'
import { defaultSettings } from '../../src/rotation/target-reading.ts'
import { SiteExecutor } from '../../src/rotation-io/executor.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { prepareRunbook } from '../../src/rotation-io/runbook.ts'
import { controlPlaneTree } from '../pki/kubeadm-tree.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// The files of a rotation of the service account key, with real keys: what kcert observes on nodes, and what it writes there.

const pki = '/etc/kubernetes/pki'
const manifests = '/etc/kubernetes/manifests'

function manifest(program: string, words: readonly string[]): string {
  return `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${program}\nspec:\n  containers:\n  - name: ${program}\n    image: ${program}:1\n    command:\n    - ${program}\n${words.map((word) => `    - ${word}\n`).join('')}`
}

function controlPlane(name: string, more: readonly string[] = []): MemoryNode {
  const tree = controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z'), nodeName: name })
  const node = new MemoryNode(name, tree)
  const put = (program: string, words: readonly string[]) =>
    node.files.set(`${manifests}/${program}.yaml`, {
      content: Buffer.from(manifest(program, words)),
      mode: 0o600,
    })
  put('kube-apiserver', [
    `--client-ca-file=${pki}/ca.crt`,
    ...more,
    `--service-account-key-file=${pki}/sa.pub`,
    `--service-account-signing-key-file=${pki}/sa.key`,
  ])
  put('kube-controller-manager', [`--service-account-private-key-file=${pki}/sa.key`])
  return node
}

const sections = ['nodes', 'components', 'kubelets', 'files', 'copies', 'servedKeys'] as const

async function opened(nodes: ReadonlyMap<string, MemoryNode>) {
  const site = (await sitesOf(nodes))()
  const observer = new SiteObserver(site, keyPlaybook)
  let serial = 0
  const random = (length: number) => Buffer.alloc(length, ++serial)
  const executor = new SiteExecutor({ site, random, table: keyPlaybook })
  const observe = async () => {
    const read = await observer.observe(sections)
    const others = {
      ...{ evidence: new Map(), intents: [], kubeadm: undefined, leases: [], kubeconfigs: [] },
      tokens: { nodes: [], objects: [], drivers: { value: [] } },
    }
    const observed = { ...read, ...others } as unknown as Snapshot
    return { observed, target: keyPlaybook.targetOf(observed, defaultSettings, { changes: [] }) }
  }
  /** Performs only the writes of a phase. */
  const write = async (phase: number): Promise<string[]> => {
    const { observed, target } = await observe()
    const writes = phaseOf(keyPlaybook, phase)
      .plan(observed, target)
      .flatMap(actionsOf)
      .filter((action) => action.kind === 'write-file')
    for (const action of writes) await executor.write(action)
    return writes.map(({ node, path }) => `${node}:${path}`)
  }
  return { observe, write }
}

function idsAt(node: MemoryNode, path: string): string[] {
  const text = node.files.get(path)!.content.toString()
  const blocks = text.match(/-----BEGIN [\s\S]*?-----END [^\n]*\n/g) ?? []
  return blocks.map((block) => {
    const key = block.includes('PRIVATE') ? createPublicKey(createPrivateKey(block)) : createPublicKey(block)
    return createHash('sha256')
      .update(key.export({ type: 'spki', format: 'der' }))
      .digest('base64url')
  })
}

test('observes the keys of API servers and controller managers', async () => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const { observed, target } = await (await opened(nodes)).observe()
  const paths = [...observed.files.values()].map(({ path }) => path)
  expect(paths).toEqual(expect.arrayContaining([`${pki}/sa.key`, `${pki}/sa.pub`]))
  expect(keyIdFor(target.key!.oldKey)).toBe(idsAt(nodes.get('cp1')!, `${pki}/sa.pub`)[0])
  expect(target.key!.newKey).toBe('planned:service-account/new')
  // No API server answers: what it verifies is not known, and never empty.
  expect(observed.servedKeys).toEqual([
    { process: 'cp1/kube-apiserver', keyIds: { unread: 'nobody is dialled' } },
  ])
})

test('reads every value of a flag that is given several times', async () => {
  const node = controlPlane('cp1', [`--service-account-key-file=${pki}/next.pub`])
  node.files.set(`${pki}/next.pub`, { ...node.files.get(`${pki}/sa.pub`)! })
  const { observed } = await (await opened(new Map([['cp1', node]]))).observe()
  const api = observed.components.find(({ name }) => name === 'kube-apiserver')
  expect(api?.repeated).toEqual({ 'service-account-key-file': [`${pki}/next.pub`, `${pki}/sa.pub`] })
  expect([...observed.files.values()].map(({ path }) => path)).toContain(`${pki}/next.pub`)
})

test('the page’s rotation does not read the keys', async () => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const observed = await new SiteObserver((await sitesOf(nodes))()).observe(['files', 'components'])
  expect([...observed.files.values()].map(({ path }) => path)).not.toContain(`${pki}/sa.key`)
})

test('writes one new key to all nodes, and public keys in the order that kubeadm needs', async () => {
  const nodes = new Map(['cp1', 'cp2'].map((name) => [name, controlPlane(name)]))
  const cp2 = nodes.get('cp2')!
  const [old] = idsAt(cp2, `${pki}/sa.pub`)
  const first = await opened(nodes)
  expect(await first.write(1)).toEqual(
    expect.arrayContaining([`cp1:${pki}/kcert/new/sa.key`, `cp2:${pki}/kcert/old/sa.pub`]),
  )
  const [made] = idsAt(cp2, `${pki}/kcert/new/sa.key`)
  expect(idsAt(nodes.get('cp1')!, `${pki}/kcert/new/sa.key`)).toEqual([made])
  expect([made === old, idsAt(cp2, `${pki}/kcert/old/sa.pub`)]).toEqual([false, [old]])
  expect(cp2.files.get(`${pki}/kcert/new/sa.key`)!.mode).toBe(0o600)
  // The format and the type are those of the old key.
  const header = (path: string) => cp2.files.get(path)!.content.toString().split('\n')[0]
  expect(header(`${pki}/kcert/new/sa.key`)).toBe(header(`${pki}/sa.key`))
  expect(cp2.files.has('/var/lib/kcert/copies/sa-key-index.jsonl')).toBe(true)
  // A second process finds what the first one wrote.
  const again = await opened(nodes)
  expect(await again.write(1)).toEqual([])
  expect(await again.write(2)).toEqual(
    ['cp1', 'cp2'].flatMap((name) => [`${name}:${pki}/sa.pub`, `${name}:${manifests}/kube-apiserver.yaml`]),
  )
  expect(idsAt(cp2, `${pki}/sa.pub`)).toEqual([old, made])
  const text = cp2.files.get(`${manifests}/kube-apiserver.yaml`)!.content.toString()
  expect(text).toContain('- --shutdown-delay-duration=15s\n')
  expect(await again.write(4)).toEqual(
    ['cp1', 'cp2'].flatMap((name) => [`${name}:${pki}/sa.pub`, `${name}:${pki}/sa.key`]),
  )
  expect([idsAt(cp2, `${pki}/sa.pub`), idsAt(cp2, `${pki}/sa.key`)]).toEqual([[made, old], [made]])
  await again.write(7)
  expect(idsAt(cp2, `${pki}/sa.pub`)).toEqual([made])
  expect(cp2.files.get(`${manifests}/kube-apiserver.yaml`)!.content.toString()).toBe(
    controlPlane('cp2').files.get(`${manifests}/kube-apiserver.yaml`)!.content.toString(),
  )
  await again.write(8)
  expect([...cp2.files.keys()].filter((path) => path.includes('/kcert/'))).toEqual(
    expect.not.arrayContaining([expect.stringMatching(/pki\/kcert/)]),
  )
})

test('creates no second key while a file that may have it cannot be read', async () => {
  const nodes = new Map(['cp1', 'cp2'].map((name) => [name, controlPlane(name)]))
  const run = await opened(nodes)
  await run.write(1)
  const access = nodes.get('cp1')!.access as { readFiles: (paths: readonly string[]) => Promise<unknown[]> }
  const { readFiles } = access
  access.readFiles = async (paths) =>
    (await readFiles(paths)).map((file, index) =>
      paths[index]!.endsWith('/new/sa.key')
        ? { path: paths[index], found: 'unreadable', reason: 'EACCES' }
        : file,
    )
  await expect((await opened(nodes)).write(4)).rejects.toMatchObject({ code: 'KCERT_NODE_REFUSED' })
})

test('scripts put one new key on all nodes, and end the process of an API server after its shutdown delay', async () => {
  const nodes = new Map(['cp1', 'cp2'].map((name) => [name, controlPlane(name)]))
  const { observed, target } = await (await opened(nodes)).observe()
  const { groups } = runbookOf(keyPlaybook, observed, target, phaseOf(keyPlaybook, 1).plan(observed, target))
  const restart = {
    ...({ kind: 'restart', phase: 2, process: 'cp1/kube-apiserver', how: 'signal' } as const),
    ...{ replaces: 1_000_000, killAfterMs: 20_000 },
  }
  const restarting = { atOnce: 1, scripts: [{ node: 'cp1', acts: [restart] }] }
  const site = (await sitesOf(nodes))()
  const options = { site, random: (length: number) => Buffer.alloc(length, 7), table: keyPlaybook }
  const phase = { command: 'kcert rotate-sa-key', number: 1, title: 'copy the new key', next: 'kcert' }
  const prepared = (await prepareRunbook(options, { groups: [...groups, restarting] }, phase)).flat()
  const keys = prepared.flatMap(({ node, files }) =>
    files.flatMap(({ content }) =>
      String(content).includes('PRIVATE KEY') ? [[node, String(content)]] : [],
    ),
  )
  expect(keys.map(([node]) => node)).toEqual(['cp1', 'cp2'])
  expect(keys[0]?.[1]).toBe(keys[1]?.[1])
  const scripts = prepared.map(({ files }) => String(files.find(({ name }) => name === 'run.sh')?.content))
  expect(scripts[0]).toContain('# kcert rotate-sa-key, phase 1 on cp1: copy the new key\n')
  expect(scripts[0]).toContain("\nC='kcert rotate-sa-key runbook'\n")
  expect(scripts.at(-1)).toContain("\nsignal 'kube-apiserver' '1000' '20'\n")
  // Nothing was written.
  expect(nodes.get('cp1')?.files.has(`${pki}/kcert/new/sa.key`)).toBe(false)
})

test('no plan and no observation contains a private key', async () => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const run = await opened(nodes)
  await run.write(1)
  const { observed, target } = await run.observe()
  const plans = keyPlaybook.phases.map((phase) => phase.plan(observed, target))
  const text = JSON.stringify([plans, [...observed.files], target])
  for (const path of [`${pki}/sa.key`, `${pki}/kcert/new/sa.key`]) {
    const [, body = ''] = nodes.get('cp1')!.files.get(path)!.content.toString().split('\n')
    expect(body.length).toBeGreaterThan(20)
    expect(text).not.toContain(body)
  }
})
