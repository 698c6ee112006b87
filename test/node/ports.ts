import { createServer } from 'node:net'

/** A port that refuses connections: only root could listen there, and no program does. */
export const deadPort = 1

const first = 20_000
const count = 12_000
let next = (process.pid * 31) % count

/** Returns a port for a program that needs a fixed one. It is outside of the kernel's ephemeral range, so it stays free. */
export async function freePort(): Promise<number> {
  for (;;) {
    next = (next + 1) % count
    const port = first + next
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
