import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { missingAdvice } from '../../src/app/renew/renew.ts'
import { openFile } from '../../src/ca/cluster-files.ts'
import type { SurveyedLeaf } from '../../src/ca/renewal.ts'
import type { ProcessFacts } from '../../src/pki/node-access.ts'
import {
  neededRestarts,
  type RenewalChoice,
  type SiteSurvey,
  surveySite,
  writeRenewals,
} from '../../src/renewal-io/renewing.ts'
import { awaitKubelet } from '../../src/site/node-restarts.ts'
import type { Site } from '../../src/site/site.ts'
import {
  certificatePem,
  controlPlaneTree,
  keyPem,
  signedBy,
  type TreeOptions,
  testCa,
  testKey,
  workerTree,
} from '../pki/kubeadm-tree.ts'
import { digest, MemoryNode, now } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// Nodes with valid CAs and expired leaf certificates, without an API server or running processes.

const madeAt = new Date('2024-11-01T00:00:00Z')
const pki = '/etc/kubernetes/pki'
const link = '/var/lib/kubelet/pki/kubelet-client-current.pem'
let drawn = 0
const random = (count: number): Uint8Array => Buffer.alloc(count, ++drawn % 256)
const never = (): boolean => false

async function cluster(options: Partial<TreeOptions> = {}) {
  const nodes = new Map([
    ['cp1', new MemoryNode('cp1', controlPlaneTree({ madeAt, ...options }))],
    ['w1', new MemoryNode('w1', workerTree({ madeAt, nodeName: 'w1', ...options }))],
  ])
  const site = await sitesOf(nodes)
  return { nodes, site: site() }
}

const chosenOf = ({ leaves }: SiteSurvey): SurveyedLeaf[] => leaves.filter(({ state }) => state !== 'valid')

async function renewAll(site: Site, choice: RenewalChoice = { keepKeys: false }, names?: readonly string[]) {
  const survey = await surveySite(site, never)
  const chosen = chosenOf(survey).filter(({ place }) => names === undefined || names.includes(place.name))
  const restarts = neededRestarts(survey, chosen)
  const { written } = await writeRenewals(site, survey, chosen, restarts, choice, random, () => {})
  return { survey, chosen, restarts, written }
}

/** The required final state, after any interruption. */
async function expectAllValid(site: Site): Promise<SiteSurvey> {
  const survey = await surveySite(site, never)
  expect(survey.leaves.map(({ place, state }) => `${place.node} ${place.name} ${state}`)).toEqual([
    ...[
      ...['apiserver', 'apiserver-kubelet-client', 'front-proxy-client', 'etcd-server', 'etcd-peer'],
      ...['etcd-healthcheck-client', 'apiserver-etcd-client', 'admin.conf', 'super-admin.conf'],
      ...['kubelet.conf', 'controller-manager.conf', 'scheduler.conf'],
    ].map((name) => `cp1 ${name} valid`),
    'w1 kubelet.conf valid',
  ])
  return survey
}

test('renews every expired leaf with its subject, SANs, usages and key type, and a new key', async () => {
  const { nodes, site } = await cluster()
  const before = new Map(nodes.get('cp1')!.files)
  const { survey, written } = await renewAll(site)
  expect(new Set(survey.leaves.map(({ state }) => state))).toEqual(new Set(['expired']))
  expect(written).toHaveLength(13)
  const after = await expectAllValid(site)
  for (const [index, { leaf, signer }] of after.leaves.entries()) {
    const old = survey.leaves[index]!.leaf
    expect(leaf.subject.text).toBe(old.subject.text)
    expect([leaf.subjectAltNames.dns, leaf.subjectAltNames.ip]).toEqual([
      ...[old.subjectAltNames.dns, old.subjectAltNames.ip],
    ])
    expect([leaf.keyUsage, leaf.extendedKeyUsage]).toEqual([old.keyUsage, old.extendedKeyUsage])
    expect([leaf.publicKey.algorithm, leaf.publicKey.curve]).toEqual([
      old.publicKey.algorithm,
      old.publicKey.curve,
    ])
    expect(leaf.publicKey.sha256).not.toBe(old.publicKey.sha256)
    expect(leaf.notAfterMs - leaf.notBeforeMs).toBe(old.notAfterMs - old.notBeforeMs)
    expect(signer!.certificate.fingerprintSha256).toBe(
      survey.leaves[index]!.signer!.certificate.fingerprintSha256,
    )
  }
  const { files } = nodes.get('cp1')!
  for (const name of ['ca', 'front-proxy-ca', 'etcd/ca', 'sa']) {
    for (const path of [`${pki}/${name}.crt`, `${pki}/${name}.key`, `${pki}/${name}.pub`]) {
      expect(files.get(path)).toEqual(before.get(path))
    }
  }
  for (const [path, { mode, linkTarget }] of before) {
    if (linkTarget === undefined) expect([path, files.get(path)!.mode]).toEqual([path, mode])
  }
})

