import { expect, test } from 'vitest'
import type { NodeAccess } from '../pki/node-access.ts'
import type { ApiCall } from './own-identity.ts'
import { WatchingHandshakes } from './watching-handshakes.ts'

const begunMs = Date.parse('2026-11-21T12:00:00Z')
const at = 'cp1/kube-apiserver'
const subject = { kind: 'handshake-errors', at, forMs: 10_000, waived: [] } as const

interface Server {
  /** Response of /metrics at a time. By default, the counter stays at 0. */
  metrics?: (seconds: number) => { status?: number; body: string }
  /** Log lines at a time. */
  log?: (seconds: number, verbosity: number) => string
  /** Exit status of the command on the node. */
  status?: number
  /** HTTP status of PUT /debug/flags/v. */
  debugStatus?: number
  argv?: readonly string[]
  /** How far the node's clock is ahead. */
  aheadMs?: number
  /** Returns true once no API server runs any more. */
  isGone?: (seconds: number) => boolean
}

const counted = (count: number | string): { status?: number; body: string } => ({
  body: `# TYPE apiserver_tls_handshake_errors_total counter\napiserver_tls_handshake_errors_total ${count}\n`,
})

const logged = (seconds: number, address: string, reason: string): string =>
  `${new Date(begunMs + seconds * 1000).toISOString()} stderr F I1121 12:00:00.000000       1 secure_serving.go:1] http: TLS handshake error from ${address}:41234: ${reason}`

/** An API server with a simulated clock. */
function watching({
  metrics,
  log,
  status = 0,
  debugStatus = 200,
  argv = ['kube-apiserver'],
  aheadMs = 0,
  isGone = () => false,
}: Server) {
  let nowMs = begunMs
  let verbosity = 0
  const puts: string[] = []
  const asked = { metrics: 0, nodes: new Set<string>(), programs: new Set<string>(), since: '' }
  const seconds = (): number => (nowMs - begunMs) / 1000
  const node = {
    name: 'cp1',
    processes: async (programs: readonly string[]) => {
      asked.programs.add(programs.join())
      return isGone(seconds()) ? [] : [{ program: 'kube-apiserver', pid: 1, argv }]
    },
    run: async (command: readonly string[]) => {
      asked.since = command.at(-3)!
      return { status, stdout: Buffer.from(log?.(seconds(), verbosity) ?? ''), stderr: 'no such log' }
    },
  } as unknown as NodeAccess
  const handshakes = new WatchingHandshakes({
    site: { clock: () => new Date(nowMs), clockAheadMs: async () => aheadMs },
    planes: {
      node: (name) => {
        asked.nodes.add(name)
        return node
      },
    },
    identity: {
      call: async (name: string, { method, path, text = '' }: ApiCall) => {
        asked.nodes.add(name)
        if (method === 'GET' && path === '/metrics') {
          asked.metrics++
          const { status: answered = 200, body } = metrics?.(seconds()) ?? counted(0)
          return { status: answered, body }
        }
        puts.push(`${method} ${path} ${text}`)
        if (debugStatus === 0) throw new Error('connection reset')
        if (debugStatus === 200) verbosity = Number(text)
        return { status: debugStatus, body: '' }
      },
    },
    sleep: async (ms) => {
      nowMs += ms
    },
  })
  return {
    handshakes,
    puts,
    asked,
    seconds,
    watch: (more = {}, deadlineS = 40) =>
      handshakes.errors({ ...subject, ...more }, begunMs + deadlineS * 1000),
  }
}

test('succeeds on an unchanged counter, and does not change the verbosity', async () => {
  const { watch, puts } = watching({ metrics: () => counted(7) })
  expect(await watch()).toMatchObject({
    ok: true,
    detail: expect.stringContaining('0 TLS handshake errors in 10 s'),
  })
  expect(puts).toEqual([])
})

test.each([
  [
    'the counter is missing',
    { body: 'apiserver_request_total 5\n' },
    'does not export the metric apiserver_tls_handshake_errors_total',
  ],
  [
    'the counter has another name',
    { body: 'apiserver_tls_handshake_error_total 0\n' },
    'does not export the metric apiserver_tls',
  ],
  ['the metrics are empty', { body: '' }, 'does not export the metric apiserver_tls_handshake_errors_total'],
  ['the counter is not a number', counted('many'), 'is not a number: many'],
  ['the counter is NaN', counted('NaN'), 'is not a number: NaN'],
  ['the metrics are forbidden', { status: 403, body: '' }, `${at} answers 403 for /metrics`],
])('both probes fail and report the reason when %s', async (_, answer, words) => {
  const { watch, handshakes } = watching({ metrics: () => answer })
  expect(await watch()).toEqual({ ok: false, detail: expect.stringContaining(words) })
  const rate = await handshakes.rate({ kind: 'handshake-rate', at, forMs: 10_000 }, begunMs + 30_000)
  expect(rate).toEqual({ ok: false, detail: expect.stringContaining(words) })
})

