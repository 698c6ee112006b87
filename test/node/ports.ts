import { createServer } from 'node:net'

/** Nobody but root could listen there, and nobody does: whoever connects is refused. */
export const deadPort = 1

const first = 20_000
const count = 12_000
let next = (process.pid * 31) % count

/** A port for a program that must be told its own. The kernel gives none of these away, so that it is still free in a moment. */
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
