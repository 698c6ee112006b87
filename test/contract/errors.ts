import { KcertError } from '../../src/errors/kcert-error.ts'

/** The code of the KcertError that comes of it; "nothing" when it succeeds. Anything else that is thrown is thrown on. */
export async function codeOf(settings: Promise<unknown>): Promise<string> {
  try {
    await settings
    return 'nothing'
  } catch (error) {
    if (error instanceof KcertError) return error.code
    throw error
  }
}
