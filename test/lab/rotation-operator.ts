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

// An operator at a terminal of this machine: the built program, its inventory found by `discover`, its nodes reached by ssh.

export interface Answer {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const program = resolve(folders.source, '../../bin/run.js')
/** What a shell says of a process that SIGKILL ended. */
export const killedCode = 137

const hook = join(folders.source, 'rotation-hook.ts')

/** Works in a folder of its own; whoever opens it closes it. */
export class RotationOperator {
  readonly folder = mkdtempSync(join(tmpdir(), 'kcert-operator-'))
  private readonly cluster: Cluster
  private readonly tell: (line: string) => void

  private constructor(cluster: Cluster, tell: (line: string) => void) {
    this.cluster = cluster
    this.tell = tell
  }

  /**
   * Returns an operator with an inventory, whose hooks give the prober what a rotation brings and re-issue what is not kcert's.
   * `reach` are the flags of `discover` that say how nodes are reached; otherwise by ssh.
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

  /** Runs `kcert rotate-ca ARGS`; refuses another exit code than 0. */
  async must(args: readonly string[]): Promise<Answer> {
    const answer = await this.kcert(args)
    if (answer.code === 0) return answer
    throw new LabError(`kcert rotate-ca ${args.join(' ')}: exit ${answer.code}`, {
      why: `${answer.stderr.slice(-3000)}${answer.stdout.slice(-3000)}`,
    })
  }

  /** Runs phases to their end and returns the report. */
  async run(args: readonly string[]): Promise<RotationRun> {
    const { stdout } = await this.must([...args, '--yes', '-o', 'json'])
    return JSON.parse(stdout) as RotationRun
  }

  /** Runs a command; it is killed, as a power cut would, once a line of its progress matches `killAt`. */
  async kcert(args: readonly string[], killAt?: RegExp): Promise<Answer> {
    // A recovery asks no API server.
    const place = args[0] === 'recover' ? [] : ['--kubeconfig', this.cluster.kubeconfig]
    const child = spawn(process.execPath, [program, 'rotate-ca', ...args, ...place], {
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

  /** What the journal holds, in its order. */
  journal(): readonly JournalEntry[] {
    const path = join(this.folder, 'kcert-rotation.jsonl')
    return existsSync(path) ? readJournal(readFileSync(path, 'utf8')) : []
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Pods that nobody makes again, and that never read the CA anew: their owner lets them lose their connection in phase 12. */
export const unrestartedPods = ['lab/bare-plain', 'lab/bare-client-go-once']

const waiving = (ids: readonly string[]): string[] => ids.flatMap((id) => ['--waive', id])

/** The prober's clients with the old CA alone, seen from this machine and from the load balancer: they fail in phase 12. */
export const waiversOfProber = waiving([network.gateway, network.loadBalancer])

/** The flags by which the lab's operator accepts the risk for all of these. */
export const waiversOfLab = [...waiving(unrestartedPods), ...waiversOfProber]

/** In the plain flavour the logs of units are in files of the lab's own: kcert cannot read them. */
export const waiversOfUnreadLogs = waiving(
  ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((program) => `cp1/${program}`),
)

/** A rule-following client takes up the bundle once it is published, and its new certificate once every verifier trusts it. */
const hooks = `workloads:
  rereadingCa:
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
