import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import { processContext } from './context.ts'
import { writeOut } from './standard-output.ts'

/** Writes help and versions, for which no command runs. If that fails, it reports the error and sets the exit code. */
export async function print(text: string): Promise<void> {
  try {
    await writeOut(text)
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    process.stderr.write(formatError(error, processContext().stderrColor))
    process.exitCode = error.exitCode
  }
}
