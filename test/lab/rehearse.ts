import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ageCertificates, failPower } from './aging.ts'
import { readersOnNodes, runPhaseByHand } from './by-hand.ts'
import { jobsOnNodes, keyLines, leftOfJobs, searchEtcd } from './by-jobs.ts'
import { sleep, until } from './command.ts'
import { killedControllers } from './controller-kills.ts'
import { disturbMembers, withHistory } from './etcd-history.ts'
import { tryEveryCommand } from './every-command.ts'
import { type Cluster, withCluster } from './fixture.ts'
import { describeError, LabError } from './lab-error.ts'
import { appendRow, currentSources, isDone, readRows, rowOf, tableOf } from './matrix.ts'
import { issueAdministrator, issueToken, probeFiles } from './prober.ts'
import {
  answersToOldCertificate,
  answersToToken,
  holdersOf,
  holdersOfKey,
  nodeFiles,
  oldCaOf,
  staticPods,
} from './rotation-aftermath.ts'
import { describeEvidence, rotateUnderWatch, type Step } from './rotation-evidence.ts'
import {
  killedCode,
  RotationOperator,
  waiversOfBarePods,
  waiversOfLab,
  waiversOfProber,
  waiversOfUnreadLogs,
} from './rotation-operator.ts'
import {
  allReleases,
  type ClusterRequest,
  type Minor,
  minors,
  minorsByRole,
  onAllNodes,
  releases,
} from './spec.ts'
import { folders } from './state.ts'
import type { Expectation } from './verdict.ts'

const usage = `npm run rehearse -- [--full | --only NAME | --matrix [--only NAME]… [--again]] [--kubernetes 1.34 | --kubernetes cp=1.37,worker=1.34]

Rotations of the lab's cluster, watched, with their evidence. Without flags: three control planes and a worker with all add-ons,
RSA, by one command. --full: the variants too, one after the other, some two hours on two cores; --only runs the one of that name.
--matrix: the first on each minor version, and on mixes, one of them of control planes, each after every other command, and those with
an upgrade in between; prints a table. With --only its rehearsals of these names alone: rsa-1.34, upgrade-after-7. What was good on
the same sources (all that rotate-ca loads) is not run again, unless --again says so. kcert refuses a version that is not in src/rotation/tested-versions.ts:
add it there first, and keep it when its rehearsal succeeds. Exit code 3 when a rehearsal was not as it must be.
`

interface Rehearsal {
  readonly name: string
  readonly request: ClusterRequest
  /** Returns the flags of `discover` for access to nodes (default ssh). */
  readonly reach?: (cluster: Cluster) => Promise<string[]>
  /** Returns the evidence as text. Throws when it shows an error. */
  readonly run: (cluster: Cluster, operator: RotationOperator) => Promise<string>
}

const large = { controlPlanes: 3, workers: 1, addons: true } as const
const small = { controlPlanes: 1, workers: 1 } as const
const all = ['--all', ...waiversOfLab]
/** The state during an upgrade over several months: kubelets up to three minor versions behind. */
const mixes = ['cp=1.37,worker=1.34', 'cp=1.36,worker=1.33']
const phases = Array.from({ length: 12 }, (_, index) => index + 1)

