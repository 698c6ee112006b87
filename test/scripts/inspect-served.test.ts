import { spawn } from 'node:child_process'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { resolve } from 'node:path'
import { createServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import type { InspectionReport } from '../../src/inspection/report.ts'
import type { Session } from './program.ts'
import { createCa, folderWith, issued, sessionTime } from './small-pki.ts'

const ca = createCa()
const server = issued(
  {
    subject: { commonName: 'kube-apiserver' },
    keyUsage: ['digitalSignature', 'keyEncipherment'],
    extendedKeyUsage: ['serverAuth'],
    subjectAltNames: { dns: ['kubernetes'], ip: ['127.0.0.1'] },
  },
  ca,
)

// Asynchronous, because a server in this process could not respond during a synchronous run.
function kcert(...args: string[]): Promise<Session> {
  const program = spawn(process.execPath, [resolve('bin/run.js'), ...args, '--at', sessionTime], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
  })
  const session = { stdout: '', stderr: '' }
  program.stdout.on('data', (chunk: Buffer) => (session.stdout += chunk.toString()))
  program.stderr.on('data', (chunk: Buffer) => (session.stderr += chunk.toString()))
  return new Promise((ended) => program.on('close', (exit) => ended({ ...session, exit })))
}

async function serve(options: { requestCert?: boolean } = {}): Promise<string> {
  const listening = createServer({
    cert: server.pem + ca.pem,
    key: server.keyPem,
    ...options,
    rejectUnauthorized: true,
    ca: ca.pem,
  })
  listening.on('tlsClientError', () => {})
  listening.on('secureConnection', (socket) => socket.on('error', () => {}))
  onTestFinished(() => void listening.close())
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready))
  return `127.0.0.1:${(listening.address() as AddressInfo).port}`
}

test('inspects the served chain for HOST:PORT and for a URL, also if the server requests a client certificate', async () => {
  for (const target of [
    await serve(),
    await serve({ requestCert: true }),
    `https://${await serve()}/livez`,
  ]) {
    const { stdout, stderr } = await kcert('inspect', target, '-o', 'json')
    expect(stderr).toBe('')
    const { certificates } = JSON.parse(stdout) as InspectionReport
    expect(certificates.map(({ source, subject }) => [source, subject.commonName])).toEqual([
      [target.replace(/^https:\/\/|\/livez$/g, ''), 'kube-apiserver'],
      [target.replace(/^https:\/\/|\/livez$/g, ''), 'kubernetes'],
    ])
  }
})

test('exits with 4 for an unreachable server, with why and next', async () => {
  const { stdout, stderr, exit } = await kcert('inspect', '127.0.0.1:1')
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 4 })
  expect(stderr).toBe(
    'KCERT_UNREACHABLE: TLS connection to 127.0.0.1:1 failed\nwhy: connection refused: nothing listens there\nnext: nc -vz 127.0.0.1 1\n',
  )
})

test('waits for a silent server only until the timeout', async () => {
  const silent = createTcpServer((socket) => onTestFinished(() => void socket.destroy()))
  onTestFinished(() => void silent.close())
  await new Promise<void>((ready) => silent.listen(0, '127.0.0.1', ready))
  const { stderr, exit } = await kcert(
    'inspect',
    `127.0.0.1:${(silent.address() as AddressInfo).port}`,
    '--timeout',
    '0.2s',
  )
  expect(exit).toBe(4)
  expect(stderr).toContain('why: no answer within 0.2 s (--timeout)')
})

test('shows other targets when a server is unreachable, and reports the failure in the exit code', async () => {
  const folder = folderWith({ 'ca.pem': ca.pem })
  const { stdout, stderr, exit } = await kcert('inspect', `${folder}/ca.pem`, '127.0.0.1:1')
  expect(stdout).toContain('CN=kubernetes')
  expect(stderr).toContain('KCERT_UNREACHABLE')
  expect(exit).toBe(4)
})
