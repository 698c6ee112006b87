import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { labKubectl } from './lab-kubectl.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// The single executable works like the installed package, from a folder with nothing else in it.

const isHere = process.platform === 'linux' && process.arch === 'x64'

test.skipIf(!isHere)(
  'the single executable has the same output, exit codes and colours as the package',
  {
    timeout: 1_800_000,
  },
  () => {
    const folder = temporaryFolder('executable')
    const file = join(folder, 'kcert')
    execFileSync(process.execPath, ['scripts/dist.ts', file], { stdio: 'ignore' })
    copyFileSync('examples/kubelet.kubeconfig', join(folder, 'kubelet.kubeconfig'))
    const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent' }
    const alone = (...args: string[]) => {
      const { stdout, stderr, status } = spawnSync(file, args, { encoding: 'utf8', cwd: folder, env })
      return { stdout, stderr, exit: status }
    }
    for (const line of [
      ['--version'],
      ['--help'],
      ['csr', 'approve', '--help'],
      ['inspect', 'kubelet.kubeconfig', '--at', '2025-01-01T00:00:00Z'],
      ['inspect', 'kubelet.kubeconfig', '-o', 'yaml', '--at', '2025-01-01T00:00:00Z'],
      ['completion', 'bash'],
      ['completion', 'zsh'],
      ['completion', 'fish'],
      ['explain-error', 'remote error: tls: internal error'],
      ['inspct'],
      ['key', 'generate', '--no-such-flag'],
      ['csr', 'list', '--kubeconfig', '/nowhere'],
    ]) {
      const { stdout, ...rest } = alone(...line)
      const installed = kcert(line, { cwd: folder })
      // Masks the time at which a report was created.
      const settled = (text: string): string => text.replace(/generatedAt"?: "[^"]+"/, '')
      expect({ ...rest, stdout: settled(stdout) }, line.join(' ')).toEqual({
        ...installed,
        stdout: settled(installed.stdout),
      })
    }
    const onPath = { PATH: `${folder}:/usr/bin:/bin`, HOME: folder }
    const inShell = (script: string): string =>
      execFileSync('bash', ['--norc', '-c', script], { encoding: 'utf8', cwd: '/', env: onPath })
    const tab =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
      'source <(kcert completion bash); COMP_WORDS=(kcert rotate-ca st); COMP_CWORD=2; _kcert; echo "${COMPREPLY[@]}"'
    expect(inShell(tab)).toBe('status\n')
    for (const name of ['kubectl-kcert', 'kubectl_complete-kcert']) symlinkSync('kcert', join(folder, name))
    expect(inShell('kubectl_complete-kcert inspect -o js')).toBe('json\njsonpath\n:4\n')
    expect(inShell('kubectl-kcert --version')).toMatch(/^kcert\/\d/)
    if (labKubectl !== undefined) {
      expect(inShell(`${labKubectl} kcert --version`)).toMatch(/^kcert\/\d/)
      expect(inShell(`${labKubectl} __complete kcert rotate-ca st 2>&1`)).toContain('status\t')
    }
    const command = `${file} inspect ${resolve('examples/kubelet.kubeconfig')}`
    const coloured = spawnSync('script', ['-qec', command, '/dev/null'], {
      encoding: 'utf8',
      env: { ...env, TERM: 'xterm-256color' },
    })
    expect(coloured.stdout).toContain('\x1b[31m\x1b[1mexpired\x1b[22m\x1b[39m')
    expect(coloured.status).toBe(3)
  },
)