const rehearsals: readonly Rehearsal[] = [
  {
    name: 'rsa',
    request: large,
    run: (cluster, operator) => watched(cluster, operator, [all], ['w2', 'cp4']),
  },
  {
    name: 'ecdsa',
    request: { ...large, keys: 'ECDSA-P256' },
    run: (cluster, operator) => watched(cluster, operator, [all]),
  },
  {
    name: 'all-flags',
    request: { ...large, allFlags: true },
    run: (cluster, operator) => watched(cluster, operator, [all]),
  },
  {
    name: 'plain',
    request: { ...small, flavour: 'plain', addons: true },
    run: (cluster, operator) =>
      watched(cluster, operator, [[...all, ...waiversOfUnreadLogs, '--accept-outage']]),
  },
  {
    name: 'twelve-commands',
    request: small,
    run: (cluster, operator) =>
      watched(
        cluster,
        operator,
        phases.map((phase) => ['--phase', String(phase), ...waiversOfProber]),
      ),
  },
  { name: 'etcd-ca', request: large, run: rotatedEtcd },
  {
    name: 'etcd-ca-unknown-clients',
    request: large,
    run: (cluster, operator) =>
      rotatedEtcd(cluster, operator, ['--etcd-clients', 'unknown', '--waive', 'etcd-clients']),
  },
  {
    name: 'etcd-units',
    request: { ...large, flavour: 'plain' },
    run: rotatedEtcdUnits,
  },
  {
    name: 'etcd-external',
    request: { controlPlanes: 2, workers: 1, etcdMachines: 5, keys: 'ECDSA-P256', addons: true },
    run: rotatedExternalEtcd,
  },
  { name: 'etcd-database', request: { ...large, addons: false }, run: rotatedDatabase },
  { name: 'sa-key', request: large, run: rotatedServiceAccountKey },
  { name: 'everything', request: large, run: rotatedEverything },
  { name: 'controller', request: { ...large, addons: false }, run: killedControllers },
  { name: 'rollbacks', request: small, run: rolledBack },
  { name: 'kills', request: small, run: killed },
  { name: 'runbook', request: small, reach: readersOnNodes, run: byScripts },
  { name: 'jobs', request: small, reach: jobsOnNodes, run: byJobs },
  { name: 'recover', request: large, run: recovered },
  ...[2, 5, 7, 9].map((phase) => ({
    name: `upgrade-after-${phase}`,
    request: { ...large, kubernetes: onAllNodes('1.36') },
    run: (cluster: Cluster, operator: RotationOperator) => upgradedBetween(cluster, operator, phase),
  })),
  {
    // kubeadm drops the organization of apiserver-kubelet-client, and creates the binding that replaces it.
    name: 'upgrade-after-5-from-1.33.6',
    request: { ...large, kubernetes: onAllNodes('1.33.6') },
    run: (cluster, operator) => upgradedBetween(cluster, operator, 5),
  },
  { name: 'mixed-control-planes', request: { ...large, kubernetes: onAllNodes('1.36') }, run: mixed },
]

/** The whole rotation, with prober and watcher; then the remains of the old CA, and joining nodes. */
async function watched(
  cluster: Cluster,
  operator: RotationOperator,
  commands: readonly Step[],
  joining: readonly string[] = [],
  mayRestart = cluster.spec.allFlags || cluster.spec.flavour === 'plain',
): Promise<string> {
  const before = cluster.spec.flavour === 'kubeadm' ? staticPods(cluster) : {}
  const oldCa = oldCaOf(cluster)
  const oldClient = await issueAdministrator(cluster.spec)
  const evidence = await rotateUnderWatch(cluster, operator, ...commands)
  const faults = evidence.verdict.unexpected.length + evidence.restarted.length + evidence.notReadySeconds
  const text = describeEvidence(evidence)
  const after = cluster.spec.flavour === 'kubeadm' ? staticPods(cluster) : {}
  const changed = changedNames(before, after)
  for (const node of joining) await cluster.join(node)
  const holders = await holdersOf(cluster, oldCa)
  const answers = Object.entries(await answersToOldCertificate(cluster, oldClient))
  // In the plain flavour, a scheduler verifies no client, so the old certificate gets only an anonymous response.
  const refusing = cluster.spec.flavour === 'plain' ? ['401', '403 to nobody'] : ['401']
  const accepting = answers.filter(([, status]) => !refusing.includes(status)).map(([server]) => server)
  const lines = [
    `manifests that differ      ${named(changed)}`,
    `who contains the old CA       ${named(holders)}`,
    `who accepts an old client  ${named(accepting)} (of ${answers.length} asked)`,
    ...(joining.length > 0 ? [`joined afterwards          ${joining.join(', ')}`] : []),
  ]
  const report = `${text}${lines.join('\n')}\n`
  const allowed = mayRestart ? evidence.restarted.length : 0
  if (faults - allowed + changed.length + holders.length + accepting.length > 0) throw new Error(report)
  return report
}