test('backs up replaced files in one folder by their whole path, links as links', async () => {
  const { nodes, site } = await cluster()
  const before = new Map(nodes.get('cp1')!.files)
  await renewAll(site)
  const { files } = nodes.get('cp1')!
  const folder = '/var/lib/kcert/backups/renew-2026-11-21T12-00-00Z'
  for (const path of [`${pki}/apiserver.crt`, `${pki}/etcd/peer.key`, '/etc/kubernetes/admin.conf']) {
    expect(digest(files.get(folder + path)!.content)).toBe(digest(before.get(path)!.content))
  }
  const dated = before.get(link)!.linkTarget!
  expect(files.get(folder + link)!.linkTarget).toBe(dated)
  expect(digest(files.get(folder + dated)!.content)).toBe(digest(before.get(dated)!.content))
  expect(files.get(link)!.linkTarget).toBe('/var/lib/kubelet/pki/kubelet-client-2026-11-21-12-00-00.pem')
  expect([...files.keys()].filter((path) => path.startsWith('/etc/kubernetes/manifests'))).toEqual(
    [...before.keys()].filter((path) => path.startsWith('/etc/kubernetes/manifests')),
  )
})

/** One leaf certificate of each format. */
const kinds = ['apiserver', 'admin.conf', 'kubelet.conf']

test('every pair matches and nothing is due after an interruption at any write and a second run', async () => {
  let writes = 0
  for (let isCut = true; isCut; writes++) {
    const { nodes, site } = await cluster()
    const node = nodes.get('cp1')!
    node.writesLeft = writes
    const first = renewAll(site, { keepKeys: false }, kinds)
    isCut = await first.then(
      () => false,
      ({ message }: Error) => message === 'cut off',
    )
    node.writesLeft = Number.POSITIVE_INFINITY
    const second = await renewAll(site, { keepKeys: false }, kinds)
    if (!isCut) expect(second.written).toEqual([])
    const { leaves } = await surveySite(site, never)
    const renewed = leaves.filter(({ place }) => kinds.includes(place.name) && place.node === 'cp1')
    expect(renewed.map(({ state }) => state)).toEqual(['valid', 'valid', 'valid'])
  }
  // The intent, a backup and a new file for each, and the link in the store.
  expect(writes).toBeGreaterThan(10)
})

test('changes no key with --keep-keys', async () => {
  const { nodes, site } = await cluster()
  const before = new Map(nodes.get('cp1')!.files)
  const { survey } = await renewAll(site, { keepKeys: true })
  const after = await expectAllValid(site)
  expect(after.leaves.map(({ leaf }) => leaf.publicKey.sha256)).toEqual(
    survey.leaves.map(({ leaf }) => leaf.publicKey.sha256),
  )
  const { files } = nodes.get('cp1')!
  const keys = [...before.keys()].filter((path) => path.endsWith('.key'))
  expect(keys.filter((path) => files.get(path) !== before.get(path))).toEqual([])
})

test('skips only leaf certificates of a CA whose key is not on these nodes', async () => {
  const { nodes, site } = await cluster()
  nodes.get('cp1')!.files.delete(`${pki}/ca.key`)
  const { survey, written } = await renewAll(site)
  const hindered = survey.leaves.filter((one) => one.hindrance === 'external-ca')
  expect(hindered.map(({ place }) => place.name)).toContain('apiserver')
  expect(hindered.every(({ ca }) => ca.subject.text === 'CN=kubernetes')).toBe(true)
  expect(written.map(({ place }) => place.name)).toEqual([
    ...['front-proxy-client', 'etcd-server', 'etcd-peer', 'etcd-healthcheck-client', 'apiserver-etcd-client'],
  ])
})

test('signs nothing with an expired CA', async () => {
  const { site } = await cluster({ madeAt: new Date('2016-11-01T00:00:00Z') })
  const { leaves } = await surveySite(site, never)
  expect(new Set(leaves.map(({ hindrance }) => hindrance))).toEqual(new Set(['ca-expired']))
  expect(leaves.filter(({ signer }) => signer !== undefined)).toEqual([])
})

test('reports a leaf certificate of another CA as such', async () => {
  const { nodes, site } = await cluster()
  const stranger = testCa('kubernetes', testKey('another ca'), madeAt)
  const other = signedBy(stranger, {
    ...{ commonName: 'kube-apiserver', key: testKey('apiserver'), notBefore: madeAt, notAfter: madeAt },
  })
  nodes
    .get('cp1')!
    .files.set(`${pki}/apiserver.crt`, { content: Buffer.from(certificatePem(other)), mode: 0o644 })
  const { leaves } = await surveySite(site, never)
  expect(leaves.find(({ place }) => place.name === 'apiserver')).toMatchObject({ hindrance: 'foreign-ca' })
})

