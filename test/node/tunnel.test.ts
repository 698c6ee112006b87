import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandTransport } from '../../src/node/command.ts'
import { localTransport } from '../../src/node/local.ts'
import { sshConnections } from '../../src/node/ssh.ts'
import type { Transport } from '../../src/node/transport.ts'
import { openTunnel } from '../../src/node/tunnel.ts'
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

test('refuses a host that is not a single shell word', () => {
  expect(() => openTunnel(localTransport(), "a'; reboot '", 1)).toThrow(TypeError)
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