function nextRelease({ spec }: Cluster): Minor {
  const to = allReleases[allReleases.indexOf(spec.kubernetes['control-plane']) + 1]
  if (to === undefined) throw new TypeError('the lab has no newer release')
  return to
}

/**
 * The whole rotation where one control plane runs the next release throughout. Nodes of the older version cannot join then.
 */
async function mixed(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const to = nextRelease(cluster)
  const versions = [cluster.spec.kubernetes['control-plane'], to].map((minor) => releases[minor].kubernetes)
  await cluster.upgrade(to, 'cp1')
  return watched(cluster, operator, [[...all, '--waive', versions.join('+')]])
}

/** One control plane is upgraded to the next release in the middle of a rotation, which then continues. */
async function upgradedBetween(cluster: Cluster, operator: RotationOperator, phase: number): Promise<string> {
  const to = nextRelease(cluster)
  const oldCa = oldCaOf(cluster)
  const through = ['--through', String(phase), ...waiversOfLab]
  const upgrade = async (): Promise<readonly Expectation[]> => {
    const from = new Date().toISOString()
    await cluster.upgrade(to, 'cp1')
    const until = new Date(Date.now() + 45_000).toISOString()
    await operator.run(through)
    // No trust failure is allowed. etcd changes its leader, cp1 has no API server for a while, and its kubelet is restarted.
    const allow = ['ok', 'refused', 'cut', 'forbidden', 'http', 'error', 'timeout', 'failures', 'starting']
    const because = `kubeadm upgrade to ${to} on cp1`
    const repaired = { from, until: new Date().toISOString(), because: `${because}, until kcert ran again` }
    // kubeadm issues the certificate of cp1's API server from the old CA.
    const newOnly = phase < 9 ? [] : [{ ...repaired, trust: 'new', allow: ['ok', 'untrusted'] }]
    return [{ from, until, allow, because }, ...newOnly]
  }
  const evidence = await rotateUnderWatch(cluster, operator, through, upgrade, all)
  const holders = await holdersOf(cluster, oldCa)
  const report = `${describeEvidence(evidence)}who contains the old CA       ${named(holders)}\n`
  if (evidence.verdict.unexpected.length + holders.length > 0) throw new Error(report)
  return report
}

/**
 * The etcd CA: to phase 4 and back, with the bytes as before, then to the end under watch. Each member and each API server restarts
 * (members twice for unknown clients); no connection fails because of trust; a control-plane node joins afterwards.
 */
async function rotatedEtcd(
  cluster: Cluster,
  operator: RotationOperator,
  flags: readonly string[] = [],
): Promise<string> {
  const pods = staticPods(cluster)
  const oldCa = readFileSync(cluster.hostPath('cp1', '/etc/kubernetes/pki/etcd/ca.crt'), 'utf8')
  const notBack = await toFourAndBack(cluster, operator, ['--ca', 'etcd'], { forward: flags })
  const evidence = await rotateUnderWatch(cluster, operator, () => rotateEtcd(cluster, operator, flags))
  const after = staticPods(cluster)
  const changed = changedNames(pods, after)
  const holders = await holdersOf(cluster, oldCa)
  await cluster.join('cp4')
  const joined = readFileSync(cluster.hostPath('cp4', '/etc/kubernetes/pki/etcd/ca.crt'), 'utf8')
  const isNew = joined !== oldCa
  const report = `${describeEvidence(evidence)}${[
    `not restored by rollback   ${named(notBack)}`,
    `manifests that differ      ${named(changed)}`,
    `who contains the old CA       ${named(holders)}`,
    `joined afterwards          cp4${isNew ? '' : ', with the old etcd CA'}`,
  ].join('\n')}\n`
  const restarts = Object.keys(pods).filter((name) => /\/(?:etcd|kube-apiserver)$/.test(name)).length
  const faults = evidence.verdict.unexpected.length + notBack.length + changed.length + holders.length
  if (faults > 0 || evidence.restarted.length !== restarts || !isNew) throw new Error(report)
  return report
}

