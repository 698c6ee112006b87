import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'

/**
 * Starts OpenSSL's server until the test ends, and returns its port. It sends an alert to a rejected client; node:tls closes the
 * connection without one. `folder` contains server.pem and the files that `words` name.
 */
export async function opensslServer(folder: string, ...words: readonly string[]): Promise<number> {
  const program = spawn(
    'openssl',
    ['s_server', '-accept', '127.0.0.1:0', '-cert', 'server.pem', '-www', ...words],
    { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] },
  )
  onTestFinished(() => ended(program))
  for await (const chunk of program.stdout) {
    const port = /ACCEPT [^\n]*:(\d+)/.exec(String(chunk))?.[1]
    if (port !== undefined) return Number(port)
  }
  throw new Error('openssl s_server did not start')
}

function ended(program: ChildProcess): Promise<void> {
  return new Promise((done) => {
    program.once('close', () => done())
    program.kill()
  })
}
