import { mkdirSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { startApiServer } from '../fakes/api-server.ts'
import { advisedCommands } from './advice-running.ts'
import { folder, folderWithCa, inFolder, openssl, opensslRequest } from './ca-files.ts'
import { putServing } from './cluster-session.ts'
import { kcertBeside } from './program.ts'
import { createCa, issued } from './small-pki.ts'

// Advice that once failed when it was run. program.ts runs the advice of these sessions, as for every session.

/** Starts a TLS server that presents its leaf and its root. Returns HOST:PORT. */
async function servedWithRoot(at: string): Promise<string> {
  const ca = createCa('served-ca')
  const leaf = issued({ subject: { commonName: 'web' }, subjectAltNames: { ip: ['127.0.0.1'] } }, ca)
  writeFileSync(join(at, 'other.pem'), createCa('other-ca').pem)
  const server = createServer({ key: leaf.keyPem, cert: `${leaf.pem}${ca.pem}` })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  [['--roots', 'other.pem', '--name', '127.0.0.1'], 3],
  [[], 2],
] as const)('verify HOST:PORT %j does not advise to trust the server itself', async (flags, exit) => {
  const at = folder()
  const place = await servedWithRoot(at)
  const session = await kcertBeside(['verify', place, ...flags], { cwd: at })
  expect(session.exit).toBe(exit)
  expect(`${session.stdout}${session.stderr}`).toMatch(/next:? +\S/)
  expect(`${session.stdout}${session.stderr}`).not.toContain(`--roots ${place}`)
})

test('set-client --key with a kubeconfig advises how to extract the key', () => {
  const at = folderWithCa()
  const user = 'client-certificate-data: aGVsbG8=, client-key-data: aGVsbG8='
  const conf = `apiVersion: v1\nkind: Config\nusers: [{name: u, user: {${user}}}]\n`
  for (const file of ['admin.conf', 'other.conf']) writeFileSync(join(at, file), conf)
  const args = ['kubeconfig', 'set-client', 'admin.conf', '--cert', 'ca.pem', '--key', 'other.conf']
  const session = inFolder(at)(args)
  expect(session).toMatchObject({ exit: 3, stdout: '' })
  expect(session.stderr).toMatch(/^KCERT_X509_MALFORMED: other\.conf is a kubeconfig, not a private key$/m)
  expect(advisedCommands(session)).toEqual([
    "(umask 077; kubectl config view --raw --kubeconfig other.conf -o 'jsonpath={.users[0].user.client-key-data}' | base64 -d > client.key)",
  ])
})

test('does not advise to create sa.pub from a missing sa.key', () => {
  const at = folderWithCa()
  const pki = join(at, 'kubernetes/pki')
  mkdirSync(pki, { recursive: true })
  const run = inFolder(at)
  for (const name of ['apiserver', 'apiserver-kubelet-client', 'front-proxy-client'])
    openssl(
      at,
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-subj',
      `/CN=${name}`,
      ...['-keyout', `${pki}/${name}.key`, '-out', `${pki}/${name}.crt`],
    )
  const { stdout } = run(['inspect', 'kubernetes', '-o', 'json'])
  const { problems } = JSON.parse(stdout) as {
    problems: { source: string; code: string; fix: string; next: string }[]
  }
  const missing = problems.filter(({ source }) => /\/sa\.(?:key|pub)$/.test(source))
  expect(missing.map(({ code }) => code)).toEqual(['KUBEADM_FILE_MISSING', 'KUBEADM_FILE_MISSING'])
  for (const { fix, next } of missing) {
    expect(fix).toContain('copy it from another control-plane node or a backup')
    expect(next).not.toContain('openssl')
  }
})

test('includes the name of a request in the advice', async () => {
  const server = await startApiServer()
  onTestFinished(() => server.close())
  putServing(server, 'csr-7x2lq')
  const at = folder()
  const env = { KUBECONFIG: server.writeKubeconfig(join(at, 'admin.conf')) }
  for (const verb of ['explain', 'describe']) {
    const session = await kcertBeside(['csr', verb, 'csr-7x2lq'], { cwd: at, env })
    const advice = advisedCommands(session)
    expect(advice.join('\n')).not.toMatch(/\bNAME\b/)
  }
})

/** Returns a kubeconfig with a credential program. */
function withProgram(at: string, exec: object): void {
  const user = { exec: { apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never', ...exec } }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(join(at, 'exec.conf'), JSON.stringify(config), { mode: 0o600 })
}

test('names a failing credential program with its arguments', async () => {
  const at = folder()
  withProgram(at, { command: '/bin/sh', args: ['-c', 'exit 255'] })
  const session = await kcertBeside(['csr', 'list', '--kubeconfig', 'exec.conf'], { cwd: at })
  expect(session.stderr).toBe(
    "KCERT_KUBECONFIG_UNUSABLE: the credential program /bin/sh failed\nwhy: its exit code was 255\nnext: /bin/sh -c 'exit 255'\n",
  )
})

test('advises kubectl with the same kubeconfig and context for a credential program without a command', async () => {
  const at = folder()
  withProgram(at, { command: '' })
  const session = await kcertBeside(['csr', 'list', '--kubeconfig', 'exec.conf'], { cwd: at })
  expect(advisedCommands(session)).toEqual([
    'kubectl --kubeconfig exec.conf --context x config view --minify',
  ])
})

test.each([
  ['next: kcert csr list, and name it', 'list,'],
  ['next: find it: kcert csr list shows it', 'shows'],
])('refuses a sentence after a command: %s', (line, word) => {
  expect(() => advisedCommands({ stdout: line, stderr: '' })).toThrow(`"${word}" is no part of a command`)
})

test('advises flags that replace those on the command line', () => {
  const at = folderWithCa()
  const run = inFolder(at)
  const init = ['ca', 'init', '--cn', 'x', '--out', "it's.pem", '--key-out', 'x.key']
  expect(run([...init, '--expiry=-1h']).stderr).toContain(
    "next: kcert ca init --cn x --out 'it'\\''s.pem' --key-out x.key --expiry 87600h\n",
  )
  expect(run(['csr', 'create', '--cn', 'x', '--dns', '10.0.0.1', '--key-out', 'k']).stderr).toContain(
    'next: kcert csr create --cn x --key-out k --ip 10.0.0.1\n',
  )
  // A command with many operands.
  opensslRequest(at, 'a')
  expect(
    run(['ca', 'sign', 'a.csr', '--ca', 'ca.pem', '--ca-key', 'ca-key.pem', '--out', 'o']).stderr,
  ).toContain('next: kcert ca sign a.csr --ca ca.pem --ca-key ca-key.pem --out o --profile server\n')
})