/** The etcd CA of members that are units: to phase 4 and back, with the bytes as before, then to the end under watch. */
async function rotatedEtcdUnits(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const oldCa = readFileSync(cluster.hostPath('cp1', '/etc/etcd/ssl/etcd-ca.pem'), 'utf8')
  const notBack = await toFourAndBack(cluster, operator, ['--ca', 'etcd'])
  const evidence = await rotateUnderWatch(cluster, operator, () => rotateEtcd(cluster, operator))
  const holders = await holdersOf(cluster, oldCa)
  const report = `${describeEvidence(evidence)}${[
    `not restored by rollback   ${named(notBack)}`,
    `who contains the old CA       ${named(holders)}`,
  ].join('\n')}\n`
  if (evidence.verdict.unexpected.length + notBack.length + holders.length > 0) throw new Error(report)
  return report
}

/**
 * The CA of external etcd, with ECDSA keys: to phase 4 and back, with the bytes as before, then to the end under watch. Each member and
 * each API server restarts once; a control-plane node joins afterwards.
 */
async function rotatedExternalEtcd(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const pods = staticPods(cluster)
  const oldCa = readFileSync(cluster.hostPath('e1', '/etc/etcd/ssl/etcd-ca.pem'), 'utf8')
  const notBack = await toFourAndBack(cluster, operator, ['--ca', 'etcd'])
  const evidence = await rotateUnderWatch(cluster, operator, () => rotateEtcd(cluster, operator))
  const changed = changedNames(pods, staticPods(cluster))
  const holders = await holdersOf(cluster, oldCa)
  await cluster.join('cp3')
  const isNew = readFileSync(cluster.hostPath('cp3', '/etc/kubernetes/pki/etcd/ca.crt'), 'utf8') !== oldCa
  const report = `${describeEvidence(evidence)}${[
    `not restored by rollback   ${named(notBack)}`,
    `manifests that differ      ${named(changed)}`,
    `who contains the old CA       ${named(holders)}`,
    `joined afterwards          cp3${isNew ? '' : ', with the old etcd CA'}`,
  ].join('\n')}\n`
  const { controlPlanes, etcdMachines } = cluster.spec
  const faults = evidence.verdict.unexpected.length + notBack.length + changed.length + holders.length
  if (faults > 0 || evidence.restarted.length !== controlPlanes + etcdMachines || !isNew)
    throw new Error(report)
  return report
}

async function rotateEtcd(
  cluster: Cluster,
  operator: RotationOperator,
  flags: readonly string[] = [],
): Promise<readonly Expectation[]> {
  const from = new Date().toISOString()
  await operator.run(['--ca', 'etcd', ...flags, ...untestedFlags(cluster), '--all'])
  // No trust failure is allowed. Members and API servers restart, and leadership moves once.
  const allow = ['ok', 'refused', 'cut', 'forbidden', 'http', 'error', 'timeout', 'failures', 'starting']
  return [{ from, until: new Date().toISOString(), allow, because: 'etcd and API servers restart' }]
}

/**
 * The etcd CA of members with 2 GiB each, while clients read and write through every member, and members are killed and stopped. The
 * history is linearizable, and no acknowledged write is lost. A phase that a killed member stops runs again.
 */
async function rotatedDatabase(cluster: Cluster, operator: RotationOperator): Promise<string> {
  await raiseQuota(cluster)
  const untested = untestedFlags(cluster)
  const all = ['--ca', 'etcd', ...untested, ...waiversOfProber, '--all', '--yes']
  const ended = new AbortController()
  const runs: string[] = []
  let disturbed: readonly string[] = []
  const report = await withHistory(cluster, 2 * 1024 ** 3, async () => {
    await until(
      'each member has 2 GiB',
      900_000,
      async () => smallestDatabase(cluster) >= 2 * 1024 ** 3,
      5000,
    )
    const disturbing = disturbMembers(cluster, ended.signal)
    try {
      for (let attempt = 1; ; attempt++) {
        const began = performance.now()
        const { code, stderr } = await operator.kcert(all)
        runs.push(`exit ${code} after ${seconds(began)}`)
        if (code === 0) break
        if (attempt === 30)
          throw new LabError(`rotate-ca --ca etcd: exit ${code}`, { why: stderr.slice(-3000) })
      }
    } finally {
      ended.abort()
      disturbed = await disturbing
    }
  })
  const { failures, violations, ...counts } = report
  const text = [
    `size of the databases      ${(smallestDatabase(cluster) / 1024 ** 3).toFixed(2)} GiB or more`,
    `runs of kcert              ${runs.join(', ')}`,
    ...disturbed.map((line) => `  ${line}`),
    ...Object.entries(counts).map(([name, count]) => `${name.padEnd(27)}${count}`),
    ...Object.entries(failures).map(([name, count]) => `  ${count} × ${name}`),
    `violations                 ${violations.length}`,
    ...violations.map((line) => `  ${line}`),
    '',
  ].join('\n')
  if (violations.length > 0) throw new Error(text)
  return text
}

