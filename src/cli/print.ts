import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import { processContext } from './context.ts'
import { writeOut } from './standard-output.ts'

/** Writes what was asked for where no command runs, help and versions; says so and sets the exit code where that cannot be. */
export async function print(text: string): Promise<void> {
  try {
    await writeOut(text)
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    process.stderr.write(formatError(error, processContext().stderrColor))
    process.exitCode = error.exitCode
  }
}
