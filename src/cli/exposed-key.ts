import { KcertError } from '../errors/kcert-error.ts'

// Private keys and tokens are written to files, and to standard output only if the command line requests that explicitly.

/** Returns the error for output that would print a secret: "a kubeconfig with a token". */
export function wouldBePrinted(what: string, next: string): KcertError {
  return new KcertError('KCERT_KEY_EXPOSED', `${what} would go to standard output`, {
    why: 'output ends up in logs and shell histories',
    next,
  })
}

/** Returns the same error for a secret that a flag allows to print. */
export function printedOnlyByName(what: string, next: string): KcertError {
  return new KcertError('KCERT_KEY_EXPOSED', `${what}, and would go to standard output`, {
    why: 'output ends up in logs and shell histories, so printing a key needs a flag',
    next,
  })
}

/** Returns the error for a key and a report that both go to standard output: `flag` requests the key, `format` the report. */
export function keyBesideReport(flag: string, format: string, next: string): KcertError {
  const what = `${flag} prints the key itself, and -o ${format} a report without it`
  return new KcertError('KCERT_KEY_EXPOSED', what, {
    why: 'reports are stored and shared, so they never contain a key',
    next,
  })
}