/** etcd's default quota is 2 GiB. Changes the manifests one by one, as an operator would. */
async function raiseQuota(cluster: Cluster): Promise<void> {
  for (const { name, role } of cluster.nodes()) {
    if (role !== 'control-plane') continue
    const file = cluster.hostPath(name, '/etc/kubernetes/manifests/etcd.yaml')
    const changed = readFileSync(file, 'utf8').replace('    - etcd\n', `    - etcd\n    - ${quota}\n`)
    writeFileSync(file, changed)
    await until(`etcd of ${name} has its quota`, 120_000, async () => {
      const { stdout } = await cluster.onNode(name, ['pgrep', '-a', '-x', 'etcd'], { mayFail: true })
      return stdout.includes(quota)
    })
    await until('all API servers respond', 120_000, async () => {
      await cluster.kubectl(['get', '--raw', '/readyz'])
      return true
    })
    await sleep(10_000)
  }
}

const quota = '--quota-backend-bytes=8589934592'

/** Returns the size of the smallest database in bytes. */
function smallestDatabase(cluster: Cluster): number {
  const members = cluster.nodes().filter(({ role }) => role === 'control-plane')
  return Math.min(
    ...members.map(({ name }) => statSync(cluster.hostPath(name, '/var/lib/etcd/member/snap/db')).size),
  )
}

/**
 * The service account key: to phase 4 and back, with the bytes as before, then to the end under watch. The owners of pods that read
 * their token only once restart them after phase 5, and the prober gets a new token. No valid token is rejected; afterwards no API
 * server accepts the old one, and a worker and a control plane join. kcert's copies keep the old key, readable only by root.
 */
async function rotatedServiceAccountKey(cluster: Cluster, operator: RotationOperator): Promise<string> {
  operator.rotation = 'rotate-sa-key'
  const pods = staticPods(cluster)
  const pki = (node: string, file: string): string =>
    readFileSync(cluster.hostPath(node, `/etc/kubernetes/pki/${file}`), 'utf8')
  const keyOf = (node: string): string => pki(node, 'sa.pub')
  const oldKey = keyOf('cp1')
  const oldKeys = [oldKey, pki('cp1', 'sa.key')]
  // No client requests a token in these minutes.
  const confirmed = ['--proof', 'audit', '--waive', 'rollback:audit-log']
  const notBack = await toFourAndBack(cluster, operator, [], { back: confirmed })
  let oldToken = ''
  const evidence = await rotateUnderWatch(cluster, operator, () => {
    // The prober has requested it from this cluster by now.
    oldToken = readFileSync(probeFiles.token, 'utf8')
    return rotateServiceAccountKey(cluster, operator)
  })
  const after = staticPods(cluster)
  const changed = changedNames(pods, after)
  const accepting = Object.entries(await answersToToken(cluster, oldToken))
    .filter(([, status]) => status !== '401')
    .map(([server]) => server)
  const holders = oldKeys
    .flatMap((key) => holdersOfKey(cluster, key))
    .filter((place) => !place.includes(':/var/lib/kcert/copies/'))
  for (const node of ['w2', 'cp4']) await cluster.join(node)
  const differing = ['cp2', 'cp3', 'cp4'].filter((node) => keyOf(node) !== keyOf('cp1'))
  const report = `${describeEvidence(evidence)}${[
    `not restored by rollback   ${named(notBack)}`,
    `manifests that differ      ${named(changed)}`,
    `who contains the old key   ${named(holders)}`,
    `who accepts an old token   ${named(accepting)}`,
    `joined afterwards          w2, cp4; other keys: ${named(differing)}`,
  ].join('\n')}\n`
  const faults = [evidence.verdict.unexpected, notBack, changed, holders, accepting, differing]
  if (faults.some(({ length }) => length > 0) || keyOf('cp1') === oldKey) throw new Error(report)
  return report
}

