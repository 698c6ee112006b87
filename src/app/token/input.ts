import { type BootstrapToken, isTokenId, parseToken } from '../../bootstrap/token.ts'
import type { Context } from '../../cli/context.ts'
import { readSecretText } from '../../cli/input.ts'

/** Returns the id in an operand: six characters, or a complete token, whose secret is discarded. */
export function tokenIdOf(operand: string): string {
  return isTokenId(operand) ? operand : parseToken(operand).id
}

/** Returns the token in a file, a FIFO or on standard input ("-"). Throws KCERT_TOKEN_MALFORMED, which does not repeat it. */
export async function readTokenFile(file: string, context: Context): Promise<BootstrapToken> {
  return parseToken(await readSecretText(file, context))
}