test('stops before any write because of a kubeconfig that client-go rejects, with its node and path', async () => {
  const { nodes, site } = await cluster()
  const path = '/etc/kubernetes/admin.conf'
  const { files } = nodes.get('cp1')!
  const text = `${files
    .get(path)!
    .content.toString()
    .replace(/^current-context:.*$/m, '')}current-context: y\n`
  files.set(path, { content: Buffer.from(text), mode: 0o600 })
  await expect(surveySite(site, never)).rejects.toMatchObject({
    code: 'KCERT_KUBECONFIG_UNUSABLE',
    message: `client-go rejects the kubeconfig cp1:${path}`,
    next: expect.stringContaining(`kcert inspect ${path}`),
  })
})

test('completes a store whose link is a file without a key, and keeps inline data in a kubeconfig', async () => {
  const { nodes, site } = await cluster()
  const { files } = nodes.get('w1')!
  const [leaf] = (
    await openFile({ node: 'w1', path: link, content: files.get(files.get(link)!.linkTarget!)!.content })
  ).certificates
  files.set(link, { content: Buffer.from(certificatePem(leaf!.der)), mode: 0o644 })
  const own = nodes.get('cp1')!.files
  const inline = await inlined(own)
  own.set('/etc/kubernetes/kubelet.conf', { content: Buffer.from(inline), mode: 0o600 })
  await renewAll(site)
  const after = await expectAllValid(site)
  expect(files.get(link)!.linkTarget).toMatch(/kubelet-client-2026-11-21-12-00-00\.pem$/)
  const [kubelet] = after.leaves.filter(({ place }) => place.node === 'cp1' && place.name === 'kubelet.conf')
  expect(kubelet!.place).toMatchObject({ form: 'kubeconfig', path: '/etc/kubernetes/kubelet.conf' })
})

async function inlined(files: MemoryNode['files']): Promise<string> {
  const text = files.get('/etc/kubernetes/kubelet.conf')!.content.toString()
  const bytes = files.get(files.get(link)!.linkTarget!)!.content
  const data = Buffer.from(bytes).toString('base64')
  return text
    .replace(`client-certificate: ${link}`, `client-certificate-data: ${data}`)
    .replace(
      `client-key: ${link}`,
      `client-key-data: ${Buffer.from(keyPem(testKey('kubelet'))).toString('base64')}`,
    )
}

const pod = (program: string): string => `apiVersion: v1
kind: Pod
metadata:
  name: ${program}
spec:
  containers:
  - name: ${program}
    command: [${program}, --v=2]
`
const process = (program: ProcessFacts['program'], startedAt: string): ProcessFacts => ({
  ...{ program, pid: 1, startTicks: 1, startedAt: new Date(startedAt), argv: [program, '--v=2'] },
})

test('restarts processes that are older than their certificates, and no others', async () => {
  const { nodes, site } = await cluster({ madeAt: new Date('2026-11-01T00:00:00Z') })
  const node = nodes.get('cp1')!
  for (const program of ['etcd', 'kube-apiserver', 'kube-scheduler', 'kube-controller-manager']) {
    node.files.set(`/etc/kubernetes/manifests/${program}.yaml`, {
      content: Buffer.from(pod(program)),
      mode: 0o600,
    })
  }
  node.processes = [
    process('etcd', '2026-10-01T00:00:00Z'),
    process('kube-apiserver', '2026-11-02T00:00:00Z'),
    process('kubelet', '2026-10-01T00:00:00Z'),
  ]
  const survey = await surveySite(site, never)
  expect(chosenOf(survey)).toEqual([])
  // The kubelet renews its own certificates and has read them. A stopped process may be stopped on purpose.
  expect(neededRestarts(survey, [])).toEqual([
    { node: 'cp1', program: 'etcd', reason: 'started-before-renewal' },
  ])
})

test('performs the restarts of an earlier run that stopped after its writes', async () => {
  const { nodes, site } = await cluster()
  const node = nodes.get('cp1')!
  const manifest = { content: Buffer.from(pod('kube-scheduler')), mode: 0o600 }
  node.files.set('/etc/kubernetes/manifests/kube-scheduler.yaml', manifest)
  const first = await renewAll(site)
  expect(first.restarts.map(({ node: its, program }) => `${its} ${program}`)).toEqual([
    ...['cp1 kubelet', 'cp1 kube-scheduler', 'w1 kubelet'],
  ])
  const second = await surveySite(site, never)
  expect(chosenOf(second)).toEqual([])
  expect(neededRestarts(second, []).map(({ node: its, program }) => `${its} ${program}`)).toEqual([
    ...['cp1 kubelet', 'cp1 kube-scheduler', 'w1 kubelet'],
  ])
})