async function rotateServiceAccountKey(
  cluster: Cluster,
  operator: RotationOperator,
): Promise<readonly Expectation[]> {
  const untested = untestedFlags(cluster)
  const from = new Date().toISOString()
  await operator.run([...untested, '--through', '5'])
  await restartPods(cluster)
  await issueToken()
  await operator.run([...untested, '--all', '--proof', 'pods', ...waiversOfBarePods])
  // No valid credential may be rejected. Each API server restarts three times, and kubelets restart.
  const allow = ['ok', 'refused', 'cut', 'http', 'error', 'timeout', 'failures', 'starting', 'forbidden']
  const because = 'API servers and kubelets restart'
  return [{ from, until: new Date().toISOString(), allow, because }]
}

/**
 * All CAs and the service account key, to ECDSA and back to RSA, each time under one watch. Each direction has its own journals.
 * No connection fails because of trust, and no valid token is rejected.
 */
async function rotatedEverything(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const toEcdsa = await rotateAllTo(cluster, operator, 'ECDSA-P256')
  const back = await RotationOperator.open(cluster)
  try {
    return `to ECDSA\n${toEcdsa}back to RSA\n${await rotateAllTo(cluster, back, 'RSA-2048', ['w2', 'cp4'])}`
  } finally {
    back.close()
  }
}

async function rotateAllTo(
  cluster: Cluster,
  operator: RotationOperator,
  keyType: string,
  joining: readonly string[] = [],
): Promise<string> {
  const algorithm = ['--algorithm', keyType]
  const steps: readonly Step[] = [
    () => rotateEtcd(cluster, operator, algorithm),
    async () => {
      operator.rotation = 'rotate-sa-key'
      try {
        return await rotateServiceAccountKey(cluster, operator)
      } finally {
        operator.rotation = 'rotate-ca'
      }
    },
    [...all, ...algorithm],
  ]
  return watched(cluster, operator, steps, joining, true)
}

/** The owners restart their pods, so that programs which read their token only once read the new one. */
async function restartPods(cluster: Cluster): Promise<void> {
  for (const namespace of ['lab', 'kube-system']) {
    const { stdout } = await cluster.kubectl([
      '-n',
      namespace,
      'get',
      'deployment,daemonset,statefulset',
      '-o',
      'name',
    ])
    for (const workload of stdout.split('\n').filter(Boolean)) {
      await cluster.kubectl(['-n', namespace, 'rollout', 'restart', workload])
      await cluster.kubectl(['-n', namespace, 'rollout', 'status', workload, '--timeout=300s'])
    }
  }
}

/** Runs the first four phases and rolls them back, with these flags for both commands and for each one. Returns the files that are not as before. */
async function toFourAndBack(
  cluster: Cluster,
  operator: RotationOperator,
  flags: readonly string[] = [],
  own: { readonly forward?: readonly string[]; readonly back?: readonly string[] } = {},
): Promise<string[]> {
  const before = nodeFiles(cluster)
  await operator.run([...flags, ...(own.forward ?? []), ...untestedFlags(cluster), '--through', '4'])
  await operator.must(['rollback', ...flags, ...(own.back ?? []), '--to', '0', '--yes'])
  return changedNames(before, nodeFiles(cluster))
}

/** Returns the names whose content differs, or that only one side has. */
function changedNames(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): string[] {
  return Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name])
}

function untestedFlags({ spec }: Cluster): string[] {
  return [...new Set(Object.values(spec.kubernetes))].flatMap((minor) => ['--accept-untested-version', minor])
}

function named(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ')
}

/**
 * Runs the phases one by one to the eleventh and rolls them back one by one. After each rollback, every file is as before that
 * phase.
 */
