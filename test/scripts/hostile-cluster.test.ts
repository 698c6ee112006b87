import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { requestPem, servingDescription } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { conditionsOf, putCluster, putServing } from './cluster-session.ts'
import { kcertBeside } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Kubeconfigs that name unsuitable files, and API servers with malformed responses. Every session ends soon, with a message.

const folder = temporaryFolder('hostile-cluster')
const admin = { username: 'root', groups: ['system:masters'] }
let server: FakeApiServer

beforeEach(async () => {
  await server?.close()
  server = await startApiServer({ tokens: { 'canary-token': admin } })
  putCluster(server)
})
afterAll(() => server.close())

/** Runs kcert with a kubeconfig whose cluster has these fields in addition to its CA. */
async function asAdmin(args: readonly string[], cluster: Record<string, unknown> = {}) {
  const path = server.writeKubeconfig(join(folder, 'admin.conf'), { token: 'canary-token' }, cluster)
  const session = await kcertBeside([...args, '--kubeconfig', path], { cwd: folder })
  expect(`${session.stdout}${session.stderr}`).not.toContain('canary')
  return session
}

const insecure = { 'certificate-authority-data': undefined, 'insecure-skip-tls-verify': true }

test('warns once of a server that is not verified, including in approvals', async () => {
  putServing(server, 'csr-1')
  const listed = await asAdmin(['csr', 'list', '-o', 'json'], insecure)
  const warning = `warning: ${server.url} is not verified: context "someone@fake" sets insecure-skip-tls-verify, so any server that answers receives your credentials\n`
  expect(listed).toMatchObject({ exit: 0, stderr: warning })
  expect(JSON.parse(listed.stdout).requests).toHaveLength(1)
  const approved = await asAdmin(['csr', 'approve', '--policy', 'builtin', '--yes'], insecure)
  expect(approved.exit).toBe(0)
  expect(approved.stderr.split(warning)).toHaveLength(2)
  expect(conditionsOf(server, 'csr-1')).toEqual(['Approved'])
  expect((await asAdmin(['csr', 'list'])).stderr).toBe('')
})

test('refuses insecure-skip-tls-verify together with a CA, before it sends a token', async () => {
  const { exit, stderr } = await asAdmin(['csr', 'list'], { 'insecure-skip-tls-verify': true })
  expect(exit).toBe(2)
  expect(stderr).toContain('KCERT_KUBECONFIG_UNUSABLE')
  expect(stderr).toContain('has both certificate-authority-data and insecure-skip-tls-verify')
  expect(stderr).toContain('why: kubectl refuses both together')
  expect(server.connections).toBe(0)
})

test.each([
  ['ends at once', ''],
  ['is forgotten at once', '{"type":"ERROR","object":{"code":410}}\n'],
])('waits only until its timeout where each watch %s', async (_, text) => {
  putServing(server, 'csr-1')
  server.faults.add({
    kind: 'hostile',
    verb: 'watch',
    times: 1_000_000,
    answer: (response) => response.end(text),
  })
  const { exit, stderr } = await asAdmin(['csr', 'fetch', 'csr-1', '--wait', '2s'])
  expect(exit).toBe(4)
  expect(stderr).toContain('KCERT_CSR_WAIT_OVER: the CertificateSigningRequest "csr-1" is still pending')
  expect(stderr).toMatch(/^next: kcert csr explain --kubeconfig \S+ csr-1$/m)
})

test('refuses a FIFO as the CA of a kubeconfig at once', async () => {
  const fifo = join(folder, 'ca.fifo')
  execFileSync('mkfifo', [fifo])
  const began = performance.now()
  const { exit, stderr } = await asAdmin(['csr', 'list', '--request-timeout', '2s'], {
    'certificate-authority-data': undefined,
    'certificate-authority': fifo,
  })
  expect(exit).toBe(2)
  expect(stderr).toContain(`KCERT_KUBECONFIG_UNUSABLE: certificate-authority ${fifo} cannot be read`)
  expect(stderr).toContain('why: it is a FIFO, which kcert does not read')
  expect(performance.now() - began).toBeLessThan(20_000)
})

test('reads pipes that the shell names, and reports when it waits for one', () => {
  const request = join(folder, 'request.pem')
  writeFileSync(request, requestPem(servingDescription()))
  const run = (command: string) =>
    spawnSync(
      'bash',
      ['-c', command.replaceAll('kcert', `"${process.execPath}" "${resolve('bin/run.js')}"`)],
      {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: '/nonexistent' },
      },
    )
  const quick = run('kcert inspect <(cat request.pem) -o json')
  expect(quick.stderr).toBe('')
  expect(quick.stdout).toContain('system:node:')
  const names = run('kcert csr check <(cat request.pem) --signer kubernetes.io/kubelet-serving -o json')
  const input = run('kcert csr check /dev/stdin --signer kubernetes.io/kubelet-serving -o json < request.pem')
  expect([names.status, names.stderr]).toEqual([input.status, input.stderr])
  expect(names.stdout).toContain('system:node:')
  const slow = run('kcert inspect <(sleep 5; cat request.pem) -o json')
  expect(slow.stderr).toMatch(/^kcert: waiting for the end of \/dev\/fd\/\d+\n$/)
  expect(slow.status).toBe(quick.status)
  const endless = run('kcert inspect <(cat /dev/zero)')
  expect(endless.stderr).toContain('KCERT_FILE_TOO_LARGE')
  expect(endless.status).toBe(2)
})
