import { setTimeout as sleep } from 'node:timers/promises'
import { resources } from '../cluster/kinds.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { getOne } from '../cluster/readable.ts'
import { onKcertError } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError, wordsOf } from '../errors/kcert-error.ts'
import type { ComponentName, NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import type { RestartComponent } from '../rotation/action.ts'
import { restartCommand, unitOf } from '../rotation/inventory.ts'
import { printedLog } from '../site/component-log.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import { ownProcess } from '../site/definitions.ts'
import { healthStatus } from '../site/health.ts'
import { textOf } from '../site/node-files.ts'
import { restartCall, runRestartCommand } from '../site/node-restarts.ts'
import type { Site } from '../site/site.ts'

const pollMs = 200

// A static pod is healthy again 11 to 17 s after its manifest changed, an API server after 35 to 51 s.
const deadlineMs = 180_000

// With much data, a member needs minutes to catch up.
const etcdDeadlineMs = 600_000

/** Two readings of one start differ by less than this, and two starts of one component by more. */
const sameStartMs = 1_000

/** For this time, a new process must not log an untrusted certificate. */
const quietMs = 2_500
const quietDeadlineMs = 30_000

/** How to handle a process with an unreadable log. */
export interface UnreadLogs {
  /** Processes for which the operator accepts the risk. */
  readonly waivers?: ReadonlySet<string>
  /** For commands without waivers, which check the served certificate afterwards: receives a line to show, and throws nothing. */
  readonly tell?: (what: string) => void
}

/** Replaces processes, and resolves when the next one is healthy. */
export class Restarting {
  private readonly site: Site
  private readonly planes: ControlPlanes
  private readonly unread: UnreadLogs
  /** Time of this run's last write on a node, by kcert's clock. A process that started earlier may not have read it. */
  private readonly wroteAtMs = new Map<string, number>()

  constructor(site: Site, planes: ControlPlanes, unread: UnreadLogs = {}) {
    this.site = site
    this.planes = planes
    this.unread = unread
  }

  /** Records that a file on the node was just written. */
  wrote(node: string): void {
    this.wroteAtMs.set(node, this.now())
  }

  async restart(action: RestartComponent): Promise<void> {
    const { process: id, how, lease, killAfterMs } = action
    const [name, program] = id.split('/') as [string, ComponentName]
    const node = this.planes.node(name)
    const isOwn = how === 'signal' || program === 'etcd'
    const held = lease === undefined ? undefined : await holderOf(this.site.objects, lease, name)
    // A process that restarted by itself between plan and write is a new one, but still has the earlier content. The kubelet
    // replaces a static pod in any case.
    const wroteAt = how === 'definition' ? 0 : (this.wroteAtMs.get(name) ?? 0)
    const isOld = async (running: ProcessFacts | undefined): Promise<boolean> => {
      // A member that was down when kcert planned may have come back before the write.
      if (running === undefined || (action.replaces === undefined && !isOwn)) return false
      const startedAt = await this.site.startedAtMs(name, running)
      const isPlanned = action.replaces !== undefined && Math.abs(startedAt - action.replaces) < sameStartMs
      return isPlanned || startedAt < wroteAt - sameStartMs
    }
    const flags = how === 'signal' ? await this.planes.manifestFlags(name, program) : undefined
    // A signal must not end the same program in another pod. A unit's process must not be another etcd on the node.
    const find = async (): Promise<ProcessFacts | undefined> => {
      if (how === 'service' && program === 'etcd') return this.planes.runningEtcd(name)
      const found = await node.processes([program])
      return how === 'signal' ? ownProcess(found, flags) : found[0]
    }
    const before = await find()
    // A restart of the kubelet ends the connection through it. Whether a new process runs decides, below.
    if (how === 'service' && (before === undefined || (await isOld(before))))
      await this.begin(node, program, before).catch(onKcertError(unlessLost))
    const isSignalled = how === 'signal' && before !== undefined && (await isOld(before))
    if (isSignalled) await sendSignal(node, before, 'TERM')
    let killAtMs = isSignalled && killAfterMs !== undefined ? this.now() + killAfterMs : undefined
    const begun = this.now()
    let isReleased = held === undefined
    for (;;) {
      // While the node does not answer, the process may still run.
      const listed = await find().then((running) => ({ running }), onKcertError(unlisted))
      const { running } = listed
      const isGone = !('why' in listed) && !(await isOld(running))
      if (!isGone && running !== undefined && killAtMs !== undefined && this.now() >= killAtMs) {
        killAtMs = undefined
        await sendSignal(node, running, 'KILL')
      }
      if (isGone && !isReleased && lease !== undefined && held !== undefined)
        isReleased = await this.release(lease, held, name, running)
      if (isGone && running !== undefined && (await healthStatus(this.site, name, running)) === 200) {
        await this.awaitQuiet(name, program, running)
        return
      }
      const mostMs = program === 'etcd' ? etcdDeadlineMs : deadlineMs
      if (this.now() - begun > mostMs) throw late(id, name, program, listed, mostMs)
      await sleep(pollMs)
    }
  }

  /**
   * Runs the operator's command if there is one. Otherwise restarts the unit, by its name or by the control group of the process.
   */
  private async begin(
    node: NodeAccess,
    program: ComponentName,
    running: ProcessFacts | undefined,
  ): Promise<void> {
    const component = program as Parameters<typeof unitOf>[2]
    const command = restartCommand(this.site.inventory, node.name, component)
    if (command !== undefined) return await runRestartCommand(node, command)
    const named = unitOf(this.site.inventory, node.name, component)
    const { loadState } = await node.unit(named, restartCall)
    const unit = loadState === 'loaded' ? named : await unitOfProcess(node, running)
    if (unit === undefined) {
      const what = `no restart command for ${program} on node ${node.name} is configured`
      throw new KcertError('KCERT_ROTATION_REFUSED', what, {
        why: `there is no systemd unit ${named}; set units or restart of the node for ${program} in kcert.yaml`,
        next: commandLine`systemctl list-units --all ${`*${program}*`}`,
      })
    }
    await node.restartUnit(unit, restartCall)
  }

  /**
   * Releases the Lease of a stopped leader as client-go does: the holder is emptied at the version that was read. Does this only
   * once the node shows that the process is gone. A Lease that another process already holds is skipped.
   */
  private async release(
    lease: string,
    held: string,
    node: string,
    running: ProcessFacts | undefined,
  ): Promise<boolean> {
    const resource = leaseResource(lease)
    try {
      const object = await getOne(this.site.objects, resource)
      const spec = object?.spec
      if (spec?.holderIdentity !== held) return true
      const acquiredMs = Date.parse(spec.acquireTime ?? '')
      if (running !== undefined && acquiredMs > (await this.site.startedAtMs(node, running))) return true
      await this.site.objects.replace(resource, {
        ...object,
        spec: { ...spec, holderIdentity: '', leaseDurationSeconds: 1 },
      })
      return true
    } catch (error) {
      // The Lease expires by itself. The only cost is 17 s.
      return onKcertError(({ code }) => code !== 'KCERT_API_CONFLICT')(error)
    }
  }

  /** A standby with a broken kubeconfig reports itself healthy like any other. Only its log shows the problem. */
  private async awaitQuiet(name: string, program: ComponentName, running: ProcessFacts): Promise<void> {
    if (program !== 'kube-controller-manager' && program !== 'kube-scheduler') return
    const node = this.planes.node(name)
    const begun = this.now()
    const aheadMs = await this.site.clockAheadMs(name)
    const query = { pattern: complaints, sinceMs: begun + aheadMs, lines: 50 }
    const deadline = begun + quietDeadlineMs
    /** Undefined until the log was first read. */
    let known: string | undefined
    let heard = ''
    let since = begun
    for (;;) {
      let now: string
      try {
        now = (await printedLog(node, running, query)).trim()
      } catch (error) {
        // The log file may be deleted during the read, when the kubelet removes the previous pod.
        if (this.now() <= deadline) {
          await sleep(500)
          since = this.now()
          continue
        }
        return this.unreadLog(`${name}/${program}`, wordsOf(error))
      }
      if (now !== known) {
        since = this.now()
        if (known !== undefined) heard = now.split('\n').at(-1)?.slice(0, 300) ?? ''
      }
      known = now
      if (this.now() - since >= quietMs) return
      if (this.now() > deadline) {
        const what = `${name}/${program} runs, but its log has certificate errors`
        throw new KcertError('KCERT_ROTATION_CHECK_FAILED', what, {
          why: `${heard} (process ${running.pid}); check its log on ${name}, then run the same command again`,
          next: commandLine`crictl ps -a --name ${program}; journalctl -u ${program} -u kubelet -n 50`,
        })
      }
      await sleep(500)
    }
  }

  private unreadLog(id: string, why: string): void {
    const { waivers, tell } = this.unread
    if (tell !== undefined)
      tell(`${id} runs; its log cannot be read (${why}), so certificate errors may be unnoticed`)
    else if (waivers?.has(id) !== true) {
      throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `the log of ${id} cannot be read`, {
        why: [
          `${why}; without the log it is unknown whether the component and the API server trust each other`,
          commandLine`make the log readable, or accept the risk with --waive ${id}`,
        ].join('; '),
      })
    }
  }

  private now(): number {
    return this.site.clock().getTime()
  }
}

