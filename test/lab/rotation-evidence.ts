import type { JournalEntry } from '../../src/rotation/journal.ts'
import type { RotationRun } from '../../src/rotation/report.ts'
import { apply, spreadAddons } from './addons.ts'
import type { Cluster } from './fixture.ts'
import { type RotationOperator, unrestartedPods } from './rotation-operator.ts'
import { kubeletsForgetPods } from './spec.ts'
import { type Expectation, evaluate, longestMs, type Sample, type Verdict } from './verdict.ts'
import { Watcher } from './watcher.ts'

// A whole rotation of a lab cluster, with the observations of the prober and the watcher.

export interface Evidence {
  readonly verdict: Verdict
  readonly seconds: number
  readonly phases: readonly { readonly number: number; readonly seconds: number; readonly actions: number }[]
  /** API servers and etcds with a new process after the rotation. */
  readonly restarted: readonly string[]
  readonly notReadySeconds: number
  /**
   * Failures of kubelets that reported too early after an announced restart: a race in the kubelet that appears on a busy
   * machine.
   */
  readonly startingSeconds: number
  readonly longestSigningSeconds: number
  readonly table: readonly Expectation[]
}

/** A low rate, because two cores also run four nodes, and each exec starts a process in a container. */
const probing = ['--interval', '500ms', '--slow-interval', '8s', '--timeout', `${longestMs.exec}ms`]

/** How long before its end a probe may have started. */
const longestProbeMs = longestMs.api

/** The arguments of a command, or an action of another operator. The action returns the failures that it may cause. */
export type Step = readonly string[] | (() => Promise<readonly Expectation[]>)

/** Rotates with these commands in order. Returns the observations from before the first to after the last. */
export async function rotateUnderWatch(
  cluster: Cluster,
  operator: RotationOperator,
  ...steps: readonly Step[]
): Promise<Evidence> {
  if (cluster.spec.addons && kubeletsForgetPods(cluster.spec)) await spreadAddons()
  const before = await processes(cluster)
  const prober = await cluster.probe([...(await logTargets(cluster)), ...probing])
  const watcher = new Watcher(cluster.nodes(), cluster.spec)
  const began = performance.now()
  const phases: RotationRun['phases'][number][] = []
  const byOthers: Expectation[] = []
  let watched: readonly Sample[] = []
  let seconds = 0
  try {
    for (const step of steps) {
      if (typeof step === 'function') byOthers.push(...(await step()))
      else phases.push(...(await operator.run(step)).phases)
    }
  } finally {
    seconds = (performance.now() - began) / 1000
    watched = await watcher.stop()
    await prober.stop()
  }
  const samples = prober.samples()
  const apis = cluster.nodes().filter(({ role }) => role === 'control-plane')
  const table = [...expectations(operator.journal(), apis.length === 1), ...byOthers]
  const after = await processes(cluster)
  const nodes = watched.filter(({ kind }) => kind === 'node')
  return {
    verdict: evaluate([...samples.filter(({ kind }) => kind !== 'counter'), ...watched].map(named), table),
    seconds,
    phases: phases.map(({ number, startedAt, finishedAt, actions }) => ({
      number,
      seconds: (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000,
      actions,
    })),
    restarted: [...before].flatMap(([name, start]) => (after.get(name) === start ? [] : [name])),
    notReadySeconds: nodes.filter(({ outcome }) => outcome !== 'ok' && outcome !== 'starting').length,
    startingSeconds: nodes.filter(({ outcome }) => outcome === 'starting').length,
    longestSigningSeconds:
      Math.max(...watched.filter(({ kind }) => kind === 'signing').map(({ ms }) => ms)) / 1000,
    table,
  }
}

/** An API server's report of a trust failure on its own connection to a kubelet or a service. */
function named(sample: Sample): Sample {
  const isTrust = /x509|certificate|tls: |Unauthorized/i.test(sample.error ?? '')
  return isTrust && (sample.outcome === 'http' || sample.outcome === 'error')
    ? { ...sample, outcome: 'untrusted' }
    : sample
}

/**
 * Creates a pod on each node that no rotation affects, because it has no service account. Returns the prober's flags for logs and
 * exec in it. Its client makes no requests and only prints.
 */
async function logTargets(cluster: Cluster): Promise<string[]> {
  const account = '/var/run/secrets/kubernetes.io/serviceaccount'
  const pods = cluster.nodes().map(({ name }) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `logs-${name}`, namespace: 'default', labels: { 'lab.local/logs': 'yes' } },
    spec: {
      nodeName: name,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      volumes: [{ name: 'none', configMap: { name: 'logs' } }],
      containers: [
        {
          name: 'client',
          image: 'lab.local/client-go:1',
          imagePullPolicy: 'Never',
          volumeMounts: [{ name: 'none', mountPath: account }],
          env: [
            { name: 'KUBERNETES_SERVICE_HOST', value: '127.0.0.1' },
            { name: 'KUBERNETES_SERVICE_PORT', value: '1' },
          ],
        },
      ],
    },
  }))
  const nothing = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'logs', namespace: 'default' },
    data: { token: 'none' },
  }
  await apply([nothing, ...pods])
  const ready = ['wait', 'pod', '-l', 'lab.local/logs', '--for=condition=Ready', '--timeout=60s']
  await cluster.kubectl(ready)
  return cluster
    .nodes()
    .flatMap(({ name }) =>
      ['--logs', '--exec'].flatMap((flag) => [flag, `${name}=default/logs-${name}/client`]),
    )
}

