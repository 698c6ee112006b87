import { KcertError } from '../errors/kcert-error.ts'

/** A bootstrap token: `id` is public and identifies it, only joining nodes have `secret`. */
export interface BootstrapToken {
  /** Six characters of a–z and 0–9. */
  readonly id: string
  /** Sixteen characters of a–z and 0–9. Never printed. */
  readonly secret: string
}

const tokenPattern = /^([a-z0-9]{6})\.([a-z0-9]{16})$/
const idPattern = /^[a-z0-9]{6}$/

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns the token in a text. Throws KCERT_TOKEN_MALFORMED, which does not repeat the text: it may be a secret. */
export function parseToken(text: string): BootstrapToken {
  const [, id, secret] = tokenPattern.exec(text.trim()) ?? []
  if (id !== undefined && secret !== undefined) return { id, secret }
  throw new KcertError('KCERT_TOKEN_MALFORMED', 'invalid bootstrap token', {
    why: 'a token is six characters, a dot and sixteen characters, all of a-z and 0-9',
    next: 'kcert token list',
  })
}

/** Returns the argument of `kubeadm join --token`. It is a secret. */
export function formatToken({ id, secret }: BootstrapToken): string {
  return `${id}.${secret}`
}

/** True for the public ID of a token. */
export function isTokenId(text: string): boolean {
  return idPattern.test(text)
}

/** Returns a new token. Each character is equally likely: bytes that would favor some characters are drawn again. */
export function newToken(random: (count: number) => Uint8Array): BootstrapToken {
  const characters: string[] = []
  // 252 is the largest multiple of 36 that fits in a byte.
  const even = 256 - (256 % alphabet.length)
  while (characters.length < 22)
    for (const byte of random(22 - characters.length))
      if (byte < even) characters.push(alphabet.charAt(byte % alphabet.length))
  const text = characters.join('')
  return { id: text.slice(0, 6), secret: text.slice(6) }
}