/**
 * Sends a signal to a process of a static pod; its kubelet starts the container again. Does nothing if the process is gone, or if
 * another one has its ID. Throws KCERT_NODE_COMMAND_FAILED.
 */
async function sendSignal(
  node: NodeAccess,
  { program, pid, startTicks }: ProcessFacts,
  signal: 'TERM' | 'KILL',
): Promise<void> {
  // The 22nd field is the start of the process; the name of the program in front of it may contain spaces.
  const script = [
    'IFS= read -r s 2>/dev/null <"/proc/$1/stat" || exit 0',
    'pid=$1 start=$2 signal=$3',
    `set -- \${s##*) }; shift 19`,
    '[ "$1" = "$start" ] || exit 0',
    'kill -s "$signal" "$pid" || [ ! -e "/proc/$pid" ]',
  ].join('; ')
  const argv = ['sh', '-c', script, 'sh', String(pid), String(startTicks), signal]
  const { status, stderr } = await node.run(argv, { timeoutMs: 15_000 })
  if (status === 0) return
  const what = `${program} (process ${pid}) on node "${node.name}" could not be stopped`
  throw new KcertError('KCERT_NODE_COMMAND_FAILED', what, {
    why: stderr === '' ? `kill ended with exit status ${status}` : stderr,
  })
}

