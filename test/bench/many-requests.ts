import { spawn } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster } from '../../src/cluster/cluster.ts'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { countingProxy } from './counting-proxy.ts'
import { kubernetesSigner, manifestOf, membersOf, ownSigner, policyText, refuseLoss } from './fleet.ts'
import { removeRequests } from './on-cluster.ts'
import { requestFolder } from './requests.ts'

// Sends the requests of a whole fleet through kcert, one command for each step. They are submitted, approved by a policy, signed
// (half by a separate CA, half by kube-controller-manager) and fetched. A lost request, or more connections than kcert promises,
// is an error: figures are valid only for complete runs.

export interface ManyRequests {
  readonly count: number
  readonly steps: readonly Step[]
}

export interface Step {
  readonly name: string
  readonly count: number
  readonly seconds: number
  /** Undefined for steps in which kcert only waits. */
  readonly connections?: number
  readonly mostAtOnce?: number
  /** Peak of the kcert process. */
  readonly peakMiB?: number
}

export interface ManyRequestsOptions {
  /** Kubeconfig of an administrator. */
  readonly kubeconfig: string
  /** The same API server, for queries besides the commands. */
  readonly cluster: Cluster
  readonly count: number
  /** Folder for all files written during the run. */
  readonly folder: string
  readonly now: Date
  readonly tell: (line: string) => void
}

export const mostConnections = 64

// kube-controller-manager's clients allow 20 calls a second by default.
const signedWithinMs = 30 * 60_000
const observedEveryMs = 2_000

/** Runs all steps once, removes the requests, and returns the measurements. Throws for the first step that is incomplete. */
export async function manyRequests(options: ManyRequestsOptions): Promise<ManyRequests> {
  const { cluster, count, folder, tell } = options
  const fleet = `fleet-${process.pid}`
  const members = membersOf(fleet, count)
  const proxy = await countingProxy(options.kubeconfig, folder)
  const steps: Step[] = []
  const note = (step: Step): void => {
    steps.push(step)
    tell(textOf(step))
  }
  const kcert = async (name: string, worked: number, args: readonly string[]): Promise<void> => {
    const before = proxy.connections()
    proxy.mostAtOnce()
    const begun = performance.now()
    const peakMiB = await run(
      [...args, '--kubeconfig', proxy.kubeconfig, '-o', 'json'],
      join(folder, 'answer.json'),
    )
    const seconds = (performance.now() - begun) / 1000
    const used = { connections: proxy.connections() - before, mostAtOnce: proxy.mostAtOnce() }
    note({ name, count: worked, seconds, ...used, peakMiB })
    if (used.mostAtOnce > mostConnections)
      throw new Error(
        `${name}: ${used.mostAtOnce} connections at a time, and ${mostConnections} were promised`,
      )
  }
  const onServer = (signerName?: string): Promise<RequestObject[]> =>
    Array.fromAsync(
      cluster.requests.list({ labelSelector: `fleet=${fleet}`, ...(signerName && { signerName }) }),
    )
  const demand = async (what: string, isDone: (object: RequestObject) => boolean): Promise<void> => {
    const done = new Set((await onServer()).filter(isDone).map(({ metadata }) => metadata.name))
    const missing = [...members.keys()].filter((name) => !done.has(name))
    if (missing.length > 0) throw new Error(`${missing.length} of ${count} are not ${what}: ${missing[0]} …`)
  }
  const ofSigner = (signer: string): number =>
    [...members.values()].filter((one) => one.signer === signer).length
  try {
    const manifests = join(folder, 'requests.yaml')
    writeFileSync(manifests, [...members].map((member) => manifestOf(fleet, member)).join('---\n'))
    await kcert('csr submit FILE', count, ['csr', 'submit', manifests])
    await demand('there', () => true)

    const policy = join(folder, 'policy.yaml')
    const [{ spec } = { spec: { username: '' } }] = await onServer()
    writeFileSync(policy, policyText(String(spec.username)))
    const selected = ['-l', `fleet=${fleet}`]
    const approved = performance.now()
    await kcert('csr approve --policy FILE -l LABEL', count, [
      'csr',
      'approve',
      '--policy',
      policy,
      ...selected,
      '--yes',
    ])
    await demand('approved', (object) => hasCondition(object, 'Approved'))

    const { ca, caKey } = requestFolder(join(folder, 'ca'), 0, options.now)
    const pair = ['--ca', ca, '--ca-key', caKey, '--issuance-log', join(folder, 'issuance-log.jsonl')]
    await kcert('ca sign --csr-signer NAME', ofSigner(ownSigner), [
      'ca',
      'sign',
      ...pair,
      '--csr-signer',
      ownSigner,
    ])

    const isWaiting = (object: RequestObject): boolean => !isIssued(object) && !hasCondition(object, 'Failed')
    while (
      performance.now() - approved < signedWithinMs &&
      (await onServer(kubernetesSigner)).some(isWaiting)
    )
      await pause(observedEveryMs)
    const seconds = (performance.now() - approved) / 1000
    note({
      name: 'until kube-controller-manager had signed its half, from the approval on',
      count: ofSigner(kubernetesSigner),
      seconds,
    })
    await demand('issued', isIssued)

    const fetched = join(folder, 'fetched')
    await kcert('csr fetch -l LABEL --out-dir FOLDER', count, [
      'csr',
      'fetch',
      ...selected,
      '--out-dir',
      fetched,
    ])
    refuseLoss(members, fetched)
    return { count, steps }
  } finally {
    proxy.close()
    await removeRequests(
      cluster,
      (await onServer()).map(({ metadata }) => metadata.name!),
    )
  }
}

function hasCondition({ status }: RequestObject, wanted: string): boolean {
  return status?.conditions?.some(({ type }) => type === wanted) ?? false
}

function isIssued({ status }: RequestObject): boolean {
  return Boolean(status?.certificate)
}

/** Runs kcert with its output to a file. Returns its peak memory in MiB. */
async function run(args: readonly string[], answer: string): Promise<number> {
  const output = openSync(answer, 'w')
  const timed = ['-f', 'peak=%M', process.execPath, resolve('bin/run.js'), ...args]
  const child = spawn('/usr/bin/time', timed, { stdio: ['ignore', output, 'pipe'] })
  closeSync(output)
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-2000)
  })
  const exit = await new Promise((done, failed) => child.once('close', done).once('error', failed))
  if (exit !== 0) throw new Error(`kcert ${args.slice(0, 2).join(' ')} … ended with ${exit}: ${stderr}`)
  return Number(/peak=(\d+)/.exec(stderr)?.[1]) / 1024
}

function textOf({ name, count, seconds, mostAtOnce, peakMiB }: Step): string {
  const used =
    mostAtOnce === undefined ? '' : `, ${mostAtOnce} connections at a time, peak ${peakMiB?.toFixed(0)} MiB`
  return `${name}: ${count} in ${seconds.toFixed(1)} s${used}`
}