/** Returns the start time of each API server and etcd, by node. */
async function processes(cluster: Cluster): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const script =
    'for s in /proc/[0-9]*/stat; do set -- $(cat $s 2>/dev/null); case $2 in "(kube-apiserver)"|"(etcd)") echo "$2 $1 $(cut -d" " -f22 $s)";; esac; done'
  for (const { name, role } of [...cluster.nodes(), ...cluster.etcdMachines()]) {
    if (role === 'worker') continue
    const { stdout } = await cluster.onNode(name, ['sh', '-c', script])
    for (const line of stdout.trim().split('\n')) {
      const [program = '', ...identity] = line.split(' ')
      found.set(`${name}/${program}`, identity.join(' '))
    }
  }
  return found
}

/**
 * Returns the failures that clients which follow the rules may see, and those that must occur: the old CA used too late. Times
 * come from the journal.
 */
function expectations(journal: readonly JournalEntry[], isAlone: boolean): Expectation[] {
  const acts = journal.flatMap((entry) =>
    entry.kind === 'intent' || entry.kind === 'done'
      ? [{ kind: entry.kind, what: entry.what, phase: entry.phase, at: entry.time }]
      : [],
  )
  const firstIntent = (phase: number, pattern: RegExp) =>
    acts.find((act) => act.kind === 'intent' && act.phase === phase && pattern.test(act.what))?.at
  const bridgeGoes = firstIntent(12, /^write .*apiserver\.\w+ \(certificates\)/)
  const oldGoes = firstIntent(12, /^write /)
  const kubeletClients = acts.filter(
    ({ kind, what }) =>
      kind === 'intent' &&
      /^write .*(?:kubelet-client\.\w+ \(reissued\)|\/ssl\/apiserver\.pem \((?:reissued|certificates)\))/.test(
        what,
      ),
  )
  const restartsOf = (pattern: RegExp) =>
    acts.flatMap(({ kind, what, at }) => {
      const node = kind === 'intent' ? pattern.exec(what)?.[1] : undefined
      if (node === undefined) return []
      const done = acts.find((act) => act.kind === 'done' && act.what === what && act.at > at)
      return [{ what, node, from: at, until: done?.at ?? at }]
    })
  const event = (phase: number, what: string) =>
    journal.find((entry) => entry.kind === 'phase' && entry.phase === phase && entry.event === what)?.time
  // The only replica of an add-on is replaced: by kcert, which announces it, and by its owner after phase 9.
  const rolls = acts.filter(
    ({ kind, what }) =>
      kind === 'intent' && what.startsWith('roll out Deployment kube-system/metrics-server'),
  )
  const byOwner = { from: event(9, 'completed'), until: event(10, 'started') }
  const replacements = [
    ...rolls.map(({ at }) => ({ kind: 'aggregated' as const, from: at, until: later(at, 60_000) })),
    { kind: 'aggregated' as const, ...byOwner },
    { kind: 'webhook' as const, ...byOwner },
  ]
  // kcert has changed nothing yet. The first request to a new pod may take longer than the prober waits.
  const idle = acts
    .slice(0, 1)
    .flatMap(({ at: until }) =>
      (['logs', 'exec'] as const).map((kind) => ({ kind, until, allow: ['ok', 'timeout'] })),
    )
  return [
    ...idle,
    ...replacements.flatMap(({ kind, from, until }) =>
      from === undefined || until === undefined
        ? []
        : [
            {
              kind,
              from: later(from, -longestProbeMs),
              until,
              allow: ['ok', 'http', 'timeout'],
              because: 'its only replica is replaced',
            },
          ],
    ),
    ...(bridgeGoes === undefined
      ? []
      : [
          { trust: 'old', from: later(bridgeGoes, -500), allow: ['*'], because: 'the bridge is gone' },
          ...unrestartedPods.map((id) => ({
            target: id.slice(id.indexOf('/') + 1),
            from: later(bridgeGoes, -3_000),
            allow: ['*'],
            because: 'nobody restarts it',
          })),
        ]),
    ...(oldGoes === undefined
      ? []
      : [
          ...restartsOf(/^restart (\S+)\/kube-apiserver/).map(({ what, node, from, until }) => ({
            ...(isAlone ? {} : { endpoint: node }),
            credential: 'old-cert',
            from: later(from, -longestProbeMs),
            until: later(until, 15_000),
            allow: ['ok', 'unauthorized', 'refused', 'cut', 'forbidden', 'http', 'error', 'timeout'],
            because: what,
          })),
          {
            credential: 'old-cert',
            from: later(oldGoes, -1_000),
            allow: ['ok', 'unauthorized'],
            because: 'the old CA is dropped',
          },
        ]),
    // An API server that loads its new client certificate, at most 34 s after the write, closes its connections to kubelets.
    // Requests on them are cut. No handshake fails and no client is rejected.
    ...kubeletClients.flatMap(({ what, at }) =>
      (['logs', 'exec'] as const).map((kind) => ({
        kind,
        from: later(at, -longestMs[kind]),
        until: later(at, 45_000),
        allow: ['ok', 'cut', 'error', 'http', 'timeout'],
        because: what,
      })),
    ),
    // An API server that does not reload a file is restarted, one at a time, and is unavailable during that time. For some
    // seconds after, it rejects requests whose roles it has not loaded. No handshake fails.
    ...restartsOf(/^restart (\S+)\/kube-apiserver/).flatMap(({ what, node, from, until }) => {
      const window = { from: later(from, -longestProbeMs), until: later(until, 15_000), because: what }
      const allow = ['ok', 'refused', 'cut', 'forbidden', 'http', 'error', 'timeout']
      if (!isAlone) return [{ endpoint: node, ...window, allow }]
      // With --accept-outage: all names refer to the only one, and controllers come back after it.
      return [{ ...window, until: later(until, 45_000), allow: [...allow, 'failures'] }]
    }),
    // A restarted kubelet knows its containers again after about 10 s.
    ...restartsOf(/^restart (\S+)\/kubelet/).flatMap(({ what, node, from, until }) => {
      const window = { target: node, until: later(until, 15_000), because: what }
      const cut = ['ok', 'http', 'refused', 'cut', 'error', 'timeout']
      return [
        ...(['logs', 'exec'] as const).map((kind) => ({
          ...window,
          kind,
          from: later(from, -longestMs[kind]),
          allow: cut,
        })),
        { ...window, kind: 'node' as const, from: later(from, -longestProbeMs), allow: ['ok', 'starting'] },
      ]
    }),
  ]
}

