import * as Flag from '../../cli/flags.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { parseDuration } from '../../pki/duration.ts'

/** --expiry and --days of a CA certificate; `otherwise` is the default, for the help. */
export function lifetimeFlags(otherwise: string) {
  return {
    expiry: Flag.value('DURATION', `validity, such as 87600h or 3650d (default ${otherwise})`, {
      exclusive: ['days'],
    }),
    days: Flag.number('N', 'validity in days, instead of --expiry', { min: 1, max: 100_000 }),
  }
}

/** Returns the lifetime from the flags, or undefined. Throws KCERT_USAGE unless it is above zero. */
export function lifetimeMs({
  expiry,
  days,
}: {
  expiry: string | undefined
  days: number | undefined
}): number | undefined {
  const ms =
    days === undefined ? expiry && parseDuration(expiry, '--expiry') : parseDuration(`${days}d`, '--days')
  if (ms === undefined || ms === '') return undefined
  if (ms > 0) return ms
  throw new KcertError('KCERT_USAGE', `--expiry ${expiry} is not a positive duration`, {
    next: '--expiry 87600h',
  })
}