async function rolledBack(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const found: Record<string, string>[] = []
  for (const phase of phases.slice(0, 11)) {
    found.push(nodeFiles(cluster))
    await operator.run(['--phase', String(phase), ...waiversOfLab])
  }
  const lines: string[] = []
  for (const phase of phases.slice(0, 11).toReversed()) {
    const began = performance.now()
    await operator.must(['rollback', '--to', String(phase - 1), '--yes'])
    // The hook uses the administrator's new kubeconfig. After a rollback, the valid one is at the original path.
    copyFileSync(cluster.hostPath('cp1', '/etc/kubernetes/admin.conf'), cluster.kubeconfig)
    const now = nodeFiles(cluster)
    const then = found[phase - 1]!
    const changed = changedNames(then, now)
    if (changed.length > 0) throw new Error(`rolled back from ${phase}, these differ: ${changed.join(', ')}`)
    lines.push(
      `rolled back from ${phase}: ${Object.keys(now).length} files as phase ${phase} had found them, ${seconds(began)}`,
    )
  }
  return `${lines.join('\n')}\n`
}

/** Killed once in each phase that changes something, and run again. The result equals that of an uninterrupted run. */
async function killed(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const before = staticPods(cluster)
  const oldCa = oldCaOf(cluster)
  const lines: string[] = []
  for (const phase of phases) {
    const began = performance.now()
    const args = ['--through', String(phase), '--yes']
    const { code } = await operator.kcert(args, /^ {2}done /)
    await operator.must(args)
    lines.push(
      `phase ${phase}: ${code === killedCode ? 'killed after its first act' : 'nothing to kill'}, ${seconds(began)}`,
    )
  }
  return `${lines.join('\n')}\n${await leftBehind(cluster, before, oldCa)}`
}

/** Returns as text that nothing is left of a rotation. Throws otherwise. */
async function leftBehind(
  cluster: Cluster,
  before: Readonly<Record<string, string>>,
  oldCa: string,
): Promise<string> {
  const after = staticPods(cluster)
  const changed = changedNames(before, after)
  const holders = await holdersOf(cluster, oldCa)
  const report = `manifests that differ: ${named(changed)}\nwho contains the old CA: ${named(holders)}\n`
  if (changed.length + holders.length > 0) throw new Error(report)
  return report
}

/** Nodes are read through pods, and every change is a script that runs on the node with only sh. */
async function byScripts(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const before = staticPods(cluster)
  const oldCa = oldCaOf(cluster)
  const lines: string[] = []
  for (const phase of phases) {
    const began = performance.now()
    const scripts = await runPhaseByHand(cluster, operator, phase)
    lines.push(`phase ${phase}: ${scripts} scripts, ${seconds(began)}`)
  }
  return `${lines.join('\n')}\n${await leftBehind(cluster, before, oldCa)}`
}

/** Nodes are reached through Jobs only. Afterwards no Job is left, and etcd has none of the keys, also not of deleted objects. */
async function byJobs(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const before = keyLines(cluster)
  const text = await watched(cluster, operator, [all])
  const searched = searchEtcd(cluster, new Set([...before, ...keyLines(cluster)]))
  const left = await leftOfJobs(cluster)
  const report = `${text}keys in etcd               none of ${searched}\nleft of Jobs               ${named(left)}\n`
  if (left.length > 0) throw new Error(report)
  return report
}

/**
 * Every certificate has expired, including the CAs, and no process that needs one runs. Recovers only from the files on the
 * nodes.
 */
