import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { type ObjectOf, resources } from '../cluster/kinds.ts'
import { leaseSeconds, longestLeaseSeconds } from '../cluster/lease.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { getOne } from '../cluster/readable.ts'
import { commandLine, fixed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { isOfFinished, readJournal } from '../rotation/journal.ts'
import { manualRotation, type PhaseTable } from '../rotation/phase-table.ts'
import type { Clock } from '../system/clock.ts'
import { bootId, processNamespace } from '../system/process-identity.ts'
import type { RandomBytes } from '../system/random.ts'
import type { JournalMirror } from './journal-file.ts'

// A machine-local lock excludes other runs on the same machine. A Lease in the cluster excludes runs on other machines. A
// ConfigMap mirrors the text of the journal, which contains no private keys.

const name = 'kcert-rotation'
const namespace = 'kube-system'
const { leases } = resources
const lease = { ...leases, name } as const
const configMaps = { ...resources.configMaps, namespace } as const

const durationSeconds = 30
// A single API server is unavailable for about 40 s during its restart.
const patienceMs = 60_000
const renewMs = 10_000
const mirrorMs = 3_000
// etcd limits an object to 1.5 MiB.
const mostMirrored = 900_000

export interface GuardOptions {
  readonly objects: ObjectsApi
  readonly clock: Clock
  readonly random: RandomBytes
  /**
   * Identity of the journal. A process that has the journal's lock can treat an earlier holder with the same identity as dead.
   */
  readonly journalPath: string
  /** True when the operator named the journal. */
  readonly isNamed?: boolean
  /** The playbook of the journal (default the page's). All rotations share one Lease. */
  readonly table?: PhaseTable
  /** Waits for this number of milliseconds (default real time). */
  readonly sleep?: (ms: number) => Promise<unknown>
}

/**
 * Returns the last mirrored journal, or undefined when there is no complete one. If the operator names another journal, the
 * journal of a finished rotation is ignored: the next rotation starts with the named one.
 */
export async function mirroredJournal(
  objects: Pick<ObjectsApi, 'get'>,
  isNamed = false,
  table = manualRotation,
): Promise<string | undefined> {
  const text = (await getOne(objects, { ...configMaps, name: table.journal }))?.data?.['journal.jsonl']
  // A journal without its first lines cannot be verified with its chain of digests.
  if (!text?.match(/^.*"previous":"0{64}"/)) return undefined
  return isNamed && isOfFinished(readJournal(text), table) ? undefined : text
}

/** The Lease kube-system/kcert-rotation that this run holds, and the ConfigMap with the same name that contains the journal. */
export class ClusterGuard implements JournalMirror {
  private readonly options: GuardOptions
  private readonly table: PhaseTable
  private readonly place: string
  private readonly identity: string
  private readonly sleep: (ms: number) => Promise<unknown>
  private renewing: NodeJS.Timeout | undefined
  private mirroring: Promise<void> | undefined
  private wanted: string | undefined
  private lost: KcertError | undefined
  private renewedAtMs = 0

  private constructor(options: GuardOptions) {
    this.options = options
    this.table = options.table ?? manualRotation
    this.sleep = options.sleep ?? pause
    // Two machines or containers with the same name cannot see each other's processes.
    const machine = `${bootId()} ${processNamespace() ?? ''}`
    const digest = hash('sha256', `${machine} ${options.journalPath}`).slice(0, 8)
    this.place = `${hostname()}_${digest}_`
    this.identity = `${this.place}${Buffer.from(options.random(6)).toString('hex')}`
  }

  /**
   * Returns the guard once this run holds the Lease. An abandoned Lease is taken over at once if it belongs to this machine and
   * this journal. Otherwise it is taken over once its holder has not renewed it for its duration. Throws KCERT_LOCKED.
   */
  static async acquire(options: GuardOptions): Promise<ClusterGuard> {
    const guard = new ClusterGuard(options)
    await guard.take()
    guard.renewing = setInterval(() => void guard.renew(), renewMs)
    guard.renewing.unref()
    return guard
  }

  /** Throws KCERT_LOCKED when another run has taken the Lease. This run must not do anything more then. */
  check(): void {
    if (this.lost !== undefined) throw this.lost
  }

  /**
   * Returns when this run certainly holds the Lease. If the Lease was not renewed for its duration, for example after a laptop's
   * sleep, another process may have taken it. Throws KCERT_LOCKED, or KCERT_UNREACHABLE if no API server responds.
   */
  async confirm(): Promise<void> {
    const begun = this.now()
    while (this.isUncertain()) {
      if (this.now() - begun >= patienceMs)
        throw new KcertError('KCERT_UNREACHABLE', `Lease ${namespace}/${name} could not be renewed`, {
          why: `no API server responded for ${patienceMs / 1000} s, so another kcert may hold it now; run the same command again when the cluster is reachable`,
          next: commandLine`${fixed(this.table.command)}`,
        })
      await this.renew()
      if (this.isUncertain()) await this.sleep(1_000)
    }
    this.check()
  }

  follow(text: string): void {
    this.wanted = text
    this.mirroring ??= this.mirror()
  }

  read(): Promise<string | undefined> {
    const { objects, isNamed = false } = this.options
    return mirroredJournal(objects, isNamed, this.table)
  }

  /** Releases the Lease, and waits until the mirror contains the last line. */
  async release(): Promise<void> {
    clearInterval(this.renewing)
    await this.mirroring
    await this.writeMirror()
    const { objects } = this.options
    const object = await getOne(objects, lease).catch(() => undefined)
    if (object?.spec?.holderIdentity !== this.identity) return
    const spec = { ...object.spec, holderIdentity: '', leaseDurationSeconds: 1 }
    await objects.replace(lease, { ...object, spec }).catch(() => {})
  }

  private async take(): Promise<void> {
    const { objects } = this.options
    const begun = this.now()
    let observed: string | undefined
    for (;;) {
      const object = await getOne(objects, lease)
      const { holderIdentity = '', leaseDurationSeconds } = object?.spec ?? {}
      const waitSeconds = leaseSeconds(leaseDurationSeconds, durationSeconds)
      const version = String(object?.metadata.resourceVersion)
      const isFree = holderIdentity === '' || holderIdentity.startsWith(this.place)
      observed ??= version
      const isOver = observed === version && this.now() - begun >= waitSeconds * 1000
      if (isFree || isOver) {
        if (await this.write(object)) return
      } else if (observed !== version) throw held(holderIdentity)
      else if (waitSeconds > longestLeaseSeconds)
        throw new KcertError('KCERT_LOCKED', 'another rotation of this cluster is in progress', {
          why: `the Lease ${namespace}/${name} is held by ${holderIdentity} for ${waitSeconds} s; kcert waits at most ${longestLeaseSeconds} s. If the holder no longer runs, delete the Lease`,
          next: commandLine`kubectl -n ${namespace} get lease ${name} -o yaml`,
        })
      await this.sleep(1_000)
    }
  }

  /** Returns false when another run wrote the Lease first. */
  private async write(object: ObjectOf<'leases'> | undefined): Promise<boolean> {
    const { objects } = this.options
    // Other runs count from the time they see the Lease, which can be long before this run receives the response.
    const begun = this.options.clock()
    const time = begun.toISOString().replace('Z', '000Z')
    const before = object?.spec ?? {}
    const spec = {
      ...before,
      holderIdentity: this.identity,
      leaseDurationSeconds: durationSeconds,
      renewTime: time,
      ...(before.holderIdentity === this.identity
        ? {}
        : { acquireTime: time, leaseTransitions: (before.leaseTransitions ?? 0) + 1 }),
    }
    try {
      if (object === undefined) {
        const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace } }
        await objects.create(leases, { ...kind, spec })
      } else await objects.replace(lease, { ...object, spec })
      this.renewedAtMs = begun.getTime()
      return true
    } catch (error) {
      if (error instanceof KcertError && error.code === 'KCERT_API_CONFLICT') return false
      throw error
    }
  }

  private async renew(): Promise<void> {
    try {
      const object = await getOne(this.options.objects, lease)
      const { holderIdentity = '' } = object?.spec ?? {}
      if (object !== undefined && holderIdentity !== this.identity) {
        this.lost = held(holderIdentity)
        clearInterval(this.renewing)
        return
      }
      await this.write(object)
    } catch {
      // The API server may be restarting. The next attempt renews the Lease. No action starts once the Lease has expired.
    }
  }

  private async mirror(): Promise<void> {
    await this.sleep(mirrorMs)
    await this.writeMirror()
    this.mirroring = undefined
  }

  private async writeMirror(): Promise<void> {
    const text = this.wanted
    // Once the Lease is lost, the mirror belongs to the run that holds it.
    if (text === undefined || this.lost !== undefined) return
    this.wanted = undefined
    const { objects } = this.options
    const cut =
      text.length > mostMirrored ? text.slice(text.indexOf('\n', text.length - mostMirrored) + 1) : text
    const data = { 'journal.jsonl': cut }
    try {
      const mirror = { ...configMaps, name: this.table.journal }
      const object = await objects.get(mirror)
      if (object !== undefined) await objects.replace(mirror, { ...object, data })
      else {
        const kind = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: mirror.name, namespace } }
        await objects.create(configMaps, { ...kind, data })
      }
    } catch {
      // The journal is on disk. The next line updates the mirror.
      this.wanted ??= text
    }
  }

  private isUncertain(): boolean {
    return this.lost === undefined && this.now() - this.renewedAtMs >= durationSeconds * 1000
  }

  private now(): number {
    return this.options.clock().getTime()
  }
}

function held(holder: string): KcertError {
  return new KcertError('KCERT_LOCKED', 'another rotation of this cluster is in progress', {
    why: `the Lease ${namespace}/${name} is held by ${holder} and renewed; wait until it finishes. If it crashed, the Lease expires after ${durationSeconds} s`,
    next: commandLine`kubectl -n ${namespace} get lease ${name}`,
  })
}