function unlessLost(error: KcertError): void {
  if (error.code !== 'KCERT_NODE_UNREACHABLE') throw error
}

export function leaseResource(name: string) {
  return { ...resources.leases, name }
}

/** Returns the identity that holds the Lease, if it belongs to this node. */
async function holderOf(objects: ObjectsApi, lease: string, node: string): Promise<string | undefined> {
  const object = await getOne(objects, leaseResource(lease)).catch(onKcertError(() => undefined))
  const holder = object?.spec?.holderIdentity
  return holder?.startsWith(`${node}_`) ? holder : undefined
}

/** Returns the unit of a process, from its control group: "/system.slice/kubelet.service". */
async function unitOfProcess(
  node: NodeAccess,
  running: ProcessFacts | undefined,
): Promise<string | undefined> {
  if (running === undefined) return undefined
  const [file] = await node.readFiles([`/proc/${running.pid}/cgroup`])
  if (file?.found !== 'file') return undefined
  return /\/([^/\n]+\.service)\b/.exec(textOf(file))?.[1]
}

/** Log lines about certificates. */
const complaints = 'x509:|Unauthorized|certificate (signed|is not)'

interface Listed {
  readonly running: ProcessFacts | undefined
  /** Why the node did not list its processes. */
  readonly why?: string
}

function unlisted(error: KcertError): Listed {
  return { running: undefined, why: wordsOf(error) }
}

function late(
  id: string,
  node: string,
  program: string,
  { running, why = 'no process was found on its node' }: Listed,
  mostMs: number,
): KcertError {
  return new KcertError('KCERT_ROTATION_CHECK_FAILED', `${id} did not come back within ${mostMs / 1000} s`, {
    why: `${running === undefined ? why : 'its process runs but is not healthy'}; check it on ${node}, then run the same command again`,
    next: commandLine`crictl ps -a --name ${program}; journalctl -u ${program} -u kubelet -n 50`,
  })
}