function later(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString()
}

/** Returns the evidence as text, in the format of docs/benchmarks.md. */
export function describeEvidence({
  verdict,
  seconds,
  phases,
  restarted,
  notReadySeconds,
  startingSeconds,
  longestSigningSeconds,
}: Evidence): string {
  const groups = Map.groupBy(verdict.unexpected, (sample) =>
    [sample.kind, sample.endpoint, sample.trust, sample.credential, sample.target, sample.outcome]
      .filter(Boolean)
      .join(' '),
  )
  const ruled = verdict.cells.filter(({ cell }) => /^api \S+ both (token|new-cert)$/.test(cell))
  const longest = Math.max(0, ...ruled.map(({ longestGapMs }) => longestGapMs))
  const execs = verdict.cells.flatMap(({ cell, slowestMs }) => (cell.startsWith('exec ') ? [slowestMs] : []))
  const byKind = Map.groupBy(verdict.cells, ({ cell }) => cell.split(' ')[0]!)
  return [
    'phase  seconds  actions',
    ...phases.map(
      ({ number, seconds, actions }) =>
        `${String(number).padStart(5)}  ${seconds.toFixed(1).padStart(7)}  ${String(actions).padStart(7)}`,
    ),
    `whole command             ${seconds.toFixed(1)} s`,
    `samples                   ${verdict.samples}`,
    ...[...byKind].map(
      ([kind, cells]) => `  ${kind.padEnd(24)}${cells.reduce((sum, { samples }) => sum + samples, 0)}`,
    ),
    `unexpected                ${verdict.unexpected.length}`,
    ...[...groups].map(
      ([name, samples]) =>
        `  ${name}: ${samples.length}, ${samples[0]!.at} to ${samples.at(-1)!.at}: ${samples[0]!.error ?? ''}`,
    ),
    `slowest exec              ${(Math.max(0, ...execs) / 1000).toFixed(1)} s`,
    `longest gap, bundle       ${(longest / 1000).toFixed(2)} s`,
    `restarts, API server/etcd ${restarted.length}${restarted.length > 0 ? ` (${restarted.join(', ')})` : ''}`,
    `nodes NotReady            ${notReadySeconds.toFixed(1)} s${startingSeconds > 0 ? `, and kubelets starting ${startingSeconds.toFixed(1)} s` : ''}`,
    `longest signing           ${longestSigningSeconds.toFixed(1)} s`,
    '',
  ].join('\n')
}
