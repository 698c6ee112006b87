import { constants } from 'node:os'
import { whyFailed } from '../../cli/operator-program.ts'
import { KcertError, messageOf, wordsOf } from '../../errors/kcert-error.ts'
import { writeFileAtomically } from '../../system/atomic-file.ts'
import { textIfReadable } from '../../system/required-file.ts'
import { requiredTrustedFile, trustedPath } from '../../system/trusted-file.ts'

/** The actions after a new certificate is in place. */
export interface AfterRenewal {
  /** A shell command. */
  readonly exec?: string | undefined
  /** "HUP" */
  readonly signal?: string | undefined
  readonly pidFile?: string | undefined
}

/** A command that takes longer is killed. */
const patienceMs = 60_000

/** Returns a signal's name in Node's spelling. Throws KCERT_USAGE. */
export function signalOf(text: string): NodeJS.Signals {
  const name = `SIG${text.toUpperCase().replace(/^SIG/, '')}`
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals
  throw new KcertError('KCERT_USAGE', `--signal ${JSON.stringify(text)} is not a signal`, {
    next: '--signal HUP',
  })
}

/**
 * Throws KCERT_FILE_UNTRUSTED if other users can change the PID file or, before the program has written it, its folder. Without
 * this check, kcert would refuse the file only after the first renewal, months later.
 */
export function checkPidFile(pidFile: string): void {
  try {
    trustedPath('PID file', pidFile)
  } catch (error) {
    // The program may create the folder too, when it starts.
    if (!(error instanceof KcertError && error.code === 'KCERT_FILE_NOT_FOUND')) throw error
  }
}

/** Runs the command, then sends the signal. Throws KCERT_HOOK_FAILED after trying both. */
export async function runHooks(
  { exec, signal, pidFile }: AfterRenewal,
  env: Readonly<Record<string, string | undefined>>,
  note: (text: string) => void,
): Promise<void> {
  const failures: KcertError[] = []
  if (exec !== undefined) {
    const why = await whyFailed(['/bin/sh', '-c', exec], { env, timeoutMs: patienceMs, indent: '  ' }, note)
    if (why !== undefined) failures.push(hookFailure(`--exec ${exec}`, why))
  }
  if (signal !== undefined && pidFile !== undefined) {
    try {
      send(signalOf(signal), pidFile)
    } catch (error) {
      failures.push(error as KcertError)
    }
  }
  if (failures[0] !== undefined) throw failures[0]
}

function send(signal: NodeJS.Signals, pidFile: string): void {
  const what = `--signal ${signal}, to the process of ${pidFile}`
  let text: string
  try {
    // A user who can change the file could have kcert signal any process.
    text = Buffer.from(requiredTrustedFile('PID file', pidFile)).toString('utf8').trim()
  } catch (error) {
    throw hookFailure(what, wordsOf(error))
  }
  // 0 and negative numbers mean process groups.
  if (!/^[1-9]\d{0,9}$/.test(text)) throw hookFailure(what, 'the file contains no process ID')
  try {
    process.kill(Number(text), signal)
  } catch (error) {
    throw hookFailure(what, messageOf(error))
  }
}

function hookFailure(what: string, why: string): KcertError {
  return new KcertError('KCERT_HOOK_FAILED', `the certificate was renewed, but ${what} failed`, { why })
}

/**
 * Records the certificate for which the hooks last ran, in a file next to the pair. After a crash between a renewal and its
 * hooks, the next start runs them.
 */
export class PendingNotification {
  private readonly path: string

  constructor(folder: string, prefix: string) {
    this.path = `${folder}/.${prefix}.told`
  }

  /** Returns undefined at the first start, before any hook ran. */
  read(): string | undefined {
    return textIfReadable(this.path)?.trim()
  }

  write(fingerprint: string): void {
    writeFileAtomically(this.path, `${fingerprint}\n`, { mode: 0o644 })
  }
}
