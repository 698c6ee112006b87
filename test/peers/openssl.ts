import { execFileSync } from 'node:child_process'

/** True when an OpenSSL 3 program is installed for comparison. If not, prints one line. */
export const hasOpenSsl = isThere()
if (!hasOpenSsl) console.log('no comparison with OpenSSL: there is no "openssl" of version 3 here')

function isThere(): boolean {
  try {
    return execFileSync('openssl', ['version'], { stdio: 'pipe' }).toString().startsWith('OpenSSL 3')
  } catch {
    return false
  }
}

/** Returns the program's output for these arguments and this input. */
export function openssl(args: readonly string[], input: Uint8Array | string = ''): Buffer {
  return execFileSync('openssl', args, {
    input,
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  })
}
