import { KcertError } from '../../src/errors/kcert-error.ts'

/** Returns the code of the thrown KcertError; "nothing" on success. Rethrows any other error. */
export async function codeOf(settings: Promise<unknown>): Promise<string> {
  try {
    await settings
    return 'nothing'
  } catch (error) {
    if (error instanceof KcertError) return error.code
    throw error
  }
}
