import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type JournalEntry, readJournal } from '../../src/rotation/journal.ts'
import type { RotationRun } from '../../src/rotation/report.ts'
import { systemClock } from '../../src/system/clock.ts'
import type { Cluster } from './fixture.ts'
import { LabError } from './lab-error.ts'
import { network } from './spec.ts'
import { folders } from './state.ts'

// An operator at a terminal of this machine: the built program, an inventory from `discover`, and nodes reached by ssh.

export interface Answer {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const program = resolve(folders.source, '../../bin/run.js')
/** A shell's exit code for a process killed by SIGKILL. */
export const killedCode = 137

const hook = join(folders.source, 'rotation-hook.ts')

const journals = {
  'rotate-ca': 'kcert-rotation.jsonl',
  'rotate-sa-key': 'kcert-sa-key-rotation.jsonl',
} as const

/** Works in a separate folder. The caller that opens it closes it. */
export class RotationOperator {
  readonly folder = mkdtempSync(join(tmpdir(), 'kcert-operator-'))
  /** The command group that `must`, `run` and `kcert` run, whose journal is read. */
  rotation: keyof typeof journals = 'rotate-ca'
  private readonly cluster: Cluster
  private readonly tell: (line: string) => void

  private constructor(cluster: Cluster, tell: (line: string) => void) {
    this.cluster = cluster
    this.tell = tell
  }

  /**
   * Returns an operator with an inventory. Its hooks pass the rotation's files to the prober and reissue certificates that kcert
   * does not manage. `reach` are the flags of `discover` for access to nodes (default ssh).
   */
  static async open(
    cluster: Cluster,
    tell: (line: string) => void = (line) => process.stderr.write(`${line}\n`),
    reach: readonly string[] = ['--ssh-config', cluster.sshConfig],
  ): Promise<RotationOperator> {
    const operator = new RotationOperator(cluster, tell)
    await operator.must(['discover', ...reach])
    const file = join(operator.folder, 'kcert.yaml')
    writeFileSync(file, `${readFileSync(file, 'utf8').trimEnd()}\n${hooks}`)
    return operator
  }

  /** Runs `kcert rotate-ca ARGS`. Throws for an exit code other than 0. */
  async must(args: readonly string[]): Promise<Answer> {
    const answer = await this.kcert(args)
    if (answer.code === 0) return answer
    throw new LabError(`kcert ${this.rotation} ${args.join(' ')}: exit ${answer.code}`, {
      why: `${answer.stderr.slice(-3000)}${answer.stdout.slice(-3000)}`,
    })
  }

  /** Runs phases to completion and returns the report. */
  async run(args: readonly string[]): Promise<RotationRun> {
    const { stdout } = await this.must([...args, '--yes', '-o', 'json'])
    return JSON.parse(stdout) as RotationRun
  }

  /** Runs a command. When a line of its progress matches `killAt`, the command is killed, as in a power cut. */
  async kcert(args: readonly string[], killAt?: RegExp): Promise<Answer> {
    // A recovery uses no API server.
    const place = args[0] === 'recover' ? [] : ['--kubeconfig', this.cluster.kubeconfig]
    const child = spawn(process.execPath, [program, this.rotation, ...args, ...place], {
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const parts = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      parts.stdout += text
    })
    let rest = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      parts.stderr += text
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        this.tell(`${systemClock().toISOString().slice(11, 23)} ${line}`)
        if (killAt?.test(line)) child.kill('SIGKILL')
      }
    })
    const [code] = (await once(child, 'close')) as [number | null]
    return { code: code ?? killedCode, ...parts }
  }

  /** Returns the journal in order. */
  journal(): readonly JournalEntry[] {
    const path = join(this.folder, journals[this.rotation])
    return existsSync(path) ? readJournal(readFileSync(path, 'utf8')) : []
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Pods without a controller that read the CA only once. Their owner accepts that they lose their connection in phase 12. */
export const unrestartedPods = ['lab/bare-plain', 'lab/bare-client-go-once']

const waiving = (ids: readonly string[]): string[] => ids.flatMap((id) => ['--waive', id])

/** The prober's clients with only the old CA, seen from this machine and from the load balancer. They fail in phase 12. */
export const waiversOfProber = waiving([network.gateway, network.loadBalancer])

/** The flags by which the lab's operator accepts the risk for all of these. */
export const waiversOfLab = [...waiving(unrestartedPods), ...waiversOfProber]

/** The flags for all pods without a controller. kcert cannot see that their programs read the token again. */
export const waiversOfBarePods = waiving([...unrestartedPods, 'lab/bare-client-go'])

/** In the plain flavour, the logs of units are in files of the lab, which kcert cannot read. */
export const waiversOfUnreadLogs = waiving(
  ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((program) => `cp1/${program}`),
)

/**
 * A client that follows the rules loads the bundle after its publication, and its new certificate after every verifier trusts it.
 */
const hooks = `workloads:
  reloadingCa:
    - { namespace: lab, name: bare-client-go }
hooks:
${[5, 9]
  .map(
    (phase) => `  - name: lab after phase ${phase}
    when: after-phase
    phases: [${phase}]
    timeoutSeconds: 900
    argv: ${JSON.stringify([process.execPath, hook])}`,
  )
  .join('\n')}
`
