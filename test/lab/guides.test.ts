import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { masked, readSteps, withOutputs } from '../guides/transcript.ts'
import { run } from './command.ts'
import { describeOnCluster, withCluster } from './fixture.ts'
import { kubectlCommand } from './kubectl.ts'
import type { ClusterRequest } from './spec.ts'

// Every command of every guide, in its order, on a fresh cluster: it prints what the guide shows.
// KCERT_GUIDES_WRITE=1 writes what the commands print now into the guides.

const guides: readonly { name: string; cluster: ClusterRequest }[] = [
  { name: 'tls-in-a-cluster', cluster: { controlPlanes: 1, workers: 1 } },
]

describeOnCluster('guides', () => {
  test.each(guides)('$name: each command prints what the guide shows', async ({ name, cluster: request }) => {
    const file = resolve('docs/guides', `${name}.md`)
    const guide = readFileSync(file, 'utf8')
    const steps = readSteps(guide)
    expect(steps.length).toBeGreaterThan(3)
    execFileSync(process.execPath, ['scripts/build.ts'])
    const outputs = await withCluster(request, async ({ kubeconfig }) => {
      const operator = await makeOperator(kubeconfig)
      try {
        return await follow(steps, operator)
      } finally {
        rmSync(operator.folder, { recursive: true })
      }
    })
    if (isWriting) writeFileSync(file, withOutputs(guide, steps, outputs))
  })
})

const isWriting = process.env.KCERT_GUIDES_WRITE === '1'

interface Operator {
  readonly folder: string
  readonly env: Record<string, string>
}

/** A home of somebody who has the administrator's kubeconfig, kubectl and kcert, and nothing else. */
async function makeOperator(kubeconfig: string): Promise<Operator> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-guide-'))
  const bin = join(folder, '.bin')
  mkdirSync(bin)
  const kcert = join(bin, 'kcert')
  writeFileSync(kcert, `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/run.js')}' "$@"\n`)
  chmodSync(kcert, 0o755)
  const [kubectl = ''] = await kubectlCommand([])
  const path = [bin, dirname(kubectl), process.env.PATH].join(':')
  return { folder, env: { PATH: path, HOME: folder, KUBECONFIG: kubeconfig } }
}

/** Runs the steps and returns what each printed, on standard output and standard error as a terminal would show them. */
async function follow(steps: ReturnType<typeof readSteps>, { folder, env }: Operator): Promise<string[]> {
  const outputs: string[] = []
  for (const { command, printed, exit } of steps) {
    const done = await run(['bash', '-c', `exec 2>&1\n${command}`], { cwd: folder, env, mayFail: true })
    outputs.push(done.stdout)
    expect(done.code, `${command}\n${done.stdout}`).toBe(exit)
    if (!isWriting) expect(masked(done.stdout), command).toBe(masked(printed))
  }
  return outputs
}