async function recovered(cluster: Cluster, operator: RotationOperator): Promise<string> {
  const before = staticPods(cluster)
  const changed = ageCertificates(cluster, 'all')
  await failPower(cluster)
  const began = performance.now()
  await operator.must(['recover', '--yes'])
  const took = seconds(began)
  copyFileSync(cluster.hostPath('cp1', '/etc/kubernetes/admin.conf'), cluster.kubeconfig)
  await cluster.kubectl(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=120s'])
  const again = await operator.must(['recover', '--yes'])
  const differ = named(changedNames(before, staticPods(cluster)))
  return `${changed} files had ended; back in ${took}, all nodes Ready\nmanifests that differ: ${differ}\nonce more: ${again.stdout}`
}

function seconds(began: number): string {
  return `${((performance.now() - began) / 1000).toFixed(0)} s`
}

/**
 * Returns a rehearsal of the matrix: every other command runs on the same cluster first. The rotated cluster is saved as
 * `rotated-rsa-1.34`.
 */
function afterEveryCommand(rehearsal: Rehearsal): Rehearsal {
  const run = async (cluster: Cluster, operator: RotationOperator): Promise<string> => {
    const [commands] = await Promise.allSettled([tryEveryCommand(cluster)])
    const [rotation] = await Promise.allSettled([rehearsal.run(cluster, operator)])
    const kept =
      rotation.status === 'fulfilled' ? [cluster.save(`rotated-${rehearsal.name}`).then(() => '')] : []
    const ended = [rotation, commands, ...(await Promise.allSettled(kept))]
    const text = ended
      .map((one) => (one.status === 'fulfilled' ? one.value : `${describeError(one.reason)}\n`))
      .join('')
    if (ended.some(({ status }) => status === 'rejected')) throw new LabError(text)
    return text
  }
  return { ...rehearsal, run }
}

/** Returns one rehearsal for each minor version, and for kubelets that are older than their API servers. */
function onVersions(rehearsal: Rehearsal, versions: readonly string[]): Rehearsal[] {
  return versions.map((version) => {
    const kubernetes = minorsByRole(version)
    if (kubernetes === undefined) throw new TypeError(`the lab has ${minors.join(', ')}, not ${version}`)
    return {
      ...rehearsal,
      name: `${rehearsal.name}-${version}`,
      request: { ...rehearsal.request, kubernetes },
    }
  })
}

/** Returns rehearsals for each minor version, mixes of them, and an upgrade in the middle. */
function matrix(): Rehearsal[] {
  const [whole] = rehearsals
  return [
    ...[...onVersions(whole!, [...minors, ...mixes]), ...rehearsals.filter(({ run }) => run === mixed)].map(
      afterEveryCommand,
    ),
    ...rehearsals.filter(({ name }) => name.startsWith('upgrade-after-')),
  ]
}

function choose(flags: {
  only?: string[]
  full?: boolean
  matrix?: boolean
  kubernetes?: string
}): Rehearsal[] {
  const known = flags.matrix ? matrix() : rehearsals
  const wanted = known.filter(
    ({ name }, index) => flags.only?.includes(name) ?? (flags.full || flags.matrix || index === 0),
  )
  return flags.kubernetes === undefined || flags.matrix
    ? wanted
    : wanted.flatMap((one) => onVersions(one, [flags.kubernetes!]))
}

const { values } = parseArgs({
  options: {
    full: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    matrix: { type: 'boolean' },
    again: { type: 'boolean' },
    kubernetes: { type: 'string' },
    help: { type: 'boolean' },
  },
})
if (values.help) process.stdout.write(usage)
else {
  const chosen = choose(values)
  if (chosen.length === 0) {
    process.stderr.write(usage)
    process.exitCode = 2
  }
  const folder = join(folders.state, 'rehearsals')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'matrix.jsonl')
  const { commit, sources } = await currentSources()
  for (const rehearsal of chosen) {
    const { name, request, reach, run } = rehearsal
    process.stdout.write(`== ${name}\n`)
    if (values.matrix && !values.again && isDone(readRows(file, sources).get(name))) {
      process.stdout.write('good on these sources already\n')
      continue
    }
    let text = ''
    let isGood = false
    try {
      text = await withCluster(request, async (cluster) => {
        const operator = await RotationOperator.open(cluster, undefined, await reach?.(cluster))
        try {
          return await run(cluster, operator)
        } finally {
          operator.close()
        }
      })
      isGood = true
      writeFileSync(join(folder, `${name}.txt`), text)
    } catch (error) {
      process.exitCode = 3
      text = `NOT AS IT MUST BE\n${describeError(error)}\n`
    }
    process.stdout.write(text)
    if (values.matrix) appendRow(file, rowOf({ commit, sources, name, isGood }, text))
  }
  if (values.matrix) process.stdout.write(tableOf(readRows(file, sources).values()))
}
