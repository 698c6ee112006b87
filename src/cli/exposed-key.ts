import { KcertError } from '../errors/kcert-error.ts'

// Private keys and tokens go into files, and to standard output only where that was asked for by name.

/** Returns the refusal of what would print a secret: "a kubeconfig with a token". */
export function wouldBePrinted(what: string, next: string): KcertError {
  return new KcertError('KCERT_KEY_EXPOSED', `${what} would go to standard output`, {
    why: 'output ends up in logs and shell histories',
    next,
  })
}

/** The same where a flag allows it. */
export function printedOnlyByName(what: string, next: string): KcertError {
  return new KcertError('KCERT_KEY_EXPOSED', `${what}, and would go to standard output`, {
    why: 'output ends up in logs and shell histories, so printing a key needs a flag',
    next,
  })
}

/** Returns the refusal of a key and a report on one standard output: `flag` asks for the key, `format` for the report. */
export function keyBesideReport(flag: string, format: string, next: string): KcertError {
  return new KcertError(
    'KCERT_KEY_EXPOSED',
    `${flag} prints the key itself, and -o ${format} a report without it`,
    {
      why: 'reports are stored and shared, so they never contain a key',
      next,
    },
  )
}