test('counts a kubelet that keeps running as started while no API server responds, but not one that keeps failing', async () => {
  const { nodes, site } = await cluster()
  const node = nodes.get('cp1')!
  let at = now.getTime()
  const hasty: Site = {
    ...site,
    clock: () => {
      at += 20_000
      return new Date(at)
    },
  }
  node.processes = [process('kubelet', '2026-11-21T11:59:59Z')]
  await awaitKubelet(hasty, 'cp1')
  let pid = 1
  Object.defineProperty(node, 'processes', {
    get: () => [{ ...process('kubelet', '2026-11-21T11:59:59Z'), pid: pid++ }],
  })
  at = now.getTime()
  await expect(awaitKubelet(hasty, 'cp1')).rejects.toThrow('the kubelet of cp1 does not keep running')
})

test('renews three control planes with the key of one of them, and restarts processes in order', async () => {
  const names = ['cp1', 'cp2', 'cp3']
  const nodes = new Map(
    names.map((name) => {
      const node = new MemoryNode(
        name,
        controlPlaneTree({ madeAt, nodeName: name, hasSuperAdmin: name === 'cp1' }),
      )
      for (const program of ['etcd', 'kube-apiserver']) {
        const manifest = { content: Buffer.from(pod(program)), mode: 0o600 }
        node.files.set(`/etc/kubernetes/manifests/${program}.yaml`, manifest)
      }
      const keys = [`${pki}/ca.key`, `${pki}/front-proxy-ca.key`, `${pki}/etcd/ca.key`]
      if (name !== 'cp2') for (const key of keys) node.files.delete(key)
      return [name, node]
    }),
  )
  const site = (await sitesOf(nodes))()
  const { written, restarts, survey } = await renewAll(site)
  expect(written).toHaveLength(11 + 12 + 11)
  const after = await surveySite(site, never)
  expect(after.leaves.filter(({ state }) => state !== 'valid')).toEqual([])
  expect(after.leaves.map(({ leaf }) => leaf.subject.text)).toEqual(
    survey.leaves.map(({ leaf }) => leaf.subject.text),
  )
  const served = after.leaves.filter(({ place }) => place.name === 'apiserver')
  expect(served.map(({ place, leaf }) => leaf.subjectAltNames.dns.includes(place.node))).toEqual([
    ...[true, true, true],
  ])
  expect(restarts.map(({ node, program }) => `${node} ${program}`)).toEqual(
    names.flatMap((name) => ['kubelet', 'etcd', 'kube-apiserver'].map((program) => `${name} ${program}`)),
  )
})

test('a kubeconfig with a client key and no certificate is listed as missing its certificate', async () => {
  const { nodes, site } = await cluster()
  const cp1 = nodes.get('cp1')!
  const path = '/etc/kubernetes/admin.conf'
  const file = cp1.files.get(path)!
  const text = file.content.toString()
  const content = Buffer.from(text.replace(/^ *client-certificate-data: .*\n/m, ''))
  expect(content.length).toBeLessThan(text.length)
  cp1.files.set(path, { ...file, content })
  const { missing } = await surveySite(site, never)
  expect(missing.map(({ name, path: its }) => [name, its])).toEqual([['admin.conf', path]])
})

test('the command for a missing certificate moves its key away and runs kubeadm', async () => {
  const { nodes, site } = await cluster()
  nodes.get('cp1')!.files.delete(`${pki}/apiserver.crt`)
  const { missing } = await surveySite(site, never)
  expect(missing).toMatchObject([{ name: 'apiserver', present: [`${pki}/apiserver.key`] }])
  const { next } = missingAdvice(missing[0]!, { root: undefined })

  const folder = mkdtempSync(join(tmpdir(), 'kcert-missing-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'old'))
  writeFileSync(join(folder, 'apiserver.key'), 'key')
  writeFileSync(join(folder, 'kubeadm'), '#!/bin/sh\necho kubeadm "$@"\n', { mode: 0o755 })
  writeFileSync(join(folder, 'crictl'), '#!/bin/sh\n', { mode: 0o755 })
  const command = String(next).replaceAll(`${pki}/`, `${folder}/`).replace('/var/tmp/', `${folder}/old/`)
  const { stdout, stderr } = spawnSync('/bin/sh', ['-c', command], {
    encoding: 'utf8',
    env: { PATH: `${folder}:${env.PATH}` },
  })
  expect([stdout, stderr]).toEqual(['kubeadm init phase certs apiserver\n', ''])
  const [backup = ''] = readdirSync(join(folder, 'old'))
  expect(readdirSync(join(folder, 'old', backup))).toEqual(['apiserver.key'])
})
