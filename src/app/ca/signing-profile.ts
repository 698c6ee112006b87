import { builtInProfile, kubernetesProfile, type SigningProfile } from '../../ca/profile.ts'
import { readProfile } from '../../ca/profile-file.ts'
import { grantedTtlMs } from '../../ca/validity.ts'
import type { Context } from '../../cli/context.ts'
import { readTrustedText } from '../../cli/input.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { formatDuration, parseDuration } from '../../pki/duration.ts'
import { isUsage, usages as knownUsages } from '../../pki/usages.ts'
import { goAttributeTypes } from '../../x509/go-name.ts'

export interface ProfileFlags {
  readonly usage: readonly string[] | undefined
  readonly profile: string | undefined
  readonly config: string | undefined
  readonly duration: string | undefined
  readonly 'allow-subject-attributes': readonly string[] | undefined
}

/** Usages and validity of the certificates. */
export interface Terms {
  readonly profile: SigningProfile
  readonly notices: readonly string[]
}

/** Returns the profile of the flags. Throws KCERT_USAGE or KCERT_PROFILE_INVALID. */
export async function termsOf(flags: ProfileFlags, context: Context): Promise<Terms> {
  const requestedMs = flags.duration === undefined ? undefined : durationMs(flags.duration)
  // With --usage there is no profile that limits the validity: --duration is the signer's own.
  const profile =
    flags.usage === undefined ? await namedProfile(flags, context) : profileOfUsages(flags.usage, requestedMs)
  const ttlMs = grantedTtlMs(requestedMs, profile.ttlMs)
  const notices =
    requestedMs === undefined || requestedMs === ttlMs
      ? []
      : [
          `the validity is ${formatDuration(ttlMs)}, ${requestedMs > ttlMs ? "the profile's maximum" : 'the minimum'}`,
        ]
  return { profile: withSubjectAttributes({ ...profile, ttlMs }, flags), notices }
}

/** Returns the profile with the subject attributes of --allow-subject-attributes added. Throws KCERT_USAGE. */
export function withSubjectAttributes(
  profile: SigningProfile,
  { 'allow-subject-attributes': allowed = [] }: Pick<ProfileFlags, 'allow-subject-attributes'>,
): SigningProfile {
  const unknown = allowed.filter((type) => !goAttributeTypes.includes(type))
  if (unknown.length === 0)
    return { ...profile, subjectAttributes: [...new Set([...profile.subjectAttributes, ...allowed])] }
  const what = `invalid subject attribute ${unknown.map((type) => JSON.stringify(type)).join(', ')}`
  throw new KcertError('KCERT_USAGE', what, {
    why: `--allow-subject-attributes takes ${goAttributeTypes.join(', ')}`,
  })
}

async function namedProfile({ profile, config }: ProfileFlags, context: Context): Promise<SigningProfile> {
  if (config !== undefined) {
    const text = await readTrustedText('signing profile', config, context)
    return readProfile(text, config, profile)
  }
  if (profile !== undefined) return builtInProfile(profile)
  throw new KcertError('KCERT_USAGE', '--usage, --profile or --config is required', {
    why: 'the signer decides the usages of a certificate, not the request',
    next: '--profile server',
  })
}

function profileOfUsages(asked: readonly string[], ttlMs: number | undefined): SigningProfile {
  const unknown = asked.filter((usage) => !isUsage(usage))
  if (unknown.length === 0 && asked.length > 0) return kubernetesProfile(asked.filter(isUsage), ttlMs)
  throw new KcertError('KCERT_USAGE', `unknown usage ${unknown.map((usage) => `"${usage}"`).join(', ')}`, {
    why: `Kubernetes has: ${knownUsages.join(', ')}`,
  })
}

/** Returns --duration in milliseconds. Throws KCERT_USAGE unless it is above zero. */
export function durationMs(text: string): number {
  const ms = parseDuration(text, '--duration')
  if (ms > 0) return ms
  throw new KcertError('KCERT_USAGE', `--duration ${text} is not a positive duration`, {
    next: '--duration 8760h',
  })
}
