import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { type ObjectOf, resources } from '../cluster/kinds.ts'
import { leaseSeconds, longestLeaseSeconds } from '../cluster/lease.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { getOne } from '../cluster/readable.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { isOfFinished, readJournal } from '../rotation/journal.ts'
import type { Clock } from '../system/clock.ts'
import { bootId, processNamespace } from '../system/process-identity.ts'
import type { RandomBytes } from '../system/random.ts'
import type { JournalMirror } from './journal-file.ts'

// Two rotations at once cannot happen: the machine's lock keeps one apart from another on the same machine, a Lease in the
// cluster from those on others. The journal's text is mirrored beside it: no private keys are in it.

const name = 'kcert-rotation'
const namespace = 'kube-system'
const { leases } = resources
const lease = { ...leases, name } as const
const configMaps = { ...resources.configMaps, namespace } as const
const mirror = { ...configMaps, name } as const

const durationSeconds = 30
// A single API server that is restarted is away for some 40 s.
const patienceMs = 60_000
const renewMs = 10_000
const mirrorMs = 3_000
// An object may have 1.5 MiB in etcd.
const mostMirrored = 900_000

export interface GuardOptions {
  readonly objects: ObjectsApi
  readonly clock: Clock
  readonly random: RandomBytes
  /** Identity of the journal: a process that has its lock knows that an earlier holder with the same identity is dead. */
  readonly journalPath: string
  /** True when the operator named it. */
  readonly isNamed?: boolean
  /** Waits so many milliseconds (default: real time). */
  readonly sleep?: (ms: number) => Promise<unknown>
}

/**
 * Returns the journal as it was mirrored last; undefined when there is none that is whole. One of a rotation that came to its end
 * is passed over where another journal is named: the next rotation begins with it.
 */
export async function mirroredJournal(
  objects: Pick<ObjectsApi, 'get'>,
  isNamed = false,
): Promise<string | undefined> {
  const text = (await getOne(objects, mirror))?.data?.['journal.jsonl']
  // A journal cut at the front cannot be verified with its chain of digests.
  if (!text?.match(/^.*"previous":"0{64}"/)) return undefined
  return isNamed && isOfFinished(readJournal(text)) ? undefined : text
}

/** The Lease kube-system/kcert-rotation, held by this run, and the ConfigMap of the same name with the journal. */
export class ClusterGuard implements JournalMirror {
  private readonly options: GuardOptions
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
    this.sleep = options.sleep ?? pause
    // Of two machines, or containers, that have one name, neither knows of the other's processes.
    const machine = `${bootId()} ${processNamespace() ?? ''}`
    const digest = hash('sha256', `${machine} ${options.journalPath}`).slice(0, 8)
    this.place = `${hostname()}_${digest}_`
    this.identity = `${this.place}${Buffer.from(options.random(6)).toString('hex')}`
  }

  /**
   * Returns the guard once this run holds the Lease. One that was left behind is taken over: at once when it was this machine's
   * and this journal's, else when its holder has not renewed it for its duration. Throws KCERT_LOCKED.
   */
  static async acquire(options: GuardOptions): Promise<ClusterGuard> {
    const guard = new ClusterGuard(options)
    await guard.take()
    guard.renewing = setInterval(() => void guard.renew(), renewMs)
    guard.renewing.unref()
    return guard
  }

  /** Throws KCERT_LOCKED when somebody else has taken the Lease meanwhile: nothing more may be done then. */
  check(): void {
    if (this.lost !== undefined) throw this.lost
  }

  /**
   * Comes back when this run holds the Lease for certain: where it has not been renewed for its duration, as after a laptop's sleep,
   * another process may have taken it. Throws KCERT_LOCKED, and KCERT_UNREACHABLE if no API server answers.
   */
  async confirm(): Promise<void> {
    const begun = this.now()
    while (this.isUncertain()) {
      if (this.now() - begun >= patienceMs) throw unconfirmed()
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
    return mirroredJournal(objects, isNamed)
  }

  /** Gives the Lease back, and waits until the mirror has the last line. */
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
      else if (waitSeconds > longestLeaseSeconds) throw heldTooLong(holderIdentity, waitSeconds)
      await this.sleep(1_000)
    }
  }

  /** False when somebody else was quicker. */
  private async write(object: ObjectOf<'leases'> | undefined): Promise<boolean> {
    const { objects } = this.options
    // Others count from when they see it, which can be long before the answer is here.
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
      // An API server that restarts: the next one renews it. Until then no act is begun once its time has run out.
    }
  }

  private async mirror(): Promise<void> {
    await this.sleep(mirrorMs)
    await this.writeMirror()
    this.mirroring = undefined
  }

  private async writeMirror(): Promise<void> {
    const text = this.wanted
    // Once the Lease is lost, it is the journal of the run that has it.
    if (text === undefined || this.lost !== undefined) return
    this.wanted = undefined
    const { objects } = this.options
    const cut =
      text.length > mostMirrored ? text.slice(text.indexOf('\n', text.length - mostMirrored) + 1) : text
    const data = { 'journal.jsonl': cut }
    try {
      const object = await objects.get(mirror)
      if (object !== undefined) await objects.replace(mirror, { ...object, data })
      else {
        const kind = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } }
        await objects.create(configMaps, { ...kind, data })
      }
    } catch {
      // The journal itself is on the disk; the mirror comes with the next line.
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

function unconfirmed(): KcertError {
  return new KcertError('KCERT_UNREACHABLE', `Lease ${namespace}/${name} could not be renewed`, {
    why: `no API server responded for ${patienceMs / 1000} s, so another kcert may hold it now; run the same command again when the cluster is reachable`,
    next: 'kcert rotate-ca',
  })
}

function held(holder: string): KcertError {
  return new KcertError('KCERT_LOCKED', 'another rotation of this cluster is in progress', {
    why: `the Lease ${namespace}/${name} is held by ${holder} and renewed; wait until it finishes. If it crashed, the Lease expires after ${durationSeconds} s`,
    next: commandLine`kubectl -n ${namespace} get lease ${name}`,
  })
}

function heldTooLong(holder: string, seconds: number): KcertError {
  return new KcertError('KCERT_LOCKED', 'another rotation of this cluster is in progress', {
    why: `the Lease ${namespace}/${name} is held by ${holder} for ${seconds} s; kcert waits at most ${longestLeaseSeconds} s. If the holder no longer runs, delete the Lease`,
    next: commandLine`kubectl -n ${namespace} get lease ${name} -o yaml`,
  })
}