test('measures the rate as errors over time', async () => {
  const { handshakes } = watching({ metrics: (seconds) => counted(100 + 2 * Math.floor(seconds)) })
  const rate = await handshakes.rate({ kind: 'handshake-rate', at, forMs: 10_000 }, begunMs + 30_000)
  expect(rate).toMatchObject({ ok: true, rate: { errors: 20, overMs: 10_000 } })
})

test('does not measure a rate across a restart', async () => {
  const { handshakes } = watching({ metrics: (seconds) => counted(seconds < 5 ? 50 : Math.floor(seconds)) })
  const rate = await handshakes.rate({ kind: 'handshake-rate', at, forMs: 10_000 }, begunMs + 30_000)
  expect(rate).toMatchObject({ ok: true, rate: { errors: 10 } })
})

const perSecond = (address: string, reason: string) => ({
  metrics: (seconds: number) => counted(Math.floor(seconds)),
  log: (seconds: number, verbosity: number) =>
    verbosity < 5
      ? ''
      : Array.from({ length: Math.floor(seconds) + 1 }, (_, second) => logged(second, address, reason)).join(
          '\n',
        ),
})

test('fails on a client that rejects the certificate, even at an unchanged rate, and names the client', async () => {
  const { watch, puts } = watching(perSecond('10.0.0.7', 'remote error: tls: unknown certificate authority'))
  const answer = await watch({ before: { errors: 60, overMs: 10_000 } })
  expect(answer).toMatchObject({
    ok: false,
    detail: expect.stringMatching(
      /10\.0\.0\.7 \(remote error: tls: unknown certificate authority, \d+ times\); to accept the risk for one: --waive 10\.0\.0\.7$/,
    ),
  })
  expect(puts).toEqual(['PUT /debug/flags/v 5', 'PUT /debug/flags/v 0'])
})

test('restores the verbosity of the command line', async () => {
  const { watch, puts } = watching({ ...perSecond('10.0.0.7', 'EOF'), argv: ['kube-apiserver', '--v=2'] })
  expect(await watch({ before: { errors: 10, overMs: 10_000 } })).toMatchObject({ ok: true })
  expect(puts).toEqual(['PUT /debug/flags/v 5', 'PUT /debug/flags/v 2'])
})

test('accepts clients that close the connection up to the rate before phase 1, but no more', async () => {
  const server = perSecond('fd00::7', 'EOF')
  server.log = (seconds) => perSecond('[fd00::7]', 'EOF').log(seconds, 5)
  const { watch, puts } = watching(server)
  expect(await watch({ before: { errors: 10, overMs: 10_000 } })).toMatchObject({ ok: true })
  expect(await watching(server).watch({ before: { errors: 4, overMs: 10_000 } })).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/before phase 1\): fd00::7 \(EOF, \d+ times\)$/),
  })
  expect(await watching(server).watch()).toMatchObject({
    ok: false,
    detail: expect.stringContaining('the journal has no rate from before phase 1, so 0 is assumed'),
  })
  // The log names the clients without a higher verbosity.
  expect(puts).toEqual([])
})

test.each([
  ['that cannot be read', { status: 3 }, 'its log cannot be read: no such log', []],
  [
    'whose verbosity cannot be set',
    { debugStatus: 403 },
    'verbosity cannot be set (HTTP status 403)',
    ['PUT /debug/flags/v 5'],
  ],
])('compares only the numbers with a log %s, and reports why', async (_, server, words, asked) => {
  const { watch, puts } = watching({ metrics: (seconds) => counted(Math.floor(seconds)), ...server })
  const answer = await watch()
  expect(answer.ok).toBe(false)
  expect(answer.detail).toContain('kcert compares only their number')
  expect(answer.detail).toContain(words)
  expect(puts).toEqual(asked)
})

test('accepts the failures of a waived client, and reports them', async () => {
  const { watch } = watching(perSecond('10.0.0.7', 'remote error: tls: bad certificate'))
  expect(await watch({ waived: ['10.0.0.7'] })).toMatchObject({
    ok: true,
    accepted: [expect.stringMatching(/^10\.0\.0\.7 \(remote error: tls: bad certificate, \d+ times\)$/)],
  })
})

const perSecondAlone = (seconds: number) => counted(Math.floor(seconds))

test('queries only the node of the API server, and only its kube-apiserver', async () => {
  const { watch, asked } = watching({})
  await watch()
  expect([...asked.nodes]).toEqual(['cp1'])
  expect([...asked.programs]).toEqual(['kube-apiserver'])
})

test.each([
  ['none', () => counted(7), { errors: 0, overMs: 10_000 }, `${at}: 0 TLS handshake errors in 10 s`],
  [
    'two a second',
    (s: number) => counted(2 * s),
    { errors: 20, overMs: 10_000 },
    `${at}: 20 TLS handshake errors in 10 s`,
  ],
])('measures a rate of %s in one window', async (_, metrics, rate, detail) => {
  const { handshakes, seconds } = watching({ metrics })
  expect(await handshakes.rate({ kind: 'handshake-rate', at, forMs: 10_000 }, begunMs + 30_000)).toEqual({
    ok: true,
    detail,
    rate,
  })
  expect(seconds()).toBe(10)
})

