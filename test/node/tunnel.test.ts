import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { commandTransport } from '../../src/node/command.ts'
import { localTransport } from '../../src/node/local.ts'
import { sshConnections } from '../../src/node/ssh.ts'
import type { Transport } from '../../src/node/transport.ts'
import { openTunnel } from '../../src/node/tunnel.ts'
import { startProcess } from '../../src/system/running-program.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'
import { deadPort } from './ports.ts'
import { startSshd, whyNoSshd } from './sshd.ts'

const folder = temporaryFolder('tunnel')
let server: Server
let port: number

beforeAll(async () => {
  // Echoes its input, and closes the connection when it reads "bye".
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      socket.write(bytes)
      if (bytes.includes('bye')) socket.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})

afterAll(() => {
  server.close()
})

async function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function tunnelContract(title: string, transport: () => Transport): void {
  describe(title, () => {
    test('passes all byte values unchanged in both directions, and ends when the far side ends', async () => {
      const stream = openTunnel(transport(), '127.0.0.1', port)
      const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 7) % 256))
      stream.write(bytes)
      stream.write('bye')
      expect((await readAll(stream)).equals(Buffer.concat([bytes, Buffer.from('bye')]))).toBe(true)
    })

    test('reports a port without a listener as an error', async () => {
      const stream = openTunnel(transport(), '127.0.0.1', deadPort)
      await expect(readAll(stream)).rejects.toThrow(/refused/i)
    })

    test('closes the connection at the far end when the stream is destroyed', async () => {
      const gone = once(server, 'connection').then(([socket]) => once(socket, 'close'))
      const stream = openTunnel(transport(), '127.0.0.1', port)
      stream.write('hello')
      await once(stream, 'data')
      stream.destroy()
      await gone
    })
  })
}

tunnelContract('from this machine', () => localTransport())
tunnelContract('by a command', () => commandTransport(['env', 'LANG=C']))

test.each(["a'; reboot '", "'; reboot", '-v', '', 'a b', 'a\nb'])(
  'refuses a host that is not a single shell word: %j',
  (host) => {
    expect(() => openTunnel(localTransport(), host, 1)).toThrow(TypeError)
  },
)

describe('with a process on the node that', () => {
  /** Returns a tunnel whose process is this shell script. */
  const tunnelTo = (script: string): Duplex =>
    openTunnel({ ...localTransport(), start: async () => startProcess(['sh', '-c', script]) }, 'node', 1)

  const isRunning = (pid: string): boolean => existsSync(`/proc/${pid}`)

  /** Returns when the process has exited; fails after a second. */
  async function ended(pid: string): Promise<void> {
    const start = performance.now()
    while (isRunning(pid) && performance.now() - start < 1_000) await setImmediate()
    expect(isRunning(pid)).toBe(false)
  }

  /** Returns the first line that the process writes, which is its process id. */
  async function pidFrom(stream: Duplex): Promise<string> {
    const [bytes] = await once(stream, 'data')
    return String(bytes).split('\n', 1)[0]!
  }

  test('cannot be started: the stream fails with the reason', async () => {
    const transport = { ...localTransport(), start: async () => startProcess(['/nonexistent/ssh']) }
    await expect(readAll(openTunnel(transport, 'node', 1))).rejects.toMatchObject({
      code: 'ENOENT',
      message: expect.stringContaining('/nonexistent/ssh'),
    })
  })

  test('reports a failure: the stream fails with its last lines, at most 2 KiB, as a refused connection', async () => {
    const failure = 'for i in 1 2 3 4; do echo line $i >&2; done; exit 1'
    await expect(readAll(tunnelTo(failure))).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      message: 'line 2; line 3; line 4',
    })
    const long = await readAll(tunnelTo('printf "%05000d end" 0 >&2; exit 1')).catch((error) => error)
    expect(long.message).toMatch(/^0+ end$/)
    expect(long.message).toHaveLength(2_048)
  })

  test.each([
    ['warns and succeeds', 'echo warning >&2'],
    ['fails without a message', 'exit 1'],
  ])('%s: the stream ends', async (_, script) => {
    expect(String(await readAll(tunnelTo(`echo bytes; ${script}`)))).toBe('bytes\n')
  })

  test('stops reading before it fails: the stream fails with the message of the process', async () => {
    const uncaught: unknown[] = []
    const listener = (error: unknown): number => uncaught.push(error)
    process.on('uncaughtException', listener)
    onTestFinished(() => void process.off('uncaughtException', listener))
    const stream = tunnelTo('exec <&-; echo ready; sleep 0.01; echo no route >&2; exit 1')
    const failed = once(stream, 'close').catch((error: unknown) => error)
    await once(stream, 'data')
    stream.write('hello')
    expect(await failed).toMatchObject({ message: 'no route' })
    expect(uncaught).toEqual([])
  })

  test('reads to the end: it sees the end of the written bytes', async () => {
    const stream = tunnelTo('cat; echo end')
    const finished = once(stream, 'finish')
    stream.end('bytes,')
    expect(String(await readAll(stream))).toBe('bytes,end\n')
    await finished
  })

  test('writes more than is read: the rest stays on the node', async () => {
    const stream = tunnelTo('head -c 4000000 /dev/zero')
    stream.on('readable', () => {})
    onTestFinished(() => void stream.destroy())
    while (stream.readableLength === 0) await setImmediate()
    await delay(15)
    expect(stream.readableLength).toBeLessThan(1_000_000)
    stream.removeAllListeners('readable')
    expect(await readAll(stream)).toHaveLength(4_000_000)
  })

  test('runs in a process group of its own, so that Ctrl-C reaches only kcert', async () => {
    const stream = tunnelTo('read -r _ _ _ _ group _ </proc/$$/stat; echo "$$ $group"')
    const [pid, group] = String(await readAll(stream))
      .trim()
      .split(' ')
    expect(group).toBe(pid)
  })

  test('writes forever: it ends as soon as the stream is destroyed', async () => {
    const stream = tunnelTo('echo $$; exec yes')
    const pid = await pidFrom(stream)
    stream.destroy()
    await ended(pid)
  })

  test('ignores the end of its input: it is stopped after two seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const stream = tunnelTo('echo $$; exec sleep 60')
    const pid = await pidFrom(stream)
    stream.destroy()
    vi.advanceTimersByTime(1_999)
    expect(isRunning(pid)).toBe(true)
    vi.advanceTimersByTime(1)
    await ended(pid)
  })

  test('ends when its input ends: no timer keeps kcert running', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const stream = tunnelTo('echo $$; cat >/dev/null')
    const pid = await pidFrom(stream)
    stream.destroy()
    expect(vi.getTimerCount()).toBe(1)
    await ended(pid)
    for (let turn = 0; turn < 100 && vi.getTimerCount() > 0; turn++) await setImmediate()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe.skipIf(whyNoSshd !== undefined || !existsSync('/usr/bin/ssh'))('by ssh', () => {
  const connections = sshConnections()
  let sshd: Awaited<ReturnType<typeof startSshd>>

  beforeAll(async () => {
    sshd = await startSshd(join(folder, 'sshd'))
  })

  afterAll(async () => {
    await connections.close()
    await sshd.stop()
  })

  tunnelContract('to this machine', () =>
    connections.transport({ host: 'node', configFile: sshd.configFile }),
  )
})
