import type { PatchObject, Probe, RestartComponent, RollWorkload, WriteFile } from '../rotation/action.ts'
import { manualRotation, type PhaseTable } from '../rotation/phase-table.ts'
import type { Executor, ProbeAnswer } from '../rotation/ports.ts'
import { ControlPlanes } from '../site/control-planes.ts'
import type { Site } from '../site/site.ts'
import type { RandomBytes } from '../system/random.ts'
import { Copies } from './copies.ts'
import { FileWriting } from './file-writing.ts'
import { KubeletRequests } from './kubelet-requests.ts'
import { ObjectPatching } from './object-patching.ts'
import { OwnIdentity } from './own-identity.ts'
import { Probing } from './probing.ts'
import { Restarting, type UnreadLogs } from './restarting.ts'
import { Rolling } from './rolling.ts'
import { type GivenPairs, RotationCas } from './rotation-cas.ts'
import { RotationKeys } from './rotation-keys.ts'

export interface ExecutorOptions {
  readonly site: Site
  readonly random: RandomBytes
  /** The playbook of the rotation (default the page's). */
  readonly table?: PhaseTable
  /** CAs that the operator supplies. */
  readonly given?: GivenPairs
  readonly unreadLogs?: UnreadLogs
}

/** Executes actions on a cluster. The first action opens the connections; nothing is read before it. */
export class SiteExecutor implements Executor {
  private readonly files: FileWriting
  private readonly objects: ObjectPatching
  private readonly restarts: Restarting
  private readonly rolls: Rolling
  private readonly probes: Probing

  constructor({ site, random, table = manualRotation, given, unreadLogs }: ExecutorOptions) {
    const planes = new ControlPlanes(site)
    const copies = new Copies((name) => planes.node(name), table)
    const cas = new RotationCas(site, planes, random, given, table)
    const identity = new OwnIdentity(site, planes, cas)
    const requests = new KubeletRequests(site, cas, identity)
    const keys = new RotationKeys(planes)
    const parts = { site, planes, copies, cas, keys, table, identity, requests }
    this.files = new FileWriting(parts)
    this.objects = new ObjectPatching(parts)
    this.restarts = new Restarting(site, planes, unreadLogs)
    this.rolls = new Rolling(site.objects, () => site.clock().getTime())
    this.probes = new Probing(parts)
  }

  async write(action: WriteFile): Promise<void> {
    await this.files.write(action)
    this.restarts.wrote(action.node)
  }

  patch(action: PatchObject): Promise<void> {
    return this.objects.patch(action)
  }

  restart(action: RestartComponent): Promise<void> {
    return this.restarts.restart(action)
  }

  roll(action: RollWorkload): Promise<void> {
    return this.rolls.roll(action)
  }

  probe(action: Probe): Promise<ProbeAnswer> {
    return this.probes.probe(action)
  }
}
