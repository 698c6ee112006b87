import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { client, createCa, folderWith, sessionTime } from './small-pki.ts'

const hasStrace = spawnSync('strace', ['-V']).status === 0
// strace needs permission to trace, which some containers do not grant.
const canTrace = hasStrace && spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0

test.skipIf(!canTrace)(
  'an inspection of files opens no socket and starts no process (skipped where strace cannot trace)',
  () => {
    const ca = createCa()
    const leaf = client('leaf', ca)
    const data = (pem: string) => Buffer.from(pem).toString('base64')
    const folder = folderWith({
      'pki/ca.pem': ca.pem,
      'leaf.key': leaf.keyPem,
      'admin.conf': [
        'apiVersion: v1',
        'kind: Config',
        `clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: ${data(ca.pem)}}}]`,
        'users:',
        `- {name: u, user: {client-certificate-data: ${data(leaf.pem)}}}`,
        `- {name: e, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["${'/tmp/kcert-was-run'}"]}}}`,
        'contexts: [{name: x, context: {cluster: c, user: e}}]',
        'current-context: x',
        '',
      ].join('\n'),
    })
    const log = join(folder, 'trace.log')
    const run = spawnSync(
      'strace',
      [
        '-f',
        '-qq',
        // Full paths distinguish the start of Node from other opens.
        ...['-s', '4096'],
        '-e',
        'trace=socket,socketpair,connect,bind,listen,accept,accept4,sendto,sendmsg,sendmmsg,execve,execveat,fork,vfork,clone,clone3',
        '-o',
        log,
        process.execPath,
        resolve('bin/run.js'),
        'inspect',
        folder,
        '--at',
        sessionTime,
      ],
      { encoding: 'utf8', env: { PATH: process.env.PATH, HOME: '/nonexistent' } },
    )
    expect(run.stdout).toContain('leaf')
    const calls = spawnSync('cat', [log], { encoding: 'utf8' })
      .stdout.split('\n')
      .filter((line) => /^\d+ +\w+\(/.test(line))
    const offences = calls.filter((call) => !isStartOfNode(call) && !isThread(call))
    expect(calls.some(isStartOfNode)).toBe(true)
    expect(offences).toEqual([])
  },
)

function isStartOfNode(call: string): boolean {
  return /^\d+ +execve\(/.test(call) && call.includes('bin/run.js')
}

// libuv's and V8's workers share everything with the process, so they are not other programs.
function isThread(call: string): boolean {
  return /^\d+ +clone3?\(.*CLONE_THREAD/.test(call)
}