test('neither probe reads the metrics again after the deadline', async () => {
  const rate = watching({ metrics: () => ({ status: 503, body: '' }) })
  await rate.handshakes.rate({ kind: 'handshake-rate', at, forMs: 10_000 }, begunMs + 2_000)
  expect(rate.asked.metrics).toBe(1)
  const errors = watching({ metrics: () => ({ status: 503, body: '' }) })
  await errors.watch({}, 2)
  expect(errors.asked.metrics).toBe(2)
})

test('fails when the deadline cuts the window short', async () => {
  const { watch } = watching({})
  expect(await watch({}, 4)).toEqual({
    ok: false,
    detail: `apiserver_tls_handshake_errors_total of ${at} was not watched for the whole time`,
  })
})

test('ends with the first window that meets the requirements', async () => {
  const { watch, seconds } = watching({})
  expect(await watch()).toMatchObject({ ok: true })
  expect(seconds()).toBe(10)
})

test('restarts the window after unreadable metrics', async () => {
  const { watch, seconds } = watching({
    metrics: (s) => (s === 4 ? { status: 503, body: '' } : counted(0)),
  })
  expect(await watch()).toMatchObject({ ok: true })
  expect(seconds()).toBe(16)
})

test.each([
  ['restarts once the log names clients', 200, 14],
  ['continues when the verbosity cannot be raised', 403, 10],
])('a window %s', async (_, debugStatus, ends) => {
  // The log shows failures from the moment that the verbosity is set.
  const log = (s: number, verbosity: number) =>
    verbosity < 5
      ? ''
      : Array.from({ length: s }, (_, second) => logged(second + 1, '10.0.0.7', 'EOF')).join('\n')
  const { watch, seconds } = watching({ metrics: perSecondAlone, log, debugStatus })
  expect(await watch({ before: { errors: 20, overMs: 10_000 } })).toMatchObject({ ok: true })
  expect(seconds()).toBe(ends)
})

test.each([
  ['negative', counted(-1), 'apiserver_tls_handshake_errors_total of cp1/kube-apiserver is not a number: -1'],
  [
    'long',
    counted('x'.repeat(60)),
    `apiserver_tls_handshake_errors_total of cp1/kube-apiserver is not a number: ${'x'.repeat(40)}`,
  ],
])('rejects a counter that is %s', async (_, answer, detail) => {
  expect(await watching({ metrics: () => answer }).watch({}, 0)).toEqual({ ok: false, detail })
})

test('reads the log from the start of the watch, by the clock of the node', async () => {
  const { watch, asked } = watching({ aheadMs: 5_000 })
  await watch()
  expect(asked.since).toBe(String(begunMs / 1000 + 5 - 1))
})

test.each([
  ['more than 2 s before the watch', -2.5, true],
  ['2 s before it, while the counter may have been late', -2, false],
  ['while it runs', 1, false],
])('evaluates a client that was rejected %s', async (_, second, ok) => {
  const log = () => logged(second, '10.0.0.7', 'remote error: tls: bad certificate')
  expect(await watching({ log }).watch({}, 10)).toMatchObject({ ok })
})

const unnamed = `${at}: 10 TLS handshake errors in 10 s (the journal has no rate from before phase 1, so 0 is assumed); its log does not show all of them, so kcert compares only their number (to accept the risk: --waive ${at})`

test.each([
  ['cannot be read', { status: 3 }, '; its log cannot be read: no such log'],
  ['has no process', { isGone: () => true }, '; its log cannot be read: no kube-apiserver runs on cp1'],
  ['names no client at the higher verbosity', {}, ''],
  [
    'cannot get a higher verbosity',
    { debugStatus: 403 },
    '; its log verbosity cannot be set (HTTP status 403)',
  ],
  [
    'gets no response to a verbosity request',
    { debugStatus: 0 },
    '; its log verbosity cannot be set: connection reset',
  ],
])('the answer ends with the reason when a log %s', async (_, server, reason) => {
  expect(await watching({ metrics: perSecondAlone, ...server }).watch()).toEqual({
    ok: false,
    detail: `${unnamed}${reason}`,
    accepted: [],
  })
})

test.each([
  [at, true],
  ['cp2/kube-apiserver', false],
])('accepts failures missing from the log for a waived API server: %s, %s', async (id, ok) => {
  const { ok: isAccepted, accepted } = await watching({ metrics: perSecondAlone, status: 3 }).watch({
    waived: [id],
  })
  expect(isAccepted).toBe(ok)
  expect(accepted).toEqual(ok ? ['errors missing from its log (10)'] : [])
})

test.each([
  ['has stopped', { isGone: (s: number) => s > 39 }],
  ['has no number for --v', { argv: ['kube-apiserver', '--v=many'] }],
])('resets the verbosity of an API server that %s to 0', async (_, server) => {
  const { watch, puts } = watching({ metrics: perSecondAlone, ...server })
  await watch()
  expect(puts).toEqual(['PUT /debug/flags/v 5', 'PUT /debug/flags/v 0'])
})
